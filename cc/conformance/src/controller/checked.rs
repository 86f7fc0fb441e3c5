//! A controller that checks each decision of another one.

use crate::Violation;
use control::{AlgorithmEntry, CaState, Cause, Context, Controller, Decision, Deviation, PathEvent};
use params::ParamValue;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use units::{INFINITE_SSTHRESH, PathId};

/// The first rule that was broken, shared with the sender.
#[derive(Clone, Debug, Default)]
pub(crate) struct Broken(Arc<Mutex<Option<(&'static str, String)>>>);

impl Broken {
    fn check(&self, holds: bool, rule: &'static str, message: impl FnOnce() -> String) {
        if !holds {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_with(|| (rule, message()));
        }
    }

    /// The violation, if a rule was broken.
    pub(crate) fn result(&self) -> Result<(), Violation> {
        let broken = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        broken.map_or(Ok(()), |(rule, message)| Err(Violation { rule, message, steps: Vec::new() }))
    }
}

/// The checking controller.
#[derive(Debug)]
pub(crate) struct CheckedController {
    inner: Box<dyn Controller>,
    name: &'static str,
    min_cwnd: u32,
    /// Whether an unfilled window may rise, as the entry says or because the coupling has path controllers.
    raises_unfilled_cwnd: bool,
    reduces_on_loss_after_mark: bool,
    /// The congestion states of the paths, derived from their events.
    ca_states: BTreeMap<PathId, CaState>,
    broken: Broken,
}

impl CheckedController {
    pub(crate) fn new(
        entry: &AlgorithmEntry,
        given: &BTreeMap<String, ParamValue>,
        broken: &Broken,
    ) -> Result<Self, Violation> {
        let inner = crate::panics::caught(|| {
            entry.controller(given).map_err(|error| Violation {
                rule: "its parameters have allowed defaults",
                message: error.to_string(),
                steps: Vec::new(),
            })
        })?;
        let has_path_controllers = given.get("path").is_some_and(|path| *path != ParamValue::Choice("reno".to_owned()));
        Ok(Self {
            inner,
            name: entry.name,
            min_cwnd: entry.properties.min_cwnd,
            raises_unfilled_cwnd: has_path_controllers || entry.deviates(Deviation::RaisesUnfilledCwnd),
            reduces_on_loss_after_mark: entry.deviates(Deviation::ReducesOnLossAfterMark),
            ca_states: BTreeMap::new(),
            broken: broken.clone(),
        })
    }

    fn check(&self, event: &PathEvent, ca_state: CaState, prior: Decision, decision: Decision) {
        let describe = || format!("{} on {event:?} in {ca_state:?}: {prior:?} became {decision:?}", self.name);
        self.check_range(decision, describe);
        if ca_state < CaState::Cwr && !matches!(event, PathEvent::Congestion { .. }) {
            let min_cwnd = self.min_cwnd.min(prior.cwnd);
            self.broken.check(decision.cwnd >= min_cwnd, "cwnd is at least its minimum outside a reduction", describe);
        }
        if let PathEvent::Ack(sample) = event {
            let may_rise = sample.cwnd_limited
                || matches!(sample.ca_state, CaState::Cwr | CaState::Recovery)
                || self.raises_unfilled_cwnd;
            self.broken.check(may_rise || decision.cwnd <= prior.cwnd, "an unfilled cwnd does not grow", describe);
        }
        if let PathEvent::Congestion { cause, reduce_cwnd, .. } = event {
            let reduces_again = *cause == Cause::Loss && ca_state == CaState::Cwr && self.reduces_on_loss_after_mark;
            let reduced_before =
                !reduce_cwnd || ca_state >= CaState::Cwr && !matches!(cause, Cause::Timeout) && !reduces_again;
            let holds = !reduced_before || decision.ssthresh == prior.ssthresh;
            self.broken.check(holds, "ssthresh is reduced once in a window", describe);
        }
    }

    fn check_range(&self, decision: Decision, describe: impl Fn() -> String + Copy) {
        let finite = 1..=INFINITE_SSTHRESH;
        self.broken.check(finite.contains(&decision.cwnd), "cwnd is at least one packet and finite", describe);
        let holds = decision.ssthresh >= 2 && finite.contains(&decision.ssthresh);
        self.broken.check(holds, "ssthresh is at least two packets", describe);
        let holds = decision.pacing_rate.is_none_or(|rate| rate.as_bits() > 0);
        self.broken.check(holds, "the pacing rate is above zero", describe);
    }
}

impl Controller for CheckedController {
    fn on_event(&mut self, path: PathId, event: &PathEvent, cx: &mut Context<'_>) {
        let ca_state = match event {
            PathEvent::PathUp(_) => {
                self.ca_states.insert(path, CaState::Open);
                self.inner.on_event(path, event, cx);
                let decision = self.inner.decision(path);
                return self.check_range(decision, || format!("{} on {event:?}: {decision:?}", self.name));
            }
            PathEvent::Ack(sample) => sample.ca_state,
            PathEvent::SpuriousLoss | PathEvent::Recovered { .. } => CaState::Open,
            _ => self.ca_states[&path],
        };
        let prior = self.inner.decision(path);
        self.inner.on_event(path, event, cx);
        self.check(event, ca_state, prior, self.inner.decision(path));
        let next_ca_state = match event {
            PathEvent::Congestion { cause: Cause::Loss, .. } => CaState::Recovery,
            PathEvent::Congestion { cause: Cause::Timeout, .. } => CaState::Loss,
            PathEvent::Congestion { cause: Cause::EcnMark | Cause::LocalDrop | Cause::Requested, .. } => {
                ca_state.max(CaState::Cwr)
            }
            _ => ca_state,
        };
        self.ca_states.insert(path, next_ca_state);
    }

    fn decision(&self, path: PathId) -> Decision {
        self.inner.decision(path)
    }

    fn requests_reduction(&self, path: PathId) -> bool {
        self.inner.requests_reduction(path)
    }
}
