//! How fairly competing flows share, and how soon.
//!
//! **Jain's index** of n rates x is (sum x)^2 / (n sum x^2): 1 if all are equal, k/n if k of them share everything (Jain,
//! Chiu and Hawe, DEC-TR-301, 1984).
//!
//! **Convergence time** runs from the start of the last flow to the first instant from which on the index, over what the
//! flows got in the last five seconds, stays at 0.95 or more. It is the time that RFC 5166 section 2.3 calls
//! delta-fair: for two flows 0.95 means shares within 23 % of one half. Five seconds, the time for which PCC (Dong et al.,
//! NSDI 2015) asks a converged flow to hold its rate, let a sawtooth count by its mean.

/// Rates are measured over windows of this length, as iperf3 reports them.
pub const WINDOW_S: u64 = 1;
/// The index is taken over so many windows.
const AVERAGED: usize = 5;
/// Fair enough.
const FAIR: f64 = 0.95;

/// What competing flows' shares come to.
#[derive(Clone, Debug, PartialEq)]
pub struct Fairness {
    /// Each flow's share of what all got.
    pub shares: Vec<f64>,
    /// Jain's index over all windows.
    pub jain: f64,
    /// Seconds from the last start until the flows share fairly for good; none if they never do.
    pub convergence_s: Option<f64>,
}

/// Jain's index; none without rates, or if all are zero.
#[must_use]
pub fn jain(rates: &[f64]) -> Option<f64> {
    let (sum, squares) = rates.iter().fold((0.0, 0.0), |(sum, squares), rate| (sum + rate, squares + rate * rate));
    (squares > 0.0).then(|| sum * sum / (rates.len() as f64 * squares))
}

/// Fairness from what each flow got in each window of [`WINDOW_S`]: a row a window, a column a flow. The first window
/// begins `lead_s` seconds after the last flow's start. None if nothing was delivered.
#[must_use]
pub fn fairness(windows: &[Vec<u64>], lead_s: f64) -> Option<Fairness> {
    let all = sums(windows)?;
    let total: f64 = all.iter().sum();
    Some(Fairness {
        jain: jain(&all)?,
        convergence_s: convergence(windows).map(|window| lead_s + (window as u64 * WINDOW_S) as f64),
        shares: all.iter().map(|bytes| bytes / total).collect(),
    })
}

/// How many windows went by until the index, over the last [`AVERAGED`] windows, stayed fair.
fn convergence(windows: &[Vec<u64>]) -> Option<usize> {
    let fair = |last: &[Vec<u64>]| sums(last).and_then(|sums| jain(&sums)).is_some_and(|index| index >= FAIR);
    let unfair = windows.windows(AVERAGED).rposition(|last| !fair(last));
    let first = unfair.map_or(0, |unfair| unfair + 1) + AVERAGED;
    (first <= windows.len()).then_some(first)
}

fn sums(windows: &[Vec<u64>]) -> Option<Vec<f64>> {
    let flows = windows.first()?.len();
    Some((0..flows).map(|flow| windows.iter().map(|window| window[flow] as f64).sum()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jains_index_of_known_shares() {
        assert_eq!(jain(&[3.0; 4]), Some(1.0));
        // k of n share everything: k / n.
        assert_eq!(jain(&[5.0, 0.0, 0.0, 0.0]), Some(0.25));
        assert_eq!(jain(&[5.0, 5.0, 0.0, 0.0]), Some(0.5));
        // The example of the report, section 3: 1, 3 and 5 of something.
        assert_eq!(jain(&[1.0, 3.0, 5.0]), Some(81.0 / 105.0));
        assert_eq!((jain(&[]), jain(&[0.0, 0.0])), (None, None));
    }

    /// Ten windows of all for one, then ten of equal shares.
    #[test]
    fn convergence_is_when_the_mean_of_five_seconds_becomes_and_stays_fair() {
        let windows: Vec<Vec<u64>> = (0..20).map(|n| if n < 10 { vec![100, 0] } else { vec![50, 50] }).collect();
        let fairness = fairness(&windows, 0.5).expect("bytes were delivered");
        assert_eq!(fairness.shares, [0.75, 0.25]);
        assert_eq!(fairness.jain, 0.8);
        // With k of the five windows unequal the shares are (250 + 50 k) to (250 - 50 k): 1 / (1 + (k/5)^2) is 0.96 for
        // k = 1, the five windows that end at 14 s.
        assert_eq!(fairness.convergence_s, Some(14.5));
    }

    #[test]
    fn what_does_not_last_is_no_convergence() {
        let relapse: Vec<Vec<u64>> = (0..20).map(|n| if n < 19 { vec![50, 50] } else { vec![500, 0] }).collect();
        assert_eq!(convergence(&relapse), None);
        assert_eq!(convergence(&vec![vec![1, 1]; 5]), Some(5));
        assert_eq!(convergence(&vec![vec![1, 1]; 4]), None, "too short to say");
        assert_eq!(fairness(&[], 0.0), None);
    }
}
