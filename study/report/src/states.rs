//! Two states of a cell: its runs come to one of two levels, and their mean is a value that no run has.
//!
//! The rule: the values in order are divided at the greatest ratio of two neighbours. They are two states if that ratio is
//! over 1.5 and each side has at least two runs and a tenth of all. A value of zero is at any ratio from one above it. With
//! few runs a wide spread can look like two states, so both shares are shown with the number of runs.

use crate::number::format_number;
use crate::sample::Point;

/// The ratio of two neighbours above which they are of different states.
const MIN_RATIO: f64 = 1.5;
/// The minimum share of the runs in a state.
const MIN_SHARE: f64 = 0.1;
/// The minimum number of runs in a state.
const MIN_RUNS: usize = 2;

/// The footnote of a table with two states.
pub(crate) const RULE: &str = "Two states: the runs fall into two groups with a gap of more than 1.5 times, each of at least \
                               two runs and 10 %.";

/// One of two states.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct State {
    /// Its runs, in order of their values.
    pub(crate) points: Vec<Point>,
    /// Its share of the cell's runs, 0 to 1.
    pub(crate) share: f64,
}

impl State {
    /// The mean of its runs.
    pub(crate) fn mean(&self) -> f64 {
        self.points.iter().map(|point| point.1).sum::<f64>() / self.points.len() as f64
    }

    /// `4.20 (10 %)`.
    pub(crate) fn text(&self) -> String {
        format!("{} ({:.0} %)", format_number(self.mean()), 100.0 * self.share)
    }
}

/// The lower and the upper state of these runs; none if they have one.
pub(crate) fn states(points: &[Point]) -> Option<[State; 2]> {
    let mut sorted = points.to_vec();
    sorted.sort_by(|a, b| a.1.total_cmp(&b.1));
    if sorted.iter().any(|point| !point.1.is_finite() || point.1 < 0.0) {
        return None;
    }
    let count = sorted.len();
    let least = MIN_RUNS.max((MIN_SHARE * count as f64).ceil() as usize);
    let ratio = |index: &usize| match [sorted[index - 1].1, sorted[*index].1] {
        [_, 0.0] => 1.0,
        [below, above] => above / below,
    };
    let greatest = (least..(count + 1).saturating_sub(least)).max_by(|a, b| ratio(a).total_cmp(&ratio(b)))?;
    if ratio(&greatest) <= MIN_RATIO {
        return None;
    }
    let upper = sorted.split_off(greatest);
    Some([sorted, upper].map(|points| State { share: points.len() as f64 / count as f64, points }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shares(values: &[f64]) -> Option<[(f64, f64); 2]> {
        let points: Vec<Point> = (1..).zip(values.iter().copied()).collect();
        states(&points).map(|states| states.map(|state| (state.mean(), state.share)))
    }

    #[test]
    fn runs_at_two_levels_are_two_states_in_any_order() {
        assert_eq!(shares(&[80.0, 4.0, 82.0, 5.0, 78.0]), Some([(4.5, 0.4), (80.0, 0.6)]));
        assert_eq!(shares(&[0.0, 9.0, 0.0, 9.0]), Some([(0.0, 0.5), (9.0, 0.5)]), "zero is at any ratio");
        let text = states(&[(1, 4.0), (2, 4.4), (3, 80.0), (4, 81.0)]).unwrap().map(|state| state.text());
        assert_eq!(text, ["4.20 (50 %)", "80.5 (50 %)"]);
    }

    #[test]
    fn a_ratio_of_one_and_a_half_is_one_state() {
        assert_eq!(shares(&[2.0, 2.0, 3.0, 3.0]), None);
        assert!(shares(&[2.0, 2.0, 3.01, 3.01]).is_some());
        assert_eq!(shares(&[1.0, 1.4, 1.9, 2.6, 3.6, 5.0]), None, "a wide spread without a gap");
    }

    #[test]
    fn a_state_has_two_runs_and_a_tenth_of_all() {
        assert_eq!(shares(&[1.0, 9.0, 9.0, 9.0]), None, "one run is an outlier");
        let runs = |low: usize, high: usize| [vec![1.0; low], vec![9.0; high]].concat();
        assert_eq!(shares(&runs(2, 18)), Some([(1.0, 0.1), (9.0, 0.9)]));
        assert_eq!(shares(&runs(2, 19)), None, "2 of 21");
        assert_eq!(shares(&runs(18, 2)), Some([(1.0, 0.9), (9.0, 0.1)]));
    }

    #[test]
    fn a_lone_run_far_off_hides_no_states() {
        let runs = [vec![0.01], vec![1.0; 10], vec![9.0; 10]].concat();
        let [low, high] = shares(&runs).unwrap();
        assert!((low.1 - 11.0 / 21.0).abs() < 1e-12 && high == (9.0, 10.0 / 21.0));
    }

    #[test]
    fn what_has_no_ratio_has_no_states() {
        assert_eq!(shares(&[]), None);
        assert_eq!(shares(&[5.0; 40]), None);
        assert_eq!(shares(&[-2.0, -2.0, 3.0, 3.0]), None);
        assert_eq!(shares(&[f64::NAN, 2.0, 2.0, 9.0, 9.0]), None);
        assert_eq!(shares(&[0.0; 6]), None);
    }
}
