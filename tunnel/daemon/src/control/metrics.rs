//! The status as Prometheus reads it: OpenMetrics text, base units (seconds, bytes, ratios), counters from the start.

use crate::status::{Drop, Path, Peer, State, Status};
use std::fmt::Write;

/// The media type of [`text`].
pub const MEDIA_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// A metric: its name, what it is, its unit, and its value of one `T`.
struct Metric<T, V>(&'static str, &'static str, Option<&'static str>, fn(&T) -> V);

const PATH_GAUGES: &[Metric<Path, f64>] = &[
    Metric("path_up", "1 while the path works", None, |path| f64::from(u8::from(path.state == State::Up))),
    Metric("path_rtt", "Smoothed round-trip time", Some("seconds"), |path| path.rtt_ms.map_or(f64::NAN, |ms| ms / 1e3)),
    Metric("path_loss", "Share of recent packets lost", Some("ratios"), |path| path.loss),
    Metric("path_share", "Share of what is sent", Some("ratios"), |path| path.share),
    Metric("path_mtu", "Largest datagram known to pass", Some("bytes"), |path| f64::from(path.mtu_bytes)),
    Metric("path_in_flight", "Sent and not acknowledged", Some("bytes"), |path| path.in_flight_bytes as f64),
];

const PATH_COUNTERS: &[Metric<Path, u64>] = &[
    Metric("path_sent", "Sent", Some("bytes"), |path| path.sent.bytes),
    Metric("path_received", "Received", Some("bytes"), |path| path.received.bytes),
    Metric("path_sent_packets", "Datagrams sent", None, |path| path.sent.packets),
    Metric("path_received_packets", "Datagrams received", None, |path| path.received.packets),
    Metric("path_lost_packets", "Datagrams lost", None, |path| path.lost_packets),
    Metric("path_marked_packets", "Datagrams that met congestion marks", None, |path| path.marked_packets),
    Metric("path_failures", "Times that the path failed", None, |path| path.failures),
];

const PEER_GAUGES: &[Metric<Peer, f64>] = &[
    Metric("handshake_age", "Since the latest handshake", Some("seconds"), |peer| {
        peer.handshake_ms.map_or(f64::NAN, |ms| ms / 1e3)
    }),
    Metric("entrance_queue", "Waits to be sent", Some("bytes"), |peer| peer.entrance.queued_bytes as f64),
    Metric("reordering_packets", "Packets that wait for their turn", None, |peer| peer.reordering.depth_packets as f64),
    Metric("reordering_hold", "The longest that a packet may wait", Some("seconds"), |peer| {
        peer.reordering.hold_ms / 1e3
    }),
];

/// The metrics of one moment.
#[must_use]
pub fn text(status: &Status) -> String {
    let interface = &status.interface.name;
    let peer_labels = |peer: &Peer| {
        let key = peer.public_key.as_deref().unwrap_or("");
        format!("interface=\"{}\",peer=\"{}\"", escaped(interface), escaped(key))
    };
    let peers: Vec<_> = status.peers.iter().map(|peer| (peer_labels(peer), peer)).collect();
    let path_labels = |peer, path: &Path| format!("{},path=\"{}\"", peer_labels(peer), escaped(&path.name));
    let paths: Vec<_> = status.paths().map(|(peer, path)| (path_labels(peer, path), path)).collect();
    let drop_labels = |reason: &str| format!("interface=\"{}\",reason=\"{}\"", escaped(interface), escaped(reason));
    let drops: Vec<_> = status.drops.iter().map(|drop| (drop_labels(&drop.reason), drop)).collect();

    let mut text = String::new();
    PATH_GAUGES.iter().for_each(|metric| metric.gauge(&mut text, &paths));
    PATH_COUNTERS.iter().for_each(|metric| metric.counter(&mut text, &paths));
    PEER_GAUGES.iter().for_each(|metric| metric.gauge(&mut text, &peers));
    Metric("dropped_packets", "Packets dropped, by reason", None, |drop: &Drop| drop.packets)
        .counter(&mut text, &drops);
    Metric("uptime", "Since the start", Some("seconds"), |status: &Status| status.uptime_s)
        .gauge(&mut text, &[(String::new(), status)]);
    text + "# EOF\n"
}

impl<T> Metric<T, f64> {
    fn gauge(&self, text: &mut String, samples: &[(String, &T)]) {
        self.family(text, "gauge", samples);
    }
}

impl<T> Metric<T, u64> {
    fn counter(&self, text: &mut String, samples: &[(String, &T)]) {
        self.family(text, "counter", samples);
    }
}

impl<T, V: std::fmt::Debug> Metric<T, V> {
    /// The lines of one metric: its description, then a value for each set of labels.
    fn family(&self, text: &mut String, kind: &str, samples: &[(String, &T)]) {
        if samples.is_empty() {
            return;
        }
        let Self(name, help, unit, value) = self;
        let name = format!("ropewalk_{name}{}", unit.map_or_else(String::new, |unit| format!("_{unit}")));
        let total = if kind == "counter" { "_total" } else { "" };
        let mut line = |line: String| writeln!(text, "{line}").expect("a string takes everything");
        line(format!("# HELP {name} {help}."));
        line(format!("# TYPE {name} {kind}"));
        if let Some(unit) = unit {
            line(format!("# UNIT {name} {unit}"));
        }
        for (labels, of) in samples {
            let labels = if labels.is_empty() { String::new() } else { format!("{{{labels}}}") };
            line(format!("{name}{total}{labels} {:?}", value(of)));
        }
    }
}

/// The value of a label as OpenMetrics 1.0 quotes it.
fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}
