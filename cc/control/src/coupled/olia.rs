//! OLIA, the opportunistic linked increases algorithm: LIA's goal, but Pareto-optimal and more responsive.
//!
//! w is a window in packets, rtt a smoothed RTT, and l the larger of the packets acknowledged since the last loss and
//! between the two previous losses. `B` are the paths with the largest `l / rtt^2` (the best ones, by the square of a
//! TCP's rate at their loss). `M` are those with the largest window, `C` those in B but not in M, and N is the number of
//! all paths.
//! - Increase, per packet acknowledged: `(w / rtt^2) / (sum(w / rtt))^2 + a / w`, where, if C is not empty,
//!   `a = 1 / (N |C|)` in C, `-1 / (N |M|)` in M; otherwise 0. This moves window from M to C.
//! - Decrease: half, as Reno.
//!
//! Source: Khalili, Gast, Popovic and Le Boudec, "MPTCP is not Pareto-optimal" (CoNEXT 2012);
//! draft-khalili-mptcp-congestion-control. With `steps = "linux"`, the out-of-tree kernel's integers.
//! Deviations: l is counted in packets. The exponent of rtt in B is that of the kernel and of the analysis. The minimum
//! threshold is two packets, as in the kernel.

use super::{PATH, STEPS, boxed, cong_avoid, kernel_integers};
use crate::common::{Coupling, CwndState, SubflowGroup, SubflowView};
use crate::{AckProgress, AckSample, AlgorithmEntry, Constructor, Properties};

/// Registration.
pub const ENTRY: AlgorithmEntry = AlgorithmEntry {
    name: "olia",
    aliases: &[],
    title: "opportunistic linked increases: moves window from the largest to the best paths",
    source: "Khalili et al., CoNEXT 2012; draft-khalili-mptcp-congestion-control",
    parameters: &[PATH, STEPS],
    properties: Properties::DEFAULT,
    constructor: Constructor::Coupled(|params| boxed(params, Olia { kernel_integers: kernel_integers(params) })),
};

/// OLIA.
#[derive(Debug)]
pub struct Olia {
    kernel_integers: bool,
}

/// State of one path.
#[derive(Debug, Default)]
pub struct OliaPath {
    /// Packets acknowledged since the last loss.
    l2: u64,
    /// Packets acknowledged between the two previous losses.
    l1: u64,
    /// Linux `mptcp_snd_cwnd_cnt`, in 1/1024 packets.
    cwnd_cnt: i32,
}

/// The kernel's scale of increments.
const SCALE: f64 = 1024.0;
/// The `cwnd_cnt` at which the kernel's window changes by one packet.
const MAX_CWND_CNT: i32 = 1023;
/// Minimum window after a negative increase (the kernel: one packet, which restarts slow start).
const MIN_CWND: u32 = 2;

impl Coupling for Olia {
    type PathState = OliaPath;

    fn increase(&mut self, group: &SubflowGroup<'_, OliaPath>) -> f64 {
        let (own, total) = (group.own_subflow(), group.total_rate());
        own.rate() / own.srtt / (total * total) + alpha(group) / own.cwnd
    }

    fn cong_avoid(
        &mut self,
        group: &mut SubflowGroup<'_, OliaPath>,
        state: &mut CwndState,
        acked: u32,
        _sample: &AckSample,
    ) {
        let increase = self.increase(group);
        cong_avoid(group, state, acked, (!self.kernel_integers).then_some(increase), |group, state| {
            count_increment(&mut group.own_state().cwnd_cnt, state, increase);
        });
    }

    fn pkts_acked(&mut self, path_state: &mut OliaPath, progress: &AckProgress) {
        path_state.l2 += u64::from(progress.acked);
    }

    fn on_congestion(&mut self, path_state: &mut OliaPath) {
        if path_state.l2 > 0 {
            (path_state.l1, path_state.l2) = (path_state.l2, 0);
        }
        path_state.cwnd_cnt = 0;
    }
}

/// The kernel's increase, once for each acknowledgement of any size.
fn count_increment(cwnd_cnt: &mut i32, state: &mut CwndState, increase: f64) {
    *cwnd_cnt += (increase * SCALE) as i32;
    if *cwnd_cnt >= MAX_CWND_CNT {
        (*cwnd_cnt, state.cwnd) = (0, (state.cwnd + 1).min(state.cwnd_clamp));
    } else if *cwnd_cnt <= -MAX_CWND_CNT {
        (*cwnd_cnt, state.cwnd) = (0, (state.cwnd - 1).max(MIN_CWND));
    }
}

/// `l / rtt^2`: proportional to the square of a TCP's rate at the path's loss.
fn path_quality(path: &SubflowView<OliaPath>) -> f64 {
    path.state.l2.max(path.state.l1) as f64 / (path.srtt * path.srtt)
}

/// The term `a` of the own path.
fn alpha(group: &SubflowGroup<'_, OliaPath>) -> f64 {
    let best = group.active().map(path_quality).fold(0.0, f64::max);
    let largest = group.active().map(|path| path.cwnd).fold(0.0, f64::max);
    let is_largest = |path: &SubflowView<OliaPath>| path.cwnd >= largest;
    let is_collected = |path: &SubflowView<OliaPath>| path_quality(path) >= best && !is_largest(path);
    let count =
        |matches: &dyn Fn(&SubflowView<OliaPath>) -> bool| group.active().filter(|path| matches(path)).count() as f64;
    let (active, collected) = (count(&|_| true), count(&is_collected));
    match group.own_subflow() {
        _ if collected == 0.0 => 0.0,
        own if is_collected(own) => 1.0 / (active * collected),
        own if is_largest(own) => -1.0 / (active * count(&is_largest)),
        _ => 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::common::subflows::testing::{for_each_path, siblings};

    fn group(windows: &[(f64, u64)]) -> Vec<SubflowView<OliaPath>> {
        let group: Vec<_> = windows.iter().map(|&(cwnd, _)| (cwnd, 0.1)).collect();
        let mut subflows = siblings::<OliaPath>(&group);
        subflows.iter_mut().zip(windows).for_each(|(path, &(_, acked))| path.state.l2 = acked);
        subflows
    }

    /// The increases of paths with 100 ms, by window and packets since the last loss.
    fn increases(windows: &[(f64, u64)]) -> Vec<f64> {
        for_each_path(&mut group(windows), |group| Olia { kernel_integers: false }.increase(group))
    }

    fn assert_near(increases: &[f64], expected: &[f64]) {
        let near = increases.iter().zip(expected).all(|(increase, expected)| (increase - expected).abs() < 5e-6);
        assert!(near && increases.len() == expected.len(), "{increases:?}, not {expected:?}");
    }

    #[test]
    fn the_best_path_gains_what_the_largest_gives() {
        assert_near(&increases(&[(10.0, 0), (10.0, 0)]), &[0.025, 0.025]);
        assert_near(&increases(&[(10.0, 2000), (20.0, 1000)]), &[0.06111, -0.00278]);
        assert_near(&increases(&[(10.0, 1000), (20.0, 2000)]), &[0.01111, 0.02222]);
    }

    #[test]
    fn several_best_or_largest_paths_divide_alpha() {
        let alphas = |windows: &[(f64, u64)]| for_each_path(&mut group(windows), |group| alpha(group));
        // Two collected, one largest; then one collected, two largest, and one neither.
        assert_near(&alphas(&[(10.0, 9), (10.0, 9), (20.0, 1)]), &[1.0 / 6.0, 1.0 / 6.0, -1.0 / 3.0]);
        assert_near(&alphas(&[(5.0, 9), (20.0, 1), (20.0, 1), (10.0, 1)]), &[0.25, -0.125, -0.125, 0.0]);
    }

    #[test]
    fn path_quality_uses_the_longer_of_the_last_two_loss_intervals() {
        let mut path_state = OliaPath::default();
        let mut olia = Olia { kernel_integers: false };
        let mut acked = |path_state: &mut OliaPath, acked| {
            olia.pkts_acked(path_state, &AckProgress { acked, ..AckProgress::default() });
        };
        acked(&mut path_state, 700);
        Olia { kernel_integers: false }.on_congestion(&mut path_state);
        acked(&mut path_state, 30);
        assert_eq!((path_state.l2, path_state.l1), (30, 700));
        Olia { kernel_integers: false }.on_congestion(&mut path_state);
        Olia { kernel_integers: false }.on_congestion(&mut path_state);
        assert_eq!((path_state.l2, path_state.l1), (0, 30), "nothing acknowledged between: one loss");
    }

    #[test]
    fn the_kernels_window_moves_after_41_increments_of_25() {
        let (mut cwnd_cnt, mut state) = (0, CwndState { cwnd: 10, ..CwndState::default() });
        let steps = (1..).find(|_| {
            count_increment(&mut cwnd_cnt, &mut state, 0.025);
            state.cwnd == 11
        });
        assert_eq!(steps, Some(41));
    }
}
