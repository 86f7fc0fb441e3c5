//! Packets acknowledged in excess of the expected ones: aggregation of acknowledgements.
//!
//! Receivers and links hold acknowledgements back and release them together. In that time a window of one
//! bandwidth-delay product would be used up. Therefore the largest excess of the last five to ten round trips is added
//! to the window.

use super::bandwidth;
use units::{Instant, Span};

/// Each of the two slots holds this many round trips.
pub(in crate::single) const EXTRA_ACKED_WIN_RTTS: u32 = 5;
/// The excess is limited to the packets that the bandwidth delivers in this time.
const EXTRA_ACKED_MAX: Span = Span::from_millis(100);
/// Packets after which an epoch ends.
const ACK_EPOCH_ACKED_RESET_THRESH: u64 = 1 << 20;

/// The largest excess of two slots of round trips.
#[derive(Debug, Default)]
pub(in crate::single) struct Aggregation {
    ack_epoch_mstamp: Instant,
    ack_epoch_acked: u64,
    extra_acked: [u64; 2],
    extra_acked_win_idx: usize,
    extra_acked_win_rtts: u32,
}

impl Aggregation {
    /// Begins an epoch, without excess.
    pub(in crate::single) fn restart(&mut self, now: Instant) {
        (self.ack_epoch_mstamp, self.ack_epoch_acked) = (now, 0);
    }

    /// The packets to add to the window at this bandwidth.
    pub(in crate::single) fn extra_acked(&self, bandwidth: u64) -> u64 {
        self.extra_acked[0].max(self.extra_acked[1]).min(bandwidth::packets_in(bandwidth, EXTRA_ACKED_MAX))
    }

    /// Updates the excess with `acked` packets and returns it. If they began a round trip, `slot_rounds` is the number
    /// of round trips per slot.
    pub(in crate::single) fn update(
        &mut self,
        acked: u32,
        bandwidth: u64,
        cwnd: u32,
        slot_rounds: Option<u32>,
        now: Instant,
    ) -> u64 {
        if let Some(slot_rounds) = slot_rounds {
            self.count_round(slot_rounds);
        }
        let mut expected = bandwidth::packets_in(bandwidth, now.since(self.ack_epoch_mstamp));
        if self.ack_epoch_acked <= expected || self.ack_epoch_acked + u64::from(acked) >= ACK_EPOCH_ACKED_RESET_THRESH {
            self.restart(now);
            expected = 0;
        }
        self.ack_epoch_acked = (self.ack_epoch_acked + u64::from(acked)).min(ACK_EPOCH_ACKED_RESET_THRESH - 1);
        let extra_acked = (self.ack_epoch_acked - expected).min(u64::from(cwnd));
        self.extra_acked[self.extra_acked_win_idx] = self.extra_acked[self.extra_acked_win_idx].max(extra_acked);
        extra_acked
    }

    fn count_round(&mut self, slot_rounds: u32) {
        self.extra_acked_win_rtts += 1;
        if self.extra_acked_win_rtts >= slot_rounds {
            (self.extra_acked_win_rtts, self.extra_acked_win_idx) = (0, 1 - self.extra_acked_win_idx);
            self.extra_acked[self.extra_acked_win_idx] = 0;
        }
    }
}
