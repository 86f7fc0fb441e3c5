//! One path: every packet takes the same path, and waits for it while its window is full.
//!
//! While that path cannot be used, because it is down, a backup, or not there, the packets take the path with the minimum
//! smoothed RTT among those with room, as with `minrtt`. A driver can change the path while the connection runs.
//!
//! Source: own rule.

use crate::{Constructor, Fill, MinRtt, Needs, Pick, Scheduler, SchedulerEntry, SchedulerView};
use params::{ParamKind, Parameter};
use units::PathId;

pub(crate) const ENTRY: SchedulerEntry = SchedulerEntry {
    name: "fixed",
    aliases: &[],
    title: "one given path carries all packets; minrtt while it is down",
    source: "own rule",
    code_version: None,
    needs: Needs::Measurements,
    fill: Fill::Cwnd,
    parameters: &[Parameter {
        name: "path",
        description: "the path by its place among the subflows, from 0",
        kind: ParamKind::Number { default: 0.0, min: 0.0, max: 65535.0 },
    }],
    constructor: Constructor::Function(|setup| Box::new(Fixed::new(PathId(setup.params.number("path") as u16)))),
};

/// The scheduler, whose state is its path.
#[derive(Clone, Copy, Debug)]
pub struct Fixed {
    path: PathId,
}

impl Fixed {
    /// All packets on `path`.
    #[must_use]
    pub fn new(path: PathId) -> Self {
        Self { path }
    }

    /// Sets the path of the packets to come, for a driver that chooses it.
    pub fn set_path(&mut self, path: PathId) {
        self.path = path;
    }
}

impl Scheduler for Fixed {
    fn pick(&mut self, view: &SchedulerView<'_>) -> Option<Pick> {
        if view.sendable_packets() == 0 {
            return None;
        }
        match view.usable_paths().find(|(id, _)| *id == self.path) {
            Some((id, path)) => path.has_room.then_some(Pick::next(id)),
            None => MinRtt.pick(view),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PathView;
    use crate::view::tests::{path, pick, pick_all};

    #[test]
    fn one_path_carries_what_its_window_lets_out() {
        let picks = pick_all(&mut Fixed::new(PathId(1)), 100, &mut [path(20, 10, 0), path(60, 3, 0)]);
        assert_eq!(picks, [Pick::next(PathId(1)); 3], "and the fast path nothing");
    }

    #[test]
    fn while_it_is_down_the_fastest_path_carries_all() {
        let down = PathView { has_room: false, active: false, ..path(5, 10, 0) };
        let mut scheduler = Fixed::new(PathId(0));
        assert_eq!(pick(&mut scheduler, &[down, path(60, 3, 0), path(20, 10, 0)]), Some(Pick::next(PathId(2))));
        scheduler.set_path(PathId(7));
        assert_eq!(pick(&mut scheduler, &[path(60, 3, 0), path(20, 10, 0)]), Some(Pick::next(PathId(1))));
    }
}
