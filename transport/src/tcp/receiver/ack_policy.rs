//! The timing of acknowledgements: at once, every second segment, after 40 ms, or compressed (Linux 6.1
//! `__tcp_ack_snd_check`).

use super::ReceiverConfig;
use crate::tcp::timer_wheel::expiry;
use units::{Instant, Span};

/// Delay of a lone acknowledgement (`TCP_DELACK_MIN`).
const DELACK_MIN: Span = Span::from_millis(40);
/// Acknowledgements sent without delay at the start and after duplicates (`TCP_MAX_QUICKACKS`).
pub(super) const MAX_QUICKACKS: u32 = 16;
/// Acknowledgements sent without delay after a CE mark, because the sender's window may be small.
pub(super) const QUICKACKS_AFTER_MARK: u32 = 2;
/// Number of CE-marked segments after which accurate ECN acknowledges at once (RFC 9768 section 3.2.2.5.1).
pub(super) const MARKS_PER_ACK: u8 = 2;
/// One acknowledgement sent without delay (`ICSK_ACK_NOW`).
pub(super) const ONE_QUICKACK: u32 = 1;
/// Duplicate acknowledgements sent at once for each hole, because fast retransmit needs that many.
const DUPACKS_AT_ONCE: u32 = 3;
/// Maximum number of duplicate acknowledgements compressed into one (`tcp_comp_sack_nr`).
const MAX_COMPRESSED_ACKS: u32 = 44;
/// Maximum delay of compressed acknowledgements (`tcp_comp_sack_delay_ns`); at most a twentieth of the RTT.
const COMP_SACK_DELAY: Span = Span::from_millis(1);

/// The timing of an acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AckTiming {
    Now,
    Later,
}

#[derive(Clone, Debug)]
pub(super) struct AckPolicy {
    /// Number of in-order segments after which an acknowledgement is sent.
    ack_every: u64,
    quick: u32,
    dup_acks: u32,
    dup_ack_seq: u64,
    compressed_ack: u32,
    deadline: Instant,
    tick: Span,
    /// Whether duplicate acknowledgements are compressed. That needs SACK, because otherwise the sender counts them.
    is_compression_allowed: bool,
}

impl AckPolicy {
    pub(super) fn new(config: &ReceiverConfig) -> Self {
        // Linux acknowledges data beyond one segment; segments merged by GRO count as one. With zero, out-of-order
        // segments are acknowledged at once, too.
        let ack_every = if config.quick_ack { 0 } else { u64::from(config.gro.max(2)) };
        Self {
            ack_every,
            quick: MAX_QUICKACKS,
            dup_acks: 0,
            dup_ack_seq: 0,
            compressed_ack: 0,
            deadline: Instant::NEVER,
            tick: config.tick,
            is_compression_allowed: config.sack,
        }
    }

    pub(super) fn deadline(&self) -> Instant {
        self.deadline
    }

    /// True if an acknowledgement is pending: delayed or compressed.
    pub(super) fn is_pending(&self) -> bool {
        self.deadline < Instant::NEVER
    }

    /// Makes an acknowledgement due at this instant, unless one is due before.
    pub(super) fn expire(&mut self, at: Instant) {
        self.deadline = self.deadline.min(at);
    }

    /// True while duplicate acknowledgements are being compressed.
    pub(super) fn is_compressing(&self) -> bool {
        self.compressed_ack > 0
    }

    /// Enters quick-ack mode for `acks` acknowledgements (Linux `tcp_enter_quickack_mode`).
    pub(super) fn enter_quickack_mode(&mut self, acks: u32) {
        self.quick = self.quick.max(acks);
    }

    /// True in quick-ack mode: the next acknowledgement is sent as soon as its segment arrives.
    pub(super) fn is_quick(&self) -> bool {
        self.quick > 0
    }

    /// Sends the next acknowledgement without delay, and one more if an even number is left (Linux `quick |= 1`).
    pub(super) fn add_quickack(&mut self) {
        self.quick |= 1;
    }

    /// Records that an acknowledgement was sent.
    pub(super) fn on_ack(&mut self) {
        self.quick = self.quick.saturating_sub(1);
        self.compressed_ack = 0;
        self.deadline = Instant::NEVER;
    }

    /// Handles new data: `unacked` segments in order since the last acknowledgement; `out_of_order` if some are out of
    /// order.
    #[inline]
    pub(super) fn on_data(
        &mut self,
        now: Instant,
        unacked: u64,
        out_of_order: bool,
        next: u64,
        rtt: Span,
    ) -> AckTiming {
        if unacked >= self.ack_every || self.quick > 0 {
            return AckTiming::Now;
        }
        if out_of_order {
            return self.on_disorder(now, next, rtt);
        }
        self.deadline = self.deadline.min(expiry(now, DELACK_MIN, self.tick));
        AckTiming::Later
    }

    /// Sends the first duplicate acknowledgements at once, and compresses later ones.
    #[inline(never)]
    fn on_disorder(&mut self, now: Instant, next: u64, rtt: Span) -> AckTiming {
        if self.dup_ack_seq != next {
            self.dup_ack_seq = next;
            self.dup_acks = 0;
        }
        if self.dup_acks < DUPACKS_AT_ONCE {
            self.dup_acks += 1;
            return AckTiming::Now;
        }
        if !self.is_compression_allowed || self.compressed_ack >= MAX_COMPRESSED_ACKS {
            return AckTiming::Now;
        }
        self.compressed_ack += 1;
        self.deadline = self.deadline.min(now + COMP_SACK_DELAY.min(rtt / 20));
        AckTiming::Later
    }
}
