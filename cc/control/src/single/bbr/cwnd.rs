//! The window: grows to what the model asks for, shrinks with loss, and comes back after recovery.

use super::mode::Mode;
use super::{Bbr, INITIAL_WINDOW, MIN_WINDOW};
use crate::{AckSample, CaState};

/// Never above this, packets.
const CLAMP: u32 = u32::MAX / 2;

impl Bbr {
    /// Remembers the window before recovery or RTT probing cuts it.
    pub(super) fn save_window(&mut self) {
        let cut_already = self.ca_state >= CaState::Recovery || self.mode == Mode::ProbeRtt;
        self.prior_cwnd = if cut_already { self.prior_cwnd.max(self.cwnd) } else { self.cwnd };
    }

    pub(super) fn update_window(&mut self, sample: &AckSample) {
        if sample.acked > 0 {
            let cwnd = self.after_recovery_steps(sample);
            self.cwnd = if self.conserve {
                cwnd.max(sample.in_flight + sample.acked)
            } else {
                self.towards_target(cwnd, sample)
            }
            .min(CLAMP);
        }
        if self.mode == Mode::ProbeRtt {
            self.cwnd = self.cwnd.min(MIN_WINDOW);
        }
    }

    /// What loss, the start and the end of recovery make of the window.
    fn after_recovery_steps(&mut self, sample: &AckSample) -> u32 {
        let cwnd = self.cwnd.saturating_sub(sample.lost).max(1);
        let before = std::mem::replace(&mut self.ca_state, sample.ca_state);
        if sample.ca_state == CaState::Recovery && before != CaState::Recovery {
            self.conserve = true;
            self.rounds.end = sample.delivered;
            sample.in_flight + sample.acked
        } else if before >= CaState::Recovery && sample.ca_state < CaState::Recovery {
            self.conserve = false;
            cwnd.max(self.prior_cwnd)
        } else {
            cwnd
        }
    }

    fn towards_target(&self, cwnd: u32, sample: &AckSample) -> u32 {
        let excess = if self.full_pipe.reached { self.aggregation.excess(self.bandwidth()) } else { 0 };
        let product = self.product(self.bandwidth(), self.window_gain);
        let target = u32::try_from(self.with_bursts(product.saturating_add(excess))).unwrap_or(CLAMP);
        let grown = cwnd.saturating_add(sample.acked);
        let cwnd = if self.full_pipe.reached {
            grown.min(target)
        } else if cwnd < target || sample.delivered < u64::from(INITIAL_WINDOW) {
            grown
        } else {
            cwnd
        };
        cwnd.max(MIN_WINDOW)
    }
}
