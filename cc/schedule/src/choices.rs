//! What a scheduler saw and chose, for traces.

use crate::{PathView, Pick, Scheduler, SchedulerView};
use std::ops::Range;

/// A decision of a scheduler that had data to send, and a path with room for it.
#[derive(Clone, Debug, PartialEq)]
pub struct Choice {
    /// The pick; `None` if the scheduler waits.
    pub pick: Option<Pick>,
    /// Numbers of the data that the picked path gets; empty if the scheduler waits, or if the path has no such data.
    pub data: Range<u64>,
    /// The paths as the scheduler saw them, by their [`PathId`](units::PathId).
    pub paths: Vec<PathView>,
}

/// The choices of a connection's scheduler, if they are kept.
#[derive(Debug, Default)]
pub struct Choices(Option<Vec<Choice>>);

impl Choices {
    /// Keeps choices from now on. [Take](Self::take) them after each input, because they are not bounded.
    pub fn keep(&mut self) {
        self.0.get_or_insert_default();
    }

    /// Asks the scheduler.
    #[inline]
    pub fn ask(&mut self, scheduler: &mut dyn Scheduler, view: &SchedulerView<'_>) -> Option<Pick> {
        let pick = scheduler.pick(view);
        if let Some(choices) = &mut self.0
            && (pick.is_some() || view.sendable_packets() > 0 && view.paths_with_room().next().is_some())
        {
            choices.push(Choice { pick, data: 0..0, paths: view.paths.to_vec() });
        }
        pick
    }

    /// Notes the data that the picked path gets.
    #[inline]
    pub fn set_data(&mut self, data: Range<u64>) {
        if let Some(choice) = self.0.as_mut().and_then(|choices| choices.last_mut()) {
            choice.data = data;
        }
    }

    /// The choices since they were last taken, in their order; none if they are not kept.
    pub fn take(&mut self) -> Vec<Choice> {
        self.0.as_mut().map(std::mem::take).unwrap_or_default()
    }
}
