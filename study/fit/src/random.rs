//! Normal random numbers from named streams.

use units::RngStream;

/// A stream of standard normal numbers.
#[derive(Debug)]
pub(crate) struct Normal(RngStream);

impl Normal {
    /// The stream of a seed and a name.
    pub(crate) fn named(seed: u64, name: &str) -> Self {
        Self(RngStream::named(seed, name))
    }

    /// The next number, by the transform of Box and Muller.
    pub(crate) fn draw(&mut self) -> f64 {
        let radius = (-2.0 * libm::log(1.0 - self.0.unit())).sqrt();
        radius * libm::cos(std::f64::consts::TAU * self.0.unit())
    }
}
