//! Fairness among competing flows, and the time until it is reached.
//!
//! **Jain's index** of n rates x is (sum x)^2 / (n sum x^2): 1 if all are equal, k/n if k of them share everything
//! (Jain, Chiu and Hawe, DEC-TR-301, 1984).
//!
//! **Convergence time** runs from the start of the last flow to the first instant from which on the index of what the
//! flows get each second is 0.95 or more for at least five seconds. That is the convergence time of PCC (Dong et al.,
//! NSDI 2015: from the last flow's entry to the earliest time after which it holds its share for five seconds) with the
//! index as the measure: for two flows 0.95 means shares within 23 % of one half (RFC 5166 section 2.3 would say:
//! delta-fair with delta 0.23). Two sawteeth that only pass each other are fair for some seconds too; so the index of
//! all that the flows get from that instant to the end must be 0.95 as well.

use units::{Instant, Span};

/// Rates are measured over windows of this length, as iperf3 reports them.
pub const WINDOW_S: u64 = 1;
/// Number of consecutive windows that must be fair.
const STABLE_WINDOWS: usize = 5;
/// The minimum index of fair shares.
const MIN_FAIR_INDEX: f64 = 0.95;

/// Fairness among competing flows.
#[derive(Clone, Debug, PartialEq)]
pub struct Fairness {
    /// Each flow's share of the delivered bytes.
    pub shares: Vec<f64>,
    /// Jain's index of the bytes delivered in all windows.
    pub jain: f64,
    /// Seconds from the last start until the flows share fairly; none if they never do.
    pub convergence_s: Option<f64>,
}

/// Jain's index of `rates`; none without rates, or if all are zero.
#[must_use]
pub fn jain_index(rates: &[f64]) -> Option<f64> {
    let (sum, squares) = rates.iter().fold((0.0, 0.0), |(sum, squares), rate| (sum + rate, squares + rate * rate));
    (squares > 0.0).then(|| sum * sum / (rates.len() as f64 * squares))
}

/// Fairness over the whole windows between the last flow's start and the first flow's end, if those are `start` and
/// `end`. `cumulative_bytes` has a row for each [`WINDOW_S`] of the run's clock, the first for its beginning: bytes
/// delivered so far, a column a flow. None if nothing was delivered.
#[must_use]
pub fn fairness_between(cumulative_bytes: &[Vec<u64>], start: Instant, end: Instant) -> Option<Fairness> {
    let window = Span::from_secs(WINDOW_S);
    let (first_window, end_window) = (start.0.div_ceil(window.0), end.0 / window.0);
    let delivered = |consecutive_rows: &[Vec<u64>]| {
        consecutive_rows[1].iter().zip(&consecutive_rows[0]).map(|(current, previous)| current - previous).collect()
    };
    let windows =
        cumulative_bytes.windows(2).skip(first_window as usize).take(end_window.saturating_sub(first_window) as usize);
    let offset = (Instant::ZERO + window * first_window).since(start);
    fairness(&windows.map(delivered).collect::<Vec<_>>(), offset.as_secs_f64())
}

/// Fairness of `windows`: for each window of [`WINDOW_S`] the bytes delivered to each flow. The first window begins
/// `offset_s` seconds after the last flow's start. None if nothing was delivered.
#[must_use]
pub fn fairness(windows: &[Vec<u64>], offset_s: f64) -> Option<Fairness> {
    let bytes_per_flow = sum_per_flow(windows)?;
    let total: f64 = bytes_per_flow.iter().sum();
    Some(Fairness {
        jain: jain_index(&bytes_per_flow)?,
        convergence_s: convergence_window(windows)
            .map(|window_index| offset_s + (window_index as u64 * WINDOW_S) as f64),
        shares: bytes_per_flow.iter().map(|bytes| bytes / total).collect(),
    })
}

/// Index of the first window that begins [`STABLE_WINDOWS`] consecutive fair ones and from which on all windows
/// together are fair.
fn convergence_window(windows: &[Vec<u64>]) -> Option<usize> {
    let is_fair = |windows: &[Vec<u64>]| {
        sum_per_flow(windows)
            .and_then(|bytes_per_flow| jain_index(&bytes_per_flow))
            .is_some_and(|index| index >= MIN_FAIR_INDEX)
    };
    let is_stable =
        |start: &usize| windows[*start..start + STABLE_WINDOWS].chunks(1).all(is_fair) && is_fair(&windows[*start..]);
    (0..(windows.len() + 1).saturating_sub(STABLE_WINDOWS)).find(is_stable)
}

/// The bytes of each flow in all windows; none without windows.
fn sum_per_flow(windows: &[Vec<u64>]) -> Option<Vec<f64>> {
    let flows = windows.first()?.len();
    Some((0..flows).map(|flow| windows.iter().map(|window| window[flow] as f64).sum()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jains_index_of_known_shares() {
        assert_eq!(jain_index(&[3.0; 4]), Some(1.0));
        // k of n share everything: k / n.
        assert_eq!(jain_index(&[5.0, 0.0, 0.0, 0.0]), Some(0.25));
        assert_eq!(jain_index(&[5.0, 5.0, 0.0, 0.0]), Some(0.5));
        assert_eq!(jain_index(&[1.0, 3.0, 5.0]), Some(81.0 / 105.0));
        assert_eq!((jain_index(&[]), jain_index(&[0.0, 0.0])), (None, None));
    }

    /// Unequal for ten windows, fair for four, unequal for one, then fair.
    #[test]
    fn convergence_is_the_start_of_five_fair_seconds() {
        let window = |n| if n < 10 || n == 14 { vec![100, 0] } else { vec![50, 50] };
        let windows: Vec<Vec<u64>> = (0..20).map(window).collect();
        let fairness = fairness(&windows, 0.5).expect("bytes were delivered");
        assert_eq!(fairness.shares, [0.775, 0.225]);
        assert!((fairness.jain - 1.0 / (1.0 + 0.55 * 0.55)).abs() < 1e-12, "shares of (1 + d) / 2 and (1 - d) / 2");
        assert_eq!(fairness.convergence_s, Some(15.5));
        assert_eq!(convergence_window(&windows[..19]), None, "four seconds are not enough");
    }

    /// A flow of 100 bytes a second from the beginning; one of as much from 1.5 s to 4.2 s.
    #[test]
    fn only_whole_seconds_count_in_which_all_flows_send() {
        let cumulative_bytes: Vec<Vec<u64>> = [0, 0, 50, 150, 250, 270]
            .iter()
            .zip(0..)
            .map(|(second_flow, seconds)| vec![seconds * 100, *second_flow])
            .collect();
        let instant = |ms| Instant::ZERO + Span::from_millis(ms);
        let shares = |start, end| {
            fairness_between(&cumulative_bytes, instant(start), instant(end)).map(|fairness| fairness.shares)
        };
        assert_eq!(shares(1500, 4200), Some(vec![0.5, 0.5]));
        assert_eq!(shares(1000, 3000), Some(vec![200.0 / 350.0, 150.0 / 350.0]));
        assert_eq!((shares(1500, 2900), shares(4000, 2000)), (None, None));
        assert_eq!(
            fairness_between(&cumulative_bytes, instant(0), instant(60_000)).map(|fairness| fairness.jain),
            jain_index(&[500.0, 270.0]),
            "the run was shorter"
        );
    }

    #[test]
    fn rates_that_only_pass_each_other_do_not_converge() {
        let crossing: Vec<Vec<u64>> = (0..30).map(|n| vec![100 - n, 50 + n]).collect();
        assert_eq!(convergence_window(&crossing), Some(8), "92 to 58: 22.7 % from one half");
        let passing: Vec<Vec<u64>> = (0..30).map(|n| if n < 6 { vec![50, 50] } else { vec![90, 10] }).collect();
        assert_eq!(convergence_window(&passing), None);
    }

    #[test]
    fn fair_is_within_23_percent_of_one_half() {
        let shares = |d: u64| vec![vec![1000 + d, 1000 - d]; 5];
        assert_eq!((convergence_window(&shares(229)), convergence_window(&shares(230))), (Some(0), None));
        assert_eq!(fairness(&[], 0.0), None);
        assert_eq!(fairness(&[vec![0, 0]], 0.0), None);
    }
}
