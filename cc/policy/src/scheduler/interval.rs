//! Schedulers that a policy decides at each monitor interval, which it measures as a learning environment does.
//!
//! The measurements are of the events of congestion control, and the decision is due at the first event or pick at or
//! after the end of an interval. So the scheduler and a watcher of these events share the measurements.

use super::Answers;
use crate::{ModelPolicy, PolicyController, Settings};
use control::{Context, Controller, Decision, PathEvent};
use schedule::{Fixed, MinRtt, Pick, Scheduler, SchedulerView, Weighted};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use units::{Instant, PathId, Rate};

/// The weight of a path for an action of 0, Mbit/s. Only ratios matter.
pub const MEAN_WEIGHT: u32 = 10;

/// The weights of the strict scheduler `weighted` for the numbers of an action: `8^a` for `a` from -1 to 1, times
/// [`MEAN_WEIGHT`].
#[must_use]
pub fn weights_of(action: &[f32]) -> Vec<Rate> {
    let weight = |a: &f32| f64::from(MEAN_WEIGHT) * libm::exp2(3.0 * f64::from(a.clamp(-1.0, 1.0)));
    action.iter().map(|a| Rate::from_bits((weight(a) * 1e6) as u64)).collect()
}

/// What a policy decides of a connection, before the first decision and after each.
#[derive(Debug)]
enum Steered {
    Path(Fixed),
    Weights(Weighted),
}

impl Steered {
    fn steer(&mut self, answer: &[f32]) {
        match self {
            Self::Path(fixed) => fixed.set_path(super::greatest(answer).expect("a number for each path")),
            Self::Weights(weighted) => weighted.set_weights(weights_of(answer)),
        }
    }
}

/// The measurements and the policy of a connection.
#[derive(Debug)]
struct Measured {
    intervals: PolicyController,
    answers: Answers,
    steered: Steered,
}

impl Measured {
    /// Decides, if an interval with an event has ended before `now`.
    fn cross(&mut self, now: Instant) {
        if now >= self.intervals.boundary()
            && let Some(observation) = self.intervals.close(now)
            && let Some(answer) = self.answers.to(observation)
        {
            self.steered.steer(answer);
        }
    }
}

/// A policy that chooses a path or weights at each interval; `minrtt` once it has failed.
#[derive(Debug)]
pub(super) struct IntervalScheduler {
    settings: Settings,
    measured: Arc<Mutex<Measured>>, // nothing ever waits for the lock
    failure: Option<String>,
    notes: Vec<String>,
}

impl IntervalScheduler {
    /// Path 0 carries the packets before the first decision.
    pub(super) fn of_path(settings: &Settings, policy: ModelPolicy, notes: Vec<String>) -> Self {
        Self::new(settings, policy, Steered::Path(Fixed::new(PathId(0))), notes)
    }

    /// The weights are equal before the first decision.
    pub(super) fn of_weights(settings: &Settings, policy: ModelPolicy, notes: Vec<String>) -> Self {
        let weights = vec![MEAN_WEIGHT; settings.paths];
        Self::new(settings, policy, Steered::Weights(Weighted::new(&weights, true)), notes)
    }

    fn new(settings: &Settings, policy: ModelPolicy, steered: Steered, notes: Vec<String>) -> Self {
        let intervals = PolicyController::from_outside(settings.clone());
        let measured = Measured { intervals, answers: Answers::new(policy), steered };
        Self { settings: settings.clone(), measured: Arc::new(Mutex::new(measured)), failure: None, notes }
    }
}

impl Scheduler for IntervalScheduler {
    fn pick(&mut self, view: &SchedulerView<'_>) -> Option<Pick> {
        if self.failure.is_some() {
            return MinRtt.pick(view);
        }
        let mut measured = lock(&self.measured);
        measured.answers.check_paths(view.paths.len());
        measured.cross(view.now);
        if measured.answers.failure.is_some() {
            self.failure.clone_from(&measured.answers.failure);
            return MinRtt.pick(view);
        }
        match &mut measured.steered {
            Steered::Path(fixed) => fixed.pick(view),
            Steered::Weights(weighted) => weighted.pick(view),
        }
    }

    fn watches(&self) -> bool {
        true
    }

    fn watch(&mut self, controller: Box<dyn Controller>) -> Box<dyn Controller> {
        lock(&self.measured).intervals = PolicyController::watching(self.settings.clone(), controller);
        Box::new(Watcher { measured: self.measured.clone(), failure: None })
    }

    fn failure(&self) -> Option<&str> {
        self.failure.as_deref()
    }

    fn notes(&self) -> Vec<String> {
        self.notes.clone()
    }
}

/// The congestion control of a connection whose events are measured for its scheduler.
#[derive(Debug)]
struct Watcher {
    measured: Arc<Mutex<Measured>>,
    failure: Option<String>,
}

impl Controller for Watcher {
    fn on_event(&mut self, path: PathId, event: &PathEvent, cx: &mut Context<'_>) {
        let mut measured = lock(&self.measured);
        measured.cross(cx.now);
        measured.intervals.on_event(path, event, cx);
        if self.failure.is_none() {
            self.failure = Controller::failure(&measured.intervals).map(str::to_owned);
        }
    }

    fn decision(&self, path: PathId) -> Decision {
        lock(&self.measured).intervals.decision(path)
    }

    fn requests_reduction(&self, path: PathId) -> bool {
        lock(&self.measured).intervals.requests_reduction(path)
    }

    fn failure(&self) -> Option<&str> {
        self.failure.as_deref()
    }
}

fn lock(measured: &Mutex<Measured>) -> MutexGuard<'_, Measured> {
    measured.lock().unwrap_or_else(PoisonError::into_inner)
}
