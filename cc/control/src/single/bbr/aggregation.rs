//! How much more than expected is acknowledged in one go.
//!
//! Receivers and links hold acknowledgements back and release them together. While they are held, a window of just the
//! bandwidth-delay product runs dry; so the largest excess of the last five to ten round trips is added to it.

use super::bandwidth;
use units::{Instant, Span};

/// Each of the two slots holds this many round trips.
pub(in crate::single) const SLOT_ROUNDS: u32 = 5;
/// The excess is capped at what the bandwidth delivers in this time.
const LONGEST: Span = Span::from_millis(100);
/// An epoch with this many packets is old enough to begin again.
const MOST: u64 = 1 << 20;

/// The largest excess of two slots of round trips.
#[derive(Debug, Default)]
pub(in crate::single) struct Aggregation {
    start: Instant,
    acked: u64,
    most: [u64; 2],
    slot: usize,
    rounds: u32,
}

impl Aggregation {
    /// An epoch begins: nothing is in excess.
    pub(in crate::single) fn restart(&mut self, now: Instant) {
        (self.start, self.acked) = (now, 0);
    }

    /// The packets to add to the window at this bandwidth.
    pub(in crate::single) fn excess(&self, bandwidth: u64) -> u64 {
        self.most[0].max(self.most[1]).min(bandwidth::packets_in(bandwidth, LONGEST))
    }

    /// `acked` packets were delivered. If they began a round trip, `round` says how many a slot holds.
    pub(in crate::single) fn update(
        &mut self,
        acked: u32,
        bandwidth: u64,
        cwnd: u32,
        round: Option<u32>,
        now: Instant,
    ) {
        if let Some(slot_rounds) = round {
            self.count_round(slot_rounds);
        }
        let mut expected = bandwidth::packets_in(bandwidth, now.since(self.start));
        if self.acked <= expected || self.acked + u64::from(acked) >= MOST {
            self.restart(now);
            expected = 0;
        }
        self.acked = (self.acked + u64::from(acked)).min(MOST - 1);
        let excess = (self.acked - expected).min(u64::from(cwnd));
        self.most[self.slot] = self.most[self.slot].max(excess);
    }

    fn count_round(&mut self, slot_rounds: u32) {
        self.rounds += 1;
        if self.rounds >= slot_rounds {
            (self.rounds, self.slot) = (0, 1 - self.slot);
            self.most[self.slot] = 0;
        }
    }
}
