//! The share of a multipath flow's load on one of its paths over time: its mean, its flaps and its responsiveness.
//!
//! The **load** of a path is the share of what arrives over all paths of the flow, 0 to 1, in a window that is long
//! against a round trip (the interval of the time series).
//!
//! - **Flappiness.** A fully coupled flow over two equally good paths keeps nearly all on one of them and changes over
//!   at random (Wischik et al., NSDI 2011, section 2.4; RFC 6356 section 5). They show it and define no number; here it
//!   is the standard deviation of the load over time, and the number of *flaps*: passages from 3/4 or more to 1/4 or
//!   less, or back.
//! - **Responsiveness.** Peng et al. (ToN 2016) and Khalili et al. (ToN 2013) read it off curves. Here it is the time
//!   from a change of the network to the beginning of the first five windows whose mean load has gone 80 % of the way
//!   from the mean before the change to the mean that is reached in the end. A load that hardly changes does not move:
//!   then there is none.

/// The number of windows whose mean load must have moved.
const STABLE_WINDOWS: usize = 5;
/// Share of the way that their mean must have gone.
const MOVED_SHARE: f64 = 0.75;
/// A load that changes by less than this share does not move.
const MIN_CHANGE: f64 = 0.05;
/// A flap is a passage between these loads.
const LOW: f64 = 0.25;
const HIGH: f64 = 0.75;

/// Mean of the loads; none if there are none.
#[must_use]
pub fn mean(loads: &[f64]) -> Option<f64> {
    (!loads.is_empty()).then(|| loads.iter().sum::<f64>() / loads.len() as f64)
}

/// Standard deviation of the loads about their mean; none if there are none.
#[must_use]
pub fn standard_deviation(loads: &[f64]) -> Option<f64> {
    let mean = mean(loads)?;
    let squares: f64 = loads.iter().map(|load| (load - mean) * (load - mean)).sum();
    Some((squares / loads.len() as f64).sqrt())
}

/// The number of flaps: passages from 3/4 or more to 1/4 or less, or back.
#[must_use]
pub fn flaps(loads: &[f64]) -> usize {
    let is_high = loads.iter().filter(|load| **load <= LOW || **load >= HIGH).map(|load| *load >= HIGH);
    let is_high: Vec<bool> = is_high.collect();
    is_high.windows(2).filter(|pair| pair[0] != pair[1]).count()
}

/// Number of the windows `after` a change until the load has moved from the mean of the windows `before` to the mean of
/// the second half of those `after`; none if the load does not move.
#[must_use]
pub fn responsiveness(before: &[f64], after: &[f64]) -> Option<usize> {
    let (initial, last) = (mean(before)?, mean(&after[after.len() / 2..])?);
    let has_moved =
        |windows: &[f64]| mean(windows).is_some_and(|load| (load - initial) / (last - initial) >= MOVED_SHARE);
    ((last - initial).abs() >= MIN_CHANGE).then(|| after.windows(STABLE_WINDOWS).position(has_moved))?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mean_and_deviation_of_an_alternating_load() {
        let flaps = [1.0, 0.0, 1.0, 0.0];
        assert_eq!((mean(&flaps), standard_deviation(&flaps)), (Some(0.5), Some(0.5)));
        assert_eq!((mean(&[0.3; 4]), standard_deviation(&[0.25; 4])), (Some(0.3), Some(0.0)));
        // Uniform over 0, 0.01 ... 1: the standard deviation of a uniform distribution is its width over the root of
        // 12.
        let uniform: Vec<f64> = (0..=100).map(|n| f64::from(n) / 100.0).collect();
        assert!((standard_deviation(&uniform).unwrap() - 1.0 / 12f64.sqrt()).abs() < 0.005);
        assert_eq!((mean(&[]), standard_deviation(&[])), (None, None));
    }

    #[test]
    fn a_flap_goes_all_the_way_from_one_side_to_the_other() {
        assert_eq!(flaps(&[0.9, 0.5, 0.1, 0.3, 0.2, 0.75]), 2);
        assert_eq!(flaps(&[0.74, 0.26, 0.74]), 0, "within the middle");
        assert_eq!(flaps(&[0.9, 0.4, 0.9, 0.4]), 0, "only half the way");
        assert_eq!(flaps(&[]), 0);
    }

    #[test]
    fn a_load_that_steps_has_moved_with_four_of_five_windows() {
        let after: Vec<f64> = (0..40).map(|n| if n < 7 { 0.5 } else { 0.2 }).collect();
        assert_eq!(responsiveness(&[0.5; 10], &after), Some(6));
        let up: Vec<f64> = after.iter().map(|load| 1.0 - load).collect();
        assert_eq!(responsiveness(&[0.5; 10], &up), Some(6));
    }

    /// 1 - 0.9^t: the mean of five windows from t on has gone 3/4 where 0.9^t times the mean of 1, 0.9 ... 0.9^4,
    /// 0.819, is 1/4: at t = ln(0.819 / 0.25) / ln(1 / 0.9) = 11.3.
    #[test]
    fn an_exponential_move_takes_the_time_of_its_closed_form() {
        let remaining = std::iter::successors(Some(1.0), |share| Some(0.9 * share));
        let after: Vec<f64> = remaining.take(400).map(|share| 1.0 - share).collect();
        assert_eq!(responsiveness(&[0.0; 3], &after), Some(12), "the first whole window beyond 11.3");
    }

    #[test]
    fn a_load_that_stays_does_not_move() {
        assert_eq!(responsiveness(&[0.5; 10], &[0.46; 10]), None);
        assert_eq!(responsiveness(&[], &[0.5; 10]), None);
        assert_eq!(responsiveness(&[0.5; 10], &[]), None);
        assert_eq!(responsiveness(&[0.5; 10], &[0.1; 3]), None, "fewer than five windows");
    }
}
