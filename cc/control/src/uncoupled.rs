//! A single-path algorithm on a group of paths.

use crate::{Context, Controller, Decision, PathController, PathEvent};
use units::PathId;

/// One independent instance of a single-path algorithm per path; nothing is coupled.
pub struct Uncoupled {
    construct: Box<dyn Fn() -> Box<dyn PathController> + Send + Sync>,
    /// The controller of path 0, the only one of a TCP connection.
    first: Box<dyn PathController>,
    others: Vec<Box<dyn PathController>>,
}

impl Uncoupled {
    /// A group of paths, each with its own controller from `construct`.
    pub fn new(construct: impl Fn() -> Box<dyn PathController> + Send + Sync + 'static) -> Self {
        Self { first: construct(), construct: Box::new(construct), others: Vec::new() }
    }

    fn path(&self, path: PathId) -> &dyn PathController {
        match path.index().checked_sub(1) {
            None => &*self.first,
            Some(index) => &*self.others[index],
        }
    }
}

impl Controller for Uncoupled {
    fn on_event(&mut self, path: PathId, event: &PathEvent, cx: &mut Context<'_>) {
        while self.others.len() < path.index() {
            self.others.push((self.construct)());
        }
        let controller = match path.index().checked_sub(1) {
            None => &mut self.first,
            Some(index) => &mut self.others[index],
        };
        if matches!(event, PathEvent::PathUp(_)) {
            // A path that comes up again may be a different one.
            *controller = (self.construct)();
        }
        controller.on_event(event, cx);
    }

    fn decision(&self, path: PathId) -> Decision {
        self.path(path).decision()
    }

    fn requests_reduction(&self, path: PathId) -> bool {
        self.path(path).requests_reduction()
    }
}

impl std::fmt::Debug for Uncoupled {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Uncoupled").field(&self.first).field(&self.others).finish()
    }
}
