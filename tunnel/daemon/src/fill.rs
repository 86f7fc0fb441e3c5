//! From the machine's plain numbers to the status.

use crate::status::{Entrance, Path, Peer, Reordering, State, Traffic};
use machine::PathStatus;
use units::{Instant, Rate, Span};

/// Rates come from the differences between one look and the next: this remembers the one before.
#[derive(Clone, Debug, Default)]
pub struct Meter {
    before: Vec<(Instant, Look)>,
}

/// A path's counters at one moment.
#[derive(Clone, Copy, Debug, Default)]
struct Look {
    sent_bytes: u64,
    received_bytes: u64,
    sent: u64,
    lost: u64,
}

/// Looks that follow closer than this are measured against the same one before.
const LEAST: Span = Span::from_millis(200);

impl Meter {
    /// Writes the endpoint's numbers into `peer`, whose paths are named already and stand in the order of their ids.
    pub fn fill(&mut self, now: Instant, status: &machine::EndpointStatus, peer: &mut Peer) {
        self.before.resize(status.paths.len().max(self.before.len()), (now, Look::default()));
        for numbers in &status.paths {
            if let Some(path) = peer.paths.get_mut(numbers.path.index()) {
                self.path(now, numbers, path);
            }
        }
        let sending: u64 = peer.paths.iter().map(|path| path.sending_bps).sum();
        for path in &mut peer.paths {
            path.share = if sending == 0 { 0.0 } else { path.sending_bps as f64 / sending as f64 };
        }
        let counters = &status.counters;
        peer.repaired_pieces = counters.retransmitted;
        peer.entrance = Entrance {
            queued_packets: status.ingress_packets,
            queued_bytes: status.ingress_bytes,
            marked_packets: counters.ingress_marked,
            dropped_packets: counters.ingress_dropped,
        };
        peer.reordering = Reordering {
            depth_packets: status.reorder_fragments,
            most_packets: peer.reordering.most_packets.max(status.reorder_fragments),
            hold_ms: status.reorder_timeout.as_millis_f64(),
            held_packets: counters.reordered,
            timeouts: counters.missed,
            late_packets: counters.late,
        };
    }

    fn path(&mut self, now: Instant, numbers: &PathStatus, path: &mut Path) {
        let at = numbers.path.index();
        if at >= self.before.len() {
            self.before.resize(at + 1, (now, Look::default()));
        }
        let look = Look {
            sent_bytes: numbers.sent_bytes,
            received_bytes: numbers.received_bytes,
            sent: numbers.sent_packets,
            lost: numbers.lost_packets,
        };
        let (since, before) = self.before[at];
        let span = now.since(since);
        if span >= LEAST {
            path.sending_bps = Rate::of(look.sent_bytes.saturating_sub(before.sent_bytes), span).0;
            path.receiving_bps = Rate::of(look.received_bytes.saturating_sub(before.received_bytes), span).0;
            let sent = look.sent.saturating_sub(before.sent);
            path.loss = if sent == 0 { 0.0 } else { look.lost.saturating_sub(before.lost) as f64 / sent as f64 };
            self.before[at] = (now, look);
        }
        plain(numbers, path);
    }
}

/// What needs no look before.
fn plain(numbers: &PathStatus, path: &mut Path) {
    let known = |span: Span| (span > Span::ZERO).then(|| span.as_millis_f64());
    path.state = if numbers.up {
        State::Up
    } else if numbers.last_received.is_none() {
        State::Validating
    } else {
        State::Down
    };
    path.backup = numbers.backup;
    path.rtt_ms = known(numbers.srtt);
    path.least_rtt_ms = known(numbers.min_rtt).filter(|_| path.rtt_ms.is_some());
    path.probe_rtt_ms = numbers.probe_rtt.map(Span::as_millis_f64);
    path.rtt_deviation_ms = path.rtt_ms.map(|_| numbers.rttvar.as_millis_f64());
    path.delivery_bps = numbers.delivery_rate.0;
    path.mtu_bytes = numbers.max_datagram_size;
    path.window_bytes = Some(u64::from(numbers.cwnd) * u64::from(numbers.max_datagram_size));
    path.in_flight_bytes = u64::from(numbers.in_flight) * u64::from(numbers.max_datagram_size);
    path.sent = Traffic { packets: numbers.sent_packets, bytes: numbers.sent_bytes };
    path.received = Traffic { packets: numbers.received_packets, bytes: numbers.received_bytes };
    path.lost_packets = numbers.lost_packets;
    path.marked_packets = numbers.ce_packets;
    path.failures = numbers.failures;
}
