//! The timing of acknowledgements: at once, every second segment, after a delay that adapts, or compressed (Linux 6.1
//! `__tcp_ack_snd_check`, `tcp_event_data_recv`, `tcp_send_delayed_ack`).

use super::ReceiverConfig;
use crate::tcp::timer_wheel::expiry;
use units::{Instant, Span};

/// Least delay of a lone acknowledgement (`TCP_ATO_MIN`, `TCP_DELACK_MIN`).
const DELACK_MIN: Span = Span::from_millis(40);
/// Greatest delay of an acknowledgement (`TCP_DELACK_MAX`).
const DELACK_MAX: Span = Span::from_millis(200);
/// Acknowledgements sent without delay at the start and after duplicates (`TCP_MAX_QUICKACKS`).
pub(super) const MAX_QUICKACKS: u32 = 16;
/// Acknowledgements sent without delay after a CE mark, because the sender's window may be small.
pub(super) const QUICKACKS_AFTER_MARK: u32 = 2;
/// The least number of acknowledgements sent without delay, whatever the window.
const LEAST_QUICKACKS: u32 = 2;
/// Number of CE-marked segments after which accurate ECN acknowledges at once (RFC 9768 section 3.2.2.5.1).
pub(super) const MARKS_PER_ACK: u8 = 2;
/// Duplicate acknowledgements sent at once for each hole, because fast retransmit needs that many.
const DUPACKS_AT_ONCE: u32 = 3;
/// Maximum number of duplicate acknowledgements compressed into one (`tcp_comp_sack_nr`).
const MAX_COMPRESSED_ACKS: u32 = 44;
/// Maximum delay of compressed acknowledgements (`tcp_comp_sack_delay_ns`); at most a twentieth of the RTT.
const COMP_SACK_DELAY: Span = Span::from_millis(1);
/// Time by which that timer may be late (`tcp_comp_sack_slack_ns`), and is if nothing else wakes the host.
const COMP_SACK_SLACK: Span = Span::from_micros(100);
/// Retransmission timeout before the handshake's RTT is known (RFC 6298 section 2.1), and its least part beyond the RTT.
const INITIAL_RTO: Span = Span::from_secs(1);
const RTO_MIN: Span = Span::from_millis(200);

/// The timing of an acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AckTiming {
    Now,
    Later,
}

/// The arrival of new data, as far as it determines when it is acknowledged.
#[derive(Clone, Copy, Debug)]
pub(super) struct NewData {
    /// In-order segments since the last acknowledgement.
    pub(super) unacked: u64,
    /// Whether an acknowledgement would not take back any of the offered window's size.
    pub(super) keeps_window: bool,
    /// Whether some segments are out of order.
    pub(super) is_out_of_order: bool,
    /// The next segment in order.
    pub(super) next: u64,
    /// The receiver's RTT estimate.
    pub(super) rtt: Span,
}

#[derive(Clone, Debug)]
pub(super) struct AckPolicy {
    /// Number of in-order segments after which an acknowledgement is sent.
    ack_every: u64,
    quick: u32,
    dup_acks: u32,
    dup_ack_seq: u64,
    compressed_ack: u32,
    /// The delay of a lone acknowledgement, which follows the gaps between segments, ticks; zero before the first segment
    /// (Linux `icsk_ack.ato`).
    ato: u64,
    /// The tick of the latest segment in order (`lrcvtime`).
    last_data: u64,
    /// RTT of the handshake; zero if it is not known.
    handshake_rtt: Span,
    /// Whether data has arrived since the latest acknowledgement (`ICSK_ACK_SCHED`).
    is_scheduled: bool,
    /// Whether the next acknowledgement must be sent at once (`ICSK_ACK_NOW`).
    is_urgent: bool,
    /// Whether a segment with PSH has arrived since (`ICSK_ACK_PUSHED`).
    is_pushed: bool,
    /// The tick after which the delayed acknowledgement is due, and the expiry of its timer.
    delayed: Option<(u64, Instant)>,
    /// Expiry of the timer of compressed acknowledgements.
    compressed: Instant,
    /// The time at which an acknowledgement is due because the application reads, or another one came first.
    due: Instant,
    tick: Span,
    /// [`DELACK_MIN`] in ticks.
    least_ato: u64,
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
            quick: 0,
            dup_acks: 0,
            dup_ack_seq: 0,
            compressed_ack: 0,
            ato: 0,
            last_data: 0,
            handshake_rtt: Span::ZERO,
            is_scheduled: false,
            is_urgent: false,
            is_pushed: false,
            delayed: None,
            compressed: Instant::NEVER,
            due: Instant::NEVER,
            tick: config.tick,
            least_ato: DELACK_MIN.0 / config.tick.0,
            is_compression_allowed: config.sack,
        }
    }

    pub(super) fn deadline(&self) -> Instant {
        self.due.min(self.compressed).min(self.delayed.map_or(Instant::NEVER, |(_, expiry)| expiry))
    }

    /// True if an acknowledgement is pending: delayed or compressed.
    pub(super) fn is_pending(&self) -> bool {
        self.deadline() < Instant::NEVER
    }

    /// Makes an acknowledgement due at this instant, unless one is due before.
    pub(super) fn expire(&mut self, at: Instant) {
        self.due = self.due.min(at);
    }

    /// Handles an expired deadline. If the timer of a delayed acknowledgement has expired, the delay doubles, because the
    /// acknowledgement waited in vain.
    pub(super) fn on_timeout(&mut self, now: Instant) {
        if self.is_scheduled && self.due > now && self.delayed.is_some_and(|(_, expiry)| expiry <= now) {
            self.ato = (self.ato * 2).min(self.rto());
        }
    }

    /// Sets the RTT of the handshake.
    pub(super) fn set_handshake_rtt(&mut self, rtt: Span) {
        self.handshake_rtt = rtt;
    }

    /// True while duplicate acknowledgements are being compressed.
    pub(super) fn is_compressing(&self) -> bool {
        self.compressed_ack > 0
    }

    /// Enters quick-ack mode for at most `acks` acknowledgements, of a `window` in segments (Linux
    /// `tcp_enter_quickack_mode`).
    pub(super) fn enter_quickack_mode(&mut self, acks: u32, window: u64) {
        self.raise_quickacks(acks, window);
        self.ato = self.least_ato;
    }

    /// Leaves quick-ack mode, because more than half of the buffer is occupied.
    pub(super) fn end_quickacks(&mut self) {
        self.quick = 0;
    }

    /// True in quick-ack mode: the next acknowledgement is sent as soon as its segment arrives.
    pub(super) fn is_quick(&self) -> bool {
        self.quick > 0 || self.is_urgent || self.ack_every == 0
    }

    /// Sends the next acknowledgement without delay, and one more if an even number is left (Linux `quick |= 1`).
    pub(super) fn add_quickack(&mut self) {
        self.quick |= 1;
    }

    /// Sends the next acknowledgement without delay.
    pub(super) fn hurry(&mut self) {
        self.is_urgent = true;
    }

    /// Data has arrived, which the next acknowledgement is for.
    pub(super) fn schedule(&mut self) {
        self.is_scheduled = true;
    }

    /// Whether data has arrived since the latest acknowledgement.
    pub(super) fn is_scheduled(&self) -> bool {
        self.is_scheduled
    }

    /// Whether data with PSH has.
    pub(super) fn is_pushed(&self) -> bool {
        self.is_pushed
    }

    /// Handles a segment in order, with PSH or without, and adapts the delay to the gap before it. After a gap of more than
    /// a retransmission timeout, as at the start, a sender is assumed to be in slow start. `window` is that of the latest
    /// acknowledgement, segments.
    #[inline]
    pub(super) fn on_segment_in_order(&mut self, now: Instant, psh: bool, window: impl FnOnce() -> u64) {
        self.is_pushed |= psh;
        let (now, least) = (now.0 / self.tick.0, self.least_ato);
        let gap = now - self.last_data;
        if self.ato == 0 {
            self.raise_quickacks(MAX_QUICKACKS, window());
            self.ato = least;
        } else if gap <= least / 2 {
            self.ato = self.ato / 2 + least / 2;
        } else if gap < self.ato {
            self.ato = (self.ato / 2 + gap).min(self.rto());
        } else if gap > self.rto() {
            self.raise_quickacks(MAX_QUICKACKS, window());
        }
        self.last_data = now;
    }

    /// Records that an acknowledgement was sent. Those for new data count in quick-ack mode.
    pub(super) fn on_ack(&mut self) {
        if self.quick > 0 && self.is_scheduled {
            self.quick -= 1;
            if self.quick == 0 {
                self.ato = self.least_ato;
            }
        }
        (self.is_scheduled, self.is_urgent, self.is_pushed) = (false, false, false);
        self.compressed_ack = 0;
        (self.delayed, self.compressed, self.due) = (None, Instant::NEVER, Instant::NEVER);
    }

    /// Whether more than a segment has not been acknowledged.
    pub(super) fn is_due(&self, unacked: u64) -> bool {
        unacked >= self.ack_every
    }

    /// The timing of the acknowledgement of new data.
    #[inline]
    pub(super) fn timing(&mut self, now: Instant, data: &NewData) -> AckTiming {
        if self.is_due(data.unacked) && data.keeps_window || self.is_quick() {
            return AckTiming::Now;
        }
        if data.is_out_of_order { self.on_disorder(now, data) } else { self.delay(now) }
    }

    /// Starts the timer of a delayed acknowledgement. If it runs already and is about to expire, the acknowledgement is sent.
    fn delay(&mut self, now: Instant) -> AckTiming {
        let ticks = now.0 / self.tick.0;
        let ato = self.bounded_ato();
        let timeout = ticks + ato;
        match self.delayed {
            Some((earlier, _)) if earlier <= ticks + ato / 4 => return AckTiming::Now,
            Some((earlier, _)) if earlier <= timeout => {}
            _ => self.delayed = Some((timeout, expiry(now, Span(ato * self.tick.0), self.tick))),
        }
        AckTiming::Later
    }

    /// The delay, ticks: bounded by the RTT of the handshake, but at least 40 ms.
    fn bounded_ato(&self) -> u64 {
        let (least, most) = (self.least_ato, DELACK_MAX.0 / self.tick.0);
        if self.ato <= least || self.handshake_rtt == Span::ZERO {
            return self.ato.min(most);
        }
        self.ato.min(self.handshake_rtt.0.div_ceil(self.tick.0).max(least)).min(most)
    }

    /// Sends the first duplicate acknowledgements at once, and compresses later ones.
    #[inline(never)]
    fn on_disorder(&mut self, now: Instant, data: &NewData) -> AckTiming {
        if !self.is_compression_allowed || self.compressed_ack >= MAX_COMPRESSED_ACKS {
            return AckTiming::Now;
        }
        if self.dup_ack_seq != data.next {
            self.dup_ack_seq = data.next;
            self.dup_acks = 0;
        }
        if self.dup_acks < DUPACKS_AT_ONCE {
            self.dup_acks += 1;
            return AckTiming::Now;
        }
        self.compressed_ack += 1;
        if self.compressed == Instant::NEVER {
            let is_lower = Span::ZERO < self.handshake_rtt && self.handshake_rtt < data.rtt;
            let rtt = if is_lower { self.handshake_rtt } else { data.rtt };
            self.compressed = now + COMP_SACK_DELAY.min(rtt / 20) + COMP_SACK_SLACK;
        }
        AckTiming::Later
    }

    /// At most a quick acknowledgement per two segments of the window, and at least two (Linux `tcp_incr_quickack`).
    fn raise_quickacks(&mut self, acks: u32, window: u64) {
        let of_window = u32::try_from(window / 2).unwrap_or(u32::MAX);
        let of_window = if of_window == 0 { LEAST_QUICKACKS } else { of_window };
        self.quick = self.quick.max(of_window.min(acks));
    }

    /// The retransmission timeout of a host that has only the sample of the handshake (RFC 6298 section 2.2), ticks.
    fn rto(&self) -> u64 {
        let rtt = self.handshake_rtt;
        let rto = if rtt == Span::ZERO { INITIAL_RTO } else { rtt + (rtt * 2).max(RTO_MIN) };
        rto.0.div_ceil(self.tick.0)
    }
}
