//! A distribution of times in a few numbers.

use hdrhistogram::Histogram;
use record::Summary;
use units::Span;

/// A distribution of times: exact mean, least and greatest; percentiles to three digits, whatever the run's length.
#[derive(Debug)]
pub(crate) struct Distribution {
    histogram: Histogram<u64>,
    total: u128,
    least: Span,
    most: Span,
}

impl Default for Distribution {
    fn default() -> Self {
        let histogram = Histogram::new_with_bounds(1, 1_000_000_000, 3).expect("the bounds are in order");
        Self { histogram, total: 0, least: Span::MAX, most: Span::ZERO }
    }
}

impl Distribution {
    pub(crate) fn add(&mut self, span: Span) {
        // Microseconds; saturating, so that an absurd value cannot fail the run.
        self.histogram.saturating_record(span.as_micros());
        self.total += u128::from(span.0);
        self.least = self.least.min(span);
        self.most = self.most.max(span);
    }

    /// Samples.
    pub(crate) fn count(&self) -> u64 {
        self.histogram.len()
    }

    pub(crate) fn summary(&self) -> Summary {
        let count = self.count();
        if count == 0 {
            return Summary::default();
        }
        let quantile = |q| self.histogram.value_at_quantile(q) as f64 / 1e3;
        Summary {
            mean: self.total as f64 / count as f64 / 1e6,
            p50: quantile(0.50),
            p95: quantile(0.95),
            p99: quantile(0.99),
            min: self.least.as_millis_f64(),
            max: self.most.as_millis_f64(),
        }
    }
}
