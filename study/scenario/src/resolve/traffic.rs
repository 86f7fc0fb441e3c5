//! The flows and their hosts.

use super::checks::{Names, algorithm, check_positive, find, parse_bytes};
use super::requests::requests;
use super::{fat_tree, hosted, multipath};
use crate::file::{self, File, FlowDirection, Kind, Profile};
use crate::files::Files;
use crate::model::{
    AlgorithmChoice, Application, Flow, FlowKind, Host, LossRecovery, Mptcp, Multipath, MultipathTransport, Path,
    Route, SendBufferRule, TcpRmem, Tunnel,
};
use parse::{Diagnostic, Spanned};
use std::ops::Range;
use transport::quic::STREAM_PACKET_OVERHEAD;
use units::{Instant, Span};

/// Linux's default congestion control.
pub(crate) const CONGESTION: &str = "cubic";
/// A flow fills its first buffer before it sends, segment by segment, so the buffer is bounded.
const MAX_INITIAL_SEND_BUFFER: u64 = 1 << 30;
/// The maximum number of flows of one `count`, so that a typing error does not exhaust the memory.
const MAX_FLOWS: u32 = 10_000;
/// IPv4 and UDP headers, bytes.
pub(super) const IPV4_UDP_HEADER_BYTES: u32 = 28;
/// The additional bytes of an IPv6 header.
pub(super) const IPV6_EXTRA_BYTES: u32 = 20;

pub(super) fn flows(
    file: &File,
    paths: &[Path],
    tunnel: Option<&Tunnel>,
    files: &mut Files,
) -> Result<Vec<Flow>, Diagnostic> {
    if file.flow.is_empty() {
        let diagnostic =
            Diagnostic::new(file.name.span(), "the scenario has no flow, so nothing would be sent").with_key("flow");
        return Err(diagnostic.with_help("[[flow]] with name = \"tcp\", congestion = \"cubic\""));
    }
    let (mut flows, mut names) = (Vec::new(), Names::default());
    // In a fat tree there is one such flow per host, over separate paths.
    let paths_each = file.fat_tree.as_ref().map(|tree| fat_tree::paths_each(tree.get())).transpose()?;
    let (all_paths, paths) = (paths.len(), &paths[..paths_each.unwrap_or(paths.len())]);
    for spanned_table in &file.flow {
        let flow_table = spanned_table.get();
        let route = match paths_each {
            Some(_) => route_in_fat_tree(flow_table)?,
            None => route(spanned_table, paths, tunnel.is_some())?,
        };
        let kind = match (flow_table.kind, route) {
            (Kind::Udp, Route::Path(path)) => udp(spanned_table, paths[path].mtu)?,
            (Kind::Udp, _) => {
                udp(spanned_table, tunnel.expect("a flow goes into a tunnel only where there is one").mtu)?
            }
            (Kind::Hosted, route) => hosted::flow(flow_table, route, paths, &file.host, files)?,
            _ => tcp(flow_table, paths, &file.host, files)?,
        };
        if let FlowKind::Tcp { host, multipath, .. } = &kind {
            check_packet_size(flow_table, host, multipath.as_deref(), mtu(route, multipath.as_deref(), paths, tunnel))?;
            if route == Route::Tunnel && tunnel.is_some_and(|tunnel| tunnel.relay().is_some()) {
                check_relayed(flow_table, host)?;
            }
        }
        let reverse = is_reverse(flow_table, route, tunnel)?;
        let firsts = (0..all_paths).step_by(paths_each.unwrap_or(all_paths).max(1));
        let hosts = paths_each.map(|_| firsts.clone().count() as u32);
        let is_copied = hosts.is_some() || flow_table.count.is_some();
        for ((name, start), first) in copies(flow_table, hosts)?.into_iter().zip(firsts.cycle()) {
            let copy_of = is_copied.then(|| flow_table.name.get().0.clone());
            let name = names.take("flow", &name, flow_table.name.span())?;
            let start_within = flow_table.start_within.map_or(Span::ZERO, |within| within.0);
            let stop = stop(flow_table, start + start_within)?;
            let (route, kind) = from_path(first, route, kind.clone());
            flows.push(Flow { name, copy_of, route, start, start_within, stop, reverse, kind });
        }
    }
    Ok(flows)
}

/// Whether a flow's data goes from the far end to the near end.
fn is_reverse(flow_table: &file::Flow, route: Route, tunnel: Option<&Tunnel>) -> Result<bool, Diagnostic> {
    let Some(direction) = &flow_table.direction else { return Ok(false) };
    let is_reverse = *direction.get() == FlowDirection::Reverse;
    let is_relayed =
        flow_table.kind == Kind::Tcp && route == Route::Tunnel && tunnel.is_some_and(|tunnel| tunnel.relay().is_some());
    if is_reverse && is_relayed {
        let diagnostic = Diagnostic::new(direction.span(), "the simulator relays flows in the forward direction only");
        return Err(diagnostic.with_help("leave out `direction`, or `relay` in [tunnel]"));
    }
    Ok(is_reverse)
}

/// Refuses flows that the simulator's relay does not carry.
fn check_relayed(flow_table: &file::Flow, host: &Host) -> Result<(), Diagnostic> {
    let refused = [("requests", span(&flow_table.requests)), ("video", span(&flow_table.video))];
    let handshake = (!host.handshake).then(|| ("host.handshake", flow_table.name.span()));
    let refused = refused.into_iter().find_map(|(key, span)| Some((key, span?))).or(handshake);
    let Some((key, span)) = refused else { return Ok(()) };
    let message = match key {
        "host.handshake" => "a relayed flow opens its connection by a handshake".to_owned(),
        _ => format!("a relayed flow has no `{key}`: the simulator relays only data that one side sends by itself"),
    };
    Err(Diagnostic::new(span, message).with_help("name a `path`, or leave out `relay` in [tunnel]"))
}

/// The largest packet of a flow; with subflows that of the path with the smallest.
fn mtu(route: Route, multipath: Option<&Multipath>, paths: &[Path], tunnel: Option<&Tunnel>) -> u32 {
    let subflows = multipath.into_iter().flat_map(|multipath| &multipath.subflows);
    let min_mtu = subflows.map(|subflow| paths[subflow.path].mtu).min();
    match route {
        Route::Path(path) => paths[path].mtu,
        Route::Tunnel | Route::Subflows => min_mtu.or(tunnel.map(Tunnel::tcp_mtu)).expect("it goes somewhere"),
    }
}

/// Checks that headers and payload fit into a packet.
fn check_packet_size(
    flow_table: &file::Flow,
    host: &Host,
    multipath: Option<&Multipath>,
    mtu: u32,
) -> Result<(), Diagnostic> {
    let tcp_header = 20 + if host.timestamps { 12 } else { 0 };
    let headers = host.ip_header
        + match multipath.map(|multipath| &multipath.transport) {
            None => tcp_header,
            Some(MultipathTransport::Mptcp(Mptcp { dss_option_bytes, .. })) => tcp_header + dss_option_bytes,
            Some(MultipathTransport::Quic(_)) => STREAM_PACKET_OVERHEAD,
        };
    match host.mss {
        None if headers >= mtu => {
            let message = format!("headers of {headers} bytes leave no room for data in packets of {mtu}");
            Err(Diagnostic::new(flow_table.name.span(), message).with_help("increase `mtu`"))
        }
        Some(mss) if u64::from(mss) + u64::from(headers) > u64::from(mtu) => {
            let message = format!("segments of {mss} bytes and {headers} of headers do not fit into packets of {mtu}");
            Err(Diagnostic::new(flow_table.name.span(), message).with_help("reduce `mss`, or increase `mtu`"))
        }
        _ => Ok(()),
    }
}

fn route(spanned_table: &Spanned<file::Flow>, paths: &[Path], tunnel: bool) -> Result<Route, Diagnostic> {
    let names = || paths.iter().map(|path| path.name.as_str());
    let file::Flow { kind, paths: several, .. } = spanned_table.get();
    if matches!(kind, Kind::Mptcp | Kind::Mpquic) || *kind == Kind::Hosted && several.is_some() {
        return Ok(Route::Subflows);
    }
    match &spanned_table.get().path {
        Some(path) => find("path", path.get(), path.span(), names()).map(Route::Path),
        None if tunnel => Ok(Route::Tunnel),
        None if paths.len() == 1 => Ok(Route::Path(0)),
        None => {
            let diagnostic = Diagnostic::new(
                spanned_table.get().name.span(),
                "there are several paths and no tunnel, so the flow must name its path",
            );
            let names = names().collect::<Vec<_>>().join(", ");
            let help = format!("`path = ...` for one of {names}; `kind = \"mptcp\"` for all of them; or a [tunnel]");
            Err(diagnostic.with_help(help))
        }
    }
}

/// The route of a host's flow in a fat tree, counted from the first path of the host.
fn route_in_fat_tree(flow_table: &file::Flow) -> Result<Route, Diagnostic> {
    let file::Flow { path, paths, subflow, count, .. } = flow_table;
    let keys = [("path", span(path)), ("paths", span(paths)), ("subflow", span(subflow)), ("count", span(count))];
    if let Some((key, Some(span))) = keys.into_iter().find(|(_, span)| span.is_some()) {
        let message = format!("a fat tree has a flow for each host, over paths of its own, and no `{key}`");
        return Err(Diagnostic::new(span, message).with_help("`paths` in [fat_tree] is the number of each one's paths"));
    }
    let has_subflows = matches!(flow_table.kind, Kind::Mptcp | Kind::Mpquic);
    Ok(if has_subflows { Route::Subflows } else { Route::Path(0) })
}

/// A flow's route and kind with paths that are counted from `first` on.
fn from_path(first: usize, route: Route, mut kind: FlowKind) -> (Route, FlowKind) {
    kind.subflows_mut().iter_mut().for_each(|subflow| subflow.path += first);
    let route = if let Route::Path(path) = route { Route::Path(path + first) } else { route };
    (route, kind)
}

/// Names and starts of `count` flows, of one for each of `hosts`, or of the only one.
fn copies(flow_table: &file::Flow, hosts: Option<u32>) -> Result<Vec<(String, Instant)>, Diagnostic> {
    let name = &flow_table.name.get().0;
    let start = Instant::ZERO + flow_table.start.map_or(Span::ZERO, |start| start.0);
    if let Some(hosts) = hosts {
        let stagger = flow_table.stagger.as_ref().map_or(Span::ZERO, |stagger| stagger.get().0);
        return Ok((0..hosts).map(|n| (format!("{name}-{}", n + 1), start + stagger * u64::from(n))).collect());
    }
    let Some(count) = &flow_table.count else {
        return match &flow_table.stagger {
            Some(stagger) => Err(Diagnostic::new(stagger.span(), "`stagger` goes with `count`")),
            None => Ok(vec![(name.clone(), start)]),
        };
    };
    if *check_positive("count", count, |count| u64::from(*count))? > MAX_FLOWS {
        return Err(Diagnostic::new(count.span(), format!("at most {MAX_FLOWS} flows of a kind")));
    }
    let stagger = flow_table.stagger.as_ref().map_or(Span::ZERO, |stagger| stagger.get().0);
    Ok((0..*count.get()).map(|n| (format!("{name}-{}", n + 1), start + stagger * u64::from(n))).collect())
}

fn stop(flow_table: &file::Flow, start: Instant) -> Result<Option<Instant>, Diagnostic> {
    let Some(stop) = &flow_table.stop else {
        return Ok(None);
    };
    let stop_time = Instant::ZERO + stop.get().0;
    match stop_time > start {
        true => Ok(Some(stop_time)),
        false => {
            let message = format!("the flow would stop at {}, before it starts at {}", stop.get().0, Span(start.0));
            Err(Diagnostic::new(stop.span(), message))
        }
    }
}

/// A TCP, MPTCP or multipath QUIC flow.
fn tcp(
    flow_table: &file::Flow,
    paths: &[Path],
    defaults: &file::Host,
    files: &mut Files,
) -> Result<FlowKind, Diagnostic> {
    let multipath = match flow_table.kind {
        Kind::Mptcp => {
            refuse_keys(
                "mptcp",
                [
                    ("stack", span(&flow_table.stack)),
                    ("packet", span(&flow_table.packet)),
                    ("path", span(&flow_table.path)),
                    ("quic", span(&flow_table.quic)),
                ],
            )?;
            refuse_new_connections(flow_table)?;
            Some(Box::new(multipath::mptcp(flow_table, paths, files)?))
        }
        Kind::Mpquic => {
            refuse_keys(
                "mpquic",
                [
                    ("stack", span(&flow_table.stack)),
                    ("packet", span(&flow_table.packet)),
                    ("path", span(&flow_table.path)),
                    ("requests", span(&flow_table.requests)),
                    ("video", span(&flow_table.video)),
                    ("mptcp", span(&flow_table.mptcp)),
                ],
            )?;
            flow_table.host.as_ref().map_or(Ok(()), refuse_tcp_keys)?;
            Some(Box::new(multipath::quic(flow_table, paths, files)?))
        }
        _ => {
            refuse_keys("tcp", [("packet", span(&flow_table.packet)), ("stack", span(&flow_table.stack))])?;
            refuse_keys("tcp", multipath_keys(flow_table))?;
            None
        }
    };
    let size = flow_table.size.as_ref().map(|size| check_positive("size", size, |size| size.0)).transpose()?;
    let mut host = Host::default();
    set_host(&mut host, defaults)?;
    flow_table.host.as_ref().map_or(Ok(()), |host_table| set_host(&mut host, host_table.get()))?;
    let congestion = algorithm(flow_table.congestion.as_ref(), AlgorithmChoice::from(CONGESTION), files)?;
    let size = size.map(|size| size.0);
    Ok(FlowKind::Tcp { congestion, application: application(flow_table)?, size, host: Box::new(host), multipath })
}

/// Refuses an MPTCP connection for each request: the simulator's packets do not tell such connections apart.
fn refuse_new_connections(flow_table: &file::Flow) -> Result<(), Diagnostic> {
    match &flow_table.requests {
        Some(requests) if requests.get().connection == file::Connection::New => {
            let diagnostic =
                Diagnostic::new(requests.span(), "the requests of an mptcp flow are all on one connection");
            Err(diagnostic.with_help("leave out `connection`, or let the flow be one of kind \"tcp\""))
        }
        _ => Ok(()),
    }
}

/// Refuses the keys of a flow's own host that do not apply to QUIC. (Those of `[host]` are for all flows.)
fn refuse_tcp_keys(host: &Spanned<file::Host>) -> Result<(), Diagnostic> {
    let table = host.get();
    let keys = [
        ("timestamps", table.timestamps.is_some()),
        ("sack", table.sack.is_some()),
        ("gro", table.gro.is_some()),
        ("send_buffer", table.send_buffer.is_some()),
        ("mptcp_send_buffer", table.mptcp_send_buffer.is_some()),
        ("reordering", table.reordering.is_some()),
        ("max_reordering", table.max_reordering.is_some()),
        ("recovery", table.recovery.is_some()),
        ("initial_rto", table.initial_rto.is_some()),
    ];
    match keys.into_iter().find(|(_, is_set)| *is_set) {
        Some((key, _)) => {
            let message = format!("QUIC has no `{key}`: loss detection is RFC 9002's, and there is no send buffer");
            Err(Diagnostic::new(host.span(), message)
                .with_help("docs/reference/scenario/flow.md lists the keys that it has"))
        }
        None => Ok(()),
    }
}

/// The keys of flows over several paths only.
fn multipath_keys(flow_table: &file::Flow) -> [(&'static str, Option<Range<usize>>); 5] {
    let file::Flow { paths, subflow, scheduler, mptcp, quic, .. } = flow_table;
    [
        ("paths", span(paths)),
        ("subflow", span(subflow)),
        ("scheduler", span(scheduler)),
        ("mptcp", span(mptcp)),
        ("quic", span(quic)),
    ]
}

pub(super) fn span<T>(value: &Option<Spanned<T>>) -> Option<Range<usize>> {
    value.as_ref().map(Spanned::span)
}

fn application(flow_table: &file::Flow) -> Result<Application, Diagnostic> {
    let (rate, write) = (flow_table.rate.as_ref(), flow_table.write.as_ref());
    let other_keys =
        [("rate", rate.map(Spanned::span)), ("write", write.map(Spanned::span)), ("size", span(&flow_table.size))];
    let other_key = other_keys.into_iter().find_map(|(key, span)| Some((key, span?)));
    let refuse_other = |kind: &str, other_key: Option<(&str, Range<usize>)>| match other_key {
        Some((key, span)) => Err(Diagnostic::new(span, format!("a flow of {kind} has no `{key}` of its own"))),
        None => Ok(()),
    };
    if let Some(video) = &flow_table.video {
        refuse_other("video", span(&flow_table.requests).map(|span| ("requests", span)).or(other_key))?;
        return video.get().resolve(video.span()).map(|video| Application::Video(Box::new(video)));
    }
    if let Some(requests_table) = &flow_table.requests {
        refuse_other("requests", other_key)?;
        if let Some(streams) = &requests_table.get().streams {
            return Err(Diagnostic::new(streams.span(), "only the requests of a hosted flow have `streams`"));
        }
        return requests(requests_table.get()).map(Application::Requests);
    }
    match (rate, write) {
        (Some(rate), None) => Ok(Application::Steady { rate: rate.get().0, write: None }),
        (Some(rate), Some(write)) => {
            let write = check_positive("write", write, |write| write.0)?.0;
            Ok(Application::Steady { rate: rate.get().0, write: Some(write) })
        }
        (None, Some(write)) => Err(Diagnostic::new(write.span(), "`write` goes with `rate`")),
        (None, None) => Ok(Application::Greedy),
    }
}

fn udp(spanned_table: &Spanned<file::Flow>, mtu: u32) -> Result<FlowKind, Diagnostic> {
    let flow_table = spanned_table.get();
    let congestion = flow_table.congestion.as_ref().map(Spanned::span);
    let (size, host) = (flow_table.size.as_ref().map(Spanned::span), flow_table.host.as_ref().map(Spanned::span));
    let (write, requests) =
        (flow_table.write.as_ref().map(Spanned::span), flow_table.requests.as_ref().map(Spanned::span));
    let keys = [("congestion", congestion), ("size", size), ("host", host), ("write", write), ("requests", requests)];
    refuse_keys("udp", keys)?;
    refuse_keys("udp", [("video", span(&flow_table.video)), ("stack", span(&flow_table.stack))])?;
    refuse_keys("udp", multipath_keys(flow_table))?;
    let (Some(rate), Some(packet)) = (&flow_table.rate, &flow_table.packet) else {
        let diagnostic = Diagnostic::new(flow_table.name.span(), "a udp flow needs `rate` and `packet`");
        return Err(diagnostic.with_help("for example rate = \"10mbit\", packet = \"1000b\""));
    };
    match parse_bytes(packet)? {
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
pub(super) fn refuse_keys<const N: usize>(
    kind: &str,
    keys: [(&str, Option<Range<usize>>); N],
) -> Result<(), Diagnostic> {
    let article = if kind.starts_with('m') { "an" } else { "a" };
    match keys.into_iter().find_map(|(key, span)| span.map(|span| (key, span))) {
        Some((key, span)) => Err(Diagnostic::new(span, format!("{article} {kind} flow has no `{key}`"))),
        None => Ok(()),
    }
}

/// Sets the fields of send and receive buffers that `table` has.
fn set_buffers(host: &mut Host, table: &file::Host) -> Result<(), Diagnostic> {
    if let Some(buffer) = &table.receive_buffer {
        let [min, default, max] = buffer.get().map(|size| size.0);
        if min == 0 || min > default || default > max {
            let diagnostic = Diagnostic::new(buffer.span(), "minimum, default and maximum must ascend");
            return Err(diagnostic.with_help("Linux's: [\"4096b\", \"131072b\", \"6291456b\"]"));
        }
        host.receive_buffer = TcpRmem { min, default, max };
    }
    if let Some(buffer) = &table.send_buffer {
        host.send_buffer = check_positive("send_buffer", buffer, |buffer| buffer.0)?.0;
    }
    if let Some(buffer) = &table.initial_send_buffer {
        host.initial_send_buffer = check_positive("initial_send_buffer", buffer, |buffer| buffer.0)?.0;
        if host.initial_send_buffer > MAX_INITIAL_SEND_BUFFER {
            let diagnostic = Diagnostic::new(buffer.span(), "a flow would fill more than 1 GiB before it sends");
            return Err(diagnostic.with_help("`initial_send_buffer` is at most \"1GiB\"; `send_buffer` may be more"));
        }
    }
    if let Some(lowat) = &table.notsent_lowat {
        host.notsent_lowat = Some(check_positive("notsent_lowat", lowat, |lowat| lowat.0)?.0);
    }
    Ok(())
}

/// Sets the fields that `table` has.
pub(super) fn set_host(host: &mut Host, table: &file::Host) -> Result<(), Diagnostic> {
    match table.profile {
        Some(Profile::Linux) => *host = Host::default(),
        Some(Profile::Linux6_1) => *host = Host::linux_6_1(),
        Some(Profile::Linux6_12) => *host = Host::linux_6_12(),
        Some(Profile::Linux6_18) => *host = Host::linux_6_18(),
        Some(Profile::Ns2) => *host = Host::ns2(),
        None => {}
    }
    if let Some(mss) = &table.mss {
        host.mss = Some(check_positive("mss", mss, |mss| mss.0).and_then(|_| parse_bytes(mss))?);
    }
    if let Some(ip) = &table.ip {
        host.ip_header = match ip.get() {
            4 => 20,
            6 => 40,
            _ => return Err(Diagnostic::new(ip.span(), "there is no such version of IP").with_help("ip = 4 or ip = 6")),
        };
    }
    if let Some(window) = &table.initial_window {
        host.initial_window = *check_positive("initial_window", window, |window| u64::from(*window))?;
    }
    if let Some(gro) = &table.gro {
        host.gro = *check_positive("gro", gro, |gro| u64::from(*gro))?;
    }
    set_buffers(host, table)?;
    if let Some(tick) = &table.tick {
        host.tick = check_positive("tick", tick, |tick| tick.0.0)?.0;
    }
    if let Some(timeout) = &table.initial_rto {
        host.initial_rto = check_positive("initial_rto", timeout, |timeout| timeout.0.0)?.0;
    }
    if let Some(recovery) = table.recovery {
        host.recovery = match recovery {
            file::LossRecovery::Rack => LossRecovery::Rack,
            file::LossRecovery::Fack => LossRecovery::Fack,
        };
    }
    if let Some(rule) = table.mptcp_send_buffer {
        host.mptcp_send_buffer = match rule {
            file::MptcpSendBuffer::Sum => SendBufferRule::Sum,
            file::MptcpSendBuffer::Largest => SendBufferRule::Largest,
        };
    }
    host.window = table.window.map(|window| window.0).or(host.window);
    host.handshake = table.handshake.unwrap_or(host.handshake);
    host.timestamps = table.timestamps.unwrap_or(host.timestamps);
    host.sack = table.sack.unwrap_or(host.sack);
    host.ecn = table.ecn.unwrap_or(host.ecn);
    host.quick_ack = table.quick_ack.unwrap_or(host.quick_ack);
    host.pacing = table.pacing.unwrap_or(host.pacing);
    host.tso = table.tso.unwrap_or(host.tso);
    host.small_queues = table.small_queues.unwrap_or(host.small_queues);
    host.slow_start_after_idle = table.slow_start_after_idle.unwrap_or(host.slow_start_after_idle);
    host.early_retrans = table.early_retrans.unwrap_or(host.early_retrans);
    host.reordering = table.reordering.unwrap_or(host.reordering);
    host.max_reordering = table.max_reordering.unwrap_or(host.max_reordering);
    Ok(())
}
