//! Pacing rate and window: the model's targets, within its bounds.

use super::Bbr3;
use super::bandwidth::{self, BBR_UNIT};
use super::cycle::Mode;
use super::model::MIN_PIPE_CWND;
use crate::{AckSample, CaState};
use units::Span;

/// Pacing gain of ProbeBW_UP.
const UP_GAIN: u32 = 320;
/// Maximum window, packets.
const MAX_CWND: u32 = u32::MAX / 2;

impl Bbr3 {
    /// Sets the pacing rate to `gain * bandwidth`. Until the pipe has been full once, it only raises the rate.
    pub(super) fn set_pacing_rate(&mut self, srtt: Span) {
        if !self.has_seen_rtt && srtt > Span::ZERO {
            self.init_pacing_rate(srtt);
        }
        let rate = bandwidth::bytes_per_second(self.bw(), self.mss, self.pacing_gain());
        if self.full_bw.full_bw_reached || rate > self.pacing_rate {
            self.pacing_rate = rate;
        }
    }

    pub(super) fn init_pacing_rate(&mut self, srtt: Span) {
        self.has_seen_rtt = srtt > Span::ZERO;
        self.pacing_rate = bandwidth::initial_pacing_rate(self.cwnd, srtt, self.mss, self.rules.startup_gain);
    }

    pub(super) fn pacing_gain(&self) -> u32 {
        match self.mode {
            Mode::Startup => self.rules.startup_gain,
            Mode::Drain => self.rules.drain_gain,
            Mode::ProbeBwDown => self.rules.down_gain,
            Mode::ProbeBwUp => UP_GAIN,
            Mode::ProbeBwCruise | Mode::ProbeBwRefill | Mode::ProbeRtt => BBR_UNIT,
        }
    }

    /// Saves the window before an episode or ProbeRTT reduces it.
    pub(super) fn save_cwnd(&mut self) {
        let already_reduced = self.prev_ca_state >= CaState::Recovery || self.mode == Mode::ProbeRtt;
        self.prior_cwnd = if already_reduced { self.prior_cwnd.max(self.cwnd) } else { self.cwnd };
    }

    pub(super) fn set_cwnd(&mut self, sample: &AckSample) {
        let leaves = |state| self.prev_ca_state == state && sample.ca_state != state;
        if leaves(CaState::Loss) || self.rules.recovery_restores_cwnd && leaves(CaState::Recovery) {
            self.cwnd = self.cwnd.max(self.prior_cwnd);
        }
        if sample.acked > 0 {
            self.cwnd = self.cwnd_towards_target(sample.acked).clamp(MIN_PIPE_CWND, MAX_CWND);
        }
        if self.mode == Mode::ProbeRtt {
            self.cwnd = self.cwnd.min(self.probe_rtt_cwnd());
        }
        self.cwnd = self.cwnd.min(self.bound_cwnd_for_model());
    }

    fn cwnd_towards_target(&self, acked: u32) -> u32 {
        let bdp = self.bdp(self.bw(), self.mode.cwnd_gain());
        let target = self.quantization_budget(bdp.saturating_add(self.extra_acked()));
        let increased = self.cwnd.saturating_add(acked);
        if self.full_bw.full_bw_reached {
            increased.min(target)
        } else if self.cwnd < target || self.has_few_samples() {
            increased
        } else {
            self.cwnd
        }
    }

    /// Whether too few packets were delivered to rely on the model.
    fn has_few_samples(&self) -> bool {
        if self.rules.startup_grows_to_two_windows {
            self.cwnd < 2 * self.initial_window
        } else {
            self.delivered < u64::from(self.initial_window)
        }
    }

    /// Packets to add to the window for aggregated acknowledgements.
    fn extra_acked(&self) -> u64 {
        match self.rules.extra_acked_rounds {
            Some(_) => self.extra_acked_filter.get(),
            None => self.ack_aggregation.extra_acked(self.bw()),
        }
    }

    /// The window that the bounds allow in this state. Startup and Drain do not use inflight_hi.
    fn bound_cwnd_for_model(&self) -> u32 {
        let inflight_hi = match self.mode {
            Mode::Startup | Mode::Drain => u32::MAX,
            Mode::ProbeBwCruise | Mode::ProbeRtt => self.inflight_with_headroom(),
            Mode::ProbeBwDown | Mode::ProbeBwRefill | Mode::ProbeBwUp => self.bounds.inflight_hi,
        };
        inflight_hi.min(self.bounds.inflight_lo).max(MIN_PIPE_CWND)
    }
}
