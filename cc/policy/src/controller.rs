//! The controller of a group of paths that a policy controls.
//!
//! **Time is divided at boundaries.** These are multiples of a fixed interval, or the start of the interval plus the
//! smoothed RTT that was known then (for a group the largest; 10 ms before the first sample, never below 1 ms). At the
//! first event at or after a boundary, before that event is handled, the interval is closed, the policy is asked and
//! its action carried out. The interval's sums cover the events before the boundary, and its length ends there. If the
//! group has no event during an interval, no action is taken. The interval is then extended to the next boundary after
//! an event, in steps of its length.
//!
//! A driver that decides from outside works in the same way, and gets the same decisions, bit for bit. It runs up to
//! [`PolicyController::boundary`], exclusive. If [`PolicyController::is_due`], it calls [`PolicyController::observe`]
//! and [`PolicyController::decide`], else [`PolicyController::skip`].

use crate::action::{Action, Actuator};
use crate::feature::Windows;
use crate::monitor::{Monitor, Summary};
use crate::observation::Observation;
use crate::{Interval, Policy, PolicyError};
use control::{Context, Controller, Decision, PathEvent};
use units::{Instant, PathId, Span};

/// Length of an RTT interval before the first RTT sample.
const UNKNOWN_RTT: Span = Span::from_millis(10);
/// Minimum length of an interval.
const MIN_INTERVAL: Span = Span::from_millis(1);

/// A policy's observation, interval and action.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// The features of each path.
    pub observation: Observation,
    /// The effect of each number of the answer.
    pub action: Action,
    /// When the policy is asked.
    pub interval: Interval,
    /// Number of paths for which the policy decides together.
    pub paths: usize,
}

impl Settings {
    /// Number of values of an observation: those of path 0, then those of path 1, and so on.
    #[must_use]
    pub fn observation_len(&self) -> usize {
        self.paths * self.observation.len()
    }

    /// Number of values of an answer: one per path.
    #[must_use]
    pub fn action_len(&self) -> usize {
        self.paths
    }
}

/// A group of paths controlled by a policy.
#[derive(Debug)]
pub struct PolicyController {
    settings: Settings,
    policy: Option<Box<dyn Policy>>,
    paths: Vec<ControlledPath>,
    /// Start of the interval.
    start: Instant,
    /// The first boundary after the latest event.
    boundary: Instant,
    /// Distance between boundaries.
    step: Span,
    has_event: bool,
    observation: Vec<f32>,
    action: Vec<f32>,
    /// Measurements of the last closed interval.
    summaries: Vec<Summary>,
    failure: Option<PolicyError>,
    decisions: u64,
    /// The algorithm that decides instead of the policy.
    watched: Option<Box<dyn Controller>>,
}

#[derive(Debug)]
struct ControlledPath {
    monitor: Monitor,
    actuator: Actuator,
    windows: Windows,
    action: f32,
    is_up: bool,
}

impl PolicyController {
    /// A controller that asks `policy`.
    #[must_use]
    pub fn new(settings: Settings, policy: Box<dyn Policy>) -> Self {
        Self { policy: Some(policy), ..Self::from_outside(settings) }
    }

    /// A controller that leaves all decisions to `watched`, and measures its intervals: a baseline, or the measurements of
    /// a connection whose scheduler is steered.
    #[must_use]
    pub fn watching(settings: Settings, watched: Box<dyn Controller>) -> Self {
        Self { watched: Some(watched), ..Self::from_outside(settings) }
    }

    /// A controller whose decisions come from outside. Without a decision, nothing changes.
    #[must_use]
    pub fn from_outside(settings: Settings) -> Self {
        let path = |_| ControlledPath {
            monitor: Monitor::default(),
            actuator: Actuator::new(settings.action),
            windows: Windows::default(),
            action: 0.0,
            is_up: false,
        };
        let step = match settings.interval {
            Interval::Fixed(span) => span.max(MIN_INTERVAL),
            Interval::RoundTrip => UNKNOWN_RTT,
        };
        Self {
            policy: None,
            paths: (0..settings.paths).map(path).collect(),
            start: Instant::ZERO,
            boundary: Instant::ZERO + step,
            step,
            has_event: false,
            observation: vec![0.0; settings.observation_len()],
            action: vec![0.0; settings.action_len()],
            summaries: vec![Summary::default(); settings.paths],
            failure: None,
            decisions: 0,
            watched: None,
            settings,
        }
    }

    /// The policy's observation, interval and action.
    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The next boundary: the end of the interval, if it [is due](Self::is_due) there.
    #[must_use]
    pub fn boundary(&self) -> Instant {
        self.boundary
    }

    /// Whether a decision is due at the boundary, because the interval had an event.
    #[must_use]
    pub fn is_due(&self) -> bool {
        self.has_event
    }

    /// Skips a boundary whose interval had no event.
    pub fn skip(&mut self) {
        self.boundary += self.step;
    }

    /// Closes the interval at its boundary and begins the next one. Returns the observation.
    pub fn observe(&mut self) -> &[f32] {
        let elapsed = self.boundary.since(self.start);
        let len = self.settings.observation.len();
        let is_windowed = self.settings.observation.is_windowed();
        let paths = (0..).map(PathId).zip(&mut self.paths).zip(&mut self.summaries);
        for (((id, path), summary), values) in paths.zip(self.observation.chunks_exact_mut(len)) {
            let decision = match &self.watched {
                Some(watched) => path.is_up.then(|| watched.decision(id)),
                None => path.actuator.decision(),
            };
            *summary = path.monitor.close(elapsed, decision, path.action);
            if is_windowed {
                path.windows.push(summary);
            }
            self.settings.observation.push(values, summary, &path.windows);
        }
        self.start = self.boundary;
        if self.settings.interval == Interval::RoundTrip {
            let srtt = self.paths.iter().map(|path| path.monitor.srtt()).max().unwrap_or_default();
            self.step = if srtt > Span::ZERO { srtt.max(MIN_INTERVAL) } else { UNKNOWN_RTT };
        }
        self.boundary = self.start + self.step;
        self.has_event = false;
        &self.observation
    }

    /// Carries out an action: one number per path. If a number is not finite, the policy has failed, and every path
    /// continues with CUBIC from its current window.
    pub fn decide(&mut self, action: &[f32], cx: &mut Context<'_>) {
        self.decisions += 1;
        if let Some(number) = action.iter().find(|number| !number.is_finite()) {
            return self.fail(PolicyError(format!("the policy answered {number}")), cx);
        }
        for (path, a) in self.paths.iter_mut().zip(action) {
            path.action = *a;
            path.actuator.act(*a);
        }
    }

    /// The measurements of the last closed interval, one per path.
    #[must_use]
    pub fn summaries(&self) -> &[Summary] {
        &self.summaries
    }

    /// The reason why the group runs CUBIC instead of the policy, if it does.
    #[must_use]
    pub fn failure(&self) -> Option<&PolicyError> {
        self.failure.as_ref()
    }

    /// The last observation.
    #[cfg(test)]
    pub(crate) fn observation_for_tests(&self) -> &[f32] {
        &self.observation
    }

    /// Number of actions so far.
    #[must_use]
    pub fn decisions(&self) -> u64 {
        self.decisions
    }

    /// Switches every path to CUBIC.
    pub(crate) fn fail(&mut self, error: PolicyError, cx: &mut Context<'_>) {
        self.paths.iter_mut().for_each(|path| path.actuator.fail(cx));
        self.failure.get_or_insert(error);
    }

    /// Handles a time at or after the boundary: closes the interval, if it had an event, and begins the one that contains
    /// `now`. Returns the observation of a closed interval.
    pub(crate) fn close(&mut self, now: Instant) -> Option<&[f32]> {
        let is_due = self.has_event;
        if is_due {
            self.observe();
        }
        let steps = now.since(self.start).0 / self.step.0 + 1;
        self.boundary = self.start + self.step * steps;
        is_due.then_some(&*self.observation)
    }

    /// Handles a time at or after the boundary: decides for the interval, if it had an event.
    #[cold]
    fn cross(&mut self, cx: &mut Context<'_>) {
        let is_closed = self.close(cx.now).is_some();
        if is_closed && let (Some(mut policy), None) = (self.policy.take(), &self.failure) {
            let mut action = std::mem::take(&mut self.action);
            action.fill(0.0);
            match policy.act(&self.observation, &mut action) {
                Ok(()) => self.decide(&action, cx),
                Err(error) => self.fail(error, cx),
            }
            self.action = action;
            self.policy = Some(policy);
        }
    }
}

impl Controller for PolicyController {
    fn on_event(&mut self, path: PathId, event: &PathEvent, cx: &mut Context<'_>) {
        if cx.now >= self.boundary {
            self.cross(cx);
        }
        let (start, id) = (self.start, path);
        if let Some(path) = self.paths.get_mut(id.index()) {
            self.has_event = true;
            match event {
                PathEvent::PathUp(_) => {
                    path.windows.clear();
                    path.is_up = true;
                }
                PathEvent::PathDown => path.is_up = false,
                _ => {}
            }
            path.monitor.on_event(cx.now, start, event);
            if self.watched.is_none() {
                path.actuator.on_event(event, &path.monitor, cx);
            }
        }
        if let Some(watched) = &mut self.watched {
            watched.on_event(id, event, cx);
        }
    }

    fn decision(&self, path: PathId) -> Decision {
        if let Some(watched) = &self.watched {
            return watched.decision(path);
        }
        let decided = self.paths.get(path.index()).and_then(|path| path.actuator.decision());
        // A path beyond the group's number, which the driver has refused before: the initial window of any sender.
        decided.unwrap_or(Decision { cwnd: 10, ssthresh: units::INFINITE_SSTHRESH, pacing_rate: None })
    }

    fn requests_reduction(&self, path: PathId) -> bool {
        self.watched.as_ref().is_some_and(|watched| watched.requests_reduction(path))
    }

    fn failure(&self) -> Option<&str> {
        let watched = self.watched.as_ref().and_then(|watched| watched.failure());
        self.failure.as_ref().map(|error| error.0.as_str()).or(watched)
    }
}
