//! Marks: their share, smoothed as DCTCP's alpha, cuts the short-term bound. Only on paths so short that the marking
//! queue must be a shallow one.

use super::bandwidth::GAIN_ONE;
use super::{Ack, Bbr3};

/// The share of alpha by which a round with marks cuts, in 1/256.
const FACTOR: u32 = 85;
/// How fast alpha follows, in 1/256 (DCTCP's 1/16).
const GAIN: u64 = 16;
/// The greatest least RTT at which marks are believed to come from a shallow queue, microseconds.
const LONGEST_RTT: u64 = 5_000;
/// Startup ends after this many rounds in a row with at least this share marked, in 1/256.
const FULL_ROUNDS: u32 = 2;
const FULL_SHARE: u64 = 128;

/// The marked share.
#[derive(Debug)]
pub(super) struct Ecn {
    /// Marks are answered.
    pub(super) eligible: bool,
    /// In 1/256.
    alpha: u32,
    delivered: u64,
    marked: u64,
    full_rounds: u32,
}

impl Default for Ecn {
    fn default() -> Self {
        Self { eligible: false, alpha: GAIN_ONE, delivered: 0, marked: 0, full_rounds: 0 }
    }
}

impl Ecn {
    /// What a round with marks leaves of a bound, in 1/256.
    pub(super) fn kept(&self) -> u32 {
        GAIN_ONE - ((self.alpha * FACTOR) >> 8)
    }

    /// A round ends; returns the share marked in it, in 1/256.
    fn estimate(&mut self) -> u64 {
        let marked = (self.marked << 8) / self.delivered.max(1);
        let (kept, added) = ((u64::from(GAIN_ONE) - GAIN) * u64::from(self.alpha), GAIN * marked);
        self.alpha = ((kept >> 8) + (added >> 8)).min(u64::from(GAIN_ONE)) as u32;
        marked
    }
}

impl Bbr3 {
    pub(super) fn update_ecn(&mut self, ack: &Ack<'_>) {
        self.ecn.delivered += u64::from(ack.sample.acked);
        self.ecn.marked += u64::from(ack.sample.marked);
        if self.round.begun && self.ecn.delivered > 0 {
            let short_path = self.least_rtt.micros().is_some_and(|rtt| rtt <= LONGEST_RTT);
            self.ecn.eligible |= self.tuning.ecn && short_path;
            if self.ecn.eligible {
                let marked = self.ecn.estimate();
                self.check_startup_marks(marked);
            }
            (self.ecn.delivered, self.ecn.marked) = (0, 0);
        }
        self.signals.mark_in_round |= self.ecn.eligible && ack.sample.marked > 0;
    }

    fn check_startup_marks(&mut self, marked: u64) {
        self.ecn.full_rounds = if marked >= FULL_SHARE { self.ecn.full_rounds + 1 } else { 0 };
        if !self.full_pipe.reached && self.ecn.full_rounds >= FULL_ROUNDS {
            self.end_startup_full();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::model::share;
    use super::*;

    #[test]
    fn marks_cut_by_a_third_of_alpha_and_alpha_decays_by_a_sixteenth() {
        let kept = |alpha| share(1000, Ecn { alpha, ..Ecn::default() }.kept());
        assert_eq!([256, 128].map(kept), [667, 835]);
        let mut ecn = Ecn { delivered: 100, ..Ecn::default() };
        let alphas = [(); 5].map(|()| {
            ecn.estimate();
            ecn.alpha
        });
        assert_eq!(alphas, [240, 225, 210, 196, 183]);
        let mut all = Ecn { delivered: 100, marked: 100, ..Ecn::default() };
        assert_eq!((all.estimate(), all.alpha), (256, 256));
    }
}
