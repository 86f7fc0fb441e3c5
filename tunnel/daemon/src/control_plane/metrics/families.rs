//! The families of metrics: name, description, kind, and how the value is read. A unit ends the name.

use super::text::{Kind, Labels};
use crate::status::{
    ClassTraffic, DropCount, PathState, PathStatus, PeerStatus, QuotaStatus, RealtimeStatus, RelayStatus, TunnelStatus,
    UplinkStatus,
};
use Kind::{Counter, Gauge};

/// A family of `T`: its name without the prefix, its description without a full stop, its kind and its value. A value that
/// is not known is `None`.
pub(super) type Metric<T> = (&'static str, &'static str, Kind, fn(&T) -> Option<f64>);

pub(super) const TUNNEL: &[Metric<TunnelStatus>] = &[
    ("uptime_seconds", "Time since the start", Gauge, |status| Some(status.uptime_s)),
    ("clock_seconds", "The clock of this host, Unix time", Gauge, |status| Some(status.unix_ms as f64 / 1e3)),
    ("peers", "Peers", Gauge, |status| Some(status.peers.len() as f64)),
    ("peers_connected", "Peers to which a path works", Gauge, |status| {
        Some(status.peers.iter().filter(|peer| is_up(peer)).count() as f64)
    }),
    ("mtu_bytes", "MTU of the device", Gauge, |status| Some(status.interface.mtu_bytes.into())),
    ("inner_sent_bytes", "Bytes of packets from this host into the tunnel", Counter, |status| {
        Some(status.interface.sent.bytes as f64)
    }),
    ("inner_received_bytes", "Bytes of packets from the tunnel to this host", Counter, |status| {
        Some(status.interface.received.bytes as f64)
    }),
    ("inner_sent_packets", "Packets from this host into the tunnel", Counter, |status| {
        Some(status.interface.sent.packets as f64)
    }),
    ("inner_received_packets", "Packets from the tunnel to this host", Counter, |status| {
        Some(status.interface.received.packets as f64)
    }),
    ("notices", "Things on this host that limit the tunnel", Gauge, |status| Some(status.notices.len() as f64)),
];

pub(super) const UPLINKS: &[Metric<UplinkStatus>] = &[
    ("uplink_sent_bytes", "Bytes of whole IP packets sent by the uplink, to all peers", Counter, |uplink| {
        Some(uplink.sent.bytes as f64)
    }),
    ("uplink_received_bytes", "Bytes of whole IP packets received by the uplink, from all peers", Counter, |uplink| {
        Some(uplink.received.bytes as f64)
    }),
];

pub(super) const DROPS: &[Metric<DropCount>] =
    &[("dropped_packets", "Packets dropped, by reason", Counter, |drop| Some(drop.packets as f64))];

pub(super) const PEERS: &[Metric<PeerStatus>] = &[
    ("peer_up", "1 while a path to the peer works", Gauge, |peer| Some(one_if(is_up(peer)))),
    ("peer_paths", "Paths to the peer", Gauge, |peer| Some(peer.paths.len() as f64)),
    ("peer_paths_up", "Paths to the peer that work", Gauge, |peer| {
        Some(peer.paths.iter().filter(|path| path.state == PathState::Up).count() as f64)
    }),
    ("peer_active", "1 if this one of several servers carries the packets", Gauge, |peer| peer.active.map(one_if)),
    ("handshake_age_seconds", "Time since the latest handshake", Gauge, |peer| peer.handshake_age_ms.map(seconds)),
    ("handshake_attempts", "Handshake initiations since the latest answer", Gauge, |peer| {
        Some(peer.handshake_attempts.into())
    }),
    ("ingress_backlog_bytes", "Bytes in the ingress queue", Gauge, |peer| {
        Some(peer.ingress_queue.backlog_bytes as f64)
    }),
    ("ingress_dropped_packets", "Packets that the ingress queue dropped", Counter, |peer| {
        Some(peer.ingress_queue.dropped_packets as f64)
    }),
    ("ingress_marked_packets", "Packets that the ingress queue marked", Counter, |peer| {
        Some(peer.ingress_queue.marked_packets as f64)
    }),
    ("reorder_backlog_packets", "Packets in the reorder buffer", Gauge, |peer| {
        Some(peer.reorder_buffer.backlog_packets as f64)
    }),
    ("reorder_timeout_seconds", "Longest wait in the reorder buffer", Gauge, |peer| {
        peer.reorder_buffer.timeout_ms.map(seconds)
    }),
    ("retransmitted_fragments", "Lost fragments that were sent again", Counter, |peer| {
        Some(peer.retransmitted_fragments as f64)
    }),
    ("bulk_packets", "Packets outside the real-time class sent", Counter, |peer| {
        of_bulk(peer, |bulk| bulk.packets as f64)
    }),
    ("bulk_wait_seconds", "Sum of their waits in the ingress queue", Counter, |peer| {
        of_bulk(peer, |bulk| bulk.total_wait_ms / 1e3)
    }),
];

pub(super) const REALTIME: &[Metric<PeerStatus>] = &[
    ("realtime_packets", "Packets of the real-time class sent", Counter, |peer| {
        of_class(peer, |class| class.traffic.packets as f64)
    }),
    ("realtime_bytes", "Bytes of the real-time class sent", Counter, |peer| {
        of_class(peer, |class| class.traffic.bytes as f64)
    }),
    ("realtime_wait_seconds", "Sum of the waits of the real-time class in the ingress queue", Counter, |peer| {
        of_class(peer, |class| class.traffic.total_wait_ms / 1e3)
    }),
    ("realtime_moves", "Moves of the real-time class to another path", Counter, |peer| {
        of_class(peer, |class| class.moves as f64)
    }),
    ("realtime_copied_packets", "Copies of real-time packets sent", Counter, |peer| {
        of_class(peer, |class| class.copied_packets as f64)
    }),
    ("realtime_copied_bytes", "Bytes of copies of real-time packets", Counter, |peer| {
        of_class(peer, |class| class.copied_bytes as f64)
    }),
    ("realtime_first_copies", "Copies acknowledged before their originals", Counter, |peer| {
        of_class(peer, |class| class.first_copies as f64)
    }),
    ("realtime_wasted_copies", "Copies acknowledged after their originals", Counter, |peer| {
        of_class(peer, |class| class.wasted_copies as f64)
    }),
];

pub(super) const RELAYS: &[Metric<PeerStatus>] = &[
    ("relay_connections", "Relayed connections", Gauge, |peer| of_relay(peer, |relay| relay.connections)),
    ("relay_held_bytes", "Memory of the data of relayed connections", Gauge, |peer| {
        of_relay(peer, |relay| relay.held_bytes)
    }),
    ("relay_opened_connections", "Relayed connections that clients at this end opened", Counter, |peer| {
        of_relay(peer, |relay| relay.opened_connections)
    }),
    ("relay_accepted_connections", "Relayed connections that the peer opened", Counter, |peer| {
        of_relay(peer, |relay| relay.accepted_connections)
    }),
    ("relay_refused_connections", "Connections that an end did not relay", Counter, |peer| {
        of_relay(peer, |relay| relay.not_relayed_connections)
    }),
    ("relay_sent_bytes", "Bytes read from relayed connections", Counter, |peer| {
        of_relay(peer, |relay| relay.sent_bytes)
    }),
    ("relay_received_bytes", "Bytes written to relayed connections", Counter, |peer| {
        of_relay(peer, |relay| relay.received_bytes)
    }),
];

pub(super) const PATHS: &[Metric<PathStatus>] = &[
    ("path_up", "1 while the path works", Gauge, |path| Some(one_if(path.state == PathState::Up))),
    ("path_srtt_seconds", "Smoothed round-trip time", Gauge, |path| while_up(path, path.srtt_ms.map(seconds))),
    ("path_min_rtt_seconds", "Minimum round-trip time", Gauge, |path| while_up(path, path.min_rtt_ms.map(seconds))),
    ("path_rttvar_seconds", "Mean deviation of the round-trip time", Gauge, |path| {
        while_up(path, path.rttvar_ms.map(seconds))
    }),
    ("path_queue_seconds", "Queueing delay: smoothed less minimum round-trip time", Gauge, |path| {
        while_up(path, queue_seconds(path))
    }),
    ("path_loss_ratio", "Lost share of recently sent packets", Gauge, |path| while_up(path, path.loss_ratio)),
    ("path_send_share_ratio", "Share of the send rate to the peer", Gauge, |path| while_up(path, path.send_share)),
    ("path_delivery_bytes_per_second", "Latest sample of the delivery rate", Gauge, |path| {
        path.delivery_rate_bps.map(|bps| bps as f64 / 8.0)
    }),
    (
        "path_capacity_bytes_per_second",
        "Rate that the path can carry, as estimated when packets last waited",
        Gauge,
        |path| while_up(path, path.capacity_bps.map(|bps| bps as f64 / 8.0)),
    ),
    ("path_pmtu_bytes", "Largest datagram known to pass", Gauge, |path| path.pmtu_bytes.map(f64::from)),
    ("path_cwnd_bytes", "Congestion window", Gauge, |path| while_up(path, path.cwnd_bytes.map(|cwnd| cwnd as f64))),
    ("path_in_flight_bytes", "Bytes sent and neither acknowledged nor lost", Gauge, |path| {
        Some(path.in_flight_bytes as f64)
    }),
    ("path_sent_bytes", "Bytes of datagrams sent", Counter, |path| Some(path.sent.bytes as f64)),
    ("path_received_bytes", "Bytes of datagrams received", Counter, |path| Some(path.received.bytes as f64)),
    ("path_sent_packets", "Datagrams sent", Counter, |path| Some(path.sent.packets as f64)),
    ("path_received_packets", "Datagrams received", Counter, |path| Some(path.received.packets as f64)),
    ("path_lost_packets", "Datagrams declared lost", Counter, |path| Some(path.lost_packets as f64)),
    ("path_ce_packets", "Datagrams that arrived with a CE mark", Counter, |path| Some(path.ce_packets as f64)),
    ("path_failures", "Times that the path went down", Counter, |path| Some(path.failures as f64)),
    ("path_moves", "Times that the path moved to another address of the peer", Counter, |path| Some(path.moves as f64)),
    ("path_refused_addresses", "Addresses that the path did not move to", Counter, |path| {
        Some(path.refused_addresses as f64)
    }),
];

pub(super) const QUOTAS: &[Metric<PathStatus>] = &[
    ("path_quota_limit_bytes", "Quota of the path", Gauge, |path| of_quota(path, |quota| quota.limit_bytes as f64)),
    ("path_quota_used_bytes", "Traffic of the path since the latest reset", Gauge, |path| {
        of_quota(path, |quota| quota.used_bytes as f64)
    }),
    ("path_quota_exceeded", "1 while the path is over its quota, and a backup", Gauge, |path| {
        of_quota(path, |quota| one_if(quota.exceeded))
    }),
    ("path_quota_reset_timestamp_seconds", "When the quota is reset, Unix time", Gauge, |path| {
        of_quota(path, |quota| quota.resets_unix_ms as f64 / 1e3)
    }),
];

/// The labels of `ropewalk_path_info`.
pub(super) fn path_labels(path: &PathStatus) -> Labels {
    let role = match path {
        PathStatus { metered: true, .. } => "metered",
        PathStatus { backup: true, .. } => "backup",
        PathStatus { secondary: true, .. } => "secondary",
        _ => "regular",
    };
    let text = |value: &Option<String>| value.clone().unwrap_or_default();
    vec![
        ("device", text(&path.interface)),
        ("remote", text(&path.remote)),
        ("role", role.to_owned()),
        ("opened_by", if path.opened_by_peer { "peer" } else { "this end" }.to_owned()),
    ]
}

fn is_up(peer: &PeerStatus) -> bool {
    peer.paths.iter().any(|path| path.state == PathState::Up)
}

/// The measured value of a path, which is out of date once the path no longer works.
fn while_up(path: &PathStatus, value: Option<f64>) -> Option<f64> {
    value.filter(|_| path.state == PathState::Up)
}

fn queue_seconds(path: &PathStatus) -> Option<f64> {
    Some(seconds((path.srtt_ms? - path.min_rtt_ms?).max(0.0)))
}

fn of_quota(path: &PathStatus, read: fn(&QuotaStatus) -> f64) -> Option<f64> {
    path.quota.as_ref().map(read)
}

fn of_bulk(peer: &PeerStatus, read: fn(&ClassTraffic) -> f64) -> Option<f64> {
    peer.bulk.as_ref().map(read)
}

fn of_class(peer: &PeerStatus, read: fn(&RealtimeStatus) -> f64) -> Option<f64> {
    peer.realtime.as_ref().map(read)
}

fn of_relay(peer: &PeerStatus, read: fn(&RelayStatus) -> u64) -> Option<f64> {
    peer.relay.as_ref().map(|relay| read(relay) as f64)
}

fn one_if(condition: bool) -> f64 {
    f64::from(u8::from(condition))
}

fn seconds(milliseconds: f64) -> f64 {
    milliseconds / 1e3
}
