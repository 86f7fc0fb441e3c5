//! Random numbers of one component of a world.

use units::RngStream;

/// The random stream of a component: draws for one component do not change another.
pub(super) struct Chance(RngStream);

impl Chance {
    pub(super) fn of(seed: u64, component: &str) -> Self {
        Self(RngStream::named(seed, &format!("world {component}")))
    }

    /// True with probability `p`.
    pub(super) fn is(&mut self, p: f64) -> bool {
        self.0.chance(p)
    }

    /// Uniform.
    pub(super) fn between(&mut self, least: f64, greatest: f64) -> f64 {
        least + (greatest - least) * self.0.unit()
    }

    /// Uniform on a logarithmic scale.
    pub(super) fn log(&mut self, least: f64, greatest: f64) -> f64 {
        least * libm::exp(self.0.unit() * libm::log(greatest / least))
    }

    /// A whole number, both bounds included, uniform on a logarithmic scale.
    pub(super) fn count(&mut self, least: u64, greatest: u64) -> u64 {
        (self.log(least as f64, greatest as f64 + 1.0) as u64).clamp(least, greatest)
    }

    /// One of these, with their weights.
    pub(super) fn pick<T: Copy>(&mut self, choices: &[(u64, T)]) -> T {
        let mut left = self.0.below(choices.iter().map(|(weight, _)| weight).sum());
        for (weight, choice) in choices {
            if left < *weight {
                return *choice;
            }
            left -= weight;
        }
        unreachable!("the numbers are below the sum of the weights")
    }
}
