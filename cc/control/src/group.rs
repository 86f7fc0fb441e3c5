//! Lifting a single-path algorithm to a group of paths.

use crate::{Context, Controller, Decision, Ecn, PathController, PathEvent};
use units::PathId;

/// One independent instance of a single-path algorithm per path: the baseline that couples nothing.
pub struct Uncoupled {
    make: Box<dyn Fn() -> Box<dyn PathController> + Send>,
    paths: Vec<Box<dyn PathController>>,
}

impl Uncoupled {
    /// A group whose paths are each controlled by what `make` returns.
    pub fn new(make: impl Fn() -> Box<dyn PathController> + Send + 'static) -> Self {
        Self { make: Box::new(make), paths: Vec::new() }
    }
}

impl Controller for Uncoupled {
    fn on_event(&mut self, path: PathId, event: &PathEvent, cx: &mut Context<'_>) {
        while self.paths.len() <= path.index() {
            self.paths.push((self.make)());
        }
        if matches!(event, PathEvent::PathUp(_)) {
            // A path that comes back is a new path: what was learnt before belongs to another time.
            self.paths[path.index()] = (self.make)();
        }
        self.paths[path.index()].on_event(event, cx);
    }

    fn decision(&self, path: PathId) -> Decision {
        self.paths[path.index()].decision()
    }

    fn ecn(&self) -> Ecn {
        (self.make)().ecn()
    }
}

impl std::fmt::Debug for Uncoupled {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Uncoupled").field(&self.paths).finish()
    }
}
