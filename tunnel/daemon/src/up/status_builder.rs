//! Builds the status: names from the configuration, counters from a report of the data plane, rates from two of them.

use super::path_assignment::PathAssignment;
use super::rates::{PathCounters, RateMeter};
use crate::config::{ConfiguredPath, ConfiguredPeer, Mode, TunnelConfig};
use crate::data_plane::{MptPathReport, MptReport, PeerReport, RelayReport, Report, SocketReport};
use crate::event::{Cause, CauseKind};
use crate::status::{
    ClassTraffic, DropCount, IngressQueue, InterfaceStatus, PathState, PathStatus, PeerStatus, RealtimeStatus,
    RelayStatus, ReorderBuffer, Traffic, TunnelStatus, UnallowedSource, UplinkStatus, VERSION,
};
use machine::ClassCounters;
use seal::DropReason;
use std::collections::BTreeMap;
use units::{Instant, Span};

/// Builds the status of a tunnel.
pub(super) struct StatusBuilder {
    /// The status with names and without measurements. Paths are at the index of their id; ids without a path have no
    /// name.
    template: TunnelStatus,
    /// The state by peer, in the order of the template.
    peers: Vec<PeerState>,
    /// Paths whose endpoint has no address, by peer in the order of the template.
    unresolved: Vec<Vec<PathStatus>>,
    /// The sockets by configured path: its name, and their indices and whether they are IPv4.
    sockets: Vec<(String, Vec<(usize, bool)>)>,
}

/// The state of a peer between two reports.
#[derive(Clone, Default)]
struct PeerState {
    /// The meters by path id.
    meters: Vec<RateMeter>,
    max_backlog_packets: u64,
}

impl StatusBuilder {
    pub(super) fn new(config: &TunnelConfig, assignment: &PathAssignment) -> Self {
        let template = template(config, assignment);
        let unresolved = config.peers.iter().map(|peer| unresolved_paths(config, assignment, peer)).collect();
        let sockets = config.paths.iter().map(|path| (path.name.clone(), sockets_of(path, assignment))).collect();
        Self { peers: vec![PeerState::default(); template.peers.len()], template, unresolved, sockets }
    }

    /// The traffic of each configured path.
    fn uplinks(&self, report: &Report) -> Vec<UplinkStatus> {
        let uplink = |(name, sockets): &(String, Vec<(usize, bool)>)| {
            let mut uplink = UplinkStatus { name: name.clone(), ..UplinkStatus::default() };
            for (index, is_ipv4) in sockets {
                let Some(socket) = report.sockets.get(*index) else { continue };
                uplink.sent.merge(socket.sent.with_headers(*is_ipv4));
                uplink.received.merge(socket.received.with_headers(*is_ipv4));
            }
            uplink
        };
        self.sockets.iter().filter(|_| report.mpt.is_none()).map(uplink).collect()
    }

    /// Changes the configuration. Peers with the same key keep their state.
    pub(super) fn change(&mut self, config: &TunnelConfig, assignment: &PathAssignment) {
        let previous = std::mem::replace(self, Self::new(config, assignment));
        let keys = previous.template.peers.iter().map(|peer| &peer.public_key);
        let mut states: BTreeMap<_, _> = keys.zip(previous.peers).collect();
        for (peer, state) in self.template.peers.iter().zip(&mut self.peers) {
            *state = states.remove(&peer.public_key).unwrap_or_default();
        }
    }

    /// The status with the measurements of `report`.
    pub(super) fn build(&mut self, report: &Report) -> TunnelStatus {
        let mut status = self.template.clone();
        status.uptime_s = report.now.as_secs_f64();
        status.interface.sent = report.device.read;
        status.interface.received = report.device.written;
        status.drops = drops(report);
        status.uplinks = self.uplinks(report);
        let reports: BTreeMap<String, &PeerReport> =
            report.peers.iter().map(|report| (report.public_key.to_string(), report)).collect();
        for ((peer, state), unresolved) in status.peers.iter_mut().zip(&mut self.peers).zip(&self.unresolved) {
            let peer_report = peer.public_key.as_ref().and_then(|key| reports.get(key));
            if let Some(peer_report) = peer_report {
                ropewalk_peer(state, peer_report, peer, report.now);
            } else if let Some(mpt) = &report.mpt {
                mpt_peer(state, mpt, peer, report.now);
            }
            peer.paths.retain(|path| !path.name.is_empty());
            peer.paths.extend_from_slice(unresolved);
            let sum: u64 = peer.paths.iter().map(|path| path.send_rate_bps).sum();
            for path in peer.paths.iter_mut().filter(|_| sum > 0) {
                path.send_share = Some(path.send_rate_bps as f64 / sum as f64);
            }
        }
        status
    }
}

/// The status with names and without measurements.
fn template(config: &TunnelConfig, assignment: &PathAssignment) -> TunnelStatus {
    let (mode, public_key) = match &config.mode {
        Mode::Mpt(_) => ("mpt", None),
        Mode::Ropewalk { private_key } => ("ropewalk", Some(private_key.public_key().to_string())),
    };
    let mpt_path = |path: &ConfiguredPath| path_template(path, path.endpoint.as_ref().map(ToString::to_string));
    let peer = |(index, peer): (usize, &ConfiguredPeer)| PeerStatus {
        public_key: peer.public_key.map(|key| key.to_string()),
        name: peer.name.clone(),
        allowed_ips: peer.allowed_ips.iter().map(ToString::to_string).collect(),
        paths: match &config.mode {
            Mode::Mpt(_) => config.paths.iter().map(mpt_path).collect(),
            Mode::Ropewalk { .. } => paths_by_id(config, assignment, index),
        },
        ..PeerStatus::default()
    };
    TunnelStatus {
        version: VERSION,
        interface: InterfaceStatus {
            name: config.interface.name.clone(),
            addresses: config.interface.addresses.iter().map(ToString::to_string).collect(),
            mtu_bytes: config.mtu().into(),
            public_key,
            ..InterfaceStatus::default()
        },
        mode: mode.into(),
        peers: config.peers.iter().enumerate().map(peer).collect(),
        ..TunnelStatus::default()
    }
}

fn path_template(path: &ConfiguredPath, remote: Option<String>) -> PathStatus {
    PathStatus {
        name: path.name.clone(),
        backup: path.backup,
        metered: path.metered,
        secondary: path.secondary,
        interface: path.interface.clone(),
        source: path.source.map(|source| source.to_string()),
        remote,
        ..PathStatus::default()
    }
}

/// The indices of the sockets of a path, and whether they have IPv4.
fn sockets_of(path: &ConfiguredPath, assignment: &PathAssignment) -> Vec<(usize, bool)> {
    let sockets = assignment.sockets.iter().enumerate();
    let of_path = sockets.filter_map(|(index, socket)| Some((index, socket.as_ref()?)));
    of_path
        .filter(|(_, socket)| socket.name == path.name)
        .map(|(index, socket)| (index, socket.bind.is_ipv4()))
        .collect()
}

/// The paths to a peer whose endpoint has no address.
fn unresolved_paths(config: &TunnelConfig, assignment: &PathAssignment, peer: &ConfiguredPeer) -> Vec<PathStatus> {
    let path = |path: &ConfiguredPath| {
        let (endpoint, error) = assignment.unresolved(path, peer)?;
        let text = format!("`endpoint = \"{endpoint}\"` has no address: {error}");
        let remedy = "fix the name, or the name servers in /etc/resolv.conf; it is tried again".into();
        let cause = Some(Cause { kind: CauseKind::Unresolved, text, remedy });
        Some(PathStatus { cause, ..path_template(path, None) })
    };
    config.paths.iter().filter_map(path).collect()
}

/// The configured paths to a peer, by path id.
fn paths_by_id(config: &TunnelConfig, assignment: &PathAssignment, peer: usize) -> Vec<PathStatus> {
    let mut paths = Vec::new();
    for assigned in assignment.peers.get(peer).into_iter().flat_map(|peer| &peer.paths) {
        let id = usize::from(assigned.id);
        paths.resize_with(paths.len().max(id + 1), PathStatus::default);
        let configured = config.paths.iter().find(|path| path.name == assigned.name);
        let remote = Some(assigned.remote.to_string());
        paths[id] = configured.map(|path| path_template(path, remote)).unwrap_or_default();
    }
    paths
}

fn mpt_peer(state: &mut PeerState, report: &MptReport, peer: &mut PeerStatus, now: Instant) {
    state.meters.resize(peer.paths.len(), RateMeter::default());
    for ((path, report), meter) in peer.paths.iter_mut().zip(&report.paths).zip(&mut state.meters) {
        mpt_path(path, report, meter, now);
    }
    let counters = report.resequencer.unwrap_or_default();
    peer.reorder_buffer = ReorderBuffer {
        backlog_packets: report.buffered_packets,
        max_backlog_packets: counters.max_buffered,
        timeout_ms: None,
        reordered_packets: counters.buffered,
        timeouts: counters.timeouts,
        late_packets: counters.late,
    };
}

fn mpt_path(path: &mut PathStatus, report: &MptPathReport, meter: &mut RateMeter, now: Instant) {
    let (sent_bytes, received_bytes) = (report.sent.bytes, report.received.bytes);
    let rates = meter.update(now, PathCounters { sent_bytes, received_bytes, ..PathCounters::default() });
    (path.send_rate_bps, path.receive_rate_bps) = (rates.send.0, rates.receive.0);
    path.state = if report.up { PathState::Up } else { PathState::Down };
    path.failures = report.failures;
    (path.sent, path.received) = (report.sent, report.received);
}

/// A peer in `ropewalk` mode. Paths that it opened have no name in the configuration.
fn ropewalk_peer(state: &mut PeerState, report: &PeerReport, peer: &mut PeerStatus, now: Instant) {
    if let Some(session) = &report.session {
        peer.handshake_age_ms = session.latest_handshake.map(|handshake| now.since(handshake).as_millis_f64());
        peer.cipher = session.cipher.map(|cipher| cipher.name().to_owned());
        peer.handshake_attempts = session.handshake_attempts;
        peer.takeover_age_ms = session.latest_takeover.map(|takeover| now.since(takeover).as_millis_f64());
    }
    peer.active = report.active;
    let unallowed = report.unallowed_sources.iter();
    peer.unallowed_sources = unallowed
        .map(|(address, packets)| UnallowedSource { address: address.to_string(), packets: *packets })
        .collect();
    peer.relay = report.relay.as_ref().map(relay_status);
    let Some(status) = &report.status else { return };
    // The peer may have removed a configured path.
    peer.paths.iter_mut().for_each(|path| path.state = PathState::Down);
    for path_report in &status.paths {
        let id = path_report.path.index();
        peer.paths.resize_with(peer.paths.len().max(id + 1), PathStatus::default);
        state.meters.resize(state.meters.len().max(id + 1), RateMeter::default());
        let path = &mut peer.paths[id];
        if path.name.is_empty() {
            let name = report.names.iter().find(|(path, _)| usize::from(*path) == id).map(|(_, name)| name.clone());
            (path.name, path.opened_by_peer) = (name.unwrap_or_else(|| format!("path-{id}")), true);
        }
        ropewalk_path(path, path_report, &mut state.meters[id], now);
    }
    for address in &report.addresses {
        if let Some(path) = peer.paths.get_mut(usize::from(address.path)) {
            path.remote = Some(address.remote.to_string());
            if path.opened_by_peer {
                path.source = address.local.map(|local| local.to_string());
            }
            // The endpoint counts UDP payload.
            let header_bytes = if address.remote.is_ipv4() { 20 + 8 } else { 40 + 8 };
            path.pmtu_bytes = path.pmtu_bytes.map(|payload| payload + header_bytes);
        }
    }
    peer.controller_failure.clone_from(&status.controller_failure);
    let counters = &status.counters;
    peer.retransmitted_fragments = counters.retransmitted_fragments;
    peer.bulk = class_traffic(&counters.bulk);
    peer.realtime = class_traffic(&counters.realtime).map(|traffic| RealtimeStatus {
        traffic,
        moves: counters.realtime_moves,
        copied_packets: counters.copied_fragments,
        copied_bytes: counters.copied_bytes,
        first_copies: counters.first_copies,
        wasted_copies: counters.wasted_copies,
    });
    peer.ingress_queue = IngressQueue {
        backlog_packets: status.ingress_backlog_packets,
        backlog_bytes: status.ingress_backlog_bytes,
        marked_packets: counters.ingress_marked_or_trimmed_packets,
        dropped_packets: counters.ingress_dropped_packets,
        thinned_acks: counters.thinned_acks,
        bundled_packets: counters.bundled_packets,
    };
    state.max_backlog_packets = state.max_backlog_packets.max(status.reorder_fragments);
    peer.reorder_buffer = ReorderBuffer {
        backlog_packets: status.reorder_fragments,
        max_backlog_packets: state.max_backlog_packets,
        timeout_ms: millis(status.reorder_timeout.measured()),
        reordered_packets: counters.reorder_buffered_fragments,
        timeouts: counters.missing_fragments,
        late_packets: counters.late_fragments,
    };
}

/// The traffic of a class; `None` if nothing was sent.
fn class_traffic(class: &ClassCounters) -> Option<ClassTraffic> {
    let ClassCounters { packets, bytes, wait_ns } = *class;
    (packets > 0).then_some(ClassTraffic { packets, bytes, total_wait_ms: wait_ns as f64 / 1e6 })
}

fn relay_status(report: &RelayReport) -> RelayStatus {
    let RelayReport { peer_relays, kernel_translation, connections, held_bytes, counters } = *report;
    RelayStatus {
        peer_relays,
        kernel_translation,
        connections,
        opened_connections: counters.opened,
        accepted_connections: counters.accepted,
        not_relayed_connections: counters.not_relayed,
        sent_bytes: counters.sent_bytes,
        received_bytes: counters.received_bytes,
        held_bytes,
    }
}

fn ropewalk_path(path: &mut PathStatus, report: &machine::PathStatus, meter: &mut RateMeter, now: Instant) {
    let rates = meter.update(
        now,
        PathCounters {
            sent_bytes: report.sent_bytes,
            received_bytes: report.received_bytes,
            sent_packets: report.sent_packets,
            lost_packets: report.lost_packets,
        },
    );
    path.state = match report.last_received {
        _ if report.up => PathState::Up,
        None => PathState::Validating,
        Some(_) => PathState::Down,
    };
    (path.backup, path.secondary) = (report.backup, report.secondary);
    (path.srtt_ms, path.min_rtt_ms) = (millis(report.srtt), millis(report.min_rtt));
    (path.rttvar_ms, path.probe_rtt_ms) = (millis(report.rttvar), millis(report.probe_rtt));
    path.loss_ratio = rates.loss_ratio;
    path.delivery_rate_bps = report.delivery_rate.map(|rate| rate.0);
    (path.send_rate_bps, path.receive_rate_bps) = (rates.send.0, rates.receive.0);
    path.pmtu_bytes = Some(report.max_datagram_size);
    path.cwnd_bytes = Some(u64::from(report.cwnd) * u64::from(report.max_datagram_size));
    path.in_flight_bytes = u64::from(report.in_flight) * u64::from(report.max_datagram_size);
    path.sent = Traffic { packets: report.sent_packets, bytes: report.sent_bytes };
    path.received = Traffic { packets: report.received_packets, bytes: report.received_bytes };
    path.lost_packets = report.lost_packets;
    path.ce_packets = report.ce_packets;
    path.failures = report.failures;
    (path.moves, path.refused_addresses) = (report.moves, report.refused_addresses);
    if path.state != PathState::Up {
        path.forget_measurements();
    }
}

/// A measurement, ms.
fn millis(span: Option<Span>) -> Option<f64> {
    span.map(Span::as_millis_f64)
}

/// Dropped packets by reason. `docs/tunnel/troubleshooting.md` explains each.
fn drops(report: &Report) -> Vec<DropCount> {
    let sockets = |counter: fn(&SocketReport) -> u64| report.sockets.iter().map(counter).sum();
    let peers = |counter: fn(&PeerReport) -> u64| report.peers.iter().map(counter).sum();
    let mpt = |counter: fn(&MptReport) -> u64| report.mpt.as_ref().map_or(0, counter);
    let dropped = dropped_datagrams(report);
    let refused: u64 = dropped.iter().map(|drop| drop.packets).sum();
    let reasons = [
        ("no-peer", report.device.unrouted),
        ("malformed", report.device.malformed),
        ("device-write-failed", report.device.write_errors),
        ("no-buffer", report.buffers.exhausted),
        ("thread-busy", report.not_handed_over),
        ("send-buffer-full", sockets(|socket| socket.send_buffer_full)),
        ("too-big", sockets(|socket| socket.too_big)),
        ("send-failed", sockets(|socket| socket.failed)),
        ("unusable-datagram", sockets(|socket| socket.refused).saturating_sub(refused) + mpt(|mpt| mpt.malformed)),
        ("no-session", peers(|peer| peer.no_session)),
        ("unallowed-source", peers(|peer| peer.unallowed_source) + mpt(|mpt| mpt.unallowed_source)),
        ("incomplete", peers(|peer| peer.incomplete)),
        ("no-path", mpt(|mpt| mpt.no_path_packets)),
    ];
    let reasons = reasons.map(|(reason, packets)| DropCount { reason: reason.into(), packets });
    reasons.into_iter().chain(dropped).collect()
}

/// Refused datagrams and handshakes. Two reasons get a longer name, because their own names have another meaning in
/// [`drops`].
fn dropped_datagrams(report: &Report) -> Vec<DropCount> {
    let reason_name = |drop_reason: DropReason| match drop_reason {
        DropReason::Malformed => "malformed-datagram".into(),
        DropReason::NoSession => "unknown-session".into(),
        drop_reason => drop_reason.name().replace('_', "-"),
    };
    report
        .dropped
        .iter()
        .map(|(drop_reason, packets)| DropCount { reason: reason_name(drop_reason), packets })
        .collect()
}

#[cfg(test)]
mod tests;
