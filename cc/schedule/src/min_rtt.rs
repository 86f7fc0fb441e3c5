//! Minimum RTT first: the default scheduler of the out-of-tree MPTCP kernel.
//!
//! Among the paths with room in their window, the one with the minimum smoothed RTT carries the next packet. As soon as
//! the window of the fast path is full, the slow path is used, and packets of the fast path then wait at the receiver
//! (head-of-line blocking). The smoothed RTT includes the path's own queue, so a path with bufferbloat looks like a
//! long one.
//!
//! Source: `mptcp_sched.c` of the out-of-tree kernel (v0.8x to v0.95). The kernel prefers, for reinjected packets,
//! paths that have not carried them; here the sender does that.

use crate::{Constructor, Fill, Needs, PathView, Pick, Scheduler, SchedulerEntry, SchedulerView};
use units::PathId;

pub(crate) const ENTRY: SchedulerEntry = SchedulerEntry {
    name: "minrtt",
    aliases: &["default", "lowest-rtt"],
    title: "minimum smoothed RTT among the paths with room in their window",
    source: "out-of-tree MPTCP kernel, mptcp_sched.c",
    code_version: None,
    needs: Needs::Measurements,
    fill: Fill::Cwnd,
    parameters: &[],
    constructor: Constructor::Function(|_| Box::new(MinRtt)),
};

/// The scheduler, which has no state.
#[derive(Clone, Copy, Debug)]
pub struct MinRtt;

/// The path with the minimum smoothed RTT; among equals, the one with the lower index.
pub(crate) fn fastest<'a>(paths: impl Iterator<Item = (PathId, &'a PathView)>) -> Option<(PathId, &'a PathView)> {
    paths.min_by_key(|(_, path)| path.srtt)
}

impl Scheduler for MinRtt {
    fn pick(&mut self, view: &SchedulerView<'_>) -> Option<Pick> {
        if view.sendable_packets() == 0 {
            return None;
        }
        fastest(view.paths_with_room()).map(|(path, _)| Pick::next(path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::tests::{path, pick_all};

    #[test]
    fn the_fast_path_is_filled_to_its_window_and_then_the_slow_one() {
        let mut paths = [path(60, 3, 0), path(20, 10, 4)];
        let picks = pick_all(&mut MinRtt, 100, &mut paths);
        let expected = [1, 1, 1, 1, 1, 1, 0, 0, 0].map(|path| Pick::next(PathId(path)));
        assert_eq!(picks, expected, "and none beyond a window");
    }
}
