//! Duplication, corruption and reordering on the wire, with the probabilities and the names of `tc-netem`(8).

use crate::config::PipeConfig;
use units::RngStream;

/// The probabilities of a wire's impairments, all of them independent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Impairments {
    duplicate: f64,
    corrupt: f64,
    reorder: f64,
}

/// The impairments of one packet.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Impairment {
    /// The packet arrives with a flipped bit.
    pub(super) is_corrupted: bool,
    /// A copy of the packet arrives at the same instant.
    pub(super) has_copy: bool,
    /// The copy arrives with a flipped bit.
    pub(super) is_copy_corrupted: bool,
    /// The packet is not delayed: it arrives when it has left the transmitter.
    pub(super) skips_delay: bool,
}

impl Impairments {
    /// The impairments of `config`; none if it has none.
    pub(super) fn new(config: &PipeConfig) -> Option<Self> {
        let PipeConfig { duplicate, corrupt, reorder, .. } = *config;
        let is_impaired = duplicate > 0.0 || corrupt > 0.0 || reorder > 0.0;
        is_impaired.then_some(Self { duplicate, corrupt, reorder })
    }

    /// Whether packets may overtake others.
    pub(super) fn reorders(&self) -> bool {
        self.reorder > 0.0
    }

    /// Draws the impairments of the next packet.
    #[cold]
    pub(super) fn draw(&self, rng: &mut RngStream) -> Impairment {
        let mut chance = |probability: f64| probability > 0.0 && rng.chance(probability);
        let (skips_delay, has_copy) = (chance(self.reorder), chance(self.duplicate));
        let is_corrupted = chance(self.corrupt);
        Impairment { is_corrupted, has_copy, is_copy_corrupted: has_copy && chance(self.corrupt), skips_delay }
    }
}
