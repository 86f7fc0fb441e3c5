//! Formats a status as text, like `wg show` and `wg show dump`.

use crate::event::Event;
use crate::quota::date;
use crate::status::{
    ClassTraffic, PathState, PathStatus, PeerStatus, QuotaStatus, RealtimeStatus, RelayStatus, Traffic, TunnelStatus,
};

/// Minimum width of a terminal, in columns, on which paths are shown as a table.
const TABLE_WIDTH: usize = 100;

/// Formats the status for a terminal of `width` columns.
#[must_use]
pub fn show(status: &TunnelStatus, width: usize) -> String {
    let interface = &status.interface;
    let mut text = format!("interface: {}\n", interface.name);
    let mut line = |key: &str, value: String| text.push_str(&format!("  {key}: {value}\n"));
    if let Some(key) = &interface.public_key {
        line("public key", key.clone());
    }
    line("mode", mode(&status.mode));
    line("addresses", interface.addresses.join(", "));
    line("mtu", format!("{} bytes", interface.mtu_bytes));
    if let Some(version) = &status.program_version {
        line("version", version.clone());
    }
    line("uptime", duration(status.uptime_s));
    line("transfer", format!("{} received, {} sent", bytes(&interface.received), bytes(&interface.sent)));
    let drops = status.drops.iter().filter(|drop| drop.packets > 0);
    let drops: Vec<_> = drops.map(|drop| format!("{} {}", drop.packets, drop.reason.replace('-', " "))).collect();
    if !drops.is_empty() {
        line("dropped packets", drops.join(", "));
    }
    for status in &status.peers {
        text += &peer(status, width);
    }
    text + &notices(status) + &events(status)
}

/// The notices about this host, each with its remedy.
fn notices(status: &TunnelStatus) -> String {
    let lines: String =
        status.notices.iter().map(|notice| format!("  {}\n    remedy: {}\n", notice.text, notice.remedy)).collect();
    if lines.is_empty() { lines } else { format!("\nof this host:\n{lines}") }
}

fn mode(mode: &str) -> String {
    match mode {
        "mpt" => "mpt (not authenticated, not encrypted)".into(),
        name => name.into(),
    }
}

fn peer(peer: &PeerStatus, width: usize) -> String {
    let mut text = format!("\npeer: {}\n", peer.public_key.as_deref().unwrap_or("(none: mpt)"));
    let mut line = |key: &str, value: String| text.push_str(&format!("  {key}: {value}\n"));
    if let Some(name) = &peer.name {
        line("name", name.clone());
    }
    line("allowed ips", if peer.allowed_ips.is_empty() { "(none)".into() } else { peer.allowed_ips.join(", ") });
    let cipher = peer.cipher.as_ref().map_or_else(String::new, |cipher| format!(", {cipher}"));
    match peer.handshake_age_ms {
        Some(ms) => line("latest handshake", format!("{} ago{cipher}", duration(ms / 1e3))),
        None => line("latest handshake", "(none yet)".into()),
    }
    let (ingress, reorder) = (&peer.ingress_queue, &peer.reorder_buffer);
    let backlog = format!("{} packets, {} bytes", ingress.backlog_packets, ingress.backlog_bytes);
    line("ingress queue", format!("{backlog}, {} marked, {} dropped", ingress.marked_packets, ingress.dropped_packets));
    let backlog = format!("{} packets (max {})", reorder.backlog_packets, reorder.max_backlog_packets);
    let timeout = or_dash(reorder.timeout_ms, |ms| format!("{ms:.0} ms"));
    line("reorder buffer", format!("{backlog}, timeout {timeout}, {} late", reorder.late_packets));
    if let Some(reason) = &peer.controller_failure {
        line("policy", format!("failed, a classical algorithm is in its place: {reason}"));
    }
    if let Some(status) = &peer.realtime {
        let RealtimeStatus { traffic, moves, copied_packets, first_copies, wasted_copies, .. } = status;
        let copies = format!("{copied_packets} packets ({first_copies} came first, {wasted_copies} not needed)");
        line("real-time", format!("{}, {moves} moves", class(traffic)));
        line("real-time copies", copies);
        line("bulk", peer.bulk.as_ref().map_or_else(|| "nothing yet".into(), class));
    }
    if let Some(status) = &peer.relay {
        line("relay", relay(status));
    }
    text += &if width >= TABLE_WIDTH { table(&peer.paths) } else { peer.paths.iter().map(lines).collect() };
    let shared_key = peer.shared_key().map(|(cause, remedy)| format!("  {cause}\n    remedy: {remedy}\n"));
    text + &shared_key.unwrap_or_default() + &quotas(&peer.paths) + &causes(&peer.paths)
}

/// The used quotas of the paths.
fn quotas(paths: &[PathStatus]) -> String {
    let quotas = paths.iter().filter_map(|path| Some((path, path.quota?)));
    let line = |(path, quota): (&PathStatus, QuotaStatus)| {
        let percent = quota.used_bytes as f64 / quota.limit_bytes.max(1) as f64 * 100.0;
        let [used, limit] = [quota.used_bytes, quota.limit_bytes].map(decimal_bytes);
        let role = if quota.exceeded { "; a backup until then" } else { "" };
        let reset = date(quota.resets_unix_ms / 1000);
        format!("  {}: {used} of its quota of {limit} used ({percent:.0}%), resets on {reset}{role}\n", path.name)
    };
    quotas.map(line).collect()
}

/// The sent traffic of a class, and the mean wait of its packets for a path.
fn class(traffic: &ClassTraffic) -> String {
    let (bytes, wait_ms) = (byte_count(traffic.bytes), traffic.mean_wait_ms());
    format!("{} packets, {bytes}, mean wait {wait_ms:.1} ms", traffic.packets)
}

/// The causes of paths that carry no data, each with its remedy.
fn causes(paths: &[PathStatus]) -> String {
    let causes = paths.iter().filter_map(|path| Some((path, path.cause.as_ref()?)));
    causes.map(|(path, cause)| format!("  {}: {}\n    remedy: {}\n", path.name, cause.text, cause.remedy)).collect()
}

/// The latest events with their ages.
fn events(status: &TunnelStatus) -> String {
    if status.events.is_empty() {
        return String::new();
    }
    let line = |event: &Event| {
        let age = duration(status.unix_ms.saturating_sub(event.unix_ms) as f64 / 1e3);
        format!("  {age} ago: {}{}\n", subject(event, status.peers.len() > 1), event.message)
    };
    format!("\nlatest events:\n{}", status.events.iter().map(line).collect::<String>())
}

/// The subject of an event: the path, and the peer if the path does not determine it.
fn subject(event: &Event, has_several_peers: bool) -> String {
    let path = event.path.as_ref().map_or_else(String::new, |path| format!("{path}: "));
    if !has_several_peers && !path.is_empty() {
        return path;
    }
    let key = || Some(format!("peer {}", event.peer.as_ref()?.get(..8)?));
    let peer = event.peer_name.clone().or_else(key);
    peer.map_or_else(String::new, |peer| format!("{peer}: ")) + &path
}

fn relay(relay: &RelayStatus) -> String {
    let RelayStatus { connections, opened_connections, accepted_connections, not_relayed_connections, .. } = relay;
    let connections =
        format!("{connections} connections, {opened_connections} opened, {accepted_connections} accepted");
    let [received, sent] = [relay.received_bytes, relay.sent_bytes].map(byte_count);
    let transfer = format!("{connections}, {not_relayed_connections} not relayed, {received} received, {sent} sent");
    if relay.peer_relays { transfer } else { format!("{transfer} (the peer does not relay)") }
}

const HEADING: [&str; 9] = ["path", "state", "srtt", "loss", "send rate", "share", "pmtu", "transfer", "remote"];

/// One line for each path.
fn table(paths: &[PathStatus]) -> String {
    let rows: Vec<[String; 9]> = paths.iter().map(cells).collect();
    let width = |column: usize| {
        rows.iter().map(|row| row[column].chars().count()).chain([HEADING[column].len()]).max().unwrap_or(0)
    };
    let row = |cells: &[String; 9]| {
        let cells = cells.iter().enumerate().map(|(column, cell)| format!("{cell:<0$}", width(column)));
        format!("  {}\n", cells.collect::<Vec<_>>().join("  ").trim_end())
    };
    row(&HEADING.map(String::from)) + &rows.iter().map(row).collect::<String>()
}

/// Two lines for a path.
fn lines(path: &PathStatus) -> String {
    let [name, state, srtt, loss, rate, share, pmtu, transfer, remote] = cells(path);
    format!(
        "  path {name}: {state}, srtt {srtt}, {loss} loss, {rate}, share {share}\n    pmtu {pmtu}, {transfer}, remote {remote}\n"
    )
}

/// The send rate, and what the path can carry.
fn rate(path: &PathStatus) -> String {
    let capacity = path.capacity_bps.map_or_else(String::new, |capacity| format!(" of {}", bits(capacity)));
    let is_shown = path.state == PathState::Up || path.send_rate_bps > 0;
    if is_shown { bits(path.send_rate_bps) + &capacity } else { "-".into() }
}

fn cells(path: &PathStatus) -> [String; 9] {
    let flags = [(path.backup, " backup"), (path.metered, " metered"), (path.secondary, " secondary")];
    let flags: String = flags.into_iter().filter_map(|(is_set, flag)| is_set.then_some(flag)).collect();
    [
        path.name.clone(),
        format!("{}{flags}", path.condition),
        or_dash(path.srtt_ms, |srtt| format!("{srtt:.1} ms")),
        or_dash(path.loss_ratio, percent),
        rate(path),
        or_dash(path.send_share, |share| format!("{:.0}%", share * 100.0)),
        or_dash(path.pmtu_bytes, |bytes| bytes.to_string()),
        format!("{} in, {} out", bytes(&path.received), bytes(&path.sent)),
        path.remote.clone().unwrap_or("-".into()),
    ]
}

/// Formats the status for scripts, as `wg show dump`: fields separated by tabs, the interface first, then a line for
/// each peer, each followed by its paths. Existing columns never change; new ones are added at the end.
#[must_use]
pub fn dump(status: &TunnelStatus) -> String {
    let text_or_none = |text: &Option<String>| text.clone().unwrap_or("(none)".into());
    let interface = &status.interface;
    let first_columns =
        ["interface".into(), interface.name.clone(), text_or_none(&interface.public_key), status.mode.clone()];
    let mut rows = vec![first_columns.into_iter().chain([interface.mtu_bytes.to_string()]).collect()];
    for peer in &status.peers {
        let handshake = peer.handshake_age_ms.map_or("0".into(), |ms| format!("{ms:.0}"));
        let name = text_or_none(&peer.name);
        rows.push(vec!["peer".into(), text_or_none(&peer.public_key), peer.allowed_ips.join(","), handshake, name]);
        rows.extend(peer.paths.iter().map(|path| {
            let srtt = path.srtt_ms.map_or("0".into(), |srtt| format!("{srtt:.3}"));
            let numbers =
                [path.send_rate_bps, path.pmtu_bytes.unwrap_or(0).into(), path.received.bytes, path.sent.bytes];
            let first_columns =
                ["path".into(), path.name.clone(), path.state.as_str().into(), text_or_none(&path.remote), srtt];
            let ratios = [path.loss_ratio, path.send_share].map(|ratio| format!("{:.4}", ratio.unwrap_or(0.0)));
            first_columns.into_iter().chain(ratios).chain(numbers.map(|number| number.to_string())).collect()
        }));
    }
    rows.into_iter().map(|row: Vec<String>| row.join("\t") + "\n").collect()
}

/// A value as text; `-` if there is none.
pub(crate) fn or_dash<T>(value: Option<T>, text: impl FnOnce(T) -> String) -> String {
    value.map_or_else(|| "-".into(), text)
}

/// `0.2%`, of a share from 0 to 1.
pub(crate) fn percent(share: f64) -> String {
    format!("{:.1}%", share * 100.0)
}

/// `1h 2m 5s`, without leading zeros.
pub(crate) fn duration(seconds: f64) -> String {
    let seconds = seconds as u64;
    let parts = [(seconds / 86_400, "d"), (seconds / 3600 % 24, "h"), (seconds / 60 % 60, "m"), (seconds % 60, "s")];
    let parts: Vec<_> =
        parts.into_iter().skip_while(|(count, _)| *count == 0).map(|(count, unit)| format!("{count}{unit}")).collect();
    if parts.is_empty() { "0s".into() } else { parts.join(" ") }
}

/// `12.3 Mbit/s`.
pub(crate) fn bits(bps: u64) -> String {
    scaled(bps as f64, 1000.0, &["bit/s", "kbit/s", "Mbit/s", "Gbit/s", "Tbit/s"])
}

/// `1.3 GiB`, as `wg show` has it.
fn bytes(traffic: &Traffic) -> String {
    byte_count(traffic.bytes)
}

/// `50.0 GB`, as quotas are written.
pub(crate) fn decimal_bytes(bytes: u64) -> String {
    scaled(bytes as f64, 1000.0, &["B", "kB", "MB", "GB", "TB", "PB"])
}

fn byte_count(bytes: u64) -> String {
    scaled(bytes as f64, 1024.0, &["B", "KiB", "MiB", "GiB", "TiB", "PiB"])
}

fn scaled(mut value: f64, step: f64, units: &[&str]) -> String {
    let mut larger_units = units.iter();
    let mut unit = larger_units.next().unwrap_or(&"");
    while value >= step {
        let Some(next) = larger_units.next() else { break };
        (value, unit) = (value / step, next);
    }
    if unit == &units[0] { format!("{value:.0} {unit}") } else { format!("{value:.1} {unit}") }
}
