//! Distributions of times as a [`Summary`]: of a stream of samples, or of values that are all at hand.

use crate::histogram::Histogram;
use crate::{DelayHistogram, Summary};
use units::Span;

/// The greatest time of a percentile, microseconds.
const MAX_US: u64 = 1_000_000_000;

/// A distribution of times: exact mean, minimum and maximum; percentiles to three digits, in memory that grows with the
/// logarithm of the ratio of the greatest sample to the least: 4 kB for a power of two.
#[derive(Debug)]
pub struct Distribution {
    histogram: Histogram,
    is_off: bool,
    total: u128,
    min: Span,
    max: Span,
}

impl Default for Distribution {
    fn default() -> Self {
        Self { histogram: Histogram::default(), is_off: false, total: 0, min: Span::MAX, max: Span::ZERO }
    }
}

impl Distribution {
    /// Adds a sample.
    #[inline]
    pub fn add(&mut self, span: Span) {
        if self.is_off {
            return;
        }
        self.histogram.add(span.as_micros().min(MAX_US));
        self.total += u128::from(span.0);
        self.min = self.min.min(span);
        self.max = self.max.max(span);
    }

    /// Forgets all samples, and those to come.
    pub fn turn_off(&mut self) {
        *self = Self { is_off: true, ..Self::default() };
    }

    /// Number of samples.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.histogram.len()
    }

    /// The samples as counts for the record: `column` (`rtt_ms`) of `subject` (`flow tcp`). None without samples.
    #[must_use]
    pub fn histogram(&self, subject: &str, column: &str) -> Option<DelayHistogram> {
        (self.count() > 0).then(|| DelayHistogram::of(subject, column, self.histogram.buckets()))
    }

    /// The summary in milliseconds; zeros without samples.
    #[must_use]
    pub fn summary(&self) -> Summary {
        let count = self.count();
        if count == 0 {
            return Summary::default();
        }
        let quantile = |q| self.histogram.quantile(q) as f64 / 1e3;
        Summary {
            mean: self.total as f64 / count as f64 / 1e6,
            p50: quantile(0.50),
            p95: quantile(0.95),
            p99: quantile(0.99),
            min: self.min.as_millis_f64(),
            max: self.max.as_millis_f64(),
        }
    }
}

/// The summary of these values, percentiles by the nearest rank; zeros without values.
#[must_use]
pub fn summary_of(mut values: Vec<f64>) -> Summary {
    values.sort_by(f64::total_cmp);
    let (Some(&min), Some(&max)) = (values.first(), values.last()) else { return Summary::default() };
    let quantile = |q: f64| values[((q * values.len() as f64).ceil() as usize).clamp(1, values.len()) - 1];
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    Summary { mean, p50: quantile(0.5), p95: quantile(0.95), p99: quantile(0.99), min, max }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_distribution_that_is_off_has_no_samples() {
        let mut distribution = Distribution::default();
        assert_eq!((distribution.count(), distribution.summary()), (0, Summary::default()));
        distribution.add(Span::from_millis(3));
        assert_eq!((distribution.count(), distribution.summary().mean), (1, 3.0));
        distribution.turn_off();
        distribution.add(Span::from_millis(3));
        assert_eq!((distribution.count(), distribution.summary()), (0, Summary::default()));
    }

    #[test]
    fn percentiles_by_the_nearest_rank_are_values_of_the_sample() {
        let summary = summary_of((1..=200).rev().map(f64::from).collect());
        let expected = Summary { mean: 100.5, p50: 100.0, p95: 190.0, p99: 198.0, min: 1.0, max: 200.0 };
        assert_eq!(summary, expected);
        assert_eq!(summary_of(vec![7.0]).p99, 7.0);
        assert_eq!(summary_of(Vec::new()), Summary::default());
    }
}
