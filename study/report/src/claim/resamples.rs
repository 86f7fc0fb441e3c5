//! Resamples of the runs: the bootstrap (Efron 1979) of means over seeds, for few seeds.
//!
//! A resample draws as many seeds as there are, with replacement. Cells with the same seeds share the draw, because a seed
//! gives their components the same luck (common random numbers); so the resamples keep what the cells have in common.
//!
//! The deviations of resampled means are too small by sqrt((n - 1) / n), and their quantiles are a normal distribution's
//! where Student's t is due (Hesterberg, *What Teachers Should Know About the Bootstrap*, The American Statistician 69,
//! 2015, section 3.1). So each resample's deviation is multiplied by sqrt(n / (n - 1)) and divided by
//! sqrt(chi2 / (n - 1)), where chi2 is drawn from a chi-square distribution of n - 1 degrees: as Student's t is made of
//! a normal value.

use crate::sample::Sample;
use std::collections::BTreeMap;
use units::RngStream;

/// The number of resamples.
pub(crate) const RESAMPLES: usize = 2000;

/// The resamples of each set of seeds, drawn when first asked for. The numbers depend on the seeds alone.
#[derive(Debug, Default)]
pub(crate) struct Resamples {
    weights: BTreeMap<Vec<u64>, Vec<Vec<f64>>>,
}

impl Resamples {
    /// The sample's mean in each resample; always the same where runs are identical or there is only one.
    pub(crate) fn means(&mut self, sample: &Sample) -> Vec<f64> {
        let mut points = sample.points.clone();
        points.sort_by_key(|point| point.0);
        let mean = points.iter().map(|point| point.1).sum::<f64>() / points.len() as f64;
        if sample.identical || points.len() < 2 {
            return vec![mean; RESAMPLES];
        }
        let deviations: Vec<f64> = points.iter().map(|point| point.1 - mean).collect();
        let seeds: Vec<u64> = points.iter().map(|point| point.0).collect();
        let weights = self.weights.entry(seeds).or_insert_with_key(|seeds| draw(seeds));
        weights.iter().map(|weights| mean + dot(weights, &deviations)).collect()
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// The weight of each seed's deviation in each resample.
fn draw(seeds: &[u64]) -> Vec<Vec<f64>> {
    let names: Vec<String> = seeds.iter().map(u64::to_string).collect();
    let mut stream = RngStream::named(0, &format!("resamples of seeds {}", names.join(" ")));
    let n = seeds.len() as f64;
    let resample = |_| {
        let mut counts = vec![0.0; seeds.len()];
        seeds.iter().for_each(|_| counts[stream.below(seeds.len() as u64) as usize] += 1.0);
        let widening = (n / chi_square(&mut stream, seeds.len() - 1)).sqrt(); // sqrt(n / (n - 1)) / sqrt(chi2 / (n - 1))
        counts.iter().map(|count| count / n * widening).collect()
    };
    (0..RESAMPLES).map(resample).collect()
}

/// A value of a chi-square distribution: two degrees at a time are an exponential distribution, one is a squared normal
/// value (Box and Muller 1958).
fn chi_square(stream: &mut RngStream, degrees: usize) -> f64 {
    let mut exponential = || -2.0 * libm::log(1.0 - stream.unit());
    let pairs: f64 = (0..degrees / 2).map(|_| exponential()).sum();
    if degrees.is_multiple_of(2) {
        return pairs;
    }
    let single = exponential();
    pairs + single * libm::cos(std::f64::consts::TAU * stream.unit()).powi(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn normal(stream: &mut RngStream) -> f64 {
        (-2.0 * libm::log(1.0 - stream.unit())).sqrt() * libm::cos(std::f64::consts::TAU * stream.unit())
    }

    fn sample(values: &[f64]) -> Sample {
        Sample { points: (1..).zip(values.iter().copied()).collect(), ..Sample::default() }
    }

    #[test]
    fn a_chi_square_value_has_its_degrees_as_mean_and_twice_as_many_as_variance() {
        for degrees in [1, 2, 5, 29] {
            let mut stream = RngStream::named(1, "chi-square");
            let values: Vec<f64> = (0..20_000).map(|_| chi_square(&mut stream, degrees)).collect();
            let k = degrees as f64;
            let mean = values.iter().sum::<f64>() / 20_000.0;
            let variance = values.iter().map(|value| (value - k).powi(2)).sum::<f64>() / 20_000.0;
            // Five standard errors; the fourth central moment is 12 k (k + 4).
            assert!((mean - k).abs() < 5.0 * (2.0 * k / 20_000.0).sqrt(), "{degrees}: mean {mean}");
            let error = ((12.0 * k * (k + 4.0) - 4.0 * k * k) / 20_000.0).sqrt();
            assert!((variance - 2.0 * k).abs() < 5.0 * error, "{degrees}: variance {variance}");
        }
    }

    /// Student's t is exact for normal values, so 5 % of such samples have 95 % of their resamples on the wrong side of the
    /// true mean. Plain resampling has 19 % with three values and 11 % with five.
    #[test]
    fn five_percent_of_normal_samples_put_the_true_mean_beyond_either_limit() {
        const SAMPLES: usize = 1500;
        for n in [3, 5, 30] {
            let (mut stream, mut resamples) = (RngStream::named(2, "coverage"), Resamples::default());
            let [mut above, mut below] = [0, 0];
            for index in 0..SAMPLES {
                let first = (index / 50 * n) as u64; // fifty samples share their resamples
                let points = (0..n as u64).map(|seed| (first + seed, normal(&mut stream))).collect();
                let means = resamples.means(&Sample { points, ..Sample::default() });
                let positive = means.iter().filter(|mean| **mean >= 0.0).count();
                above += usize::from(positive >= RESAMPLES * 95 / 100);
                below += usize::from(positive <= RESAMPLES * 5 / 100);
            }
            // Three standard errors of a share of 5 % in 1500.
            for wrong in [above, below].map(|count| count as f64 / SAMPLES as f64) {
                assert!((wrong - 0.05).abs() < 0.017, "{n} values: {wrong}");
            }
        }
    }

    #[test]
    fn cells_with_the_same_seeds_are_drawn_together_and_others_apart() {
        let mut resamples = Resamples::default();
        let [a, b] = [&[1.0, 2.0, 4.0], &[11.0, 12.0, 14.0]].map(|values| resamples.means(&sample(values)));
        assert!(a.iter().zip(&b).all(|(a, b)| (b - a - 10.0).abs() < 1e-9), "a difference without noise has none");
        let others = Sample { points: vec![(4, 1.0), (5, 2.0), (6, 4.0)], ..Sample::default() };
        assert_ne!(resamples.means(&others), a);
        let mut reversed = sample(&[1.0, 2.0, 4.0]);
        reversed.points.reverse();
        assert_eq!(resamples.means(&reversed), a, "the order of the runs does not matter");
    }

    #[test]
    fn nothing_is_drawn_of_identical_runs_or_of_one() {
        let identical = Sample { identical: true, ..sample(&[3.0, 3.0]) };
        for sample in [identical, sample(&[3.0])] {
            assert!(Resamples::default().means(&sample).iter().all(|mean| *mean == 3.0));
        }
    }

    #[test]
    fn the_numbers_are_the_same_on_every_machine() {
        let means = Resamples::default().means(&sample(&[1.0, 2.0, 4.0]));
        assert_eq!(format!("{:.9?}", &means[..3]), "[0.635482284, 2.333333333, 1.745510512]");
    }
}
