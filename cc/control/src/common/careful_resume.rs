//! Careful Resume: a flow that knows the window and RTT of an earlier flow on its path soon sends at half that window.
//!
//! - *Reconnaissance*: the algorithm's own slow start, until the initial window is acknowledged without congestion, at
//!   an RTT above half and at most ten times the saved one, and while the window limits the sender.
//! - *Unvalidated*: the window is half the saved one, paced over the current RTT. The phase lasts until that window is
//!   in flight, one of its packets is acknowledged, or an RTT has passed. Then the window becomes the packets in
//!   flight. If the application sent no more than the validated packets, the window becomes these, and the algorithm
//!   continues from there.
//! - *Validating*: the algorithm's own increase, until all these packets are acknowledged; then the algorithm
//!   continues.
//! - *Safe Retreat*, on congestion or an RTT that is too short in these two phases: the window is half of the validated
//!   packets (PipeSize) until all these packets are acknowledged or repaired; the threshold is then half of PipeSize.
//!
//! A timeout ends Careful Resume in every phase. Before and afterwards, only the algorithm acts.
//!
//! Source: RFC 9959, appendices A and B from the RFC, sections 3.1 to 3.6 from its last available draft
//! (draft-ietf-tsvwg-careful-resume-24, whose appendices are the same). Not modelled: saving and forgetting the values
//! (Observing, Lifetime, Remote Endpoint), because a scenario gives them; and `max_jump`, because it would be another
//! bound on the same number. PipeSize counts the packets in flight when the window was raised, and then every
//! unvalidated packet that is acknowledged without a retransmission. This gives the 63 packets of appendix B.4. The 120
//! packets at that example's end leave out the former, and the rule of section 3 could be read as counting it twice.
//! The example keeps at least the initial window in Safe Retreat; the rule does not, and neither does this code (it
//! keeps two packets). The sent packets are checked at each acknowledgement, not at each packet.

use super::{CongestionOps, CwndController, CwndState};
use crate::{AckSample, Cause, Context, Decision, ParamError, ParamKind, Parameter, Params, PathController, PathEvent};
use units::{Instant, Rate, Span};

/// The window of an earlier flow.
pub const SAVED_CWND: Parameter = Parameter {
    name: "saved_cwnd",
    description: "window of an earlier flow on this path, packets: half of it is sent after one RTT (Careful Resume, \
                  RFC 9959); needs saved_rtt_ms; 0 is off",
    kind: ParamKind::Number { default: 0.0, min: 0.0, max: 1e6 },
};

/// The RTT of an earlier flow.
pub const SAVED_RTT: Parameter = Parameter {
    name: "saved_rtt_ms",
    description: "minimum RTT of that earlier flow, ms; a path with half or ten times this RTT counts as a different one",
    kind: ParamKind::Number { default: 0.0, min: 0.0, max: 60_000.0 },
};

/// An RTT above this multiple of the saved one shows a different path.
const MAX_RTT_FACTOR: u64 = 10;
/// Minimum window, packets.
const MIN_CWND: u32 = 2;

/// Checks that both values or neither are given, for an algorithm's registration.
///
/// # Errors
/// One value is given without the other.
pub fn check(params: &Params) -> Result<(), ParamError> {
    let given = |parameter: Parameter| params.number(parameter.name) > 0.0;
    let (key, missing) = match (given(SAVED_CWND), given(SAVED_RTT)) {
        (true, false) => (SAVED_CWND.name, SAVED_RTT.name),
        (false, true) => (SAVED_RTT.name, SAVED_CWND.name),
        _ => return Ok(()),
    };
    Err(ParamError { key: key.to_owned(), message: format!("`{key}` needs `{missing}` of the same earlier flow") })
}

/// The controller of one path from `ops`; with Careful Resume if a window is saved.
pub fn boxed<O: CongestionOps + 'static>(ops: O, params: &Params) -> Box<dyn PathController> {
    let saved_cwnd = params.number(SAVED_CWND.name) as u32;
    if saved_cwnd == 0 {
        return CwndController::boxed(ops);
    }
    let saved_rtt = Span::from_secs_f64(params.number(SAVED_RTT.name) / 1e3);
    Box::new(CarefulResume::new(ops, saved_cwnd, saved_rtt))
}

/// A window-based algorithm with Careful Resume. Windows are in packets.
#[derive(Debug)]
struct CarefulResume<O> {
    controller: CwndController<O>,
    jump_cwnd: u32,
    saved_rtt: Span,
    phase: Phase,
}

/// The phases of Careful Resume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Reconnaissance { min_rtt: Span },
    Unvalidated { pipe: Pipe, since: Instant, first_unvalidated: u64, rtt: Span },
    Validating { pipe: Pipe, end: End },
    SafeRetreat { pipe: Pipe, end: Option<End>, cwnd: u32 },
    Normal,
}

/// State when the last unvalidated packet had been sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct End {
    /// The number of the next packet.
    snd_nxt: u64,
    /// Packets ever delivered on the path.
    delivered: u64,
}

impl End {
    fn at(sample: &AckSample) -> Self {
        Self { snd_nxt: sample.snd_nxt, delivered: sample.delivered }
    }
}

/// PipeSize: the packets that the path has carried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Pipe {
    /// Packets in flight when the window was raised.
    flight_size: u32,
    /// Packets acknowledged since then, up to the last unvalidated packet.
    acked: u32,
}

impl Pipe {
    fn size(self) -> u32 {
        self.flight_size.max(self.acked)
    }

    /// Adds the packets of this acknowledgement, if the newest of them was sent before `end`. A retransmitted packet
    /// was not.
    fn with(self, sample: &AckSample, end: Option<End>) -> Self {
        let counts = match (end, sample.rate_sample) {
            (Some(end), Some(rate_sample)) => rate_sample.prior_delivered < end.delivered,
            _ => true,
        };
        Self { acked: self.acked + if counts { sample.acked } else { 0 }, ..self }
    }
}

impl<O: CongestionOps + 'static> CarefulResume<O> {
    fn new(ops: O, saved_cwnd: u32, saved_rtt: Span) -> Self {
        let phase = Phase::Reconnaissance { min_rtt: Span::MAX };
        Self { controller: CwndController::new(ops), jump_cwnd: saved_cwnd / 2, saved_rtt, phase }
    }

    fn state(&mut self) -> &mut CwndState {
        self.controller.state_mut()
    }

    fn is_too_short(&self, rtt: Span) -> bool {
        rtt <= self.saved_rtt / 2
    }

    /// Called after the algorithm has handled an acknowledgement, which changed its window from `cwnd_before`.
    fn on_ack(&mut self, sample: &AckSample, cwnd_before: u32, now: Instant) {
        self.phase = match self.phase {
            Phase::Reconnaissance { min_rtt } => {
                self.reconnoitre(sample.rtt.map_or(min_rtt, |rtt| rtt.min(min_rtt)), sample, now)
            }
            Phase::Unvalidated { pipe, since, first_unvalidated, rtt } => {
                self.state().cwnd = cwnd_before;
                let rtt = sample.rtt.unwrap_or(rtt);
                let pipe = pipe.with(sample, None);
                if self.is_too_short(rtt) {
                    self.safe_retreat(pipe, Some(End::at(sample)))
                } else if sample.prior_in_flight >= cwnd_before
                    || sample.snd_una > first_unvalidated
                    || now.since(since) > rtt
                {
                    self.end_unvalidated(pipe, sample)
                } else {
                    Phase::Unvalidated { pipe, since, first_unvalidated, rtt }
                }
            }
            Phase::Validating { pipe, end } if sample.snd_una < end.snd_nxt => {
                Phase::Validating { pipe: pipe.with(sample, Some(end)), end }
            }
            Phase::SafeRetreat { pipe, end, cwnd } => {
                self.retreat(pipe.with(sample, end), end.unwrap_or(End::at(sample)), cwnd, sample)
            }
            Phase::Validating { .. } | Phase::Normal => Phase::Normal,
        };
    }

    fn reconnoitre(&mut self, min_rtt: Span, sample: &AckSample, now: Instant) -> Phase {
        let jump_cwnd = self.jump_cwnd;
        let state = self.controller.state_mut();
        if state.cwnd >= jump_cwnd {
            return Phase::Normal;
        }
        if sample.delivered < u64::from(state.initial_window) || !sample.cwnd_limited {
            return Phase::Reconnaissance { min_rtt };
        }
        let rtt = sample.rtt.unwrap_or(min_rtt);
        if min_rtt <= self.saved_rtt / 2 || min_rtt > self.saved_rtt * MAX_RTT_FACTOR || min_rtt == Span::MAX {
            return Phase::Normal;
        }
        state.cwnd = jump_cwnd.min(state.cwnd_clamp);
        Phase::Unvalidated {
            pipe: Pipe { flight_size: sample.in_flight, acked: 0 },
            since: now,
            first_unvalidated: sample.snd_nxt,
            rtt,
        }
    }

    /// The phase after the unvalidated packets have been sent.
    fn end_unvalidated(&mut self, pipe: Pipe, sample: &AckSample) -> Phase {
        let state = self.controller.state_mut();
        if sample.in_flight < state.initial_window || sample.in_flight <= pipe.size() {
            state.cwnd = pipe.size().max(state.initial_window);
            return Phase::Normal;
        }
        state.cwnd = sample.in_flight;
        Phase::Validating { pipe, end: End::at(sample) }
    }

    fn safe_retreat(&mut self, pipe: Pipe, end: Option<End>) -> Phase {
        let cwnd = (pipe.size() / 2).max(MIN_CWND);
        self.state().cwnd = cwnd;
        Phase::SafeRetreat { pipe, end, cwnd }
    }

    /// Keeps the window until the unvalidated packets are acknowledged and the algorithm's recovery is over.
    fn retreat(&mut self, pipe: Pipe, end: End, cwnd: u32, sample: &AckSample) -> Phase {
        let state = self.controller.state_mut();
        state.cwnd = cwnd;
        if sample.snd_una < end.snd_nxt || state.in_cwnd_reduction() {
            return Phase::SafeRetreat { pipe, end: Some(end), cwnd };
        }
        state.ssthresh = (pipe.size() / 2).max(MIN_CWND);
        Phase::Normal
    }

    /// Called after the algorithm has handled a sign of congestion.
    fn on_congestion(&mut self, cause: Cause) {
        self.phase = match self.phase {
            _ if cause == Cause::Timeout => Phase::Normal,
            Phase::Unvalidated { pipe, .. } => self.safe_retreat(pipe, None),
            Phase::Validating { pipe, end } => self.safe_retreat(pipe, Some(end)),
            Phase::SafeRetreat { cwnd, .. } => {
                self.state().cwnd = cwnd;
                self.phase
            }
            Phase::Reconnaissance { .. } | Phase::Normal => Phase::Normal,
        };
    }
}

impl<O: CongestionOps + 'static> PathController for CarefulResume<O> {
    fn on_event(&mut self, event: &PathEvent, cx: &mut Context<'_>) {
        let cwnd_before = self.controller.state().cwnd;
        self.controller.on_event(event, cx);
        match event {
            // Saved values are used once.
            PathEvent::PathUp(path) => {
                self.phase = match self.phase {
                    Phase::Reconnaissance { .. } => Phase::Reconnaissance { min_rtt: path.rtt.unwrap_or(Span::MAX) },
                    _ => Phase::Normal,
                }
            }
            PathEvent::Ack(sample) => self.on_ack(sample, cwnd_before, cx.now),
            PathEvent::Congestion { cause, .. } => self.on_congestion(*cause),
            PathEvent::Recovered { .. } | PathEvent::SpuriousLoss => {
                if let Phase::SafeRetreat { cwnd, .. } = self.phase {
                    self.state().cwnd = cwnd;
                }
            }
            _ => {}
        }
    }

    fn decision(&self) -> Decision {
        let decision = self.controller.decision();
        let Phase::Unvalidated { rtt, .. } = self.phase else { return decision };
        let state = self.controller.state();
        let bytes = u64::from(decision.cwnd) * u64::from(state.mss);
        Decision { pacing_rate: Some(Rate::of(bytes, rtt)), ..decision }
    }

    fn requests_reduction(&self) -> bool {
        self.controller.requests_reduction()
    }
}

#[cfg(test)]
mod tests;
