//! Least filled: the path that uses the smallest part of its window carries the next packet.
//!
//! fill = packets held / window; ties go to the lower index. A path that uses more than `most` of its window is passed
//! over while another path holds packets: its share is left free for bursts.
//!
//! Source: an example; nobody has shown that it is good for anything.

use crate::{Entry, Fill, Needs, Path, Pick, Scheduler, View};
use params::{Default, Parameter};

/// The registry's line.
pub(crate) const ENTRY: Entry = Entry {
    name: "least-filled",
    aliases: &[],
    title: "the path that uses the smallest part of its window",
    source: "docs/writing-a-scheduler.md",
    needs: Needs::Measurements,
    fill: Fill::Window,
    parameters: &[Parameter {
        name: "most",
        meaning: "a path is passed over that uses more than this part of its window",
        default: Default::Number { value: 0.9, least: 0.0, most: 1.0 },
    }],
    make: |setup| Box::new(LeastFilled { most: setup.settings.number("most") }),
};

/// How far windows are filled.
#[derive(Clone, Copy, Debug)]
struct LeastFilled {
    most: f64,
}

fn fill(path: &Path) -> f64 {
    f64::from(path.held()) / f64::from(path.window.max(1))
}

impl Scheduler for LeastFilled {
    fn pick(&mut self, view: &View<'_>) -> Option<Pick> {
        if view.sendable() == 0 {
            return None;
        }
        let idle = view.usable().all(|(_, path)| path.held() == 0);
        let able = view.open().filter(|(_, path)| idle || fill(path) <= self.most);
        able.min_by(|(_, one), (_, other)| fill(one).total_cmp(&fill(other))).map(|(path, _)| Pick::next(path))
    }
}
