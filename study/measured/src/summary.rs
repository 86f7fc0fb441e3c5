//! A distribution in few numbers, and samples of round-trip times.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One round-trip time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RttSample {
    /// The time at which it was sent since the start of its stage, seconds.
    pub at_s: f64,
    /// The round-trip time, milliseconds.
    pub rtt_ms: f64,
}

/// A distribution of times in milliseconds. What its program does not tell is absent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Summary {
    /// Number of samples.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
    /// Minimum, milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min: Option<f64>,
    /// Mean, milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean: Option<f64>,
    /// Median, milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p50: Option<f64>,
    /// 95th percentile, milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p95: Option<f64>,
    /// 99th percentile, milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p99: Option<f64>,
    /// Maximum, milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max: Option<f64>,
    /// Standard deviation, milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deviation: Option<f64>,
}

impl Summary {
    /// The summary of samples in milliseconds; none of no sample. A percentile is the smallest sample that at least this
    /// share of the samples does not exceed.
    pub fn of(samples: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut sorted: Vec<f64> = samples.into_iter().collect();
        sorted.sort_by(f64::total_cmp);
        let (min, max) = (*sorted.first()?, *sorted.last()?);
        let count = sorted.len() as f64;
        let mean = sorted.iter().sum::<f64>() / count;
        let variance = sorted.iter().map(|sample| (sample - mean) * (sample - mean)).sum::<f64>() / count;
        let percentile = |share: f64| sorted[((count * share).ceil() as usize).clamp(1, sorted.len()) - 1];
        Some(Self {
            count: Some(sorted.len() as u64),
            min: Some(min),
            mean: Some(mean),
            p50: Some(percentile(0.5)),
            p95: Some(percentile(0.95)),
            p99: Some(percentile(0.99)),
            max: Some(max),
            deviation: Some(variance.sqrt()),
        })
    }

    /// Its values, each with its name.
    pub(crate) fn values(&self) -> [(&'static str, Option<f64>); 7] {
        [
            ("min", self.min),
            ("mean", self.mean),
            ("p50", self.p50),
            ("p95", self.p95),
            ("p99", self.p99),
            ("max", self.max),
            ("deviation", self.deviation),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_is_the_smallest_sample_that_covers_its_share() {
        let summary = Summary::of((1..=100).rev().map(f64::from)).unwrap();
        assert_eq!((summary.count, summary.min, summary.max), (Some(100), Some(1.0), Some(100.0)));
        assert_eq!((summary.p50, summary.p95, summary.p99), (Some(50.0), Some(95.0), Some(99.0)));
        assert_eq!(summary.mean, Some(50.5));
        assert_eq!(Summary::of([]), None);
    }

    #[test]
    fn the_deviation_is_that_of_all_samples() {
        assert_eq!(Summary::of([2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]).unwrap().deviation, Some(2.0));
    }
}
