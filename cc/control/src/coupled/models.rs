//! A BBR for each path of a group, for those that couple BBRs.

use crate::single::bbr::{Bbr, Cruise};
use crate::{Context, Decision, PathController, PathEvent};
use units::PathId;

/// BBR on each path, and what the coupling keeps for it.
#[derive(Debug)]
pub(super) struct Models<M> {
    paths: Vec<Model<M>>,
}

/// One path.
#[derive(Debug)]
pub(super) struct Model<M> {
    pub(super) bbr: Bbr,
    pub(super) up: bool,
    pub(super) memory: M,
}

impl<M: Default> Default for Model<M> {
    fn default() -> Self {
        Self { bbr: Bbr::new(), up: false, memory: M::default() }
    }
}

impl<M: Default> Models<M> {
    pub(super) fn new() -> Self {
        Self { paths: Vec::new() }
    }

    /// The path, made known if it is new; one that comes up has learnt nothing.
    pub(super) fn note(&mut self, path: PathId, event: &PathEvent) -> &mut Model<M> {
        while self.paths.len() <= path.index() {
            self.paths.push(Model::default());
        }
        let own = &mut self.paths[path.index()];
        match event {
            PathEvent::PathUp(_) => *own = Model { up: true, ..Model::default() },
            PathEvent::PathDown => own.up = false,
            _ => {}
        }
        own
    }

    /// BBR hears the event, with this way of cruising.
    pub(super) fn tell(&mut self, path: PathId, event: &PathEvent, cruise: Cruise, cx: &mut Context<'_>) {
        let own = &mut self.paths[path.index()];
        own.bbr.set_cruise(cruise);
        own.bbr.on_event(event, cx);
    }

    pub(super) fn own(&mut self, path: PathId) -> &mut Model<M> {
        &mut self.paths[path.index()]
    }

    pub(super) fn get(&self, path: PathId) -> &Model<M> {
        &self.paths[path.index()]
    }

    /// The paths that are up and have a bandwidth.
    pub(super) fn measured(&self) -> impl Iterator<Item = &Model<M>> + Clone {
        self.paths.iter().filter(|path| path.up && path.bbr.measured_bandwidth() > 0.0)
    }

    pub(super) fn decision(&self, path: PathId) -> Decision {
        self.paths[path.index()].bbr.decision()
    }
}
