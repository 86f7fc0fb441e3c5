//! Round robin: the paths take turns of a fixed number of packets.
//!
//! A path that has begun its turn continues it. Otherwise a path that has not had its turn begins. When all have had
//! theirs, a new round starts.
//!
//! `cwnd_limited` = 1 skips a path whose window is full, so that a source that always has data fills every window. With
//! 0 the turns are strict: data wait for the path whose turn it is.
//!
//! Source: `mptcp_rr.c` of the out-of-tree kernel and its two module parameters. Deviation: if several paths have not
//! had their turn, the lowest index begins (the kernel takes the last one in its list).

use crate::{Constructor, Fill, Needs, Pick, Scheduler, SchedulerEntry, SchedulerView};
use params::{ParamKind, Parameter};
use units::PathId;

pub(crate) const ENTRY: SchedulerEntry = SchedulerEntry {
    name: "roundrobin",
    aliases: &["round-robin", "rr"],
    title: "the paths take turns",
    source: "out-of-tree MPTCP kernel, mptcp_rr.c",
    code_version: None,
    needs: Needs::Nothing,
    fill: Fill::Cwnd,
    parameters: &[
        Parameter {
            name: "num_segments",
            description: "packets of one turn",
            kind: ParamKind::Number { default: 1.0, min: 1.0, max: 1e6 },
        },
        Parameter {
            name: "cwnd_limited",
            description: "1 skips a path whose window is full, 0 waits for it",
            kind: ParamKind::Number { default: 1.0, min: 0.0, max: 1.0 },
        },
    ],
    constructor: Constructor::Function(|setup| {
        let waits_for_cwnd = setup.params.number("cwnd_limited") < 0.5;
        Box::new(RoundRobin::new(setup.params.number("num_segments") as u32, waits_for_cwnd))
    }),
};

/// State of the scheduler.
#[derive(Clone, Debug)]
pub struct RoundRobin {
    num_segments: u32,
    waits_for_cwnd: bool,
    segments_used: Vec<u32>,
}

impl RoundRobin {
    /// Turns of `num_segments` packets. If `waits_for_cwnd`, data wait for a full path; otherwise it is skipped.
    #[must_use]
    pub fn new(num_segments: u32, waits_for_cwnd: bool) -> Self {
        Self { num_segments: num_segments.max(1), waits_for_cwnd, segments_used: Vec::new() }
    }

    /// Returns the path that carries a packet now, and counts the packet.
    pub(crate) fn next_path(&mut self, view: &SchedulerView<'_>) -> Option<PathId> {
        self.segments_used.resize(view.paths.len(), 0);
        let Self { num_segments, waits_for_cwnd, segments_used } = self;
        let candidates = || view.usable_paths().filter(|(_, path)| *waits_for_cwnd || path.has_room);
        let used_by = |(id, _): &(PathId, _)| segments_used[id.index()];
        let in_turn = candidates().find(|path| (1..*num_segments).contains(&used_by(path)));
        let chosen = in_turn.or_else(|| candidates().find(|path| used_by(path) == 0));
        let (path, path_view) = chosen.or_else(|| {
            segments_used.fill(0);
            candidates().next()
        })?;
        if !path_view.has_room {
            return None;
        }
        segments_used[path.index()] += 1;
        Some(path)
    }
}

impl Scheduler for RoundRobin {
    fn pick(&mut self, view: &SchedulerView<'_>) -> Option<Pick> {
        if view.sendable_packets() == 0 {
            return None;
        }
        self.next_path(view).map(Pick::next)
    }
}

#[cfg(test)]
mod tests {
    use crate::view::tests::{path, pick_all, scheduler_with};

    fn order(given: &[(&str, f64)], windows: [u32; 3]) -> Vec<u16> {
        let mut paths = windows.map(|window| path(20, window, 0));
        pick_all(&mut *scheduler_with("roundrobin", given), 9, &mut paths).iter().map(|pick| pick.path.0).collect()
    }

    #[test]
    fn turns_go_round_in_packets_of_one_turn() {
        assert_eq!(order(&[], [9; 3]), [0, 1, 2, 0, 1, 2, 0, 1, 2]);
        assert_eq!(order(&[("num_segments", 2.0)], [9; 3]), [0, 0, 1, 1, 2, 2, 0, 0, 1]);
    }

    #[test]
    fn a_full_window_is_passed_over_or_waited_for() {
        assert_eq!(order(&[], [9, 1, 2]), [0, 1, 2, 0, 2, 0, 0, 0, 0], "limited by the windows alone");
        assert_eq!(order(&[("cwnd_limited", 0.0)], [9, 1, 2]), [0, 1, 2, 0], "it waits for path 1");
    }
}
