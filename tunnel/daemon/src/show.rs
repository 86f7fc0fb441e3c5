//! A status as people read it, in the manner of `wg show`, and as scripts do.

use crate::status::{Path, Peer, Status, Traffic};

/// Columns below which a path is told in lines instead of a table.
const WIDE: usize = 100;

/// For people, at most `width` columns wide if that can be.
#[must_use]
pub fn show(status: &Status, width: usize) -> String {
    let interface = &status.interface;
    let mut text = format!("interface: {}\n", interface.name);
    let mut line = |key: &str, value: String| text.push_str(&format!("  {key}: {value}\n"));
    if let Some(key) = &interface.public_key {
        line("public key", key.clone());
    }
    line("mode", mode(&status.mode));
    line("addresses", interface.addresses.join(", "));
    line("mtu", format!("{} bytes", interface.mtu_bytes));
    line("up for", duration(status.uptime_s));
    line("transfer", format!("{} received, {} sent", bytes(&interface.written), bytes(&interface.read)));
    let drops = status.drops.iter().filter(|drop| drop.packets > 0);
    let drops: Vec<_> = drops.map(|drop| format!("{} {}", drop.packets, drop.reason.replace('-', " "))).collect();
    if !drops.is_empty() {
        line("dropped packets", drops.join(", "));
    }
    for each in &status.peers {
        text += &peer(each, width);
    }
    text
}

fn mode(mode: &str) -> String {
    match mode {
        "mpt" => "mpt (not authenticated, not encrypted)".into(),
        other => other.into(),
    }
}

fn peer(peer: &Peer, width: usize) -> String {
    let mut text = format!("\npeer: {}\n", peer.public_key.as_deref().unwrap_or("(none: mpt)"));
    let mut line = |key: &str, value: String| text.push_str(&format!("  {key}: {value}\n"));
    line("allowed ips", if peer.allowed_ips.is_empty() { "(none)".into() } else { peer.allowed_ips.join(", ") });
    let cipher = peer.cipher.as_ref().map_or_else(String::new, |cipher| format!(", {cipher}"));
    match peer.handshake_ms {
        Some(ms) => line("latest handshake", format!("{} ago{cipher}", duration(ms / 1e3))),
        None => line("latest handshake", "(none yet)".into()),
    }
    let (entrance, reordering) = (&peer.entrance, &peer.reordering);
    let queue = format!("{} packets, {} bytes", entrance.queued_packets, entrance.queued_bytes);
    line("queue", format!("{queue}, {} marked, {} dropped", entrance.marked_packets, entrance.dropped_packets));
    let depth = format!(
        "{} packets (most {}), hold {:.0} ms",
        reordering.depth_packets, reordering.most_packets, reordering.hold_ms
    );
    line("reordering", format!("{depth}, {} late", reordering.late_packets));
    text += &if width >= WIDE { table(&peer.paths) } else { peer.paths.iter().map(lines).collect() };
    text
}

const HEADING: [&str; 9] = ["path", "state", "rtt", "loss", "rate", "share", "mtu", "transfer", "remote"];

/// One line a path.
fn table(paths: &[Path]) -> String {
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

/// Two lines a path.
fn lines(path: &Path) -> String {
    let [name, state, rtt, loss, rate, share, mtu, transfer, remote] = cells(path);
    format!(
        "  path {name}: {state}, {rtt}, {loss} loss, {rate}, share {share}\n    mtu {mtu}, {transfer}, to {remote}\n"
    )
}

fn cells(path: &Path) -> [String; 9] {
    let kinds = [(path.backup, " backup"), (path.metered, " metered")];
    let kind: String = kinds.into_iter().filter_map(|(is, word)| is.then_some(word)).collect();
    [
        path.name.clone(),
        format!("{}{kind}", path.state.word()),
        path.rtt_ms.map_or("-".into(), |rtt| format!("{rtt:.1} ms")),
        format!("{:.1}%", path.loss * 100.0),
        bits(path.sending_bps),
        format!("{:.0}%", path.share * 100.0),
        if path.mtu_bytes == 0 { "-".into() } else { path.mtu_bytes.to_string() },
        format!("{} in, {} out", bytes(&path.received), bytes(&path.sent)),
        path.remote.clone().unwrap_or("-".into()),
    ]
}

/// For scripts, as `wg show dump`: tabs between fields, the interface first, then a line for each peer, then one for each
/// path. Its columns never change; new ones are added at the end.
#[must_use]
pub fn dump(status: &Status) -> String {
    let word = |text: &Option<String>| text.clone().unwrap_or("(none)".into());
    let it = &status.interface;
    let mtu = it.mtu_bytes.to_string();
    let mut rows = vec![vec!["interface".into(), it.name.clone(), word(&it.public_key), status.mode.clone(), mtu]];
    for peer in &status.peers {
        let handshake = peer.handshake_ms.map_or("0".into(), |ms| format!("{ms:.0}"));
        rows.push(vec!["peer".into(), word(&peer.public_key), peer.allowed_ips.join(","), handshake]);
        rows.extend(peer.paths.iter().map(|path| {
            let rtt = path.rtt_ms.map_or("0".into(), |rtt| format!("{rtt:.3}"));
            let numbers = [path.sending_bps, path.mtu_bytes.into(), path.received.bytes, path.sent.bytes];
            let front = ["path".into(), path.name.clone(), path.state.word().into(), word(&path.remote), rtt];
            let loss = [format!("{:.4}", path.loss), format!("{:.4}", path.share)];
            front.into_iter().chain(loss).chain(numbers.map(|number| number.to_string())).collect()
        }));
    }
    rows.into_iter().map(|row: Vec<String>| row.join("\t") + "\n").collect()
}

/// `1h 2m 5s`, without leading zeros.
pub(crate) fn duration(seconds: f64) -> String {
    let whole = seconds as u64;
    let parts = [(whole / 86_400, "d"), (whole / 3600 % 24, "h"), (whole / 60 % 60, "m"), (whole % 60, "s")];
    let shown: Vec<_> = parts.into_iter().skip_while(|(n, _)| *n == 0).map(|(n, unit)| format!("{n}{unit}")).collect();
    if shown.is_empty() { "0s".into() } else { shown.join(" ") }
}

/// `12.3 Mbit/s`.
pub(crate) fn bits(bps: u64) -> String {
    scaled(bps as f64, 1000.0, &["bit/s", "kbit/s", "Mbit/s", "Gbit/s", "Tbit/s"])
}

/// `1.3 GiB`, as `wg show` has it.
fn bytes(traffic: &Traffic) -> String {
    scaled(traffic.bytes as f64, 1024.0, &["B", "KiB", "MiB", "GiB", "TiB", "PiB"])
}

fn scaled(value: f64, step: f64, units: &[&str]) -> String {
    let mut rest = value;
    let mut left = units.iter();
    let mut unit = left.next().unwrap_or(&"");
    while rest >= step {
        let Some(next) = left.next() else { break };
        (rest, unit) = (rest / step, next);
    }
    if unit == &units[0] { format!("{rest:.0} {unit}") } else { format!("{rest:.1} {unit}") }
}
