//! Intervals of values that an ensemble disagrees about.

/// Quantiles of Student's distribution for intervals of 90 %, by degrees of freedom from 1.
const STUDENT_90: [f64; 15] =
    [6.314, 2.920, 2.353, 2.132, 2.015, 1.943, 1.895, 1.860, 1.833, 1.812, 1.796, 1.782, 1.771, 1.761, 1.753];
/// The same of very many degrees of freedom.
const NORMAL_90: f64 = 1.645;

/// The median and the bounds of an interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Interval {
    /// The median over the ensemble.
    pub median: f64,
    /// The lower bound.
    pub low: f64,
    /// The upper bound.
    pub high: f64,
}

/// The interval in which the next value is found with 90 %, if values are distributed log-normally: the mean of the logarithms
/// plus and minus Student's quantile times their deviation times sqrt(1 + 1/n), widened by `error`, a standard deviation of the
/// logarithm that the values do not show.
#[must_use]
pub fn interval(values: &[f64], error: f64) -> Interval {
    let median = median(values);
    let logs: Vec<f64> = values.iter().filter(|value| **value > 0.0).map(|value| libm::log(*value)).collect();
    if logs.is_empty() {
        return Interval { median, low: median, high: median };
    }
    let n = logs.len() as f64;
    let mean = logs.iter().sum::<f64>() / n;
    let variance = logs.iter().map(|log| (log - mean) * (log - mean)).sum::<f64>() / (n - 1.0).max(1.0);
    let quantile = logs.len().checked_sub(2).map_or(0.0, |index| STUDENT_90.get(index).copied().unwrap_or(NORMAL_90));
    let own = quantile * (variance * (1.0 + 1.0 / n)).sqrt();
    let half = (own * own + NORMAL_90 * NORMAL_90 * error * error).sqrt();
    Interval { median, low: libm::exp(mean - half).min(median), high: libm::exp(mean + half).max(median) }
}

/// The median; 0 of no value.
#[must_use]
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match (sorted.len(), sorted.len() % 2) {
        (0, _) => 0.0,
        (_, 1) => sorted[middle],
        _ => (sorted[middle - 1] + sorted[middle]) / 2.0,
    }
}

impl Interval {
    /// Half of the interval's width, as a share of the value: 0.1 for 10 %.
    #[must_use]
    pub fn half_width(&self) -> f64 {
        if self.low > 0.0 { libm::exp(libm::log(self.high / self.low) / 2.0) - 1.0 } else { f64::INFINITY }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Student's quantile of one degree of freedom is 6.314, the deviation of the logarithms 0 and 2 is the root of 2.
    #[test]
    fn the_interval_is_students_for_the_next_value() {
        let found = interval(&[1.0, libm::exp(2.0)], 0.0);
        let half = 6.314 * (2.0_f64 * 1.5).sqrt();
        assert!((libm::log(found.high) - (1.0 + half)).abs() < 1e-9, "{found:?}");
        assert!((libm::log(found.low) - (1.0 - half)).abs() < 1e-9, "{found:?}");
        assert_eq!(interval(&[5.0], 0.0), Interval { median: 5.0, low: 5.0, high: 5.0 });
        let widened = interval(&[5.0, 5.0, 5.0], 0.1);
        assert!((widened.half_width() - (libm::exp(0.1645) - 1.0)).abs() < 1e-9);
    }

    #[test]
    fn the_median_is_the_middle() {
        assert_eq!([median(&[3.0, 1.0, 2.0]), median(&[4.0, 1.0]), median(&[])], [2.0, 2.5, 0.0]);
    }
}
