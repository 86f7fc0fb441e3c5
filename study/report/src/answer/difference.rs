//! The difference of two means over settings: paired by seed where the seeds are the same, otherwise Welch's.

use crate::estimate::{Estimate, student_975};
use crate::sample::Sample;

/// The share of the greater mean below which a difference is none.
const MIN_SHARE: f64 = 0.01;

/// How much greater the first of two means is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Difference {
    pub(super) mean: f64,
    /// Half the width of the 95 % confidence interval; none where chance is not known, or there is none.
    pub(super) half_width: Option<f64>,
    /// Whether the means differ.
    pub(super) is_one: bool,
}

/// The mean over settings.
pub(super) fn mean(settings: &[Sample]) -> f64 {
    let means = settings.iter().filter_map(Sample::estimate).map(|estimate| estimate.mean);
    means.sum::<f64>() / settings.len() as f64
}

/// The difference of two contestants, each with a sample per setting.
pub(super) fn difference(first: &[Sample], second: &[Sample]) -> Difference {
    let means = [mean(first), mean(second)];
    let difference = means[0] - means[1];
    let is_certain = first.iter().chain(second).all(|sample| sample.identical);
    let half_width = if is_certain { None } else { paired(first, second).unwrap_or_else(|| welch(first, second)) };
    let is_large = difference.abs() >= MIN_SHARE * means[0].abs().max(means[1].abs()) && difference != 0.0;
    Difference {
        mean: difference,
        half_width: half_width.filter(|half| *half > 0.0),
        is_one: is_large && half_width.is_none_or(|half| difference.abs() > half),
    }
}

/// Half the interval of the mean over seeds of each seed's difference; none if the seeds are not the same.
fn paired(first: &[Sample], second: &[Sample]) -> Option<Option<f64>> {
    let seeds: Vec<u64> = first.first()?.points.iter().map(|point| point.0).collect();
    let has_seeds = |sample: &Sample| sample.points.iter().map(|point| point.0).eq(seeds.iter().copied());
    if !first.iter().chain(second).all(has_seeds) {
        return None;
    }
    let of_seed = |samples: &[Sample], index: usize| samples.iter().map(|sample| sample.points[index].1).sum::<f64>();
    let of_seed = |index| (of_seed(first, index) - of_seed(second, index)) / first.len() as f64;
    let differences: Vec<f64> = (0..seeds.len()).map(of_seed).collect();
    Some(Estimate::of(&differences)?.half_width)
}

/// Half the interval of Welch's t test for the means over settings; none if a cell has one run.
fn welch(first: &[Sample], second: &[Sample]) -> Option<f64> {
    let (mut variance, mut squares) = (0.0, 0.0);
    for (samples, sample) in [first, second].into_iter().flat_map(|samples| samples.iter().map(move |it| (samples, it)))
    {
        let (count, mean) = (sample.points.len() as f64, sample.estimate()?.mean);
        if count < 2.0 {
            return None;
        }
        let sum: f64 = sample.points.iter().map(|point| (point.1 - mean).powi(2)).sum();
        let own = sum / (count - 1.0) / count / (samples.len() as f64).powi(2);
        variance += own;
        squares += own * own / (count - 1.0);
    }
    let degrees = if squares > 0.0 { (variance * variance / squares) as usize } else { 1 };
    Some(student_975(degrees.max(1)) * variance.sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(first_seed: u64, values: &[f64]) -> Sample {
        Sample { points: (first_seed..).zip(values.iter().copied()).collect(), ..Sample::default() }
    }

    #[test]
    fn the_same_seeds_are_paired() {
        // Differences 1, 2, 3: mean 2, standard deviation 1, half width 4.30265 / sqrt(3).
        let [first, second] = [[11.0, 52.0, 93.0], [10.0, 50.0, 90.0]].map(|values| vec![sample(1, &values)]);
        let shown = difference(&first, &second);
        assert!((shown.mean - 2.0).abs() < 1e-12 && (shown.half_width.unwrap() - 2.484_14).abs() < 1e-4);
        assert!(!shown.is_one, "the interval holds zero");
        // Over two settings each seed's mean differs by 1.5, 2, 2.5: a standard deviation of 0.5.
        let more = |settings: &[Sample], values: &[f64]| [settings, &[sample(1, values)]].concat();
        let shown = difference(&more(&first, &[2.0, 2.0, 2.0]), &more(&second, &[0.0, 0.0, 0.0]));
        assert!((shown.mean - 2.0).abs() < 1e-12 && (shown.half_width.unwrap() - 1.242_07).abs() < 1e-4);
        assert!(shown.is_one);
    }

    #[test]
    fn other_seeds_are_not() {
        // Welch: variances 1 / 3 and 4 / 3, so 5 / 3 with (25 / 9) / (1 / 18 + 16 / 18) = 2.94 degrees, at most 2.
        let (first, second) = (vec![sample(1, &[10.0, 11.0, 12.0])], vec![sample(4, &[0.0, 2.0, 4.0])]);
        let shown = difference(&first, &second);
        assert!((shown.half_width.unwrap() - 4.302_65 * (5.0_f64 / 3.0).sqrt()).abs() < 1e-4);
        assert!(shown.is_one && shown.mean == 9.0);
    }

    #[test]
    fn without_chance_the_share_decides() {
        let identical = |value: f64| vec![Sample { identical: true, ..sample(1, &[value, value]) }];
        let one = |value: f64| vec![sample(1, &[value])];
        assert!(difference(&identical(101.1), &identical(100.0)).is_one);
        assert!(!difference(&identical(100.9), &identical(100.0)).is_one);
        assert!(difference(&one(101.1), &one(100.0)).is_one && difference(&one(1.0), &one(0.5)).half_width.is_none());
        assert!(!difference(&one(0.0), &one(0.0)).is_one);
    }
}
