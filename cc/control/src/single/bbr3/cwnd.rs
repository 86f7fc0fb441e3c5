//! Pacing rate and window: the model's targets, within its bounds.

use super::bandwidth;
use super::cycle::Mode;
use super::model::MIN_WINDOW;
use super::{Bbr3, STARTUP_GAIN};
use crate::{AckSample, CaState};
use units::Span;

/// Never above this, packets.
const CLAMP: u32 = u32::MAX / 2;

impl Bbr3 {
    /// `gain * bandwidth`; until the pipe was full once, only upwards.
    pub(super) fn update_pacing(&mut self, srtt: Span) {
        if !self.pacing_saw_rtt && srtt > Span::ZERO {
            self.pace_by_window(srtt);
        }
        let rate = bandwidth::bytes_per_second(self.bandwidth(), self.mss, self.mode.pacing_gain());
        if self.full_pipe.reached || rate > self.pacing_rate {
            self.pacing_rate = rate;
        }
    }

    /// The first rate, before anything was measured: a window a round trip (a millisecond if that is unknown).
    pub(super) fn pace_by_window(&mut self, srtt: Span) {
        self.pacing_saw_rtt = srtt > Span::ZERO;
        let rtt = if self.pacing_saw_rtt { srtt.max(Span::from_micros(1)) } else { Span::from_millis(1) };
        self.pacing_rate = bandwidth::bytes_per_second(bandwidth::rate(self.cwnd, rtt), self.mss, STARTUP_GAIN);
    }

    /// Remembers the window before an episode or RTT probing cuts it.
    pub(super) fn save_window(&mut self) {
        let cut_already = self.ca_state >= CaState::Recovery || self.mode == Mode::ProbeRtt;
        self.prior_cwnd = if cut_already { self.prior_cwnd.max(self.cwnd) } else { self.cwnd };
    }

    pub(super) fn update_window(&mut self, sample: &AckSample) {
        if self.ca_state == CaState::Loss && sample.ca_state != CaState::Loss {
            self.cwnd = self.cwnd.max(self.prior_cwnd);
        }
        if sample.acked > 0 {
            self.cwnd = self.towards_target(sample.acked).clamp(MIN_WINDOW, CLAMP);
        }
        if self.mode == Mode::ProbeRtt {
            self.cwnd = self.cwnd.min(self.rtt_probe_window());
        }
        self.cwnd = self.cwnd.min(self.cap());
    }

    fn towards_target(&self, acked: u32) -> u32 {
        let product = self.product(self.bandwidth(), self.mode.window_gain());
        let target = self.with_bursts(product.saturating_add(self.aggregation.excess(self.bandwidth())));
        let grown = self.cwnd.saturating_add(acked);
        if self.full_pipe.reached {
            grown.min(target)
        } else if self.cwnd < target || self.cwnd < 2 * self.initial_window {
            grown
        } else {
            self.cwnd
        }
    }

    /// What the bounds allow in this mode. Startup and drain do not know the long-term one yet.
    fn cap(&self) -> u32 {
        let long = match self.mode {
            Mode::Startup | Mode::Drain => u32::MAX,
            Mode::Cruise | Mode::ProbeRtt => self.with_headroom(),
            Mode::Down | Mode::Refill | Mode::Up => self.bounds.long,
        };
        long.min(self.bounds.short).max(MIN_WINDOW)
    }
}
