//! Random events, for every algorithm.

use conformance::controller::{Action, check_actions};
use proptest::prelude::*;
use ropewalk_control::registry::{REGISTRY, find};

fn ack() -> impl Strategy<Value = Action> {
    let lost = prop_oneof![8 => Just(0u32), 1 => 1..20u32];
    (0..40u32, lost, 1..400_000u64).prop_map(|(acked, lost, rtt_us)| Action::Ack { acked, lost, rtt_us })
}

fn action() -> impl Strategy<Value = Action> {
    prop_oneof![
        12 => (1..100u32).prop_map(Action::Send),
        12 => ack(),
        4 => (0..300u64).prop_map(Action::Wait),
        1 => Just(Action::Mark),
        1 => Just(Action::LocalDrop),
        1 => Just(Action::Timeout),
        1 => Just(Action::SpuriousLoss),
        1 => Just(Action::TlpRecovery),
        1 => (0..200u32).prop_map(Action::ApplicationLimited),
        1 => (500..9000u32).prop_map(Action::Mss),
        1 => (5_000..20_000u64).prop_map(Action::Wait),
        1 => Just(Action::Toggle),
    ]
}

pub(crate) fn actions() -> impl Strategy<Value = Vec<(usize, Action)>> {
    prop::collection::vec((0..3usize, action()), 1..300)
}

proptest! {
    #[test]
    fn every_algorithm_keeps_the_invariants_and_is_deterministic(actions in actions()) {
        for entry in REGISTRY.iter().copied() {
            check_actions(entry, &actions).map_err(|violation| TestCaseError::fail(violation.to_string()))?;
        }
    }
}

/// A test of politeness that says nothing ended with an acknowledgement that did not fill the window.
#[test]
fn a_test_that_says_nothing_does_not_raise_an_unfilled_window() {
    let ack = |acked, lost, rtt_us| Action::Ack { acked, lost, rtt_us };
    let actions = [
        (2, Action::Send(1)),
        (2, ack(1, 0, 4901)),
        (2, Action::Send(10)),
        (2, ack(10, 0, 6902)),
        (2, Action::Send(17)),
        (0, Action::Send(1)),
        (2, ack(0, 6, 1)),
        (0, Action::Send(1)),
        (2, ack(1, 0, 6902)),
        (0, Action::Wait(46)),
        (0, Action::Send(1)),
        (2, ack(4, 0, 6902)),
        (0, Action::Wait(166)),
        (2, Action::Send(4)),
        (2, ack(1, 0, 6902)),
        (0, Action::Wait(10)),
        (2, ack(0, 0, 1)),
        (0, Action::Wait(5000)),
        (2, ack(9, 0, 6902)),
        (0, Action::Wait(5000)),
        (2, Action::Send(2)),
        (2, ack(2, 0, 1)),
    ];
    let discern = find("discern").expect("it is registered");
    check_actions(discern, &actions).unwrap_or_else(|violation| panic!("{violation}"));
}
