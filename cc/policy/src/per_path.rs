//! A separate policy for each path, for any number of paths.

use crate::PolicyController;
use control::{Context, Controller, Decision, PathEvent};
use units::PathId;

/// One [`PolicyController`] for each path of a connection.
pub struct PerPath {
    construct: Box<dyn Fn() -> PolicyController + Send + Sync>,
    paths: Vec<PolicyController>,
}

impl PerPath {
    /// Makes a controller for each path with `construct`, whose settings must be for one path.
    pub fn new(construct: impl Fn() -> PolicyController + Send + Sync + 'static) -> Self {
        Self { construct: Box::new(construct), paths: Vec::new() }
    }

    /// The controllers so far.
    pub fn controllers(&mut self) -> &mut [PolicyController] {
        &mut self.paths
    }
}

impl Controller for PerPath {
    fn on_event(&mut self, path: PathId, event: &PathEvent, cx: &mut Context<'_>) {
        while self.paths.len() <= path.index() {
            self.paths.push((self.construct)());
        }
        self.paths[path.index()].on_event(PathId(0), event, cx);
    }

    fn decision(&self, path: PathId) -> Decision {
        self.paths[path.index()].decision(PathId(0))
    }

    fn failure(&self) -> Option<&str> {
        self.paths.iter().find_map(Controller::failure)
    }
}

impl std::fmt::Debug for PerPath {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("PerPath").field(&self.paths).finish()
    }
}
