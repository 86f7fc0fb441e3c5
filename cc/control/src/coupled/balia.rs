//! BALIA, the balanced linked adaptation: friendly and responsive both, by a decrease that is coupled too.
//!
//! With `x = w / rtt` and `a = max(x) / x` of the own path:
//! - Increase, per packet acknowledged: `(x / rtt) / (sum x)^2 * (1 + a) / 2 * (4 + a) / 5`.
//! - Decrease: `w / 2 * min(a, 1.5)`.
//!
//! On one path, a = 1: Reno.
//!
//! Source: Peng, Walid, Hwang and Low, "Multipath TCP: analysis, design and implementation" (IEEE/ACM ToN 2016);
//! draft-walid-mptcp-congestion-control. With `steps = "linux"`, the out-of-tree kernel's integers.
//! Departures: the least threshold is two packets (the kernel's is one). The increase is computed afresh at each
//! acknowledgement; the kernel does when a window moved.

use super::{PATH, STEPS, boxed, count_acknowledgement, grow, integer_steps};
use crate::frame::{Coupling, CwndState, SubflowGroup, SubflowView};
use crate::{AckSample, AlgorithmEntry, Constructor};
use units::Instant;

/// The registry's line.
pub const ENTRY: AlgorithmEntry = AlgorithmEntry {
    name: "balia",
    aliases: &[],
    title: "balanced linked adaptation: couples the decrease as well as the increase",
    source: "Peng, Walid, Hwang, Low, ToN 2016; draft-walid-mptcp-congestion-control",
    parameters: &[PATH, STEPS],
    make: Constructor::Group(|settings| boxed(settings, Balia { integers: integer_steps(settings) })),
};

/// BALIA's own part: increase and decrease.
#[derive(Debug)]
pub struct Balia {
    integers: bool,
}

/// No path gives more than three quarters of its window.
const MOST: f64 = 1.5;

impl Coupling for Balia {
    type PathState = ();

    fn increase(&mut self, paths: &SubflowGroup<'_, ()>) -> f64 {
        let (a, total) = (ratio(paths), paths.total_rate());
        let own = paths.own();
        own.rate() / own.srtt / (total * total) * ((1.0 + a) / 2.0) * ((4.0 + a) / 5.0)
    }

    fn decrease(&mut self, paths: &SubflowGroup<'_, ()>, _now: Instant) -> f64 {
        let (a, cwnd) = (ratio(paths), paths.own().cwnd);
        if self.integers {
            // Whole multiples only, of half a window in whole packets.
            let half = (cwnd as u64) >> 1;
            return ((half as f64) * f64::from(a as u32).min(MOST)).floor();
        }
        cwnd / 2.0 * a.min(MOST)
    }

    fn cong_avoid(
        &mut self,
        paths: &mut SubflowGroup<'_, ()>,
        state: &mut CwndState,
        acked: u32,
        _feedback: &AckSample,
    ) {
        let increase = (!self.integers).then(|| self.increase(paths));
        grow(paths, state, acked, increase, |paths, state| count_acknowledgement(state, period(paths)));
    }
}

/// How much faster the fastest path is than the own one.
fn ratio(paths: &SubflowGroup<'_, ()>) -> f64 {
    paths.active().map(SubflowView::rate).fold(0.0, f64::max) / paths.own().rate()
}

/// The kernel's acknowledgements per packet: the inverse of the increase, cut to an integer.
fn period(paths: &SubflowGroup<'_, ()>) -> u64 {
    let (own, total) = (paths.own(), paths.total_rate());
    let (x, most) = (own.rate(), ratio(paths) * own.rate());
    (10.0 * total * total * own.cwnd / ((x + most) * (4.0 * x + most))) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::paths::testing::{ask, siblings};

    const PAPER: Balia = Balia { integers: false };

    /// Windows and RTTs in seconds; for each path the increase, the decrease, the kernel's period.
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
            let found = ask(&mut siblings(&windows), |paths| {
                (Balia { ..PAPER }.increase(paths), Balia { ..PAPER }.decrease(paths, Instant::ZERO), period(paths))
            });
            for (found, expected) in found.iter().zip(expected) {
                let near = (found.0 - expected.0).abs() < 5e-6 && (found.1 - expected.1).abs() < 1e-9;
                // A float just below a whole number is cut to the one before.
                assert!(near && found.2.abs_diff(expected.2) <= 1, "{windows:?}: {found:?}, not {expected:?}");
            }
        }
    }

    #[test]
    fn the_kernels_ratio_is_cut_to_an_integer_before_it_decreases() {
        let decrease = |cwnd| {
            let kernel = |paths: &mut SubflowGroup<'_, ()>| Balia { integers: true }.decrease(paths, Instant::ZERO);
            ask(&mut siblings(&[(10.0, 0.1), (cwnd, 0.1)]), kernel)[0]
        };
        assert_eq!([19.0, 20.0].map(decrease), [5.0, 7.0], "1.9 counts as 1, 2 as 1.5");
    }
}
