//! RACK: loss detection by time (RFC 8985), with the reordering window of Linux 6.1 (`tcp_recovery.c`).

use super::Scoreboard;
use control::Phase;
use units::{Instant, Span};

/// Recoveries without a spurious retransmission after which the reordering window shrinks again.
const PERSISTENCE: u8 = 16;

/// The detector's state.
#[derive(Clone, Debug)]
pub struct Rack {
    newest: (Instant, u64),
    rtt: Span,
    advanced: bool,
    steps: u8,
    persistence: u8,
    duplicate_seen: bool,
    adjusted_at: u64,
    reordering: u32,
    most_reordering: u32,
    reorderings_seen: u32,
}

impl Rack {
    /// `reordering` and `most_reordering`: `tcp_reordering` and `tcp_max_reordering`, in packets.
    #[must_use]
    pub fn new(reordering: u32, most_reordering: u32) -> Self {
        Self {
            newest: (Instant::ZERO, 0),
            rtt: Span::ZERO,
            advanced: false,
            steps: 1,
            persistence: 0,
            duplicate_seen: false,
            adjusted_at: 0,
            reordering,
            most_reordering,
            reorderings_seen: 0,
        }
    }

    /// The degree of reordering seen so far, in packets.
    #[must_use]
    pub fn reordering(&self) -> u32 {
        self.reordering
    }

    /// The round-trip time of the latest delivery.
    #[must_use]
    pub fn rtt(&self) -> Span {
        self.rtt
    }

    /// A packet was delivered.
    pub fn on_delivered(&mut self, now: Instant, seq: u64, sent: Instant, retransmitted: bool, min_rtt: Span) {
        let rtt = now.since(sent);
        // Too fast for a retransmission: the original was acked.
        if retransmitted && rtt < min_rtt {
            return;
        }
        self.advanced = true;
        self.rtt = rtt;
        self.newest = self.newest.max((sent, seq));
    }

    /// Packet `low` was delivered after packets up to `end` (exclusive) had been.
    pub fn on_reordering(&mut self, low: u64, end: u64) {
        if low >= end {
            return;
        }
        let degree = u32::try_from(end - low).unwrap_or(u32::MAX);
        self.reordering = self.reordering.max(degree.min(self.most_reordering));
        self.reorderings_seen += 1;
    }

    /// A timeout in [`Phase::Open`] or [`Phase::Disorder`]: the degree of reordering was no help.
    pub fn forget_reordering(&mut self, default: u32) {
        self.reordering = self.reordering.min(default);
    }

    /// A duplicate was reported that no tail-loss probe explains.
    pub fn on_duplicate(&mut self) {
        self.duplicate_seen |= self.reorderings_seen > 0;
    }

    /// Widens the reordering window, at most once a round trip, after spurious retransmissions.
    pub fn adapt(&mut self, prior_delivered: u64, delivered: u64) {
        if prior_delivered == 0 {
            return;
        }
        if prior_delivered < self.adjusted_at {
            self.duplicate_seen = false;
        }
        if self.duplicate_seen {
            self.steps = self.steps.saturating_add(1);
            self.duplicate_seen = false;
            self.adjusted_at = delivered;
            self.persistence = PERSISTENCE;
        } else if self.persistence == 0 {
            self.steps = 1;
        }
    }

    /// A reduction was undone: what is outstanding is judged anew.
    pub fn reconsider(&mut self) {
        self.advanced = true;
    }

    /// A recovery ended; `undone` if it proved spurious.
    pub fn on_recovered(&mut self, undone: bool) {
        self.persistence =
            if undone { (self.persistence + 1).min(PERSISTENCE) } else { self.persistence.saturating_sub(1) };
    }

    /// How much later than the RTT a packet may come before it counts as lost.
    #[must_use]
    pub fn window(&self, phase: Phase, sacked: u32, min_rtt: Span, srtt: Span) -> Span {
        if self.reorderings_seen == 0 && (phase >= Phase::Recovery || sacked >= self.reordering) {
            return Span::ZERO;
        }
        if min_rtt == Span::MAX {
            return Span::ZERO;
        }
        Span((min_rtt.0 / 4 * u64::from(self.steps)).min(srtt.0))
    }

    /// Marks what is overdue as lost if anything was delivered since the last time.
    /// Returns the packets newly lost and how long to wait before the rest is overdue.
    pub fn detect(&mut self, now: Instant, board: &mut Scoreboard, window: Span) -> (u32, Option<Span>) {
        if !self.advanced {
            return (0, None);
        }
        self.advanced = false;
        self.detect_again(now, board, window)
    }

    /// The same, unconditionally: the reordering timer has expired.
    pub fn detect_again(&mut self, now: Instant, board: &mut Scoreboard, window: Span) -> (u32, Option<Span>) {
        let patience = self.rtt + window;
        let (lost, doubt) = board.expire(self.newest, |sent| now.since(sent) >= patience);
        (lost, doubt.map(|sent| patience.saturating_sub(now.since(sent))))
    }

    /// After a timeout: was this packet sent so recently that it may still be on its way?
    #[must_use]
    pub fn is_recent(&self, now: Instant, sent: Instant) -> bool {
        now.since(sent) < self.rtt
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window_ms(min_rtt: u64, srtt: u64, steps: u8) -> u64 {
        let mut rack = Rack::new(3, 300);
        rack.on_reordering(1, 2);
        rack.steps = steps;
        rack.window(Phase::Recovery, 9, Span::from_millis(min_rtt), Span::from_millis(srtt)).as_millis()
    }

    #[test]
    fn the_reordering_window_grows_by_quarters_of_the_least_rtt_up_to_the_smoothed_one() {
        let windows: Vec<u64> = [1, 4, 8, 12, 20].map(|steps| window_ms(20, 60, steps)).into();
        assert_eq!(windows, [5, 20, 40, 60, 60]);
    }

    #[test]
    fn without_reordering_three_sacked_packets_are_enough() {
        let rack = Rack::new(3, 300);
        let window = |sacked| rack.window(Phase::Disorder, sacked, Span::from_millis(20), Span::from_millis(60));
        assert_eq!((window(2), window(3)), (Span::from_millis(5), Span::ZERO));
    }

    #[test]
    fn one_step_a_round_trip_and_back_after_sixteen_clean_recoveries() {
        let mut rack = Rack::new(3, 300);
        rack.on_reordering(5, 9);
        assert_eq!(rack.reordering(), 4);
        rack.on_duplicate();
        rack.adapt(10, 20);
        rack.on_duplicate();
        rack.adapt(15, 25);
        assert_eq!(rack.steps, 2, "the second report came within the round");
        (0..16).for_each(|_| rack.on_recovered(false));
        rack.adapt(30, 40);
        assert_eq!(rack.steps, 1);
    }
}
