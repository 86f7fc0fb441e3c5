//! A single-path algorithm on a group of paths.

use crate::{Context, Controller, Decision, PathController, PathEvent};
use units::PathId;

/// One independent instance of a single-path algorithm a path: nothing is coupled.
pub struct Uncoupled {
    construct: Box<dyn Fn() -> Box<dyn PathController> + Send>,
    paths: Vec<Box<dyn PathController>>,
}

impl Uncoupled {
    /// A group of paths, each with a controller of its own from `construct`.
    pub fn new(construct: impl Fn() -> Box<dyn PathController> + Send + 'static) -> Self {
        Self { construct: Box::new(construct), paths: Vec::new() }
    }
}

impl Controller for Uncoupled {
    fn on_event(&mut self, path: PathId, event: &PathEvent, cx: &mut Context<'_>) {
        while self.paths.len() <= path.index() {
            self.paths.push((self.construct)());
        }
        if matches!(event, PathEvent::PathUp(_)) {
            // A path that comes up again may be another one.
            self.paths[path.index()] = (self.construct)();
        }
        self.paths[path.index()].on_event(event, cx);
    }

    fn decision(&self, path: PathId) -> Decision {
        self.paths[path.index()].decision()
    }
}

impl std::fmt::Debug for Uncoupled {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Uncoupled").field(&self.paths).finish()
    }
}
