//! ECN marks: their fraction, smoothed as DCTCP's alpha, lowers the short-term bound. They count only on paths with a
//! short RTT, where queues mark at a low threshold.

use super::bandwidth::BBR_UNIT;
use super::{AckInfo, Bbr3};

/// The fraction of alpha by which a round with marks reduces, in 1/256.
const ECN_FACTOR: u32 = 85;
/// Gain of alpha's filter, in 1/256 (DCTCP's 1/16).
const ECN_ALPHA_GAIN: u64 = 16;
/// Maximum of the minimum RTT at which marks count, microseconds.
const ECN_MAX_RTT_US: u64 = 5_000;
/// Startup ends after this many consecutive rounds with at least `FULL_ECN_THRESH` (in 1/256) marked.
const FULL_ECN_CNT: u32 = 2;
const FULL_ECN_THRESH: u64 = 128;

/// The fraction of marked packets.
#[derive(Debug)]
pub(super) struct EcnState {
    /// Whether marks count.
    pub(super) ecn_eligible: bool,
    /// Smoothed fraction of marked packets, in 1/256.
    ecn_alpha: u32,
    delivered: u64,
    marked: u64,
    startup_ecn_rounds: u32,
}

impl Default for EcnState {
    fn default() -> Self {
        Self { ecn_eligible: false, ecn_alpha: BBR_UNIT, delivered: 0, marked: 0, startup_ecn_rounds: 0 }
    }
}

impl EcnState {
    /// Fraction of a bound that remains after a round with marks, in 1/256.
    pub(super) fn ecn_cut(&self) -> u32 {
        BBR_UNIT - ((self.ecn_alpha * ECN_FACTOR) >> 8)
    }

    /// Ends a round. Returns the fraction marked in it, in 1/256.
    fn update_ecn_alpha(&mut self) -> u64 {
        let ce_ratio = (self.marked << 8) / self.delivered.max(1);
        let (kept_alpha, added_alpha) =
            ((u64::from(BBR_UNIT) - ECN_ALPHA_GAIN) * u64::from(self.ecn_alpha), ECN_ALPHA_GAIN * ce_ratio);
        self.ecn_alpha = ((kept_alpha >> 8) + (added_alpha >> 8)).min(u64::from(BBR_UNIT)) as u32;
        ce_ratio
    }
}

impl Bbr3 {
    pub(super) fn update_ecn(&mut self, ack: &AckInfo<'_>) {
        self.ecn.delivered += u64::from(ack.ack_sample.acked);
        self.ecn.marked += u64::from(ack.ack_sample.marked);
        if self.round.round_start && self.ecn.delivered > 0 {
            let short_path = self.min_rtt.micros().is_some_and(|rtt| rtt <= ECN_MAX_RTT_US);
            self.ecn.ecn_eligible |= self.constants.ecn && short_path;
            if self.ecn.ecn_eligible {
                let ce_ratio = self.ecn.update_ecn_alpha();
                self.check_ecn_too_high_in_startup(ce_ratio);
            }
            (self.ecn.delivered, self.ecn.marked) = (0, 0);
        }
        self.congestion.ecn_in_round |= self.ecn.ecn_eligible && ack.ack_sample.marked > 0;
    }

    fn check_ecn_too_high_in_startup(&mut self, ce_ratio: u64) {
        self.ecn.startup_ecn_rounds = if ce_ratio >= FULL_ECN_THRESH { self.ecn.startup_ecn_rounds + 1 } else { 0 };
        if !self.full_bw.full_bw_reached && self.ecn.startup_ecn_rounds >= FULL_ECN_CNT {
            self.end_startup_by_congestion();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::model::share;
    use super::*;

    #[test]
    fn marks_cut_by_a_third_of_alpha_and_alpha_decays_by_a_sixteenth() {
        let reduced = |alpha| share(1000, EcnState { ecn_alpha: alpha, ..EcnState::default() }.ecn_cut());
        assert_eq!([256, 128].map(reduced), [667, 835]);
        let mut ecn = EcnState { delivered: 100, ..EcnState::default() };
        let alphas = [(); 5].map(|()| {
            ecn.update_ecn_alpha();
            ecn.ecn_alpha
        });
        assert_eq!(alphas, [240, 225, 210, 196, 183]);
        let mut all_marked = EcnState { delivered: 100, marked: 100, ..EcnState::default() };
        assert_eq!((all_marked.update_ecn_alpha(), all_marked.ecn_alpha), (256, 256));
    }
}
