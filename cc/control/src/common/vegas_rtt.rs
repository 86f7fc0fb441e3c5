//! Vegas' measure of queueing delay: the minimum RTT of each round trip compared with the minimum since the path was
//! last idle.

use super::RoundTrip;
use crate::{AckProgress, AckSample, CaState};

/// Number of samples that a round needs for an evaluation: of two, one may be a delayed acknowledgement, the other
/// noise.
const MIN_SAMPLES: u32 = 3;

/// Vegas' RTT state, microseconds, with the names of Linux `struct vegas`.
#[derive(Debug)]
pub struct VegasRtt {
    /// Minimum RTT since the path was last idle; [`u64::MAX`] before the first sample.
    pub base_rtt: u64,
    /// Minimum RTT of this round; [`u64::MAX`] before its first sample.
    pub min_rtt: u64,
    /// RTT samples of this round.
    pub cnt_rtt: u32,
    round: RoundTrip,
    /// Whether the next acknowledgement begins a round.
    begin_round: bool,
    is_enabled: bool,
}

impl Default for VegasRtt {
    fn default() -> Self {
        Self {
            base_rtt: u64::MAX,
            min_rtt: u64::MAX,
            cnt_rtt: 0,
            round: RoundTrip::default(),
            begin_round: false,
            is_enabled: true,
        }
    }
}

impl VegasRtt {
    /// Adds the acknowledgement's RTT sample, if it has one.
    pub fn add_sample(&mut self, progress: &AckProgress) {
        if let Some(rtt) = progress.rtt {
            // One microsecond more, so that neither RTT is ever zero.
            let rtt = rtt.as_micros() + 1;
            self.base_rtt = self.base_rtt.min(rtt);
            self.min_rtt = self.min_rtt.min(rtt);
            self.cnt_rtt += 1;
        }
    }

    /// Whether this acknowledgement ends a round; evaluate it, then call [`VegasRtt::reset_round`].
    pub fn ends(&mut self, sample: &AckSample) -> bool {
        if std::mem::take(&mut self.begin_round) {
            self.round.restart(sample.snd_nxt);
        }
        self.round.ends(sample)
    }

    /// Whether the round has enough samples to be evaluated.
    #[must_use]
    pub fn has_enough_samples(&self) -> bool {
        self.cnt_rtt >= MIN_SAMPLES
    }

    /// Queueing delay in a round with enough samples, microseconds.
    #[must_use]
    pub fn queueing_delay(&self) -> u64 {
        self.min_rtt - self.base_rtt
    }

    /// Clears the samples of the round.
    pub fn reset_round(&mut self) {
        (self.min_rtt, self.cnt_rtt) = (u64::MAX, 0);
    }

    /// Whether delay decides: in the open state, and from an instant with nothing in flight, as when all packets were
    /// lost (Linux `doing_vegas_now`).
    #[must_use]
    pub fn is_enabled(&self) -> bool {
        self.is_enabled
    }

    /// Clears the base RTT, too, because nothing is in flight: the route may have changed during the idle time. If all
    /// packets are lost, the round lasts until they are acknowledged.
    pub fn reset(&mut self) {
        self.begin_round |= !self.is_enabled;
        (self.base_rtt, self.is_enabled) = (u64::MAX, true);
        self.reset_round();
    }

    /// Begins a new round when the sender returns to the open state, because a round with losses is not evaluated.
    pub fn set_state(&mut self, next: CaState) {
        self.is_enabled = next == CaState::Open;
        if self.is_enabled {
            self.begin_round = true;
            self.reset_round();
        }
    }
}
