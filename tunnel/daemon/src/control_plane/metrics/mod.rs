//! The status as metrics for Prometheus, in base units (seconds, bytes, ratios).
//!
//! A series names its interface, peer and path. `peer` is the peer's name, or the beginning of its key; the whole key is
//! only in `ropewalk_peer_info`. A value that is not known, such as the round-trip time of a path that is down, is absent.
//! The number of series is bounded: peers beyond the first [`MAX_PEERS`] are counted in
//! `ropewalk_peers_without_metrics`, unless the request asks for more (`?max-peers=N`).

mod families;
mod process;
mod text;

use crate::event::{EventKind, EventLevel};
use crate::status::{PathStatus, PeerStatus, TunnelStatus};
use families::{DROPS, Metric, PATHS, PEERS, QUOTAS, REALTIME, RELAYS, TUNNEL, UPLINKS, path_labels};
use std::collections::BTreeMap;
pub use text::MetricsFormat;
use text::{Kind, Labels, Writer};

/// The most peers that have series, unless the request says otherwise.
pub const MAX_PEERS: usize = 250;

/// The number of events of each kind and level since the start.
pub type EventCounts = BTreeMap<(EventKind, EventLevel), u64>;

/// The metrics of a status as text, with the series of at most `max_peers` peers.
#[must_use]
pub fn encode_metrics(status: &TunnelStatus, events: &EventCounts, max_peers: usize, format: MetricsFormat) -> String {
    let mut writer = Writer::new(format);
    let interface = || ("interface", status.interface.name.clone());
    let peers = labelled_peers(status, max_peers);
    write_host(&mut writer, status, events, &vec![interface()]);
    let left_out = status.peers.len() - peers.len();
    let help = "Peers that have no series, because they are more than the request asks for";
    writer.family(
        "peers_without_metrics",
        help,
        Kind::Gauge,
        [(&vec![interface()], Some(left_out as f64))].into_iter(),
    );
    write_infos(&mut writer, &peers);
    write_table(&mut writer, PEERS, &peers);
    write_table(&mut writer, REALTIME, &peers);
    write_table(&mut writer, RELAYS, &peers);
    let paths: Vec<(&PathStatus, Labels)> = peers
        .iter()
        .flat_map(|(peer, labels)| {
            peer.paths.iter().map(|path| (path, [&labels[..], &[("path", path.name.clone())]].concat()))
        })
        .collect();
    let infos = paths.iter().map(|(path, labels)| [&labels[..], &path_labels(path)].concat()).collect::<Vec<_>>();
    let help = "The path's uplink, addresses and role";
    writer.family("path_info", help, Kind::Gauge, infos.iter().map(|labels| (labels, Some(1.0))));
    write_marks(&mut writer, &paths);
    write_table(&mut writer, PATHS, &paths);
    write_table(&mut writer, QUOTAS, &paths);
    writer.finish()
}

/// Peers with the labels of their series. Of peers with the same name each has its whole key.
fn labelled_peers(status: &TunnelStatus, max_peers: usize) -> Vec<(&PeerStatus, Labels)> {
    let mut uses: BTreeMap<&str, usize> = BTreeMap::new();
    status.peers.iter().for_each(|peer| *uses.entry(peer.label()).or_default() += 1);
    let labels = |peer: &PeerStatus| {
        let key = || peer.public_key.clone().unwrap_or_default();
        let name = if uses[peer.label()] == 1 { peer.label().to_owned() } else { key() };
        vec![("interface", status.interface.name.clone()), ("peer", name)]
    };
    status.peers.iter().take(max_peers).map(|peer| (peer, labels(peer))).collect()
}

/// What concerns the whole daemon and its device.
fn write_host(writer: &mut Writer, status: &TunnelStatus, events: &EventCounts, interface: &Labels) {
    let version = status.program_version.clone().unwrap_or_default();
    let build: Labels = vec![("version", version), ("mode", status.mode.clone())];
    let help = "The version of the program that runs, and the protocol";
    writer.family("build_info", help, Kind::Gauge, [(&build, Some(1.0))].into_iter());
    write_table(writer, TUNNEL, &[(status, interface.clone())]);
    let uplinks = status.uplinks.iter().map(|uplink| (uplink, with(interface, "uplink", &uplink.name)));
    write_table(writer, UPLINKS, &uplinks.collect::<Vec<_>>());
    let drops = status.drops.iter().map(|drop| (drop, with(interface, "reason", &drop.reason)));
    write_table(writer, DROPS, &drops.collect::<Vec<_>>());
    let counts: Vec<(Labels, u64)> = events
        .iter()
        .map(|((kind, level), count)| {
            (with(&with(interface, "kind", &kind.to_string()), "level", &level.to_string()), *count)
        })
        .collect();
    let help = "Events, by kind and level";
    writer.family("events", help, Kind::Counter, counts.iter().map(|(labels, count)| (labels, Some(*count as f64))));
    for value in process::values() {
        let kind = if value.is_counter { Kind::Counter } else { Kind::Gauge };
        let name = format!("process_{}", value.name);
        writer.family(&name, value.help, kind, [(&Vec::new(), value.value)].into_iter());
    }
}

/// Labels with one more.
fn with(labels: &Labels, name: &'static str, value: &str) -> Labels {
    [&labels[..], &[(name, value.to_owned())]].concat()
}

/// The keys of the peers.
fn write_infos(writer: &mut Writer, peers: &[(&PeerStatus, Labels)]) {
    let infos: Vec<Labels> = peers
        .iter()
        .map(|(peer, labels)| {
            let keyed = with(labels, "public_key", peer.public_key.as_deref().unwrap_or_default());
            with(&keyed, "cipher", peer.cipher.as_deref().unwrap_or_default())
        })
        .collect();
    let help = "The peer's public key, and the cipher of its session";
    writer.family("peer_info", help, Kind::Gauge, infos.iter().map(|labels| (labels, Some(1.0))));
}

/// The condition of each path, and the cause why it carries no data or works badly: 1 at the one that holds.
fn write_marks(writer: &mut Writer, paths: &[(&PathStatus, Labels)]) {
    let states: Vec<_> =
        paths.iter().map(|(path, labels)| with(labels, "state", &path.condition.to_string())).collect();
    writer.family("path_state", "1 at the state of the path", Kind::Gauge, states.iter().map(|l| (l, Some(1.0))));
    let causes: Vec<_> = paths
        .iter()
        .filter_map(|(path, labels)| Some(with(labels, "cause", &path.cause.as_ref()?.kind.to_string())))
        .collect();
    let help = "1 at the cause why the path carries no data, or works badly";
    writer.family("path_cause", help, Kind::Gauge, causes.iter().map(|labels| (labels, Some(1.0))));
}

/// Writes the families of a table.
fn write_table<T>(writer: &mut Writer, table: &[Metric<T>], subjects: &[(&T, Labels)]) {
    for (name, help, kind, read) in table {
        writer.family(name, help, *kind, subjects.iter().map(|(subject, labels)| (labels, read(subject))));
    }
}
