//! Random events, for every algorithm.

use crate::sender::{Action, Sender};
use control::registry::REGISTRY;
use control::{AlgorithmEntry, Decision, ParamKind, ParamValue};
use proptest::prelude::*;
use std::collections::BTreeMap;

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

type ParamMap = BTreeMap<String, ParamValue>;

/// The defaults, and each choice of `path` and `steps`.
fn variants(entry: &AlgorithmEntry) -> Vec<ParamMap> {
    let parameters = entry.parameters.iter().filter(|parameter| ["path", "steps"].contains(&parameter.name));
    let choices = parameters.filter_map(|parameter| match parameter.kind {
        ParamKind::Choice(choices) => Some((parameter.name, choices)),
        ParamKind::Number { .. } | ParamKind::File => None,
    });
    let set = |name: &str, choice: &str| ParamMap::from([(name.to_owned(), ParamValue::Choice(choice.to_owned()))]);
    let variants = choices.flat_map(|(name, choices)| choices[1..].iter().map(move |choice| set(name, choice)));
    std::iter::once(ParamMap::new()).chain(variants).collect()
}

/// The decisions after each action; [`Sender`] checks the invariants.
fn run(entry: &'static AlgorithmEntry, given: &ParamMap, actions: &[(usize, Action)]) -> Vec<Decision> {
    let mut sender = Sender::with(entry, given);
    actions
        .iter()
        .map(|&(path, action)| {
            sender.apply(path, action);
            sender.decision(path)
        })
        .collect()
}

/// Checks the invariants of an algorithm and that it is deterministic, in all variants.
pub(crate) fn check_algorithm(
    entry: &'static AlgorithmEntry,
    actions: &[(usize, Action)],
) -> Result<(), TestCaseError> {
    for given in variants(entry) {
        let (name, decisions) = (entry.name, run(entry, &given, actions));
        prop_assert_eq!(decisions, run(entry, &given, actions), "{} {:?} is not deterministic", name, given);
    }
    Ok(())
}

proptest! {
    #[test]
    fn every_algorithm_keeps_the_invariants_and_is_deterministic(actions in actions()) {
        for entry in REGISTRY.iter().copied() {
            check_algorithm(entry, &actions)?;
        }
    }
}
