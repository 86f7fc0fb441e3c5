//! The values of a cell's runs, one by one, and the outliers among them.
//!
//! Outliers follow Tukey's rule (*Exploratory Data Analysis*, 1977): values beyond the fences, one and a half
//! interquartile ranges outside the quartiles. With few runs the rule finds many harmless values, so an outlier must
//! also be some way from the median. Outliers are shown and named, and stay in the mean. A cell with two states shows
//! those instead.

use crate::estimate::Estimate;
use crate::number::{format_number, plural};
use crate::states::{State, states};
use crate::trajectory::quantile;

/// The minimum number of runs among which outliers are looked for.
const MIN_RUNS: usize = 5;
/// The distance of a fence from its quartile, interquartile ranges.
const FENCE: f64 = 1.5;
/// The minimum distance of an outlier from the median, as a share of the median.
const MIN_DISTANCE: f64 = 0.05;
/// The maximum number of outliers that are named below a table.
const MAX_NAMED: usize = 20;

/// A run's seed, and a value.
pub(crate) type Point = (u64, f64);

/// A value of each run of a cell.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Sample {
    /// Values of the runs that are in the mean.
    pub(crate) points: Vec<Point>,
    /// Values of disturbed runs that are left out.
    pub(crate) excluded: Vec<Point>,
    /// Whether the runs of all seeds are one and the same: it has no confidence interval.
    pub(crate) identical: bool,
}

impl Sample {
    /// The mean of the points with its confidence interval; none without points.
    pub(crate) fn estimate(&self) -> Option<Estimate> {
        let estimate = Estimate::of(&self.points.iter().map(|point| point.1).collect::<Vec<_>>())?;
        Some(if self.identical { Estimate { half_width: None, ..estimate } } else { estimate })
    }

    /// `3 seeds, identical runs`; none where seeds differ.
    pub(crate) fn identical_note(&self) -> Option<String> {
        self.identical.then(|| format!("{}, identical runs", plural(self.points.len(), "seed")))
    }

    /// The lower and the upper state of the points, if there are two.
    pub(crate) fn states(&self) -> Option<[State; 2]> {
        states(&self.points)
    }

    /// The outliers among the points; none where there are two states.
    pub(crate) fn outliers(&self) -> Vec<Point> {
        let mut sorted: Vec<f64> = self.points.iter().map(|point| point.1).collect();
        if sorted.len() < MIN_RUNS || sorted.iter().any(|value| !value.is_finite()) || self.states().is_some() {
            return Vec::new();
        }
        sorted.sort_by(f64::total_cmp);
        let [q1, median, q3] = [0.25, 0.5, 0.75].map(|share| quantile(&sorted, share));
        let margin = FENCE * (q3 - q1);
        let beyond_fences = |value: f64| value < q1 - margin || value > q3 + margin;
        let far_from_median = |value: f64| (value - median).abs() > MIN_DISTANCE * median.abs();
        self.points.iter().copied().filter(|(_, value)| beyond_fences(*value) && far_from_median(*value)).collect()
    }

    /// The outliers in words, after `name`; none without outliers.
    pub(crate) fn outlier_note(&self, name: &str) -> Option<String> {
        let outliers: Vec<String> =
            self.outliers().iter().map(|(seed, value)| format!("{} with seed {seed}", format_number(*value))).collect();
        (!outliers.is_empty()).then(|| format!("{name}: {}", outliers.join(", ")))
    }
}

/// The footnote of a table with these outliers; none without outliers.
pub(crate) fn outlier_footnote(outliers: &[String]) -> Option<String> {
    let more = outliers.len().saturating_sub(MAX_NAMED);
    let more = if more > 0 { format!("; and in {more} more cells") } else { String::new() };
    (!outliers.is_empty()).then(|| {
        format!(
            "‡ Outliers, in the mean like all others: {}{more}. By Tukey's rule, over {FENCE} interquartile ranges beyond the \
             quartiles of {MIN_RUNS} runs or more; and over {} % from the median.",
            outliers[..outliers.len().min(MAX_NAMED)].join("; "),
            100.0 * MIN_DISTANCE
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outliers(values: &[f64]) -> Vec<Point> {
        let points = (1..).zip(values.iter().copied()).collect();
        Sample { points, ..Sample::default() }.outliers()
    }

    #[test]
    fn what_is_beyond_tukeys_fences_is_an_outlier() {
        // Quartiles 10 and 14: fences at 4 and 20.
        assert_eq!(outliers(&[10.0, 20.1, 14.0, 12.0, 10.0]), [(2, 20.1)]);
        assert_eq!(outliers(&[10.0, 20.0, 14.0, 12.0, 10.0]), []);
        assert_eq!(outliers(&[10.0, 3.9, 14.0, 12.0, 14.0]), [(2, 3.9)]);
    }

    #[test]
    fn runs_of_another_state_are_no_outliers() {
        let upper = [80.0, 81.0, 82.0, 83.0, 81.0, 82.0, 80.0, 82.0, 81.0, 83.0];
        assert_eq!(outliers(&[&upper[..], &[4.0]].concat()), [(11, 4.0)]);
        assert_eq!(outliers(&[&upper[..], &[4.0, 4.1]].concat()), []);
    }

    #[test]
    fn few_runs_and_small_differences_have_none() {
        assert_eq!(outliers(&[10.0, 10.0, 10.0, 90.0]), [], "four runs");
        assert_eq!(outliers(&[100.0, 100.0, 100.0, 100.0, 105.0]), [], "5 % from the median");
        assert_eq!(outliers(&[100.0, 100.0, 100.0, 100.0, 94.9]), [(5, 94.9)]);
    }
}
