//! When to acknowledge: at once, every second segment, after 40 ms, or compressed (Linux 6.1 `__tcp_ack_snd_check`).

use super::ReceiverConfig;
use units::{Instant, Span};

/// Delay of a lone acknowledgement (`TCP_DELACK_MIN`).
const DELAY: Span = Span::from_millis(40);
/// Acknowledgements sent without delay at the start and after anything unusual (`TCP_MAX_QUICKACKS`).
pub(super) const QUICK: u32 = 16;
/// Acknowledgements sent without delay after a CE mark: the sender's window may be small.
pub(super) const MARK_QUICK: u32 = 2;
/// One acknowledgement sent without delay (`ICSK_ACK_NOW`).
pub(super) const AT_ONCE: u32 = 1;
/// Duplicate acknowledgements sent at once per missing segment: as many as fast retransmit needs.
const DUPLICATES: u32 = 3;
/// Most duplicate acknowledgements compressed into one (`tcp_comp_sack_nr`).
const MERGED: u32 = 44;
/// Longest delay of compressed acknowledgements (`tcp_comp_sack_delay_ns`); at most a twentieth of the RTT.
const MERGE_DELAY: Span = Span::from_millis(1);

/// Whether an acknowledgement leaves now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Urgency {
    Now,
    Later,
}

#[derive(Clone, Debug)]
pub(super) struct Policy {
    /// In-order segments that call for an acknowledgement.
    every: u64,
    quick: u32,
    duplicates: u32,
    duplicates_of: u64,
    merged: u32,
    deadline: Instant,
    tick: Span,
    /// Duplicate acknowledgements are compressed: only with SACK, as the sender else counts them.
    merges: bool,
}

impl Policy {
    pub(super) fn new(config: &ReceiverConfig) -> Self {
        // Linux acknowledges what exceeds one segment; offloaded segments count as one each time they come up together.
        // Zero: also what is out of order, at once.
        let every = if config.quick_ack { 0 } else { u64::from(config.gro.max(2)) };
        Self {
            every,
            quick: QUICK,
            duplicates: 0,
            duplicates_of: 0,
            merged: 0,
            deadline: Instant::NEVER,
            tick: config.tick,
            merges: config.sack,
        }
    }

    pub(super) fn deadline(&self) -> Instant {
        self.deadline
    }

    /// True if an acknowledgement is pending: delayed or compressed.
    pub(super) fn is_waiting(&self) -> bool {
        self.deadline < Instant::NEVER
    }

    /// Makes the pending acknowledgement due now.
    pub(super) fn expire(&mut self, now: Instant) {
        self.deadline = now;
    }

    /// True while duplicate acknowledgements are being compressed.
    pub(super) fn is_merging(&self) -> bool {
        self.merged > 0
    }

    /// Enters quick-ack mode for so many acknowledgements (Linux `tcp_enter_quickack_mode`).
    pub(super) fn quicken(&mut self, acks: u32) {
        self.quick = self.quick.max(acks);
    }

    /// An acknowledgement was sent.
    pub(super) fn on_ack(&mut self) {
        self.quick = self.quick.saturating_sub(1);
        self.merged = 0;
        self.deadline = Instant::NEVER;
    }

    /// New data arrived: `unacked` segments in order since the last acknowledgement, `waiting` if some are out of
    /// order.
    pub(super) fn on_data(
        &mut self,
        now: Instant,
        unacked: u64,
        waiting: bool,
        filled: bool,
        next: u64,
        rtt: Span,
    ) -> Urgency {
        if unacked >= self.every || self.quick > 0 || filled {
            return Urgency::Now;
        }
        if waiting {
            return self.on_disorder(now, next, rtt);
        }
        let ticks = now.0 / self.tick.0 + DELAY.0.div_ceil(self.tick.0);
        self.deadline = self.deadline.min(Instant(ticks * self.tick.0));
        Urgency::Later
    }

    /// The first duplicate acknowledgements are sent at once, later ones are compressed.
    fn on_disorder(&mut self, now: Instant, next: u64, rtt: Span) -> Urgency {
        if self.duplicates_of != next {
            self.duplicates_of = next;
            self.duplicates = 0;
        }
        if self.duplicates < DUPLICATES {
            self.duplicates += 1;
            return Urgency::Now;
        }
        if !self.merges || self.merged >= MERGED {
            return Urgency::Now;
        }
        self.merged += 1;
        self.deadline = self.deadline.min(now + MERGE_DELAY.min(rtt / 20));
        Urgency::Later
    }
}
