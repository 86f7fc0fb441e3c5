//! Random loss, duplication and delay.

use units::{RngStream, Span};

/// Impairments as probabilities.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RandomImpairments {
    loss: f64,
    duplication: f64,
    delay: f64,
}

impl RandomImpairments {
    /// Draws each probability, loss first, below its maximum.
    pub(crate) fn draw(rng: &mut RngStream, max: [f64; 3]) -> Self {
        let [loss, duplication, delay] = max.map(|max| rng.unit() * max);
        Self { loss, duplication, delay }
    }

    /// The extra delay of each copy of a packet that arrives.
    pub(crate) fn copies(&self, rng: &mut RngStream) -> Vec<Span> {
        let mut copies = Vec::new();
        for probability in [1.0 - self.loss, self.duplication] {
            if rng.chance(probability) {
                copies.push(Span::from_micros(if rng.chance(self.delay) { rng.below(30_000) } else { 0 }));
            }
        }
        copies
    }
}
