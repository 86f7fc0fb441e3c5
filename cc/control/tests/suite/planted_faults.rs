//! Faults that are planted into Reno are found, with the steps that show them.

use conformance::{Violation, controller::check};
use params::AlgorithmError;
use ropewalk_control::common::{CongestionOps, CwndController, CwndState, reno_cong_avoid, reno_ssthresh};
use ropewalk_control::{
    AckSample, AlgorithmEntry, Constructor, Context, Decision, PathController, PathEvent, Properties,
};

#[derive(Debug)]
struct Reno;

impl CongestionOps for Reno {
    fn cong_avoid(&mut self, state: &mut CwndState, acked: u32, _: &AckSample, _: &mut Context<'_>) {
        reno_cong_avoid(state, acked);
    }

    fn ssthresh(&mut self, state: &CwndState, _: &mut Context<'_>) -> u32 {
        reno_ssthresh(state)
    }
}

/// Reno whose events and decisions pass through a function.
#[derive(Debug)]
struct Faulty(Box<dyn PathController>, fn(&PathEvent, Decision) -> Decision, Decision);

impl PathController for Faulty {
    fn on_event(&mut self, event: &PathEvent, cx: &mut Context<'_>) {
        self.0.on_event(event, cx);
        self.2 = (self.1)(event, self.0.decision());
    }

    fn decision(&self) -> Decision {
        self.2
    }
}

fn violations(fault: fn(&PathEvent, Decision) -> Decision) -> Vec<Violation> {
    let construct = move |_: &ropewalk_control::Params| -> Box<dyn PathController> {
        let reno = CwndController::boxed(Reno);
        let decision = reno.decision();
        Box::new(Faulty(reno, fault, decision))
    };
    check(&AlgorithmEntry {
        name: "faulty",
        aliases: &[],
        title: "Reno with a fault",
        source: "a test",
        parameters: &[],
        properties: Properties::DEFAULT,
        constructor: Constructor::PerPathDyn(std::sync::Arc::new(construct)),
    })
}

fn found(fault: fn(&PathEvent, Decision) -> Decision, rule: &str) -> Violation {
    let violations = violations(fault);
    violations.iter().find(|violation| violation.rule == rule).unwrap_or_else(|| panic!("{violations:?}")).clone()
}

#[test]
fn reno_without_a_fault_keeps_every_rule() {
    assert_eq!(violations(|_, decision| decision), []);
}

#[test]
fn a_window_of_zero_is_found_with_the_steps_that_lead_to_it_alone() {
    let fault = |event: &PathEvent, decision| match event {
        PathEvent::MssChanged { .. } => Decision { cwnd: 0, ..decision },
        _ => decision,
    };
    let violation = found(fault, "cwnd is at least one packet and finite");
    assert_eq!(violation.steps.len(), 1, "{violation}");
    assert!(violation.steps[0].contains("the payload of a packet becomes"), "{violation}");
}

#[test]
fn growth_of_an_unfilled_window_is_found() {
    let fault = |event: &PathEvent, decision: Decision| match event {
        PathEvent::Ack(sample) => Decision { cwnd: decision.cwnd + sample.acked, ..decision },
        _ => decision,
    };
    found(fault, "an unfilled cwnd does not grow");
}

#[test]
fn a_threshold_before_congestion_and_one_below_two_are_found() {
    found(|_, decision| Decision { ssthresh: 1000, ..decision }, "there is no ssthresh before the first congestion");
    found(|_, decision| Decision { ssthresh: 1, ..decision }, "ssthresh is at least two packets");
}

#[test]
fn an_error_of_the_algorithm_is_found() {
    let error = |event: &PathEvent, decision| match event {
        PathEvent::SpuriousLoss => AlgorithmError("no such thing".into()).raise(),
        _ => decision,
    };
    assert_eq!(found(error, "it never fails").message, "no such thing");
}
