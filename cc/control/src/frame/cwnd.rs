//! The congestion window and its way down.

use crate::{AckSample, CaState, Reduction};
use units::{INFINITE_SSTHRESH, Instant, Span};

/// A congestion window and what the frame remembers about it. All in packets.
#[derive(Clone, Debug)]
pub struct CwndState {
    /// Packets that may be in flight.
    pub cwnd: u32,
    /// Slow-start threshold.
    pub ssthresh: u32,
    /// Never above this.
    pub cwnd_clamp: u32,
    /// Acked packets not yet turned into growth.
    pub cwnd_cnt: u32,
    /// The window before the latest reduction.
    pub prior_cwnd: u32,
    /// Payload of a full packet, bytes.
    pub mss: u32,
    /// Where the sender stands.
    pub ca_state: CaState,
    /// The host's timer tick.
    pub tick: Span,
    pub(crate) prior_ssthresh: u32,
    pub(crate) initial_window: u32,
    pub(crate) reduction: Reduction,
    /// Rate halving goes no lower.
    pub(crate) min_cwnd: u32,
    pub(crate) prr: Prr,
}

/// What was delivered and sent since the present reduction began.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Prr {
    delivered: u32,
    out: u32,
}

/// The least window: one packet always moves.
const MIN_WINDOW: u32 = 1;

impl Default for CwndState {
    fn default() -> Self {
        Self {
            cwnd: 10,
            ssthresh: INFINITE_SSTHRESH,
            cwnd_clamp: u32::MAX / 2,
            cwnd_cnt: 0,
            prior_cwnd: 0,
            mss: 1448,
            ca_state: CaState::Open,
            tick: Span::from_millis(1),
            prior_ssthresh: 0,
            initial_window: 10,
            reduction: Reduction::default(),
            min_cwnd: 0,
            prr: Prr::default(),
        }
    }
}

impl CwndState {
    /// Below the threshold.
    #[must_use]
    pub fn in_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh
    }

    /// The present in milliseconds, as the host's ticking clock shows it.
    #[must_use]
    pub fn clock_ms(&self, now: Instant) -> u64 {
        Instant(now.0 / self.tick.0 * self.tick.0).as_millis()
    }

    /// The present in ticks of the host's timer (Linux: jiffies).
    #[must_use]
    pub fn jiffies(&self, now: Instant) -> u64 {
        now.0 / self.tick.0
    }

    /// A span in whole ticks, rounded up as Linux rounds a round-trip time.
    #[must_use]
    pub fn jiffies_in(&self, span: Span) -> u64 {
        span.as_micros().div_ceil(self.tick.as_micros())
    }

    /// Being reduced: no growth until that is over.
    #[must_use]
    pub fn in_cwnd_reduction(&self) -> bool {
        matches!(self.ca_state, CaState::Cwr | CaState::Recovery)
    }

    /// The threshold that a new episode should remember: three quarters of the window count as known to be good.
    #[must_use]
    pub fn current_ssthresh(&self) -> u32 {
        if self.in_cwnd_reduction() { self.ssthresh } else { self.ssthresh.max((self.cwnd >> 1) + (self.cwnd >> 2)) }
    }

    /// One acknowledgement's step down.
    pub(crate) fn reduce(&mut self, sample: &AckSample) {
        match self.reduction {
            Reduction::Proportional => self.reduce_in_proportion(sample),
            Reduction::Halving => self.reduce_by_halving(sample),
        }
    }

    /// One packet less every second acknowledgement, and no room for a burst: at most one packet above the pipe.
    fn reduce_by_halving(&mut self, sample: &AckSample) {
        if sample.acked == 0 || self.cwnd <= self.min_cwnd {
            return;
        }
        self.cwnd_cnt += 1;
        self.cwnd = (self.cwnd - self.cwnd_cnt / 2).min(sample.in_flight + 1).max(self.min_cwnd);
        self.cwnd_cnt %= 2;
    }

    /// Send in proportion to what leaves the network: RFC 6937 section 3, with the extra packet that Linux 6.1 adds on
    /// a cumulative acknowledgement without new loss.
    fn reduce_in_proportion(&mut self, sample: &AckSample) {
        self.prr.out += sample.sent;
        if sample.acked == 0 || self.prior_cwnd == 0 {
            return;
        }
        self.prr.delivered += sample.acked;
        let budget = i64::from(self.ssthresh) - i64::from(sample.in_flight);
        let (delivered, sent) = (i64::from(self.prr.delivered), i64::from(self.prr.out));
        let send = if budget < 0 {
            let prior = i64::from(self.prior_cwnd);
            (i64::from(self.ssthresh) * delivered + prior - 1) / prior - sent
        } else {
            let mut send = (delivered - sent).max(i64::from(sample.acked));
            if sample.una_advanced && sample.lost == 0 {
                send += 1;
            }
            send.min(budget)
        };
        // The first retransmission always goes out.
        let send = send.max(i64::from(sent == 0));
        self.cwnd = (sample.in_flight + u32::try_from(send).unwrap_or(0)).max(MIN_WINDOW);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reduce(delivered: u32, sent: u32, in_flight: u32, acked: u32, advanced: bool) -> u32 {
        let mut state = CwndState {
            ssthresh: 70,
            prior_cwnd: 100,
            ca_state: CaState::Recovery,
            prr: Prr { delivered: delivered - acked, out: sent },
            ..CwndState::default()
        };
        state.reduce(&AckSample { acked, in_flight, una_advanced: advanced, ..AckSample::default() });
        state.cwnd - in_flight
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
        let mut state = CwndState { reduction: Reduction::Halving, cwnd: 60, min_cwnd: 55, ..CwndState::default() };
        let mut in_flight = 58;
        let sizes = [(); 12].map(|()| {
            state.reduce(&AckSample { acked: 1, in_flight, ..AckSample::default() });
            in_flight = in_flight.max(state.cwnd) - 1; // filled up to the window; then the next packet is delivered
            state.cwnd
        });
        assert_eq!(sizes, [59, 58, 58, 57, 57, 56, 56, 55, 55, 55, 55, 55]);
    }
}
