//! DMCTCP: desynchronized decreases.
//!
//! If paths share a bottleneck, their losses coincide, and all would back off at once.
//! - Decrease: only the path with the largest window halves it, and only if one of its RTTs has passed since the
//!   connection last backed off.
//! - Increase, per packet acknowledged: `1 / min(w)` on the path with the smallest window, on any other
//!   `1 / (sum(w) - min(w))`.
//! - Slow start: only the first path. The others wait with two packets until the first congestion on any path.
//!
//! Source: the kernel module of Cui, Wang et al., "Desynchronized multipath TCP" (ICCCN 2014); the paper was not read.
//! Deviations: a waiting path also begins slow start when no other path is in use, so that it does not wait for a
//! backup. Several paths may have the smallest window.

use super::{PATH, boxed};
use crate::common::{Coupling, CwndState, SubflowGroup, cong_avoid_ai, reno_cong_avoid, slow_start};
use crate::{AckSample, AlgorithmEntry, Constructor, Properties};
use units::{INFINITE_SSTHRESH, Instant, Span};

/// Registration.
pub const ENTRY: AlgorithmEntry = AlgorithmEntry {
    name: "dmctcp",
    aliases: &["mctcpdesync"],
    title: "desynchronized: only the path with the largest window backs off",
    source: "Cui et al., ICCCN 2014 (from its kernel module)",
    parameters: &[PATH],
    properties: Properties::DEFAULT,
    constructor: Constructor::Coupled(|params| boxed(params, Dmctcp::default())),
};

/// Window and threshold of a path that waits, packets.
const WAITING_CWND: u32 = 2;

/// State of the connection.
#[derive(Debug, Default)]
pub struct Dmctcp {
    /// Whether any path has been congested.
    congested: bool,
    /// Time of the last decrease of any path.
    last_decrease: Option<Instant>,
}

/// State of one path.
#[derive(Debug, Default)]
pub struct DmctcpPath {
    /// Whether the path waits for its slow start.
    waiting: bool,
}

impl Coupling for Dmctcp {
    type PathState = DmctcpPath;

    fn init(&mut self, group: &mut SubflowGroup<'_, DmctcpPath>, state: &mut CwndState) {
        if !self.congested && group.others().any(|path| path.up) {
            (state.cwnd, state.ssthresh) = (WAITING_CWND, WAITING_CWND);
            group.own_state().waiting = true;
        }
    }

    fn increase(&mut self, group: &SubflowGroup<'_, DmctcpPath>) -> f64 {
        1.0 / ai(group)
    }

    fn cong_avoid(
        &mut self,
        group: &mut SubflowGroup<'_, DmctcpPath>,
        state: &mut CwndState,
        acked: u32,
        _sample: &AckSample,
    ) {
        if group.own_subflow().state.waiting {
            if !self.congested && group.others().any(|path| path.in_use) {
                return;
            }
            state.ssthresh = INFINITE_SSTHRESH;
            group.own_state().waiting = false;
        }
        if group.is_alone() {
            return reno_cong_avoid(state, acked);
        }
        let remaining_acked = if state.in_slow_start() { slow_start(state, acked) } else { acked };
        if remaining_acked > 0 {
            cong_avoid_ai(state, ai(group) as u32, remaining_acked);
        }
    }

    fn on_congestion(&mut self, _path_state: &mut DmctcpPath) {
        self.congested = true;
    }

    fn decrease(&mut self, group: &SubflowGroup<'_, DmctcpPath>, now: Instant) -> f64 {
        let own = group.own_subflow();
        let is_largest = group.active().all(|path| path.cwnd <= own.cwnd);
        let rtt_elapsed =
            self.last_decrease.is_none_or(|last_decrease| now.since(last_decrease) >= Span::from_secs_f64(own.srtt));
        if !is_largest || !rtt_elapsed {
            return 0.0;
        }
        self.last_decrease = Some(now);
        own.cwnd / 2.0
    }
}

/// Packets to be acknowledged per packet of growth.
fn ai(group: &SubflowGroup<'_, DmctcpPath>) -> f64 {
    let min_cwnd = group.active().map(|path| path.cwnd).fold(f64::MAX, f64::min);
    if group.own_subflow().cwnd <= min_cwnd { min_cwnd } else { group.total_cwnd() - min_cwnd }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::common::subflows::testing::{for_each_path, siblings};

    #[test]
    fn a_path_waits_for_the_first_congestion_but_not_for_a_path_that_is_not_in_use() {
        let mut dmctcp = Dmctcp::default();
        let mut subflows = siblings::<DmctcpPath>(&[(10.0, 0.1), (10.0, 0.1)]);
        let mut state = CwndState { cwnd: 10, ssthresh: INFINITE_SSTHRESH, ..CwndState::default() };
        dmctcp.init(&mut SubflowGroup::new(&mut subflows, 1), &mut state);
        let mut cwnd_after_ack = |in_use| {
            subflows[0].in_use = in_use;
            dmctcp.cong_avoid(&mut SubflowGroup::new(&mut subflows, 1), &mut state, 2, &AckSample::default());
            state.cwnd
        };
        assert_eq!([true, true, false].map(&mut cwnd_after_ack), [2, 2, 4]);
    }

    const WINDOWS: [(f64, f64); 3] = [(10.0, 0.1), (30.0, 0.1), (60.0, 0.1)];

    #[test]
    fn the_smallest_window_grows_as_reno_the_others_by_the_total_without_it() {
        assert_eq!(for_each_path(&mut siblings(&WINDOWS), |group| ai(group)), [10.0, 90.0, 90.0]);
    }

    #[test]
    fn only_the_largest_window_halves_and_not_twice_in_an_rtt() {
        let mut dmctcp = Dmctcp::default();
        let mut decrease = |own_index, millis| {
            let mut subflows = siblings(&WINDOWS);
            dmctcp.decrease(&SubflowGroup::new(&mut subflows, own_index), Instant::ZERO + Span::from_millis(millis))
        };
        let decreases = [decrease(1, 0), decrease(2, 10), decrease(2, 109), decrease(2, 110)];
        assert_eq!(decreases, [0.0, 30.0, 0.0, 30.0]);
    }
}
