//! Vegas' measure of delay, which many borrow: the least RTT of each round trip, against the least ever.

use super::Round;
use crate::{AckSample, CaState};

/// A round with at most this many samples is not judged: one may be a delayed acknowledgement, one noise.
const FEW_SAMPLES: u32 = 2;

/// The least RTT of a round trip and the least ever (`base`), in microseconds.
#[derive(Debug)]
pub struct RoundDelay {
    /// Least RTT since the path was last empty; [`u64::MAX`] before the first sample.
    pub base: u64,
    /// Least RTT of this round; [`u64::MAX`] before its first sample.
    pub least: u64,
    /// Samples of this round.
    pub samples: u32,
    round: Round,
    /// The next acknowledgement begins a round.
    reopened: bool,
}

impl Default for RoundDelay {
    fn default() -> Self {
        Self { base: u64::MAX, least: u64::MAX, samples: 0, round: Round::default(), reopened: false }
    }
}

impl RoundDelay {
    /// Adds this acknowledgement's sample, if it has one.
    pub fn add(&mut self, sample: &AckSample) {
        if let Some(rtt) = sample.rtt {
            // One microsecond more, so that neither RTT is ever zero.
            let rtt = rtt.as_micros() + 1;
            self.base = self.base.min(rtt);
            self.least = self.least.min(rtt);
            self.samples += 1;
        }
    }

    /// True if this acknowledgement ends a round: judge it, then [`RoundDelay::forget_round`].
    pub fn ends(&mut self, sample: &AckSample) -> bool {
        if std::mem::take(&mut self.reopened) {
            self.round.restart(sample);
        }
        self.round.ends(sample)
    }

    /// Whether the round has samples enough to be judged.
    #[must_use]
    pub fn is_telling(&self) -> bool {
        self.samples > FEW_SAMPLES
    }

    /// What is above the base: of a telling round.
    #[must_use]
    pub fn queueing(&self) -> u64 {
        self.least - self.base
    }

    /// The next round has no samples yet.
    pub fn forget_round(&mut self) {
        (self.least, self.samples) = (u64::MAX, 0);
    }

    /// After a pause the route may have changed.
    pub fn forget_base(&mut self) {
        self.base = u64::MAX;
        self.forget_round();
    }

    /// A round that was disturbed is not judged: coming back to the open phase begins a new one.
    pub fn change_phase(&mut self, next: CaState) {
        if next == CaState::Open {
            self.reopened = true;
            self.forget_round();
        }
    }
}
