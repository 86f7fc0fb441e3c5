//! Correlated random numbers, as `tc-netem`(8) draws them.

use units::RngStream;

/// Draws numbers from 0 to 1, each a weighted mean of a uniform one and the previous one.
#[derive(Clone, Debug)]
pub(super) struct Correlated {
    correlation: f64,
    last: Option<f64>,
}

impl Correlated {
    pub(super) fn new(correlation: f64) -> Self {
        Self { correlation, last: None }
    }

    pub(super) fn draw(&mut self, rng: &mut RngStream) -> f64 {
        let last = self.last.unwrap_or_else(|| rng.unit());
        let draw = last * self.correlation + rng.unit() * (1.0 - self.correlation);
        self.last = Some(draw);
        draw
    }
}
