//! The status as OpenMetrics text for Prometheus, in base units (seconds, bytes, ratios).

use crate::status::{DropCount, PathState, PathStatus, PeerStatus, TunnelStatus};
use std::fmt::Write;

/// The media type of [`text`].
pub const MEDIA_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// A metric: name, help, unit, and value of a `T`.
struct Metric<T, V>(&'static str, &'static str, Option<&'static str>, fn(&T) -> V);

const PATH_GAUGES: &[Metric<PathStatus, f64>] = &[
    Metric("path_up", "1 while the path works", None, |path| f64::from(u8::from(path.state == PathState::Up))),
    Metric("path_srtt", "Smoothed round-trip time", Some("seconds"), |path| seconds(path.srtt_ms)),
    Metric("path_loss", "Lost share of recently sent packets", Some("ratio"), |path| path.loss_ratio),
    Metric("path_send_share", "Share of the send rate to the peer", Some("ratio"), |path| path.send_share),
    Metric("path_pmtu", "Largest datagram known to pass", Some("bytes"), |path| f64::from(path.pmtu_bytes)),
    Metric("path_cwnd", "Congestion window", Some("bytes"), |path| {
        path.cwnd_bytes.map_or(f64::NAN, |cwnd| cwnd as f64)
    }),
    Metric("path_in_flight", "Sent and not acknowledged", Some("bytes"), |path| path.in_flight_bytes as f64),
];

const PATH_COUNTERS: &[Metric<PathStatus, u64>] = &[
    Metric("path_sent", "Bytes sent", Some("bytes"), |path| path.sent.bytes),
    Metric("path_received", "Bytes received", Some("bytes"), |path| path.received.bytes),
    Metric("path_sent_packets", "Datagrams sent", None, |path| path.sent.packets),
    Metric("path_received_packets", "Datagrams received", None, |path| path.received.packets),
    Metric("path_lost_packets", "Datagrams declared lost", None, |path| path.lost_packets),
    Metric("path_ce_packets", "Datagrams that arrived with a CE mark", None, |path| path.ce_packets),
    Metric("path_failures", "Times that the path went down", None, |path| path.failures),
];

const PEER_GAUGES: &[Metric<PeerStatus, f64>] = &[
    Metric("handshake_age", "Time since the latest handshake", Some("seconds"), |peer| seconds(peer.handshake_age_ms)),
    Metric("ingress_backlog", "Backlog of the ingress queue", Some("bytes"), |peer| {
        peer.ingress_queue.backlog_bytes as f64
    }),
    Metric("reorder_backlog_packets", "Packets in the reorder buffer", None, |peer| {
        peer.reorder_buffer.backlog_packets as f64
    }),
    Metric("reorder_timeout", "Longest wait in the reorder buffer", Some("seconds"), |peer| {
        peer.reorder_buffer.timeout_ms / 1e3
    }),
];

/// The metrics of a status.
#[must_use]
pub fn text(status: &TunnelStatus) -> String {
    let interface = &status.interface.name;
    let peer_labels = |peer: &PeerStatus| {
        let key = peer.public_key.as_deref().unwrap_or("");
        format!("interface=\"{}\",peer=\"{}\"", escaped(interface), escaped(key))
    };
    let peers: Vec<_> = status.peers.iter().map(|peer| (peer_labels(peer), peer)).collect();
    let path_labels = |peer, path: &PathStatus| format!("{},path=\"{}\"", peer_labels(peer), escaped(&path.name));
    let paths: Vec<_> = status.paths().map(|(peer, path)| (path_labels(peer, path), path)).collect();
    let drop_labels = |reason: &str| format!("interface=\"{}\",reason=\"{}\"", escaped(interface), escaped(reason));
    let drops: Vec<_> = status.drops.iter().map(|drop| (drop_labels(&drop.reason), drop)).collect();

    let mut text = String::new();
    PATH_GAUGES.iter().for_each(|metric| metric.gauge(&mut text, &paths));
    PATH_COUNTERS.iter().for_each(|metric| metric.counter(&mut text, &paths));
    PEER_GAUGES.iter().for_each(|metric| metric.gauge(&mut text, &peers));
    Metric("dropped_packets", "Packets dropped, by reason", None, |drop: &DropCount| drop.packets)
        .counter(&mut text, &drops);
    Metric("uptime", "Time since the start", Some("seconds"), |status: &TunnelStatus| status.uptime_s)
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
    /// The lines of a metric: its description, then a sample for each set of labels.
    fn family(&self, text: &mut String, kind: &str, samples: &[(String, &T)]) {
        if samples.is_empty() {
            return;
        }
        let Self(name, help, unit, value) = self;
        let name = format!("ropewalk_{name}{}", unit.map_or_else(String::new, |unit| format!("_{unit}")));
        let total = if kind == "counter" { "_total" } else { "" };
        let mut line = |line: String| writeln!(text, "{line}").expect("writing to a string does not fail");
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

/// Milliseconds in seconds; NaN if not known.
fn seconds(milliseconds: Option<f64>) -> f64 {
    milliseconds.map_or(f64::NAN, |ms| ms / 1e3)
}

/// A label's value, escaped as in OpenMetrics 1.0.
fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}
