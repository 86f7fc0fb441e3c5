//! The congestion window and its way down.

use crate::{Feedback, NO_THRESHOLD, Phase, Reduction};
use units::{Instant, Span};

/// A congestion window and what the frame remembers about it. All in packets.
#[derive(Clone, Debug)]
pub struct Window {
    /// Packets that may be in flight.
    pub size: u32,
    /// Slow-start threshold.
    pub threshold: u32,
    /// Never above this.
    pub clamp: u32,
    /// Acked packets not yet turned into growth.
    pub credit: u32,
    /// The window before the latest reduction.
    pub prior_size: u32,
    /// Payload of a full packet, bytes.
    pub mss: u32,
    /// Where the sender stands.
    pub phase: Phase,
    /// The host's timer tick.
    pub tick: Span,
    pub(crate) prior_threshold: u32,
    pub(crate) initial: u32,
    pub(crate) reduction: Reduction,
    /// Rate halving goes no lower.
    pub(crate) floor: u32,
    pub(crate) episode: Episode,
}

/// What was delivered and sent since the present reduction began.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Episode {
    delivered: u32,
    sent: u32,
}

/// The least window: one packet always moves.
const MIN_WINDOW: u32 = 1;

impl Default for Window {
    fn default() -> Self {
        Self {
            size: 10,
            threshold: NO_THRESHOLD,
            clamp: u32::MAX / 2,
            credit: 0,
            prior_size: 0,
            mss: 1448,
            phase: Phase::Open,
            tick: Span::from_millis(1),
            prior_threshold: 0,
            initial: 10,
            reduction: Reduction::default(),
            floor: 0,
            episode: Episode::default(),
        }
    }
}

impl Window {
    /// Below the threshold.
    #[must_use]
    pub fn in_slow_start(&self) -> bool {
        self.size < self.threshold
    }

    /// The present in milliseconds, as the host's ticking clock shows it.
    #[must_use]
    pub fn clock_ms(&self, now: Instant) -> u64 {
        Instant(now.0 / self.tick.0 * self.tick.0).as_millis()
    }

    /// The present in ticks of the host's timer (Linux: jiffies).
    #[must_use]
    pub fn ticks(&self, now: Instant) -> u64 {
        now.0 / self.tick.0
    }

    /// A span in whole ticks, rounded up as Linux rounds a round-trip time.
    #[must_use]
    pub fn ticks_in(&self, span: Span) -> u64 {
        span.as_micros().div_ceil(self.tick.as_micros())
    }

    /// Being reduced: no growth until that is over.
    #[must_use]
    pub fn in_reduction(&self) -> bool {
        matches!(self.phase, Phase::Cwr | Phase::Recovery)
    }

    /// The threshold that a new episode should remember: three quarters of the window count as known to be good.
    #[must_use]
    pub fn current_threshold(&self) -> u32 {
        if self.in_reduction() { self.threshold } else { self.threshold.max((self.size >> 1) + (self.size >> 2)) }
    }

    /// One acknowledgement's step down.
    pub(crate) fn reduce(&mut self, feedback: &Feedback) {
        match self.reduction {
            Reduction::Proportional => self.reduce_in_proportion(feedback),
            Reduction::Halving => self.reduce_by_halving(feedback),
        }
    }

    /// One packet less every second acknowledgement, and no room for a burst: at most one packet above the pipe.
    fn reduce_by_halving(&mut self, feedback: &Feedback) {
        if feedback.acked == 0 || self.size <= self.floor {
            return;
        }
        self.credit += 1;
        self.size = (self.size - self.credit / 2).min(feedback.in_flight + 1).max(self.floor);
        self.credit %= 2;
    }

    /// Send in proportion to what leaves the network: RFC 6937 section 3, with the extra packet that Linux 6.1 adds on
    /// a cumulative acknowledgement without new loss.
    fn reduce_in_proportion(&mut self, feedback: &Feedback) {
        self.episode.sent += feedback.sent;
        if feedback.acked == 0 || self.prior_size == 0 {
            return;
        }
        self.episode.delivered += feedback.acked;
        let budget = i64::from(self.threshold) - i64::from(feedback.in_flight);
        let (delivered, sent) = (i64::from(self.episode.delivered), i64::from(self.episode.sent));
        let send = if budget < 0 {
            let prior = i64::from(self.prior_size);
            (i64::from(self.threshold) * delivered + prior - 1) / prior - sent
        } else {
            let mut send = (delivered - sent).max(i64::from(feedback.acked));
            if feedback.advanced && feedback.lost == 0 {
                send += 1;
            }
            send.min(budget)
        };
        // The first retransmission always goes out.
        let send = send.max(i64::from(sent == 0));
        self.size = (feedback.in_flight + u32::try_from(send).unwrap_or(0)).max(MIN_WINDOW);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reduce(delivered: u32, sent: u32, in_flight: u32, acked: u32, advanced: bool) -> u32 {
        let mut window = Window {
            threshold: 70,
            prior_size: 100,
            phase: Phase::Recovery,
            episode: Episode { delivered: delivered - acked, sent },
            ..Window::default()
        };
        window.reduce(&Feedback { acked, in_flight, advanced, ..Feedback::default() });
        window.size - in_flight
    }

    #[test]
    fn proportional_rate_reduction_as_in_the_kernel() {
        assert_eq!(reduce(1, 0, 99, 1, false), 1);
        assert_eq!(reduce(10, 6, 95, 1, false), 1);
        assert_eq!(reduce(10, 7, 95, 1, false), 0);
        assert_eq!(reduce(40, 30, 60, 2, true), 10);
        assert_eq!(reduce(40, 38, 60, 2, false), 2);
        assert_eq!(reduce(40, 38, 60, 2, true), 3, "one more where the cumulative acknowledgement moved");
    }

    /// As on ns-2.35's TCP-Linux agent: a window of 60 with 62 packets out, two of them lost, at the third SACK and
    /// thereafter.
    #[test]
    fn rate_halving_sends_one_packet_for_two_delivered_down_to_its_floor() {
        let mut window = Window { reduction: Reduction::Halving, size: 60, floor: 55, ..Window::default() };
        let mut in_flight = 58;
        let sizes = [(); 12].map(|()| {
            window.reduce(&Feedback { acked: 1, in_flight, ..Feedback::default() });
            in_flight = in_flight.max(window.size) - 1; // filled up to the window; then the next packet is delivered
            window.size
        });
        assert_eq!(sizes, [59, 58, 58, 57, 57, 56, 56, 55, 55, 55, 55, 55]);
    }
}
