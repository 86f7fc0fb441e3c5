//! The window: grows to what the model asks for, shrinks with loss, and comes back after recovery.

use super::mode::Mode;
use super::{Bbr, INITIAL_WINDOW, MIN_WINDOW};
use crate::{Feedback, Phase};

/// Never above this, packets.
const CLAMP: u32 = u32::MAX / 2;

impl Bbr {
    /// Remembers the window before recovery or RTT probing cuts it.
    pub(super) fn save_window(&mut self) {
        let cut_already = self.state >= Phase::Recovery || self.mode == Mode::ProbeRtt;
        self.saved_window = if cut_already { self.saved_window.max(self.window) } else { self.window };
    }

    pub(super) fn update_window(&mut self, feedback: &Feedback) {
        if feedback.acked > 0 {
            let window = self.after_recovery_steps(feedback);
            self.window = if self.conserve {
                window.max(feedback.in_flight + feedback.acked)
            } else {
                self.towards_target(window, feedback)
            }
            .min(CLAMP);
        }
        if self.mode == Mode::ProbeRtt {
            self.window = self.window.min(MIN_WINDOW);
        }
    }

    /// What loss, the start and the end of recovery make of the window.
    fn after_recovery_steps(&mut self, feedback: &Feedback) -> u32 {
        let window = self.window.saturating_sub(feedback.lost).max(1);
        let before = std::mem::replace(&mut self.state, feedback.phase);
        if feedback.phase == Phase::Recovery && before != Phase::Recovery {
            self.conserve = true;
            self.rounds.end = feedback.delivered;
            feedback.in_flight + feedback.acked
        } else if before >= Phase::Recovery && feedback.phase < Phase::Recovery {
            self.conserve = false;
            window.max(self.saved_window)
        } else {
            window
        }
    }

    fn towards_target(&self, window: u32, feedback: &Feedback) -> u32 {
        let excess = if self.full_pipe.reached { self.aggregation.excess(self.bandwidth()) } else { 0 };
        let product = self.product(self.bandwidth(), self.window_gain);
        let target = u32::try_from(self.with_bursts(product.saturating_add(excess))).unwrap_or(CLAMP);
        let grown = window.saturating_add(feedback.acked);
        let window = if self.full_pipe.reached {
            grown.min(target)
        } else if window < target || feedback.delivered < u64::from(INITIAL_WINDOW) {
            grown
        } else {
            window
        };
        window.max(MIN_WINDOW)
    }
}
