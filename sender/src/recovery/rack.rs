//! RACK: loss detection by time (RFC 8985), with the reordering window of Linux 6.1 (`tcp_recovery.c`).

use super::Scoreboard;
use control::CaState;
use units::{Instant, Span};

/// Recoveries without a spurious retransmission after which the reordering window shrinks again
/// (`TCP_RACK_RECOVERY_THRESH`).
const RECOVERY_THRESHOLD: u8 = 16;

/// RACK's state.
#[derive(Clone, Debug)]
pub struct Rack {
    newest: (Instant, u64),
    rtt: Span,
    advanced: bool,
    reo_wnd_steps: u8,
    reo_wnd_persist: u8,
    dsack_seen: bool,
    last_delivered: u64,
    reordering: u32,
    max_reordering: u32,
    reord_seen: u32,
}

impl Rack {
    /// `reordering` and `max_reordering`: `tcp_reordering` and `tcp_max_reordering`, in packets.
    #[must_use]
    pub fn new(reordering: u32, max_reordering: u32) -> Self {
        Self {
            newest: (Instant::ZERO, 0),
            rtt: Span::ZERO,
            advanced: false,
            reo_wnd_steps: 1,
            reo_wnd_persist: 0,
            dsack_seen: false,
            last_delivered: 0,
            reordering,
            max_reordering,
            reord_seen: 0,
        }
    }

    /// The maximum reordering degree so far, packets.
    #[must_use]
    pub fn reordering(&self) -> u32 {
        self.reordering
    }

    /// The RTT of the latest delivery.
    #[must_use]
    pub fn rtt(&self) -> Span {
        self.rtt
    }

    /// Records a delivered packet.
    #[inline]
    pub fn on_delivered(&mut self, now: Instant, seq: u64, sent: Instant, retransmitted: bool, min_rtt: Span) {
        let rtt = now.since(sent);
        // Sooner than the minimum RTT: the original was acknowledged, not the retransmission.
        if retransmitted && rtt < min_rtt {
            return;
        }
        self.advanced = true;
        self.rtt = rtt;
        self.newest = self.newest.max((sent, seq));
    }

    /// Records that a packet was delivered after others, the last of which was sent `degree` packets later; zero if it
    /// was not.
    pub fn on_reordering(&mut self, degree: u64) {
        if degree == 0 {
            return;
        }
        let degree = u32::try_from(degree).unwrap_or(u32::MAX);
        self.reordering = self.reordering.max(degree.min(self.max_reordering));
        self.reord_seen += 1;
    }

    /// Without SACK: there were more duplicate acknowledgements than missing packets, so the network reorders by up to
    /// `degree` packets (Linux `tcp_check_reno_reordering`).
    pub fn on_reno_reordering(&mut self, degree: u32) {
        self.reordering = degree.min(self.max_reordering);
        self.reord_seen += 1;
    }

    /// Handles a timeout in the states Open and Disorder: the reordering degree falls at most to its default.
    pub fn reset_reordering(&mut self, default_reordering: u32) {
        self.reordering = self.reordering.min(default_reordering);
    }

    /// Records a DSACK that does not report a tail-loss probe.
    pub fn on_dsack(&mut self) {
        self.dsack_seen |= self.reord_seen > 0;
    }

    /// Widens the reordering window after spurious retransmissions, at most once per RTT (Linux
    /// `tcp_rack_update_reo_wnd`).
    #[inline]
    pub fn update_reo_wnd(&mut self, prior_delivered: u64, delivered: u64) {
        if prior_delivered == 0 {
            return;
        }
        if prior_delivered < self.last_delivered {
            self.dsack_seen = false;
        }
        if self.dsack_seen {
            self.reo_wnd_steps = self.reo_wnd_steps.saturating_add(1);
            self.dsack_seen = false;
            self.last_delivered = delivered;
            self.reo_wnd_persist = RECOVERY_THRESHOLD;
        } else if self.reo_wnd_persist == 0 {
            self.reo_wnd_steps = 1;
        }
    }

    /// Allows the next [`Rack::mark_lost`] to run, after a reduction was undone.
    pub fn advance(&mut self) {
        self.advanced = true;
    }

    /// Records the end of a recovery; `undone` if it proved spurious.
    pub fn on_recovered(&mut self, undone: bool) {
        self.reo_wnd_persist = if undone {
            (self.reo_wnd_persist + 1).min(RECOVERY_THRESHOLD)
        } else {
            self.reo_wnd_persist.saturating_sub(1)
        };
    }

    /// The reordering window (Linux `tcp_rack_reo_wnd`): how much later than the RTT a packet may be before it is lost.
    #[must_use]
    pub fn reo_wnd(&self, ca_state: CaState, sacked: u32, min_rtt: Span, srtt: Span) -> Span {
        if self.reord_seen == 0 && (ca_state >= CaState::Recovery || sacked >= self.reordering) {
            return Span::ZERO;
        }
        if min_rtt == Span::MAX {
            return Span::ZERO;
        }
        Span((min_rtt.0 / 4 * u64::from(self.reo_wnd_steps)).min(srtt.0))
    }

    /// Marks packets lost if anything was delivered since the last call (Linux `tcp_rack_mark_lost`). Returns the
    /// number of newly lost packets, and the timeout after which pending ones are lost.
    pub fn mark_lost(&mut self, now: Instant, scoreboard: &mut Scoreboard, reo_wnd: Span) -> (u32, Option<Span>) {
        if !self.advanced {
            return (0, None);
        }
        self.advanced = false;
        self.detect_loss(now, scoreboard, reo_wnd)
    }

    /// Marks packets lost unconditionally, when the reordering timer has expired (Linux `tcp_rack_detect_loss`).
    pub fn detect_loss(&mut self, now: Instant, scoreboard: &mut Scoreboard, reo_wnd: Span) -> (u32, Option<Span>) {
        let timeout = self.rtt + reo_wnd;
        let (lost, pending) = scoreboard.expire(self.newest, |sent| now.since(sent) >= timeout);
        (lost, pending.map(|sent| timeout.saturating_sub(now.since(sent))))
    }

    /// After a timeout: true if the packet was sent so recently that it may still be in flight.
    #[must_use]
    pub fn within_rack_timeout(&self, now: Instant, sent: Instant) -> bool {
        now.since(sent) < self.rtt
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window_ms(min_rtt: u64, srtt: u64, reo_wnd_steps: u8) -> u64 {
        let mut rack = Rack::new(3, 300);
        rack.on_reordering(1);
        rack.reo_wnd_steps = reo_wnd_steps;
        rack.reo_wnd(CaState::Recovery, 9, Span::from_millis(min_rtt), Span::from_millis(srtt)).as_millis()
    }

    #[test]
    fn the_reordering_window_grows_by_quarters_of_the_minimum_rtt_up_to_the_smoothed_rtt() {
        let windows: Vec<u64> = [1, 4, 8, 12, 20].map(|reo_wnd_steps| window_ms(20, 60, reo_wnd_steps)).into();
        assert_eq!(windows, [5, 20, 40, 60, 60]);
    }

    #[test]
    fn without_reordering_three_sacked_packets_are_enough() {
        let rack = Rack::new(3, 300);
        let window = |sacked| rack.reo_wnd(CaState::Disorder, sacked, Span::from_millis(20), Span::from_millis(60));
        assert_eq!((window(2), window(3)), (Span::from_millis(5), Span::ZERO));
    }

    #[test]
    fn one_step_a_round_trip_and_back_after_sixteen_clean_recoveries() {
        let mut rack = Rack::new(3, 300);
        rack.on_reordering(4);
        assert_eq!(rack.reordering(), 4);
        rack.on_dsack();
        rack.update_reo_wnd(10, 20);
        rack.on_dsack();
        rack.update_reo_wnd(15, 25);
        assert_eq!(rack.reo_wnd_steps, 2, "the second report came within the round");
        (0..16).for_each(|_| rack.on_recovered(false));
        rack.update_reo_wnd(30, 40);
        assert_eq!(rack.reo_wnd_steps, 1);
    }
}
