//! BALIA, the balanced linked adaptation: increase and decrease are coupled, to balance friendliness and
//! responsiveness.
//!
//! With `x = w / rtt` and `a = max(x) / x` of the own path:
//! - Increase, per packet acknowledged: `(x / rtt) / (sum x)^2 * (1 + a) / 2 * (4 + a) / 5`.
//! - Decrease: `w / 2 * min(a, 1.5)`.
//!
//! On one path, a = 1: Reno.
//!
//! Source: Peng, Walid, Hwang and Low, "Multipath TCP: analysis, design and implementation" (IEEE/ACM ToN 2016);
//! draft-walid-mptcp-congestion-control. With `steps = "linux"`, the out-of-tree kernel's integers.
//! Deviations: the minimum threshold is two packets (the kernel's is one). The increase is computed at each
//! acknowledgement; the kernel computes it when a window has changed.

use super::{PATH, STEPS, boxed, cong_avoid, count_ack, kernel_integers};
use crate::common::{Coupling, CwndState, SubflowGroup, SubflowView};
use crate::{AckSample, AlgorithmEntry, Constructor, Properties};
use units::Instant;

/// Registration.
pub const ENTRY: AlgorithmEntry = AlgorithmEntry {
    name: "balia",
    aliases: &[],
    title: "balanced linked adaptation: couples the decrease as well as the increase",
    source: "Peng, Walid, Hwang, Low, ToN 2016; draft-walid-mptcp-congestion-control",
    parameters: &[PATH, STEPS],
    properties: Properties::DEFAULT,
    constructor: Constructor::Coupled(|params| boxed(params, Balia { kernel_integers: kernel_integers(params) })),
};

/// BALIA.
#[derive(Debug)]
pub struct Balia {
    kernel_integers: bool,
}

/// Limits the decrease to three quarters of the window.
const MAX_ALPHA: f64 = 1.5;

impl Coupling for Balia {
    type PathState = ();

    fn increase(&mut self, group: &SubflowGroup<'_, ()>) -> f64 {
        let (a, total) = (alpha(group), group.total_rate());
        let own = group.own_subflow();
        own.rate() / own.srtt / (total * total) * ((1.0 + a) / 2.0) * ((4.0 + a) / 5.0)
    }

    fn decrease(&mut self, group: &SubflowGroup<'_, ()>, _now: Instant) -> f64 {
        let (a, cwnd) = (alpha(group), group.own_subflow().cwnd);
        if self.kernel_integers {
            // Only whole multiples of half a window in whole packets.
            let half_cwnd = (cwnd as u64) >> 1;
            return ((half_cwnd as f64) * f64::from(a as u32).min(MAX_ALPHA)).floor();
        }
        cwnd / 2.0 * a.min(MAX_ALPHA)
    }

    fn cong_avoid(&mut self, group: &mut SubflowGroup<'_, ()>, state: &mut CwndState, acked: u32, _sample: &AckSample) {
        let increase = (!self.kernel_integers).then(|| self.increase(group));
        cong_avoid(group, state, acked, increase, |group, state| count_ack(state, ai(group)));
    }
}

/// The ratio of the fastest path's rate to that of this path.
fn alpha(group: &SubflowGroup<'_, ()>) -> f64 {
    group.active().map(SubflowView::rate).fold(0.0, f64::max) / group.own_subflow().rate()
}

/// The kernel's acknowledgements per packet: the inverse of the increase, cut to an integer.
fn ai(group: &SubflowGroup<'_, ()>) -> u64 {
    let (own, total) = (group.own_subflow(), group.total_rate());
    let (rate, max_rate) = (own.rate(), alpha(group) * own.rate());
    (10.0 * total * total * own.cwnd / ((rate + max_rate) * (4.0 * rate + max_rate))) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::common::subflows::testing::{for_each_path, siblings};

    const PAPER: Balia = Balia { kernel_integers: false };

    /// Windows and RTTs in seconds; for each path the increase, the decrease, the kernel's `ai`.
    type Case = ([(f64, f64); 2], [(f64, f64, u64); 2]);
    const CASES: [Case; 4] = [
        ([(10.0, 0.1), (10.0, 0.1)], [(0.025, 5.0, 40), (0.025, 5.0, 40)]),
        ([(10.0, 0.1), (20.0, 0.1)], [(0.02, 7.5, 50), (0.02222, 10.0, 45)]),
        ([(10.0, 0.02), (10.0, 0.1)], [(0.06944, 5.0, 14), (0.015, 7.5, 66)]),
        ([(30.0, 0.1), (10.0, 0.1)], [(0.01875, 15.0, 53), (0.0175, 7.5, 57)]),
    ];

    #[test]
    fn increase_decrease_and_the_kernels_period() {
        for (windows, expected) in CASES {
            let results = for_each_path(&mut siblings(&windows), |group| {
                (Balia { ..PAPER }.increase(group), Balia { ..PAPER }.decrease(group, Instant::ZERO), ai(group))
            });
            for (result, expected) in results.iter().zip(expected) {
                let is_close = (result.0 - expected.0).abs() < 5e-6 && (result.1 - expected.1).abs() < 1e-9;
                // A float just below a whole number is cut to the one before.
                assert!(is_close && result.2.abs_diff(expected.2) <= 1, "{windows:?}: {result:?}, not {expected:?}");
            }
        }
    }

    #[test]
    fn the_kernels_ratio_is_cut_to_an_integer_before_it_decreases() {
        let decrease = |cwnd| {
            let kernel =
                |group: &mut SubflowGroup<'_, ()>| Balia { kernel_integers: true }.decrease(group, Instant::ZERO);
            for_each_path(&mut siblings(&[(10.0, 0.1), (cwnd, 0.1)]), kernel)[0]
        };
        assert_eq!([19.0, 20.0].map(decrease), [5.0, 7.0], "1.9 counts as 1, 2 as 1.5");
    }
}
