//! Duplication, corruption and reordering on the wire, with the probabilities and the names of `tc-netem`(8).

use crate::config::{PipeConfig, Reordering};
use crate::correlated::Correlated;
use units::RngStream;

/// A wire's impairments, independent of each other.
#[derive(Clone, Debug)]
pub(super) struct Impairments {
    duplicate: f64,
    corrupt: f64,
    reorder: Reordering,
    reorder_draws: Correlated,
    /// Packets since the last one that skipped the delay.
    delayed: u32,
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
    /// The packet is not delayed: it arrives as soon as it has left the transmitter.
    pub(super) skips_delay: bool,
}

impl Impairments {
    /// The impairments of `config`; `None` if it has none.
    pub(super) fn new(config: &PipeConfig) -> Option<Self> {
        let PipeConfig { duplicate, corrupt, reorder, .. } = *config;
        let is_impaired = duplicate > 0.0 || corrupt > 0.0 || reorder.share > 0.0;
        let reorder_draws = Correlated::new(reorder.correlation);
        is_impaired.then_some(Self { duplicate, corrupt, reorder, reorder_draws, delayed: 0 })
    }

    /// Whether packets may overtake others.
    pub(super) fn reorders(&self) -> bool {
        self.reorder.share > 0.0
    }

    /// Draws the impairments of the next packet.
    #[cold]
    pub(super) fn draw(&mut self, rng: &mut RngStream) -> Impairment {
        let skips_delay = self.draw_skip(rng);
        let mut chance = |probability: f64| probability > 0.0 && rng.chance(probability);
        let has_copy = chance(self.duplicate);
        let is_corrupted = chance(self.corrupt);
        Impairment { is_corrupted, has_copy, is_copy_corrupted: has_copy && chance(self.corrupt), skips_delay }
    }

    fn draw_skip(&mut self, rng: &mut RngStream) -> bool {
        let Reordering { share, correlation, gap } = self.reorder;
        let is_due = share > 0.0 && self.delayed + 1 >= gap;
        let skips = match correlation {
            _ if !is_due => false,
            0.0 => rng.chance(share),
            _ => self.reorder_draws.draw(rng) < share,
        };
        self.delayed = if skips { 0 } else { self.delayed.saturating_add(1) };
        skips
    }
}
