//! The error of a congestion window's trajectory against that of a baseline: the same flow of the same cell, run by
//! another driver.
//!
//! Three numbers, all in percent of the baseline's mean window, over the time that both series cover:
//!
//! - `cwnd_trajectory_error_percent`: the root mean square of the difference, instant by instant. A loss that comes a
//!   moment earlier moves every later sawtooth, so the baseline may be shifted by up to two seconds: the minimum value
//!   counts.
//! - `cwnd_quantile_error_percent`: the mean distance of the two quantile functions, whatever the order of events.
//! - `mean_cwnd_error_percent`: the difference of the mean windows.

use crate::resample::resampled;

/// The numbers, as a table's `value` names them.
pub(crate) const NAMES: [&str; 3] =
    ["cwnd_trajectory_error_percent", "mean_cwnd_error_percent", "cwnd_quantile_error_percent"];

/// The column of a flow's series that is compared.
pub(crate) const COLUMN: &str = "cwnd_packets";

/// The maximum shift of the baseline either way, seconds.
const MAX_SHIFT: f64 = 2.0;

/// The minimum share of the samples that a shifted baseline must cover.
const MIN_OVERLAP: f64 = 0.75;

/// A window's trajectory: instants in seconds, ascending, and packets.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Trajectory {
    pub(crate) times: Vec<f64>,
    pub(crate) values: Vec<f64>,
}

/// The error called `name` of `own` against the `baseline`, which may be longer; none if they have
/// too little in common.
pub(crate) fn cwnd_error(name: &str, own: &Trajectory, baseline: &Trajectory) -> Option<f64> {
    let (own_span, baseline_span) = (own.span()?, baseline.span()?);
    let common = (own_span.0.max(baseline_span.0), own_span.1.min(baseline_span.1));
    let [own_part, baseline_part] = [own, baseline].map(|trajectory| trajectory.within(common));
    let mean = baseline_part.mean().filter(|mean| *mean > 0.0)?;
    let error = match name {
        "cwnd_trajectory_error_percent" => trajectory(own, baseline)?,
        "mean_cwnd_error_percent" => own_part.mean()? - mean,
        _ => quantiles(&own_part.values, &baseline_part.values)?,
    };
    Some(100.0 * error / mean)
}

/// The root mean square of the difference, at the shift where it is smallest.
fn trajectory(own: &Trajectory, baseline: &Trajectory) -> Option<f64> {
    let (first, last) = own.span()?;
    let step = (last - first) / (own.times.len() - 1).max(1) as f64;
    let steps = if step > 0.0 { (MAX_SHIFT / step + 1e-6).floor() as i32 } else { 0 };
    let shifts = (-steps..=steps).map(|shift| f64::from(shift) * step);
    shifts.filter_map(|shift| root_mean_square(own, baseline, shift)).min_by(f64::total_cmp)
}

fn root_mean_square(own: &Trajectory, baseline: &Trajectory, shift: f64) -> Option<f64> {
    let baseline_part = resampled(&baseline.times, &baseline.values, own.times.iter().map(|time| time + shift));
    let squares = own.values.iter().zip(&baseline_part).map(|(own, baseline)| (own - baseline).powi(2));
    let (sum, count) =
        squares.filter(|square| square.is_finite()).fold((0.0, 0.0), |(sum, n), square| (sum + square, n + 1.0));
    (count > 0.0 && count >= MIN_OVERLAP * own.times.len() as f64).then(|| (sum / count).sqrt())
}

/// The mean distance of the first to the ninety-ninth percentiles.
fn quantiles(own_part: &[f64], baseline_part: &[f64]) -> Option<f64> {
    let sorted = |values: &[f64]| {
        let mut values: Vec<f64> = values.iter().copied().filter(|value| value.is_finite()).collect();
        values.sort_by(f64::total_cmp);
        (!values.is_empty()).then_some(values)
    };
    let (own_part, baseline_part) = (sorted(own_part)?, sorted(baseline_part)?);
    let shares = (1..100).map(|percent| f64::from(percent) / 100.0);
    Some(shares.map(|share| (quantile(&own_part, share) - quantile(&baseline_part, share)).abs()).sum::<f64>() / 99.0)
}

/// A quantile, by linear interpolation between order statistics.
pub(crate) fn quantile(sorted: &[f64], share: f64) -> f64 {
    let position = share * (sorted.len() - 1) as f64;
    let (lower_index, fraction) = (position.floor() as usize, position.fract());
    let upper_index = (lower_index + 1).min(sorted.len() - 1);
    sorted[lower_index] + fraction * (sorted[upper_index] - sorted[lower_index])
}

impl Trajectory {
    fn span(&self) -> Option<(f64, f64)> {
        Some((*self.times.first()?, *self.times.last()?))
    }

    /// The samples in a span of time.
    fn within(&self, (start, end): (f64, f64)) -> Self {
        let samples = self.times.iter().zip(&self.values);
        let (times, values) = samples.filter(|(time, _)| **time >= start && **time <= end).unzip();
        Self { times, values }
    }

    fn mean(&self) -> Option<f64> {
        let finite: Vec<f64> = self.values.iter().copied().filter(|value| value.is_finite()).collect();
        (!finite.is_empty()).then(|| finite.iter().sum::<f64>() / finite.len() as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `window` at instants `step` apart, from `from` to 60 s.
    fn trajectory(from: f64, step: f64, window: impl Fn(f64) -> f64) -> Trajectory {
        let times: Vec<f64> =
            (0..).map(|index| from + f64::from(index) * step).take_while(|time| *time <= 60.0).collect();
        Trajectory { values: times.iter().map(|time| window(*time)).collect(), times }
    }

    /// From 50 to 100 packets in ten seconds: mean 75.
    fn sawtooth(time: f64) -> f64 {
        50.0 + 50.0 * (time / 10.0 + 1.0).fract()
    }

    fn assert_near(value: Option<f64>, expected: f64, by: f64) {
        assert!(value.is_some_and(|value| (value - expected).abs() <= by), "{value:?}, not {expected}");
    }

    #[test]
    fn a_constant_difference_is_the_same_in_all_three() {
        let [own, baseline] = [90.0, 100.0].map(|window| trajectory(0.1, 0.1, move |_| window));
        assert_eq!(cwnd_error("cwnd_trajectory_error_percent", &own, &baseline), Some(10.0));
        assert_eq!(cwnd_error("mean_cwnd_error_percent", &own, &baseline), Some(-10.0));
        assert_near(cwnd_error("cwnd_quantile_error_percent", &own, &baseline), 10.0, 1e-9);
    }

    #[test]
    fn the_difference_is_a_root_mean_square() {
        // Too slow to be shifted away: a wave of one minute about a constant has amplitude / sqrt(2).
        let own = trajectory(0.1, 0.1, |time| 100.0 + 20.0 * (time * std::f64::consts::TAU / 60.0).sin());
        let baseline = trajectory(0.1, 0.1, |_| 100.0);
        assert_near(cwnd_error("cwnd_trajectory_error_percent", &own, &baseline), 20.0 / 2_f64.sqrt(), 0.5);
    }

    #[test]
    fn other_instants_do_not_matter() {
        let own = trajectory(0.1, 0.1, |time| 3.0 * time);
        let baseline = trajectory(0.037, 0.0713, |time| 3.0 * time);
        assert_near(cwnd_error("cwnd_trajectory_error_percent", &own, &baseline), 0.0, 1e-6);
        assert_near(cwnd_error("mean_cwnd_error_percent", &own, &baseline), 0.0, 0.1);
    }

    #[test]
    fn a_phase_of_two_seconds_is_forgiven_and_more_is_not() {
        let baseline = trajectory(0.1, 0.1, sawtooth);
        let late = |by: f64| trajectory(0.1, 0.1, move |time| sawtooth(time - by));
        assert_near(cwnd_error("cwnd_trajectory_error_percent", &late(2.0), &baseline), 0.0, 1e-6);
        // A second that is left: for 9 of 10 s off by 5 packets, for 1 of 10 s by 45. sqrt(0.9 * 25 + 0.1 * 2025) = 15.
        assert_near(cwnd_error("cwnd_trajectory_error_percent", &late(3.0), &baseline), 100.0 * 15.0 / 75.0, 0.6);
        assert_near(cwnd_error("cwnd_quantile_error_percent", &late(5.0), &baseline), 0.0, 0.2);
        assert_near(cwnd_error("mean_cwnd_error_percent", &late(5.0), &baseline), 0.0, 0.2);
    }

    #[test]
    fn a_quarter_of_the_run_may_be_missing_and_no_more() {
        let own = trajectory(0.1, 0.1, |_| 100.0);
        let from = |start: f64| trajectory(start, 0.1, |_| 100.0);
        assert_eq!(cwnd_error("cwnd_trajectory_error_percent", &own, &from(15.0)), Some(0.0));
        assert_eq!(
            cwnd_error("cwnd_trajectory_error_percent", &own, &from(17.5)),
            None,
            "even 2 s of shift leave 74 %"
        );
        assert_eq!(cwnd_error("cwnd_trajectory_error_percent", &own, &Trajectory::default()), None);
    }

    #[test]
    fn what_is_not_known_or_zero_gives_no_number() {
        let own = trajectory(0.1, 0.1, |_| 100.0);
        for baseline in [0.0, f64::NAN] {
            let baseline = trajectory(0.1, 0.1, |_| baseline);
            assert!(NAMES.iter().all(|name| cwnd_error(name, &own, &baseline).is_none()), "{baseline:?}");
        }
        let gap = trajectory(0.1, 0.1, |time| if time < 5.0 { f64::NAN } else { 100.0 });
        assert!(NAMES.iter().all(|name| cwnd_error(name, &own, &gap) == Some(0.0)));
    }
}
