//! Pacing rate and window: the model's targets, within its bounds.

use super::bandwidth;
use super::cycle::Mode;
use super::model::MIN_WINDOW;
use super::{Bbr3, STARTUP_GAIN};
use crate::{Feedback, Phase};
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
        if self.full_pipe.reached || rate > self.pacing {
            self.pacing = rate;
        }
    }

    /// The first rate, before anything was measured: a window a round trip (a millisecond if that is unknown).
    pub(super) fn pace_by_window(&mut self, srtt: Span) {
        self.pacing_saw_rtt = srtt > Span::ZERO;
        let rtt = if self.pacing_saw_rtt { srtt.max(Span::from_micros(1)) } else { Span::from_millis(1) };
        self.pacing = bandwidth::bytes_per_second(bandwidth::rate(self.window, rtt), self.mss, STARTUP_GAIN);
    }

    /// Remembers the window before an episode or RTT probing cuts it.
    pub(super) fn save_window(&mut self) {
        let cut_already = self.state >= Phase::Recovery || self.mode == Mode::ProbeRtt;
        self.saved_window = if cut_already { self.saved_window.max(self.window) } else { self.window };
    }

    pub(super) fn update_window(&mut self, feedback: &Feedback) {
        if self.state == Phase::Loss && feedback.phase != Phase::Loss {
            self.window = self.window.max(self.saved_window);
        }
        if feedback.acked > 0 {
            self.window = self.towards_target(feedback.acked).clamp(MIN_WINDOW, CLAMP);
        }
        if self.mode == Mode::ProbeRtt {
            self.window = self.window.min(self.rtt_probe_window());
        }
        self.window = self.window.min(self.cap());
    }

    fn towards_target(&self, acked: u32) -> u32 {
        let product = self.product(self.bandwidth(), self.mode.window_gain());
        let target = self.with_bursts(product.saturating_add(self.aggregation.excess(self.bandwidth())));
        let grown = self.window.saturating_add(acked);
        if self.full_pipe.reached {
            grown.min(target)
        } else if self.window < target || self.window < 2 * self.initial_window {
            grown
        } else {
            self.window
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
