//! The status as OpenMetrics text for Prometheus, in base units (seconds, bytes, ratios).

use crate::status::{
    DropCount, PathState, PathStatus, PeerStatus, QuotaStatus, RealtimeStatus, RelayStatus, TunnelStatus,
};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::{Registry, Unit};
use std::fmt;
use std::sync::Arc;

/// The media type of [`encode_openmetrics`].
pub const MEDIA_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// A metric: name, help, unit, and the function that reads its value.
type Metric<T, V> = (&'static str, &'static str, Option<Unit>, fn(&T) -> V);

const PATH_GAUGES: &[Metric<PathStatus, f64>] = &[
    ("path_up", "1 while the path works", None, |path| f64::from(u8::from(path.state == PathState::Up))),
    ("path_srtt", "Smoothed round-trip time", Some(Unit::Seconds), |path| seconds(path.srtt_ms)),
    ("path_loss_ratio", "Lost share of recently sent packets", None, |path| path.loss_ratio),
    ("path_send_share_ratio", "Share of the send rate to the peer", None, |path| path.send_share),
    ("path_pmtu", "Largest datagram known to pass", Some(Unit::Bytes), |path| f64::from(path.pmtu_bytes)),
    ("path_cwnd", "Congestion window", Some(Unit::Bytes), |path| path.cwnd_bytes.map_or(f64::NAN, |cwnd| cwnd as f64)),
    ("path_in_flight", "Sent and not acknowledged", Some(Unit::Bytes), |path| path.in_flight_bytes as f64),
];

const QUOTA_GAUGES: &[Metric<QuotaStatus, f64>] = &[
    ("path_quota_limit", "Quota of the path", Some(Unit::Bytes), |quota| quota.limit_bytes as f64),
    ("path_quota_used", "Traffic of the path since the last reset", Some(Unit::Bytes), |quota| quota.used_bytes as f64),
    ("path_quota_exceeded", "1 while the path is over its quota, and a backup", None, |quota| {
        f64::from(u8::from(quota.exceeded))
    }),
    ("path_quota_reset_timestamp", "When the count is reset, Unix time", Some(Unit::Seconds), |quota| {
        quota.resets_unix_ms as f64 / 1e3
    }),
];

const PATH_COUNTERS: &[Metric<PathStatus, u64>] = &[
    ("path_sent", "Bytes sent", Some(Unit::Bytes), |path| path.sent.bytes),
    ("path_received", "Bytes received", Some(Unit::Bytes), |path| path.received.bytes),
    ("path_sent_packets", "Datagrams sent", None, |path| path.sent.packets),
    ("path_received_packets", "Datagrams received", None, |path| path.received.packets),
    ("path_lost_packets", "Datagrams declared lost", None, |path| path.lost_packets),
    ("path_ce_packets", "Datagrams that arrived with a CE mark", None, |path| path.ce_packets),
    ("path_failures", "Number of times that the path went down", None, |path| path.failures),
    ("path_moves", "Number of times that the path moved to another address of the peer", None, |path| path.moves),
    ("path_refused_addresses", "Addresses that the path did not move to", None, |path| path.refused_addresses),
];

const PEER_GAUGES: &[Metric<PeerStatus, f64>] = &[
    ("handshake_age", "Time since the latest handshake", Some(Unit::Seconds), |peer| seconds(peer.handshake_age_ms)),
    ("ingress_backlog", "Backlog of the ingress queue", Some(Unit::Bytes), |peer| {
        peer.ingress_queue.backlog_bytes as f64
    }),
    ("reorder_backlog_packets", "Packets in the reorder buffer", None, |peer| {
        peer.reorder_buffer.backlog_packets as f64
    }),
    ("reorder_timeout", "Longest wait in the reorder buffer", Some(Unit::Seconds), |peer| {
        peer.reorder_buffer.timeout_ms / 1e3
    }),
];

const REALTIME_COUNTERS: &[Metric<RealtimeStatus, u64>] = &[
    ("realtime_packets", "Packets of the real-time class sent", None, |class| class.traffic.packets),
    ("realtime", "Bytes of the real-time class sent", Some(Unit::Bytes), |class| class.traffic.bytes),
    ("realtime_moves", "Moves of the real-time class to another path", None, |class| class.moves),
    ("realtime_copied_packets", "Copies of real-time packets sent", None, |class| class.copied_packets),
    ("realtime_copied", "Bytes of copies of real-time packets", Some(Unit::Bytes), |class| class.copied_bytes),
    ("realtime_first_copies", "Copies acknowledged before their originals", None, |class| class.first_copies),
    ("realtime_wasted_copies", "Copies acknowledged after their originals", None, |class| class.wasted_copies),
];

const RELAY_GAUGES: &[Metric<RelayStatus, f64>] = &[
    ("relay_connections", "Current number of relayed connections", None, |relay| relay.connections as f64),
    ("relay_held", "Memory used by the data of relayed connections", Some(Unit::Bytes), |relay| {
        relay.held_bytes as f64
    }),
];

const RELAY_COUNTERS: &[Metric<RelayStatus, u64>] = &[
    ("relay_opened_connections", "Relayed connections opened by clients at this end", None, |relay| {
        relay.opened_connections
    }),
    ("relay_accepted_connections", "Relayed connections opened by the peer", None, |relay| relay.accepted_connections),
    ("relay_refused_connections", "Connections not relayed by an end", None, |relay| relay.not_relayed_connections),
    ("relay_sent", "Bytes read from relayed connections", Some(Unit::Bytes), |relay| relay.sent_bytes),
    ("relay_received", "Bytes written to relayed connections", Some(Unit::Bytes), |relay| relay.received_bytes),
];

/// The metrics of a status in OpenMetrics text.
#[must_use]
pub fn encode_openmetrics(status: &Arc<TunnelStatus>) -> String {
    let mut registry = Registry::with_prefix("ropewalk");
    registry.register_collector(Box::new(Snapshot(Arc::clone(status))));
    let mut text = String::new();
    encode(&mut text, &registry).expect("writing to a string does not fail");
    text
}

#[derive(Debug)]
struct Snapshot(Arc<TunnelStatus>);

impl Collector for Snapshot {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let interface = ("interface", self.0.interface.name.as_str());
        let peers = self.0.peers.iter().map(|peer| {
            let key = ("peer", peer.public_key.as_deref().unwrap_or_default());
            let name = peer.name.as_deref().map(|name| ("name", name));
            (peer, [interface, key].into_iter().chain(name).collect::<Vec<_>>())
        });
        let peers: Vec<_> = peers.collect();
        let paths: Vec<_> = peers
            .iter()
            .flat_map(|(peer, labels)| {
                peer.paths.iter().map(|path| (path, [&labels[..], &[("path", path.name.as_str())]].concat()))
            })
            .collect();
        for metric in PATH_GAUGES {
            encode_family(&mut encoder, metric, &paths, ConstGauge::new)?;
        }
        let causes: Vec<_> = paths
            .iter()
            .filter_map(|(path, labels)| Some((*path, labels, path.cause.as_ref()?.kind.to_string())))
            .collect();
        let causes: Vec<_> = causes
            .iter()
            .map(|(path, labels, kind)| (*path, [&labels[..], &[("cause", kind.as_str())]].concat()))
            .collect();
        let no_data: Metric<PathStatus, f64> =
            ("path_cause", "1 with the cause why the path carries no data", None, |_| 1.0);
        encode_family(&mut encoder, &no_data, &causes, ConstGauge::new)?;
        let quotas: Vec<_> =
            paths.iter().filter_map(|(path, labels)| Some((path.quota.as_ref()?, labels.clone()))).collect();
        for metric in QUOTA_GAUGES {
            encode_family(&mut encoder, metric, &quotas, ConstGauge::new)?;
        }
        for metric in PATH_COUNTERS {
            encode_family(&mut encoder, metric, &paths, ConstCounter::new)?;
        }
        for metric in PEER_GAUGES {
            encode_family(&mut encoder, metric, &peers, ConstGauge::new)?;
        }
        let classes: Vec<_> =
            peers.iter().filter_map(|(peer, labels)| Some((peer.realtime.as_ref()?, labels.clone()))).collect();
        for metric in REALTIME_COUNTERS {
            encode_family(&mut encoder, metric, &classes, ConstCounter::new)?;
        }
        let relays: Vec<_> =
            peers.iter().filter_map(|(peer, labels)| Some((peer.relay.as_ref()?, labels.clone()))).collect();
        for metric in RELAY_GAUGES {
            encode_family(&mut encoder, metric, &relays, ConstGauge::new)?;
        }
        for metric in RELAY_COUNTERS {
            encode_family(&mut encoder, metric, &relays, ConstCounter::new)?;
        }
        let drops = self.0.drops.iter().map(|drop| (drop, vec![interface, ("reason", drop.reason.as_str())]));
        let dropped: Metric<DropCount, u64> =
            ("dropped_packets", "Packets dropped, by reason", None, |drop| drop.packets);
        encode_family(&mut encoder, &dropped, &drops.collect::<Vec<_>>(), ConstCounter::new)?;
        let uptime: Metric<TunnelStatus, f64> =
            ("uptime", "Time since the start", Some(Unit::Seconds), |status| status.uptime_s);
        encode_family(&mut encoder, &uptime, &[(&*self.0, Vec::new())], ConstGauge::new)
    }
}

/// Encodes a metric: its description, then a sample for each set of labels.
fn encode_family<T, V, M: EncodeMetric>(
    encoder: &mut DescriptorEncoder<'_>,
    (name, help, unit, read_value): &Metric<T, V>,
    samples: &[(&T, Vec<(&str, &str)>)],
    constructor: fn(V) -> M,
) -> fmt::Result {
    let Some((first, _)) = samples.first() else { return Ok(()) };
    let metric_type = constructor(read_value(first)).metric_type();
    let mut family = encoder.encode_descriptor(name, help, unit.as_ref(), metric_type)?;
    if let [(subject, labels)] = samples
        && labels.is_empty()
    {
        return constructor(read_value(subject)).encode(family);
    }
    for (subject, labels) in samples {
        constructor(read_value(subject)).encode(family.encode_family(&labels.as_slice())?)?;
    }
    Ok(())
}

/// Converts milliseconds to seconds; NaN if unknown.
fn seconds(milliseconds: Option<f64>) -> f64 {
    milliseconds.map_or(f64::NAN, |ms| ms / 1e3)
}
