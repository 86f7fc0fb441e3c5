//! Super-segments: segments of one flow that the host receives as one packet, through a TUN device with segmentation
//! offload or after receive offload. TCP handles them at once and acknowledges them as one (Linux 6.1 `tcp_rcv_established`).

use super::{DataArrival, Receiver};
use crate::tcp::{Ack, Segment, timestamp};
use control::Ecn;
use units::Instant;

impl Receiver {
    /// Handles a super-segment of `segments` data segments that begins with `first`; `ece` if it carries a CE mark.
    /// Returns the same as [`handle`](Self::handle).
    pub fn handle_super_segment(&mut self, now: Instant, first: &Segment, segments: u32, ece: bool) -> Option<Ack> {
        self.one_way_delay_ms = timestamp(now).saturating_sub(first.tsval);
        self.begin_arrival(now);
        if self.config.ecn == Ecn::L4s {
            // Each of its segments counts as marked (RFC 9768 section 3.2.2.5).
            (1..segments).for_each(|_| self.count_mark(ece));
        }
        let prior_ack = self.update_ecn_echo(now, first, ece);
        let mut arrival = DataArrival::default();
        for seq in first.seq..first.seq + u64::from(segments) {
            self.counters.received += 1;
            let prior_dsack = self.dsack;
            let next = self.insert(now, &Segment { seq, ..*first }, seq > first.seq);
            self.extend_dsack(prior_dsack, seq);
            arrival.acknowledge_now |= next.acknowledge_now;
            arrival.is_new |= next.is_new;
            arrival.first_ack = arrival.first_ack.or(next.first_ack);
        }
        self.acknowledge_arrival(now, prior_ack, arrival)
    }

    /// Reports consecutive duplicates as one block. Of several blocks the first is reported (Linux `tcp_dsack_extend`).
    fn extend_dsack(&mut self, prior: Option<(u64, u64)>, seq: u64) {
        if let Some((start, end)) = prior {
            let is_next = end == seq && self.dsack == Some((seq, seq + 1));
            self.dsack = Some((start, if is_next { seq + 1 } else { end }));
        }
    }
}
