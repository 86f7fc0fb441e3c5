//! LIA, the linked increases algorithm: in total the throughput of one TCP on the best path.
//!
//! With w a window in packets and rtt a smoothed RTT, per acknowledged packet in congestion avoidance:
//! - Increase: `min(alpha / sum(w), 1 / w)`, where `alpha = sum(w) max(w / rtt^2) / (sum(w / rtt))^2`. Alpha makes the
//!   total rate that of a TCP on the best path; the minimum keeps each path below a TCP on that path.
//! - Decrease: half, as Reno.
//!
//! Source: RFC 6356; Wischik, Raiciu, Greenhalgh and Handley, "Design, implementation and evaluation of congestion
//! control for multipath TCP" (NSDI 2011). With `steps = "linux"`, the integers of the out-of-tree MPTCP kernel.
//! Deviations: windows are packets, so that a difference in packet size between paths does not matter (the kernel's
//! choice; the RFC has bytes). Alpha is computed at each acknowledgement; RFC and kernel compute it when a window has
//! changed.

use super::{PATH, STEPS, boxed, cong_avoid, count_ack, kernel_integers};
use crate::common::{Coupling, CwndState, SubflowGroup, SubflowView};
use crate::{AckSample, AlgorithmEntry, Constructor, Properties};

/// Registration.
pub const ENTRY: AlgorithmEntry = AlgorithmEntry {
    name: "lia",
    aliases: &[],
    title: "linked increases: in total the throughput of one TCP on the best path",
    source: "RFC 6356; Wischik et al., NSDI 2011",
    parameters: &[PATH, STEPS],
    properties: Properties::DEFAULT,
    constructor: Constructor::Coupled(|params| boxed(params, Lia { kernel_integers: kernel_integers(params) })),
};

/// LIA.
#[derive(Debug)]
pub struct Lia {
    kernel_integers: bool,
}

impl Coupling for Lia {
    type PathState = ();

    fn increase(&mut self, group: &SubflowGroup<'_, ()>) -> f64 {
        let add = |(best, total): (f64, f64), path| (best.max(cwnd_over_rtt_squared(path)), total + path.rate());
        let (best, total) = group.active().fold((0.0, 0.0), add);
        (best / (total * total)).min(1.0 / group.own_subflow().cwnd)
    }

    fn cong_avoid(&mut self, group: &mut SubflowGroup<'_, ()>, state: &mut CwndState, acked: u32, _sample: &AckSample) {
        let increase = (!self.kernel_integers).then(|| self.increase(group));
        cong_avoid(group, state, acked, increase, |group, state| {
            count_ack(state, ai(group).max(u64::from(state.cwnd)));
        });
    }
}

fn cwnd_over_rtt_squared(path: &SubflowView<()>) -> f64 {
    path.cwnd / (path.srtt * path.srtt)
}

/// The kernel's `4096 sum(w) / alpha` in its integers: windows are scaled by 2^32 in the numerator and 2^10 in the
/// denominator.
fn ai(group: &SubflowGroup<'_, ()>) -> u64 {
    let best = group.active().fold(group.own_subflow(), |best, path| {
        if cwnd_over_rtt_squared(path) > cwnd_over_rtt_squared(best) { path } else { best }
    });
    let micros = |path: &SubflowView<()>| (path.srtt * 1e6) as u64;
    let scaled = |path: &SubflowView<()>| u128::from(((path.cwnd as u64) << 10) * micros(best) / micros(path).max(1));
    let total: u128 = group.active().map(scaled).sum();
    let alpha = ((best.cwnd as u128) << 32) / (total * total).max(1);
    4096 / (alpha as u64).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::common::subflows::testing::{for_each_path, siblings};

    fn increases(group: &[(f64, f64)]) -> Vec<f64> {
        for_each_path(&mut siblings(group), |group| Lia { kernel_integers: false }.increase(group))
    }

    /// Windows and RTTs in seconds, alpha, and the increase per packet acknowledged.
    type Case = ([(f64, f64); 2], f64, f64);
    const CASES: [Case; 4] = [
        ([(10.0, 0.1), (10.0, 0.1)], 0.5, 0.025),
        ([(10.0, 0.1), (20.0, 0.1)], 0.6667, 0.02222),
        ([(10.0, 0.02), (10.0, 0.1)], 1.3889, 0.06944),
        ([(40.0, 0.05), (10.0, 0.2)], 1.1073, 0.02215),
    ];

    #[test]
    fn the_rfcs_alpha_over_the_total_window() {
        for (group, alpha, increase) in CASES {
            let total = group[0].0 + group[1].0;
            for path_increase in increases(&group) {
                assert!(
                    (path_increase - increase).abs() < 5e-6 && (path_increase * total - alpha).abs() < 5e-5,
                    "{group:?}: {path_increase}"
                );
            }
        }
    }

    #[test]
    fn no_path_grows_faster_than_reno_on_it() {
        // The long path's window is so large that the total is small compared with it.
        let increases = increases(&[(2.0, 0.01), (100.0, 1.0)]);
        let alpha_over_total = (2.0 / 1e-4) / (300.0f64 * 300.0);
        assert_eq!(increases, [alpha_over_total, 0.01]);
    }

    #[test]
    fn the_kernels_integers() {
        let expected = [40, 45, 14, 45];
        for ((group, ..), expected_ai) in CASES.iter().zip(expected) {
            assert_eq!(for_each_path(&mut siblings(group), |group| ai(group))[0], expected_ai, "{group:?}");
        }
    }

    #[test]
    fn the_kernels_increase_takes_one_acknowledgement_more_than_its_period() {
        let mut subflows = siblings(&[(10.0, 0.1), (10.0, 0.1)]);
        let mut state = CwndState { cwnd: 10, ssthresh: 2, ..CwndState::default() };
        let mut lia = Lia { kernel_integers: true };
        let mut calls = 0;
        while state.cwnd == 10 {
            lia.cong_avoid(&mut SubflowGroup::new(&mut subflows, 0), &mut state, 2, &AckSample::default());
            calls += 1;
        }
        assert_eq!(calls, 41);
    }
}
