//! Named random streams.

use rand_core::Rng;
use rand_pcg::Pcg64;
use std::fmt;
use strings::fnv1a;

/// The random stream of one component.
///
/// A stream depends on the run's seed and its name ("link eno2 loss"), so that adding a component does not change the
/// streams of others. The same seed and name give the same numbers on every machine.
#[derive(Clone, PartialEq, Eq)]
pub struct RngStream {
    generator: Pcg64,
}

impl RngStream {
    /// The stream `name` of a run with this `seed`.
    #[must_use]
    pub fn named(seed: u64, name: &str) -> Self {
        Self { generator: Pcg64::new(u128::from(seed), u128::from(fnv1a(name.bytes()))) }
    }

    /// 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.generator.next_u64()
    }

    /// Uniform in `[0, 1)`, with 53 random bits.
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// Uniform in `0..n` (Lemire's multiply-shift; the bias is below 2^-32 for any `n` used here); 0 for `n` = 0.
    pub fn below(&mut self, n: u64) -> u64 {
        ((u128::from(self.bits()) * u128::from(n)) >> 64) as u64
    }

    /// True with probability `p`.
    pub fn chance(&mut self, p: f64) -> bool {
        self.unit() < p
    }
}

impl fmt::Debug for RngStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RngStream")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_depends_on_its_name_only() {
        let draw = |seed, name: &str| RngStream::named(seed, name).bits();
        assert_eq!(draw(1, "link eno2 loss"), draw(1, "link eno2 loss"));
        assert_ne!(draw(1, "link eno2 loss"), draw(1, "link eno1 loss"));
        assert_ne!(draw(1, "link eno2 loss"), draw(2, "link eno2 loss"));
    }

    #[test]
    fn uniform_draws_have_the_right_mean_and_range() {
        let mut stream = RngStream::named(7, "test");
        let mean = (0..100_000).map(|_| stream.unit()).sum::<f64>() / 100_000.0;
        assert!((mean - 0.5).abs() < 0.005, "{mean}: more than five standard errors from 1/2");
        assert!((0..10_000).all(|_| stream.below(7) < 7));
        assert_eq!(stream.below(0), 0);
    }
}
