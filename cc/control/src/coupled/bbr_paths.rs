//! The BBR instances of a group's paths, for algorithms that couple them.

use crate::common::Usage;
use crate::single::bbr::{Bbr, ProbeBwGains};
use crate::{Context, Decision, Deviation, PathController, PathEvent, Properties};
use units::{Instant, PathId};

/// Properties of an algorithm that couples BBR instances.
pub(super) const PROPERTIES: Properties = Properties {
    min_cwnd: 4,
    deviations: &[(Deviation::RaisesUnfilledCwnd, "as bbr"), (Deviation::KeepsCwndOnUndo, "as bbr")],
    single_path: Some("bbr"),
    ..Properties::DEFAULT
};

/// A BBR for each path, with the coupling's state of the path.
#[derive(Debug)]
pub(super) struct BbrPaths<M> {
    paths: Vec<BbrPath<M>>,
}

/// A path's BBR, and the coupling's state of the path.
#[derive(Debug)]
pub(super) struct BbrPath<M> {
    pub(super) bbr: Bbr,
    pub(super) up: bool,
    usage: Usage,
    /// Whether the path counts: it is up, in use, and has a bandwidth estimate.
    is_measured: bool,
    pub(super) state: M,
}

impl<M: Default> Default for BbrPath<M> {
    fn default() -> Self {
        Self { bbr: Bbr::new(), up: false, usage: Usage::NEVER, is_measured: false, state: M::default() }
    }
}

impl<M: Default> BbrPaths<M> {
    pub(super) fn new() -> Self {
        Self { paths: Vec::new() }
    }

    /// Adds the path if it is new and resets it if it comes up, and determines which paths count at `now`. Returns the
    /// path.
    pub(super) fn update(&mut self, path: PathId, event: &PathEvent, now: Instant) -> &mut BbrPath<M> {
        while self.paths.len() <= path.index() {
            self.paths.push(BbrPath::default());
        }
        let own = &mut self.paths[path.index()];
        match event {
            PathEvent::PathUp(_) => *own = BbrPath { up: true, ..BbrPath::default() },
            PathEvent::PathDown => own.up = false,
            _ => {}
        }
        for (index, other) in self.paths.iter_mut().enumerate() {
            let is_in_use = index == path.index() || other.usage.is_in_use(now);
            other.is_measured = other.up && is_in_use && other.bbr.max_bw() > 0.0;
        }
        let own = &mut self.paths[path.index()];
        own.usage.on_event(event, now);
        own
    }

    /// Passes the event to the path's BBR, which uses these gains in ProbeBW.
    pub(super) fn on_event(&mut self, path: PathId, event: &PathEvent, gains: ProbeBwGains, cx: &mut Context<'_>) {
        let own = &mut self.paths[path.index()];
        own.bbr.set_probe_bw_gains(gains);
        own.bbr.on_event(event, cx);
    }

    pub(super) fn own_path(&mut self, path: PathId) -> &mut BbrPath<M> {
        &mut self.paths[path.index()]
    }

    pub(super) fn get(&self, path: PathId) -> &BbrPath<M> {
        &self.paths[path.index()]
    }

    /// The paths that are up and in use, and have a bandwidth estimate.
    pub(super) fn measured(&self) -> impl Iterator<Item = &BbrPath<M>> + Clone {
        self.paths.iter().filter(|path| path.is_measured)
    }

    pub(super) fn decision(&self, path: PathId) -> Decision {
        self.paths[path.index()].bbr.decision()
    }
}
