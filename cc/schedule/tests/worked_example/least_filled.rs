//! Least filled: the path that uses the smallest part of its window carries the next packet.
//!
//! fill = packets held / window; ties go to the lower index. A path that uses more than `most` of its window is passed
//! over while another path holds packets: its share is left free for bursts.
//!
//! Source: an example; nobody has shown that it is good for anything.

use crate::{Fill, Needs, PathView, Pick, Scheduler, SchedulerEntry, SchedulerView};
use params::{ParamKind, Parameter};

pub(crate) const ENTRY: SchedulerEntry = SchedulerEntry {
    name: "least-filled",
    aliases: &[],
    title: "the path that uses the smallest part of its window",
    source: "docs/writing-a-scheduler.md",
    needs: Needs::Measurements,
    fill: Fill::Cwnd,
    parameters: &[Parameter {
        name: "most",
        description: "a path is passed over that uses more than this part of its window",
        kind: ParamKind::Number { default: 0.9, min: 0.0, max: 1.0 },
    }],
    constructor: |setup| Box::new(LeastFilled { most: setup.params.number("most") }),
};

/// The least filled path.
#[derive(Clone, Copy, Debug)]
struct LeastFilled {
    most: f64,
}

fn fill(path: &PathView) -> f64 {
    f64::from(path.buffered_packets()) / f64::from(path.cwnd.max(1))
}

impl Scheduler for LeastFilled {
    fn pick(&mut self, view: &SchedulerView<'_>) -> Option<Pick> {
        if view.sendable_packets() == 0 {
            return None;
        }
        let idle = view.usable_paths().all(|(_, path)| path.buffered_packets() == 0);
        let able = view.paths_with_room().filter(|(_, path)| idle || fill(path) <= self.most);
        able.min_by(|(_, one), (_, other)| fill(one).total_cmp(&fill(other))).map(|(path, _)| Pick::next(path))
    }
}
