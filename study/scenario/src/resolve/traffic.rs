//! The flows and their hosts.

use super::checks::{bytes, find, positive, unique};
use super::multipath;
use super::requests::requests;
use crate::file::{self, File, Kind, Profile};
use crate::model::{
    AlgorithmChoice, Application, Flow, FlowKind, Host, LossRecovery, Multipath, Path, Route, TcpRmem, Tunnel,
};
use parse::{Diagnostic, Spanned};
use std::ops::Range;
use units::{Instant, Span};

/// Linux's default congestion control.
pub(crate) const CONGESTION: &str = "cubic";
/// The most flows of one `count`, so that a typing error does not exhaust the memory.
const MAX_FLOWS: u32 = 10_000;
/// IPv4 and UDP headers, bytes.
pub(super) const IPV4_UDP_HEADER_BYTES: u32 = 28;
/// The additional bytes of an IPv6 header.
pub(super) const IPV6_EXTRA_BYTES: u32 = 20;

pub(super) fn flows(file: &File, paths: &[Path], tunnel: Option<&Tunnel>) -> Result<Vec<Flow>, Diagnostic> {
    if file.flow.is_empty() {
        let diagnostic =
            Diagnostic::new(file.name.span(), "the scenario has no flow, so nothing would be sent").with_key("flow");
        return Err(diagnostic.with_help("[[flow]] with name = \"tcp\", congestion = \"cubic\""));
    }
    let mut flows: Vec<Flow> = Vec::new();
    for at in &file.flow {
        let given = at.get();
        let route = route(at, paths, tunnel.is_some())?;
        let kind = match (given.kind, route) {
            (Kind::Udp, Route::Path(path)) => udp(at, paths[path].mtu)?,
            (Kind::Udp, _) => udp(at, tunnel.expect("a flow goes into a tunnel only where there is one").mtu)?,
            _ => tcp(given, paths, &file.host)?,
        };
        if let FlowKind::Tcp { host, multipath, .. } = &kind {
            check_packet_size(given, host, multipath.as_deref(), mtu(route, multipath.as_deref(), paths, tunnel))?;
        }
        for (name, start) in copies(given)? {
            let name = unique("flow", &name, given.name.span(), flows.iter().map(|flow| flow.name.as_str()))?;
            let start_within = given.start_within.map_or(Span::ZERO, |within| within.0);
            let stop = stop(given, start + start_within)?;
            flows.push(Flow { name, route, start, start_within, stop, kind: kind.clone() });
        }
    }
    Ok(flows)
}

/// The largest packet of a flow; with subflows that of the path with the least.
fn mtu(route: Route, multipath: Option<&Multipath>, paths: &[Path], tunnel: Option<&Tunnel>) -> u32 {
    let subflows = multipath.into_iter().flat_map(|multipath| &multipath.subflows);
    let least = subflows.map(|subflow| paths[subflow.path].mtu).min();
    match route {
        Route::Path(path) => paths[path].mtu,
        Route::Tunnel | Route::Subflows => least.or(tunnel.map(|tunnel| tunnel.mtu)).expect("it goes somewhere"),
    }
}

/// Checks that headers and payload fit into a packet.
fn check_packet_size(
    given: &file::Flow,
    host: &Host,
    multipath: Option<&Multipath>,
    mtu: u32,
) -> Result<(), Diagnostic> {
    let headers =
        host.ip_header + 20 + if host.timestamps { 12 } else { 0 } + multipath.map_or(0, |it| it.dss_option_bytes);
    match host.mss {
        None if headers >= mtu => {
            let message = format!("headers of {headers} bytes leave no room for data in packets of {mtu}");
            Err(Diagnostic::new(given.name.span(), message).with_help("let `mtu` be larger"))
        }
        Some(mss) if u64::from(mss) + u64::from(headers) > u64::from(mtu) => {
            let message = format!("segments of {mss} bytes and {headers} of headers do not fit into packets of {mtu}");
            Err(Diagnostic::new(given.name.span(), message).with_help("let `mss` be smaller, or `mtu` larger"))
        }
        _ => Ok(()),
    }
}

fn route(at: &Spanned<file::Flow>, paths: &[Path], tunnel: bool) -> Result<Route, Diagnostic> {
    let names = || paths.iter().map(|path| path.name.as_str());
    if at.get().kind == Kind::Mptcp {
        return Ok(Route::Subflows);
    }
    match &at.get().path {
        Some(path) => find("path", path.get(), path.span(), names()).map(Route::Path),
        None if tunnel => Ok(Route::Tunnel),
        None if paths.len() == 1 => Ok(Route::Path(0)),
        None => {
            let diagnostic =
                Diagnostic::new(at.get().name.span(), "there are several paths and no tunnel: which one does it take?");
            Err(diagnostic.with_help(format!("add `path = ...`: {}", names().collect::<Vec<_>>().join(", "))))
        }
    }
}

/// Names and starts of `count` flows, or of the one.
fn copies(given: &file::Flow) -> Result<Vec<(String, Instant)>, Diagnostic> {
    let name = &given.name.get().0;
    let start = Instant::ZERO + given.start.map_or(Span::ZERO, |start| start.0);
    let Some(count) = &given.count else {
        return match &given.stagger {
            Some(stagger) => Err(Diagnostic::new(stagger.span(), "`stagger` goes with `count`")),
            None => Ok(vec![(name.clone(), start)]),
        };
    };
    if *positive("count", count, |count| u64::from(*count))? > MAX_FLOWS {
        return Err(Diagnostic::new(count.span(), format!("at most {MAX_FLOWS} flows of a kind")));
    }
    let stagger = given.stagger.as_ref().map_or(Span::ZERO, |stagger| stagger.get().0);
    Ok((0..*count.get()).map(|n| (format!("{name}-{}", n + 1), start + stagger * u64::from(n))).collect())
}

fn stop(given: &file::Flow, start: Instant) -> Result<Option<Instant>, Diagnostic> {
    let Some(stop) = &given.stop else {
        return Ok(None);
    };
    let at = Instant::ZERO + stop.get().0;
    match at > start {
        true => Ok(Some(at)),
        false => {
            let message = format!("the flow would stop at {}, before it starts at {}", stop.get().0, Span(start.0));
            Err(Diagnostic::new(stop.span(), message))
        }
    }
}

/// A TCP or MPTCP flow.
fn tcp(given: &file::Flow, paths: &[Path], defaults: &file::Host) -> Result<FlowKind, Diagnostic> {
    let multipath = match given.kind {
        Kind::Mptcp => {
            refuse_keys(
                "mptcp",
                [("packet", span(&given.packet)), ("path", span(&given.path)), ("requests", span(&given.requests))],
            )?;
            Some(Box::new(multipath::multipath(given, paths)?))
        }
        _ => {
            refuse_keys("tcp", [("packet", given.packet.as_ref().map(Spanned::span))])?;
            refuse_keys("tcp", multipath_keys(given))?;
            None
        }
    };
    let size = given.size.as_ref().map(|size| positive("size", size, |size| size.0)).transpose()?;
    let mut host = Host::default();
    set_host(&mut host, defaults)?;
    given.host.as_ref().map_or(Ok(()), |own| set_host(&mut host, own.get()))?;
    let congestion = given.congestion.as_ref().map(|congestion| congestion.get().0.clone());
    let congestion = congestion.unwrap_or_else(|| AlgorithmChoice::from(CONGESTION));
    let size = size.map(|size| size.0);
    Ok(FlowKind::Tcp { congestion, application: application(given)?, size, host: Box::new(host), multipath })
}

/// The keys of MPTCP flows only.
fn multipath_keys(given: &file::Flow) -> [(&'static str, Option<Range<usize>>); 4] {
    let file::Flow { paths, subflow, scheduler, mptcp, .. } = given;
    [("paths", span(paths)), ("subflow", span(subflow)), ("scheduler", span(scheduler)), ("mptcp", span(mptcp))]
}

fn span<T>(value: &Option<Spanned<T>>) -> Option<Range<usize>> {
    value.as_ref().map(Spanned::span)
}

fn application(given: &file::Flow) -> Result<Application, Diagnostic> {
    let (rate, write) = (given.rate.as_ref(), given.write.as_ref());
    let others = [("rate", rate.map(Spanned::span)), ("write", write.map(Spanned::span)), ("size", span(&given.size))];
    let other = others.into_iter().find_map(|(key, span)| Some((key, span?)));
    let refuse_other = |what: &str, other: Option<(&str, Range<usize>)>| match other {
        Some((key, span)) => Err(Diagnostic::new(span, format!("a flow of {what} has no `{key}` of its own"))),
        None => Ok(()),
    };
    if let Some(video) = &given.video {
        refuse_other("video", span(&given.requests).map(|span| ("requests", span)).or(other))?;
        return video.get().resolve(video.span()).map(|video| Application::Video(Box::new(video)));
    }
    if let Some(given_requests) = &given.requests {
        refuse_other("requests", other)?;
        return requests(given_requests.get()).map(Application::Requests);
    }
    match (rate, write) {
        (Some(rate), None) => Ok(Application::Steady { rate: rate.get().0, write: None }),
        (Some(rate), Some(write)) => {
            let write = positive("write", write, |write| write.0)?.0;
            Ok(Application::Steady { rate: rate.get().0, write: Some(write) })
        }
        (None, Some(write)) => Err(Diagnostic::new(write.span(), "`write` goes with `rate`")),
        (None, None) => Ok(Application::Greedy),
    }
}

fn udp(at: &Spanned<file::Flow>, mtu: u32) -> Result<FlowKind, Diagnostic> {
    let given = at.get();
    let congestion = given.congestion.as_ref().map(Spanned::span);
    let (size, host) = (given.size.as_ref().map(Spanned::span), given.host.as_ref().map(Spanned::span));
    let (write, requests) = (given.write.as_ref().map(Spanned::span), given.requests.as_ref().map(Spanned::span));
    let keys = [("congestion", congestion), ("size", size), ("host", host), ("write", write), ("requests", requests)];
    refuse_keys("udp", keys)?;
    refuse_keys("udp", [("video", span(&given.video))])?;
    refuse_keys("udp", multipath_keys(given))?;
    let (Some(rate), Some(packet)) = (&given.rate, &given.packet) else {
        let diagnostic = Diagnostic::new(given.name.span(), "a udp flow needs `rate` and `packet`");
        return Err(diagnostic.with_help("for example rate = \"10mbit\", packet = \"1000b\""));
    };
    match bytes(packet)? {
        bytes if bytes <= IPV4_UDP_HEADER_BYTES => {
            Err(Diagnostic::new(packet.span(), "IP and UDP headers alone take 28 bytes"))
        }
        bytes if bytes > mtu => {
            Err(Diagnostic::new(packet.span(), format!("the packet does not fit into the MTU of {mtu} bytes")))
        }
        bytes => Ok(FlowKind::ConstantRate { rate: rate.get().0, packet: bytes }),
    }
}

/// Refuses keys of another kind of flow.
fn refuse_keys<const N: usize>(kind: &str, keys: [(&str, Option<Range<usize>>); N]) -> Result<(), Diagnostic> {
    let article = if kind == "mptcp" { "an" } else { "a" };
    match keys.into_iter().find_map(|(key, span)| span.map(|span| (key, span))) {
        Some((key, span)) => Err(Diagnostic::new(span, format!("{article} {kind} flow has no `{key}`"))),
        None => Ok(()),
    }
}

/// Sets the fields that `given` has.
fn set_host(host: &mut Host, given: &file::Host) -> Result<(), Diagnostic> {
    match given.profile {
        Some(Profile::Linux) => *host = Host::default(),
        Some(Profile::Ns2) => *host = Host::ns2(),
        None => {}
    }
    if let Some(mss) = &given.mss {
        host.mss = Some(positive("mss", mss, |mss| mss.0).and_then(|_| bytes(mss))?);
    }
    if let Some(ip) = &given.ip {
        host.ip_header = match ip.get() {
            4 => 20,
            6 => 40,
            _ => return Err(Diagnostic::new(ip.span(), "there is no such version of IP").with_help("ip = 4 or ip = 6")),
        };
    }
    if let Some(window) = &given.initial_window {
        host.initial_window = *positive("initial_window", window, |window| u64::from(*window))?;
    }
    if let Some(gro) = &given.gro {
        host.gro = *positive("gro", gro, |gro| u64::from(*gro))?;
    }
    if let Some(buffer) = &given.receive_buffer {
        let [min, default, max] = buffer.get().map(|size| size.0);
        if min == 0 || min > default || default > max {
            let diagnostic = Diagnostic::new(buffer.span(), "min, default, max: they must ascend");
            return Err(diagnostic.with_help("Linux's: [\"4096b\", \"131072b\", \"6291456b\"]"));
        }
        host.receive_buffer = TcpRmem { min, default, max };
    }
    if let Some(buffer) = &given.send_buffer {
        host.send_buffer = positive("send_buffer", buffer, |buffer| buffer.0)?.0;
    }
    if let Some(tick) = &given.tick {
        host.tick = positive("tick", tick, |tick| tick.0.0)?.0;
    }
    if let Some(timeout) = &given.initial_rto {
        host.initial_rto = positive("initial_rto", timeout, |timeout| timeout.0.0)?.0;
    }
    if let Some(recovery) = given.recovery {
        host.recovery = match recovery {
            file::LossRecovery::Rack => LossRecovery::Rack,
            file::LossRecovery::Fack => LossRecovery::Fack,
        };
    }
    host.window = given.window.map(|window| window.0).or(host.window);
    host.handshake = given.handshake.unwrap_or(host.handshake);
    host.timestamps = given.timestamps.unwrap_or(host.timestamps);
    host.sack = given.sack.unwrap_or(host.sack);
    host.ecn = given.ecn.unwrap_or(host.ecn);
    host.quick_ack = given.quick_ack.unwrap_or(host.quick_ack);
    host.pacing = given.pacing.unwrap_or(host.pacing);
    host.reordering = given.reordering.unwrap_or(host.reordering);
    host.max_reordering = given.max_reordering.unwrap_or(host.max_reordering);
    Ok(())
}
