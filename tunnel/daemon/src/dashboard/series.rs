//! The series of a history (the tunnel, each peer if there are several, each path, and each flow class), and their
//! samples from two statuses.

use super::sample::{Sample, State};
use crate::status::{ClassTraffic, PathState, PathStatus, PeerStatus, TunnelStatus};
use serde::{Deserialize, Serialize};

/// Maximum number of recorded series. Of a tunnel with more, the first ones are recorded; series that disappeared
/// longest ago make room for new ones.
pub const MAX_SERIES: usize = 32;

/// The subject of a series. For the tunnel as a whole all fields are `None`.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct SeriesKey {
    /// The peer's public key, or its first inner network in `mpt` mode.
    pub peer: Option<String>,
    /// The path's name.
    pub path: Option<String>,
    /// The flow class's name, `real-time` or `bulk`. The series covers this end's packets of the class to all peers.
    #[serde(default)]
    pub class: Option<String>,
}

/// Counters since the start, of which rates are differences.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Counters {
    uptime_s: f64,
    sent_bytes: u64,
    received_bytes: u64,
    sent_packets: u64,
    lost_packets: u64,
    /// For a flow class: the sum of its packets' waits in the ingress queue, ms.
    wait_ms: f64,
}

/// A series in a status.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Reading {
    pub(super) key: SeriesKey,
    pub(super) counters: Counters,
    state: State,
    srtt_ms: Option<f64>,
    probe_rtt_ms: Option<f64>,
    min_rtt_ms: Option<f64>,
}

/// A path that sent fewer packets since the earlier status is idle. Its latest probe is then more accurate than the
/// smoothed round-trip time, which only data updates.
const MIN_DATA_PACKETS: u64 = 10;

impl Reading {
    /// The sample since earlier counters of the same series. The counters of a path that was created again start at 0.
    pub(super) fn since(&self, previous: Option<&Counters>) -> Sample {
        let now = &self.counters;
        let previous = previous.copied().unwrap_or(*now);
        let interval_s = now.uptime_s - previous.uptime_s;
        let rate = |now: u64, previous: u64| {
            if interval_s > 0.0 { now.saturating_sub(previous) as f64 * 8.0 / interval_s } else { 0.0 }
        };
        let sent = now.sent_packets.saturating_sub(previous.sent_packets);
        let lost = now.lost_packets.saturating_sub(previous.lost_packets);
        let loss = (sent > 0 && self.state != State::Down).then(|| lost as f64 / sent as f64);
        let rates = [rate(now.sent_bytes, previous.sent_bytes), rate(now.received_bytes, previous.received_bytes)];
        let rtt_ms = if sent < MIN_DATA_PACKETS { self.probe_rtt_ms.or(self.srtt_ms) } else { self.srtt_ms };
        let rtt_ms = rtt_ms.filter(|_| self.state != State::Down);
        let queue_ms = if self.key.class.is_some() {
            (sent > 0).then(|| (now.wait_ms - previous.wait_ms).max(0.0) / sent as f64)
        } else {
            rtt_ms.zip(self.min_rtt_ms).map(|(rtt, min)| (rtt - min).max(0.0))
        };
        Sample::new(self.state, rates, rtt_ms, queue_ms, loss)
    }
}

/// The series of a status: the tunnel first, then the flow classes, then the peers if there are several, then the paths.
pub(super) fn readings(status: &TunnelStatus) -> Vec<Reading> {
    let all: Vec<&PathStatus> = status.paths().map(|(_, path)| path).collect();
    let mut readings = vec![sum(SeriesKey::default(), &all, status.uptime_s)];
    readings.extend(class_readings(status));
    if status.peers.len() > 1 {
        readings.extend(status.peers.iter().map(|peer| {
            let key = SeriesKey { peer: Some(peer_name(peer)), ..SeriesKey::default() };
            sum(key, &peer.paths.iter().collect::<Vec<_>>(), status.uptime_s)
        }));
    }
    readings.extend(status.paths().map(|(peer, path)| path_reading(peer, path, status.uptime_s)));
    readings
}

/// The flow classes, once a packet of the real-time class was sent.
fn class_readings(status: &TunnelStatus) -> Vec<Reading> {
    let realtime = status.peers.iter().filter_map(|peer| Some(peer.realtime.as_ref()?.traffic));
    if realtime.clone().next().is_none() {
        return Vec::new();
    }
    let bulk = status.peers.iter().filter_map(|peer| peer.bulk);
    vec![class_reading("real-time", realtime, status), class_reading("bulk", bulk, status)]
}

fn class_reading(name: &str, peers: impl Iterator<Item = ClassTraffic>, status: &TunnelStatus) -> Reading {
    let empty = Counters { uptime_s: status.uptime_s, ..Counters::default() };
    let counters = peers.fold(empty, |sum, traffic| Counters {
        sent_bytes: sum.sent_bytes + traffic.bytes,
        sent_packets: sum.sent_packets + traffic.packets,
        wait_ms: sum.wait_ms + traffic.total_wait_ms,
        ..sum
    });
    let key = SeriesKey { class: Some(name.into()), ..SeriesKey::default() };
    Reading { key, counters, state: State::Up, srtt_ms: None, probe_rtt_ms: None, min_rtt_ms: None }
}

/// The name of a peer in a history.
pub(super) fn peer_name(peer: &PeerStatus) -> String {
    peer.public_key.clone().or_else(|| peer.allowed_ips.first().cloned()).unwrap_or_default()
}

fn path_reading(peer: &PeerStatus, path: &PathStatus, uptime_s: f64) -> Reading {
    Reading {
        key: SeriesKey { peer: Some(peer_name(peer)), path: Some(path.name.clone()), class: None },
        counters: path_counters(path, uptime_s),
        state: State::of(path.condition),
        srtt_ms: path.srtt_ms,
        probe_rtt_ms: path.probe_rtt_ms,
        min_rtt_ms: path.min_rtt_ms,
    }
}

fn path_counters(path: &PathStatus, uptime_s: f64) -> Counters {
    Counters {
        uptime_s,
        sent_bytes: path.sent.bytes,
        received_bytes: path.received.bytes,
        sent_packets: path.sent.packets,
        lost_packets: path.lost_packets,
        wait_ms: 0.0,
    }
}

/// Combines paths: the sums of their counters, the smallest round-trip time, and the best state.
fn sum(key: SeriesKey, paths: &[&PathStatus], uptime_s: f64) -> Reading {
    let counters = paths.iter().map(|path| path_counters(path, uptime_s)).fold(
        Counters { uptime_s, ..Counters::default() },
        |sum, path| Counters {
            uptime_s,
            sent_bytes: sum.sent_bytes + path.sent_bytes,
            received_bytes: sum.received_bytes + path.received_bytes,
            sent_packets: sum.sent_packets + path.sent_packets,
            lost_packets: sum.lost_packets + path.lost_packets,
            wait_ms: 0.0,
        },
    );
    let up = paths.iter().filter(|path| path.state == PathState::Up);
    let states = paths.iter().map(|path| State::of(path.condition));
    let srtt = |path: &&&PathStatus| path.srtt_ms.unwrap_or(f64::INFINITY);
    let fastest = up.min_by(|a, b| srtt(a).total_cmp(&srtt(b)));
    Reading {
        key,
        counters,
        state: states.min_by_key(|state| state.rank()).unwrap_or(State::Validating),
        srtt_ms: fastest.and_then(|path| path.srtt_ms),
        probe_rtt_ms: fastest.and_then(|path| path.probe_rtt_ms),
        min_rtt_ms: fastest.and_then(|path| path.min_rtt_ms),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_differences_of_counters_over_the_time_between_two_statuses() {
        let mut status = TunnelStatus::example();
        let before = readings(&status);
        status.uptime_s += 2.0;
        let path = &mut status.peers[0].paths[0];
        path.sent.bytes += 250_000;
        path.sent.packets += 200;
        path.lost_packets += 10;
        let name = path.name.clone();
        let after = readings(&status);
        let sample = |key: &SeriesKey| {
            let find = |readings: &[Reading]| readings.iter().find(|reading| reading.key == *key).cloned().unwrap();
            find(&after).since(Some(&find(&before).counters))
        };
        let key = SeriesKey { peer: Some(peer_name(&status.peers[0])), path: Some(name), class: None };
        assert_eq!((sample(&key).send_bps, sample(&key).receive_bps), (1e6, 0.0));
        assert!((sample(&key).loss_ratio().unwrap() - 0.05).abs() < 1e-4);
        assert_eq!(sample(&SeriesKey::default()).send_bps, 1e6, "the tunnel is the sum of its paths");
        let first = after.iter().find(|reading| reading.key == key).unwrap().since(None);
        assert_eq!(first.send_bps, 0.0, "no rate is known from one status");
    }

    #[test]
    fn a_class_has_its_rate_and_the_mean_wait_of_the_packets_since_the_status_before() {
        let mut status = TunnelStatus::example();
        let key = SeriesKey { class: Some("real-time".into()), ..SeriesKey::default() };
        let find = |status: &TunnelStatus| readings(status).into_iter().find(|reading| reading.key == key);
        let before = find(&status).unwrap();
        status.uptime_s += 2.0;
        let traffic = &mut status.peers[0].realtime.as_mut().unwrap().traffic;
        (traffic.packets, traffic.bytes) = (traffic.packets + 100, traffic.bytes + 25_000);
        traffic.total_wait_ms += 250.0;
        let sample = find(&status).unwrap().since(Some(&before.counters));
        assert_eq!((sample.send_bps, sample.queue_ms(), sample.rtt_ms()), (1e5, Some(2.5), None));
        status.peers[0].realtime = None;
        assert!(find(&status).is_none(), "without the class there is nothing to tell apart");
    }
}
