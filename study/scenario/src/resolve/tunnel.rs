//! The tunnel: MPT's, or Ropewalk's.

use super::checks::{algorithm, check_positive, find, parse_bytes};
use super::traffic::{CONGESTION, IPV4_UDP_HEADER_BYTES, IPV6_EXTRA_BYTES};
use crate::file::{self, File, Late, Mode, RelayKind};
use crate::files::Files;
use crate::model::{AlgorithmChoice, Device, Nuisances, Path, Relay, Resequence, Ropewalk, Tunnel, WakeUp};
use machine::{RealtimeOptions, TunnelOptions};
use parse::{Diagnostic, Percent, Spanned, Time};
use std::ops::Range;
use units::Span;

/// MPT's default scheduler.
pub(crate) const MPT_SCHEDULER: &str = "packet-round-robin";
/// A GRE header with sequence number, bytes.
const GRE_HEADER_BYTES: u32 = 8;
/// Largest inner packet, as MPT's authors use it.
pub(crate) const MPT_MTU: u32 = 1440;
/// Ropewalk's headers of a fragment: GRE with key and sequence number, the fragment's header, the cipher's tag.
const FRAGMENT_HEADER_BYTES: u32 = 12 + 6 + 16;

pub(super) fn tunnel(
    table: &file::Tunnel,
    file: &File,
    paths: &[Path],
    files: &mut Files,
) -> Result<Tunnel, Diagnostic> {
    refuse_keys_of_the_other_mode(table)?;
    let ipv6 = file.host.ip.as_ref().is_some_and(|ip| *ip.get() == 6);
    let headers = IPV4_UDP_HEADER_BYTES + if ipv6 { IPV6_EXTRA_BYTES } else { 0 };
    let tunnel_paths = paths_of(table, paths)?;
    let weights = weights(table, tunnel_paths.len())?;
    let cycle: u64 = weights.iter().map(|weight| u64::from(*weight)).sum();
    if let Some(first) = table.first.as_ref().filter(|first| u64::from(*first.get()) >= cycle) {
        return Err(Diagnostic::new(first.span(), format!("the round-robin cycle has positions 0 to {}", cycle - 1)));
    }
    let ropewalk =
        (table.mode == Mode::Ropewalk).then(|| ropewalk(table, &file.flow, paths, &tunnel_paths, files)).transpose()?;
    let (overhead, mtu) = match &ropewalk {
        None => (headers + GRE_HEADER_BYTES, MPT_MTU),
        Some(_) => (headers, default_mtu(&tunnel_paths, paths, headers)),
    };
    let mpt_scheduler = table.scheduler.as_ref().filter(|_| table.mode == Mode::Mpt);
    Ok(Tunnel {
        paths: tunnel_paths,
        mpt_scheduler: algorithm(mpt_scheduler, MPT_SCHEDULER.into(), files)?,
        weights,
        first: table.first.as_ref().map_or(0, |first| *first.get()),
        stray_packets: table.stray_packets.as_ref().map_or(0, |packets| *packets.get()),
        overhead: table.overhead.as_ref().map_or(Ok(overhead), parse_bytes)?,
        mtu: table
            .mtu
            .as_ref()
            .map_or(Ok(mtu), |mtu| check_positive("mtu", mtu, |mtu| mtu.0).and_then(|_| parse_bytes(mtu)))?,
        resequence: table.resequence.as_ref().map(Spanned::get).filter(|r| r.window.0 > 0).map(|r| Resequence {
            window: r.window.0,
            timeout: r.timeout.0,
            deliver_late: matches!(r.late, Late::Deliver),
        }),
        device: table
            .device
            .as_ref()
            .map(Spanned::get)
            .map(|device| Device { ring: device.ring.0, socket: device.socket.0 }),
        nuisances: nuisances(table)?,
        ropewalk: ropewalk.map(Box::new),
    })
}

/// The random effects of an MPT tunnel.
fn nuisances(table: &file::Tunnel) -> Result<Nuisances, Diagnostic> {
    let Some(nuisances) = table.nuisances.as_ref().map(Spanned::get) else { return Ok(Nuisances::default()) };
    if let Some(first) = table.first.as_ref().filter(|_| nuisances.draw_first) {
        let diagnostic = Diagnostic::new(first.span(), "`first` is drawn (`nuisances.draw_first`)");
        return Err(diagnostic.with_help("leave out one of the two"));
    }
    if let Some(preemption) = nuisances.preemption.as_ref().filter(|_| nuisances.reader.is_some()) {
        let diagnostic =
            Diagnostic::new(preemption.span(), "a `reader` that wakes up by itself does not preempt the daemon");
        return Err(diagnostic.with_help("leave out one of the two"));
    }
    let interval = nuisances.stray_interval.as_ref();
    let interval = interval.map(|interval| check_positive("stray_interval", interval, |interval| interval.0.0));
    let wake_up = nuisances.wake_up.as_ref().map(|latency| daemon_wake_up(latency, table.device.is_some()));
    let reader = nuisances.reader.as_ref().map(wake_up_of);
    Ok(Nuisances {
        draw_first: nuisances.draw_first,
        stray_interval: interval.transpose()?.map(|interval| interval.0),
        wake_up: wake_up.transpose()?,
        reader: reader.transpose()?,
        preemption: nuisances.preemption.as_ref().map(|acks| *acks.get()),
    })
}

fn wake_up_of(latency: &Spanned<file::WakeUp>) -> Result<WakeUp, Diagnostic> {
    let (least, mean) = (latency.get().least.0, latency.get().mean.0);
    if mean < least {
        return Err(Diagnostic::new(
            latency.span(),
            format!("the mean of {mean} is below the minimum latency of {least}"),
        ));
    }
    Ok(WakeUp { least, mean })
}

fn daemon_wake_up(latency: &Spanned<file::WakeUp>, has_device: bool) -> Result<WakeUp, Diagnostic> {
    let wake_up = wake_up_of(latency)?;
    if !has_device {
        let diagnostic =
            Diagnostic::new(latency.span(), "a daemon with `wake_up` needs a device, where packets wait for it");
        return Err(diagnostic.with_help("add device = { ring = \"1500p\", socket = \"92p\" } to [tunnel]"));
    }
    Ok(wake_up)
}

/// The largest packet that fits into one datagram on every path.
fn default_mtu(tunnel_paths: &[usize], paths: &[Path], headers: u32) -> u32 {
    let min_mtu = tunnel_paths.iter().map(|path| paths[*path].mtu).min().unwrap_or_default();
    min_mtu.saturating_sub(headers + FRAGMENT_HEADER_BYTES).max(1)
}

/// The congestion control of the paths: one that is named, that of a flow, or the default.
fn congestion(
    table: &file::Tunnel,
    flows: &[Spanned<file::Flow>],
    default: AlgorithmChoice,
    files: &mut Files,
) -> Result<AlgorithmChoice, Diagnostic> {
    let Some(of) = &table.congestion_of else { return algorithm(table.congestion.as_ref(), default, files) };
    if table.congestion.is_some() {
        let diagnostic = Diagnostic::new(of.span(), "`congestion` and `congestion_of` say the same thing");
        return Err(diagnostic.with_help("keep one"));
    }
    let names = flows.iter().map(|flow| flow.get().name.get().0.as_str());
    let flow = flows[find("flow", of.get(), of.span(), names)?].get();
    algorithm(flow.congestion.as_ref(), CONGESTION.into(), files)
}

fn ropewalk(
    table: &file::Tunnel,
    flows: &[Spanned<file::Flow>],
    paths: &[Path],
    tunnel_paths: &[usize],
    files: &mut Files,
) -> Result<Ropewalk, Diagnostic> {
    let default = TunnelOptions::default();
    let time = |key: &str, time: &Option<Spanned<Time>>, default: Span| -> Result<Span, Diagnostic> {
        time.as_ref().map_or(Ok(default), |time| check_positive(key, time, |time| time.0.0).map(|time| time.0))
    };
    let memory = table.memory.as_ref().map(|memory| check_positive("memory", memory, |memory| memory.0)).transpose()?;
    let flag = |flag: &Option<Spanned<bool>>, default| flag.as_ref().map_or(default, |flag| *flag.get());
    let options = TunnelOptions {
        congestion: congestion(table, flows, default.congestion, files)?,
        scheduler: algorithm(table.scheduler.as_ref(), default.scheduler, files)?,
        retransmit: flag(&table.retransmit, default.retransmit),
        ack_filter: flag(&table.ack_filter, default.ack_filter),
        in_order: flag(&table.in_order, default.in_order),
        deliver_late: table.late.as_ref().map_or(default.deliver_late, |late| matches!(late.get(), Late::Deliver)),
        max_reorder_timeout: time("max_reorder_timeout", &table.max_reorder_timeout, default.max_reorder_timeout)?,
        probe_interval: time("probe_interval", &table.probe_interval, default.probe_interval)?,
        codel_target: time("codel_target", &table.codel_target, default.codel_target)?,
        codel_interval: time("codel_interval", &table.codel_interval, default.codel_interval)?,
        memory_bytes: memory.map_or(default.memory_bytes, |memory| memory.0),
        realtime: realtime(table)?,
    };
    Ok(Ropewalk {
        options,
        backup: positions(table.backup.as_ref(), paths, tunnel_paths)?,
        metered: positions(table.metered.as_ref(), paths, tunnel_paths)?,
        secondary: secondary(table, paths, tunnel_paths)?,
        offload: flag(&table.offload, Ropewalk::default().offload),
        bundles: flag(&table.bundles, Ropewalk::default().bundles),
        relay: relay(table, files)?,
    })
}

/// The real-time class, if the tunnel has it.
fn realtime(table: &file::Tunnel) -> Result<Option<RealtimeOptions>, Diagnostic> {
    let default = RealtimeOptions::default();
    if !table.realtime.as_ref().is_some_and(|realtime| *realtime.get()) {
        let keys = [
            ("copy_budget", span(&table.copy_budget)),
            ("copy_on_metered", span(&table.copy_on_metered)),
            ("realtime_share", span(&table.realtime_share)),
        ];
        return match keys.into_iter().find_map(|(key, span)| Some((key, span?))) {
            Some((key, span)) => Err(Diagnostic::new(span, format!("`{key}` goes with `realtime = true`"))),
            None => Ok(None),
        };
    }
    let permille = |share: &Option<Spanned<Percent>>, default| {
        share.as_ref().map_or(default, |share| (share.get().0 * 1000.0).round() as u32)
    };
    Ok(Some(RealtimeOptions {
        copy_permille: permille(&table.copy_budget, default.copy_permille),
        copy_on_metered: table.copy_on_metered.as_ref().is_some_and(|flag| *flag.get()),
        share_permille: permille(&table.realtime_share, default.share_permille),
    }))
}

fn relay(table: &file::Tunnel, files: &mut Files) -> Result<Option<Relay>, Diagnostic> {
    let file::Tunnel { relay, relay_congestion, relay_rate, relay_delay, .. } = table;
    let Some(relay) = relay else {
        let keys = [
            ("relay_congestion", span(relay_congestion)),
            ("relay_rate", span(relay_rate)),
            ("relay_delay", span(relay_delay)),
        ];
        return match keys.into_iter().find_map(|(key, span)| Some((key, span?))) {
            Some((key, span)) => {
                Err(Diagnostic::new(span, format!("`{key}` goes with `relay`")).with_help("add relay = \"tcp\""))
            }
            None => Ok(None),
        };
    };
    let default = Relay::default();
    let settings = Relay {
        congestion: algorithm(relay_congestion.as_ref(), default.congestion, files)?,
        rate: relay_rate.as_ref().map_or(default.rate, |rate| rate.get().0),
        delay: relay_delay.as_ref().map_or(default.delay, |delay| delay.get().0),
    };
    Ok((*relay.get() == RelayKind::Tcp).then_some(settings))
}

/// The positions of these paths among the tunnel's paths.
fn positions(
    names: Option<&Spanned<Vec<Spanned<String>>>>,
    paths: &[Path],
    tunnel_paths: &[usize],
) -> Result<Vec<usize>, Diagnostic> {
    let path_names = || tunnel_paths.iter().map(|path| paths[*path].name.as_str());
    let names = names.into_iter().flat_map(Spanned::get);
    names.map(|name| find("path of the tunnel", name.get(), name.span(), path_names())).collect()
}

/// The secondary paths, none of which is a backup.
fn secondary(table: &file::Tunnel, paths: &[Path], tunnel_paths: &[usize]) -> Result<Vec<usize>, Diagnostic> {
    let names =
        |list: &Option<Spanned<Vec<Spanned<String>>>>| list.iter().flat_map(Spanned::get).cloned().collect::<Vec<_>>();
    let backups = [names(&table.backup), names(&table.metered)].concat();
    let is_backup = |name: &&Spanned<String>| backups.iter().any(|backup| backup.get() == name.get());
    match names(&table.secondary).iter().find(is_backup) {
        Some(name) => Err(Diagnostic::new(name.span(), "a secondary path is neither a backup nor metered".to_owned())),
        None => positions(table.secondary.as_ref(), paths, tunnel_paths),
    }
}

fn span<T>(value: &Option<Spanned<T>>) -> Option<Range<usize>> {
    value.as_ref().map(Spanned::span)
}

/// Refuses keys that only the other mode has.
fn refuse_keys_of_the_other_mode(table: &file::Tunnel) -> Result<(), Diagnostic> {
    let mpt_keys = [
        ("kind", span(&table.kind)),
        ("first", span(&table.first)),
        ("stray_packets", span(&table.stray_packets)),
        ("overhead", span(&table.overhead)),
        ("resequence", span(&table.resequence)),
        ("device", span(&table.device)),
        ("nuisances", span(&table.nuisances)),
    ];
    let ropewalk_keys = [
        ("congestion", span(&table.congestion)),
        ("congestion_of", span(&table.congestion_of)),
        ("retransmit", span(&table.retransmit)),
        ("ack_filter", span(&table.ack_filter)),
        ("in_order", span(&table.in_order)),
        ("late", span(&table.late)),
        ("max_reorder_timeout", span(&table.max_reorder_timeout)),
        ("probe_interval", span(&table.probe_interval)),
        ("codel_target", span(&table.codel_target)),
        ("codel_interval", span(&table.codel_interval)),
        ("memory", span(&table.memory)),
        ("backup", span(&table.backup)),
        ("metered", span(&table.metered)),
        ("secondary", span(&table.secondary)),
        ("offload", span(&table.offload)),
        ("bundles", span(&table.bundles)),
        ("realtime", span(&table.realtime)),
        ("copy_budget", span(&table.copy_budget)),
        ("copy_on_metered", span(&table.copy_on_metered)),
        ("realtime_share", span(&table.realtime_share)),
        ("relay", span(&table.relay)),
        ("relay_congestion", span(&table.relay_congestion)),
        ("relay_rate", span(&table.relay_rate)),
        ("relay_delay", span(&table.relay_delay)),
    ];
    let (mode, other_mode, unsupported_keys) = match table.mode {
        Mode::Mpt => ("mpt", "ropewalk", &ropewalk_keys[..]),
        Mode::Ropewalk => ("ropewalk", "mpt", &mpt_keys[..]),
    };
    let Some((key, value)) = unsupported_keys.iter().find_map(|(key, value)| Some((key, value.clone()?))) else {
        return Ok(());
    };
    let diagnostic = Diagnostic::new(value, format!("a tunnel of mode \"{mode}\" has no `{key}`"));
    Err(diagnostic.with_help(format!("leave it out, or set mode = \"{other_mode}\"{}", counterpart(key))))
}

/// The keys of the other mode with the same purpose.
fn counterpart(key: &str) -> &'static str {
    match key {
        "resequence" => "; Ropewalk's reorder buffer is set by `in_order`, `max_reorder_timeout` and `late`",
        "offload" => "; an MPT tunnel sends packets one by one",
        "in_order" | "max_reorder_timeout" | "late" => "; MPT's reorder buffer is set by `resequence`",
        _ => "",
    }
}

fn paths_of(table: &file::Tunnel, paths: &[Path]) -> Result<Vec<usize>, Diagnostic> {
    let Some(names) = &table.paths else {
        return Ok((0..paths.len()).collect());
    };
    let mut indices = Vec::new();
    for name in names.get() {
        let index = find("path", name.get(), name.span(), paths.iter().map(|path| path.name.as_str()))?;
        if indices.contains(&index) {
            return Err(Diagnostic::new(name.span(), format!("the tunnel has `{}` twice", name.get())));
        }
        indices.push(index);
    }
    match indices.is_empty() {
        true => Err(Diagnostic::new(names.span(), "a tunnel needs at least one path")),
        false => Ok(indices),
    }
}

fn weights(table: &file::Tunnel, paths: usize) -> Result<Vec<u32>, Diagnostic> {
    let Some(weights) = &table.weights else {
        return Ok(vec![1; paths]);
    };
    let list = weights.get();
    if list.len() != paths {
        return Err(Diagnostic::new(weights.span(), format!("{} weights for {paths} paths", list.len())));
    }
    match list.contains(&0) {
        true => {
            let diagnostic = Diagnostic::new(weights.span(), "a weight of zero sends nothing over a path");
            Err(diagnostic.with_help("weights start at 1; to leave a path out, name the others in `paths`"))
        }
        false => Ok(list.clone()),
    }
}
