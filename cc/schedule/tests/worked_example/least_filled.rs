//! Least filled: the path that uses the smallest part of its window carries the next packet.
//!
//! fill = packets buffered / window; ties go to the lower index. A path that uses more than `max_fill` of its window is
//! skipped while another path has packets buffered: its share is left free for bursts.
//!
//! Source: an example; nobody has shown that it is good for anything.

use crate::{Constructor, Fill, Needs, PathView, Pick, Scheduler, SchedulerEntry, SchedulerView};
use params::{ParamKind, Parameter};

pub(crate) const ENTRY: SchedulerEntry = SchedulerEntry {
    name: "least-filled",
    aliases: &[],
    title: "the path that uses the smallest part of its window",
    source: "docs/how-to/write-a-scheduler.md",
    code_version: None,
    needs: Needs::Measurements,
    fill: Fill::Cwnd,
    parameters: &[Parameter {
        name: "max_fill",
        description: "a path that uses more than this part of its window is skipped",
        kind: ParamKind::Number { default: 0.9, min: 0.0, max: 1.0 },
    }],
    constructor: Constructor::Function(|setup| Box::new(LeastFilled { max_fill: setup.params.number("max_fill") })),
};

/// The scheduler, which has no state.
#[derive(Clone, Copy, Debug)]
struct LeastFilled {
    max_fill: f64,
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
        let candidates = view.paths_with_room().filter(|(_, path)| idle || fill(path) <= self.max_fill);
        candidates.min_by(|(_, left), (_, right)| fill(left).total_cmp(&fill(right))).map(|(path, _)| Pick::next(path))
    }
}
