//! Random delay, with the distributions of `tc-netem`(8).

use crate::config::{Jitter, JitterDistribution};
use crate::correlated::Correlated;
use std::sync::LazyLock;
use units::{RngStream, Span};

/// Entries of a quantile table, as many as `tc` loads.
const ENTRIES: usize = 4096;
/// The largest value that a table's 16 bits can hold, in units of the jitter.
const LIMIT: f64 = 32_767.0 / 8192.0;

/// Quantiles of the standard normal distribution, each at the middle of its interval of probability.
static NORMAL: LazyLock<Vec<f64>> = LazyLock::new(|| (0..ENTRIES).map(|k| normal_quantile(share(k))).collect());

/// Draws the jitter of successive packets.
#[derive(Clone, Debug)]
pub(super) struct JitterSource {
    jitter: Jitter,
    draws: Correlated,
}

impl JitterSource {
    pub(super) fn new(jitter: Jitter) -> Self {
        Self { jitter, draws: Correlated::new(jitter.correlation) }
    }

    /// Whether there is no jitter.
    #[inline]
    pub(super) fn is_none(&self) -> bool {
        self.jitter.span == Span::ZERO
    }

    /// Whether packets may overtake others.
    pub(super) fn reorders(&self) -> bool {
        self.jitter.reorders && !self.is_none()
    }

    /// The delay of the next packet; at least zero. `delay` is the delay without jitter.
    #[inline]
    pub(super) fn delay(&mut self, delay: Span, rng: &mut RngStream) -> Span {
        let Jitter { span, distribution, correlation, .. } = self.jitter;
        if self.is_none() {
            return delay;
        }
        if distribution == JitterDistribution::Added && correlation == 0.0 {
            return delay + Span(rng.below(span.0.saturating_add(1)));
        }
        self.draw(delay, rng)
    }

    #[cold]
    fn draw(&mut self, delay: Span, rng: &mut RngStream) -> Span {
        let Jitter { span, distribution, .. } = self.jitter;
        let ns = delay.0 as f64 + span.0 as f64 * quantile(distribution, self.draws.draw(rng));
        Span(ns.max(0.0) as u64)
    }
}

/// The middle of an entry's interval of probability.
fn share(entry: usize) -> f64 {
    (entry as f64 + 0.5) / ENTRIES as f64
}

/// The quantile of a distribution, in units of the jitter.
fn quantile(distribution: JitterDistribution, share: f64) -> f64 {
    match distribution {
        JitterDistribution::Added => share,
        JitterDistribution::Uniform => 2.0 * share - 1.0,
        JitterDistribution::Normal => NORMAL[((share * ENTRIES as f64) as usize).min(ENTRIES - 1)],
        JitterDistribution::Pareto => pareto(share),
        JitterDistribution::ParetoNormal => 0.25 * quantile(JitterDistribution::Normal, share) + 0.75 * pareto(share),
    }
}

/// The Pareto distribution with exponent 3, minus its mean 3/2 and divided by its variance 3/4, as in iproute2's
/// tables.
fn pareto(share: f64) -> f64 {
    ((libm::pow(1.0 - share, -1.0 / 3.0) - 1.5) / 0.75).min(LIMIT)
}

/// Solves `erfc(-x / sqrt(2)) / 2 = share` by bisection.
fn normal_quantile(share: f64) -> f64 {
    let (mut low, mut high) = (-LIMIT, LIMIT);
    for _ in 0..60 {
        let middle = f64::midpoint(low, high);
        let below = libm::erfc(-middle / std::f64::consts::SQRT_2) / 2.0;
        (low, high) = if below < share { (middle, high) } else { (low, middle) };
    }
    low
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Quantiles at 1, 10, 25, 50, 75, 90 and 99 % of `normal.dist`, `pareto.dist` and `paretonormal.dist` of iproute2 6.1.
    #[test]
    fn the_distributions_are_those_of_netems_tables() {
        let shares = [0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99];
        let tables = [
            (JitterDistribution::Normal, [-2.3341, -1.2822, -0.6744, 0.0, 0.6746, 1.2811, 2.3271]),
            (JitterDistribution::Pareto, [-0.6624, -0.6191, -0.5325, -0.3201, 0.1166, 0.8717, 3.9999]),
            (JitterDistribution::ParetoNormal, [-1.0803, -0.7849, -0.5679, -0.24, 0.256, 0.974, 3.5817]),
        ];
        for (distribution, expected) in tables {
            let quantiles = shares.map(|share| quantile(distribution, share));
            let is_near = |(is, must): (&f64, &f64)| (is - must).abs() < 0.012;
            assert!(quantiles.iter().zip(&expected).all(is_near), "{distribution:?}: {quantiles:?}");
        }
    }

    #[test]
    fn a_correlated_draw_keeps_that_share_of_the_one_before() {
        let jitter = |correlation| Jitter {
            span: Span::from_millis(1),
            distribution: JitterDistribution::Uniform,
            correlation,
            reorders: false,
        };
        for correlation in [0.25, 0.75] {
            let (mut source, mut rng) = (JitterSource::new(jitter(correlation)), RngStream::named(3, "jitter"));
            let draws: Vec<f64> =
                (0..100_000).map(|_| source.delay(Span::from_millis(10), &mut rng).0 as f64).collect();
            let mean = draws.iter().sum::<f64>() / draws.len() as f64;
            let variance = draws.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>();
            let covariance = draws.windows(2).map(|pair| (pair[0] - mean) * (pair[1] - mean)).sum::<f64>();
            // The standard error of an autocorrelation is at most 1 / sqrt(n).
            assert!((covariance / variance - correlation).abs() < 5.0 / (draws.len() as f64).sqrt());
            assert!((mean / 10e6 - 1.0).abs() < 0.01, "{mean}");
        }
    }
}
