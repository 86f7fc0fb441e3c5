//! Any sequence of events, for every algorithm.

use crate::world::{Act, World};
use control::registry::REGISTRY;
use control::{AlgorithmEntry, Decision, ParamKind, ParamValue};
use proptest::prelude::*;
use std::collections::BTreeMap;

fn ack() -> impl Strategy<Value = Act> {
    let lost = prop_oneof![8 => Just(0u32), 1 => 1..20u32];
    (0..40u32, lost, 1..400_000u64, any::<bool>(), any::<bool>()).prop_map(
        |(acked, lost, rtt_us, window_limited, app_limited)| Act::Ack {
            acked,
            lost,
            rtt_us,
            window_limited,
            app_limited,
        },
    )
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        12 => (1..100u32).prop_map(Act::Send),
        12 => ack(),
        4 => (0..300u64).prop_map(Act::Wait),
        1 => Just(Act::Mark),
        1 => Just(Act::LocalDrop),
        1 => Just(Act::Timeout),
        1 => Just(Act::Undo),
        1 => Just(Act::ProbeRepair),
        1 => (0..200u32).prop_map(Act::ApplicationLimited),
        1 => (500..9000u32).prop_map(Act::Mss),
        1 => (5_000..20_000u64).prop_map(Act::Wait),
        1 => Just(Act::Toggle),
    ]
}

pub(crate) fn acts() -> impl Strategy<Value = Vec<(usize, Act)>> {
    prop::collection::vec((0..3usize, act()), 1..300)
}

type Given = BTreeMap<String, ParamValue>;

/// The defaults, and each word that stands for another way to work.
fn variants(entry: &AlgorithmEntry) -> Vec<Given> {
    let ways = entry.parameters.iter().filter(|parameter| ["path", "steps"].contains(&parameter.name));
    let words = ways.filter_map(|parameter| match parameter.kind {
        ParamKind::Choice(words) => Some((parameter.name, words)),
        ParamKind::Number { .. } => None,
    });
    let set = |name: &str, word: &str| Given::from([(name.to_owned(), ParamValue::Choice(word.to_owned()))]);
    let others = words.flat_map(|(name, words)| words[1..].iter().map(move |word| set(name, word)));
    std::iter::once(Given::new()).chain(others).collect()
}

/// The decisions after each act; every call inside is checked against the promises.
fn run(entry: &'static AlgorithmEntry, given: &Given, acts: &[(usize, Act)]) -> Vec<Decision> {
    let mut world = World::with(entry, given);
    acts.iter()
        .map(|&(path, act)| {
            world.act(path, act);
            world.decision(path)
        })
        .collect()
}

/// In every way that it works.
pub(crate) fn keeps_its_promises(entry: &'static AlgorithmEntry, acts: &[(usize, Act)]) -> Result<(), TestCaseError> {
    for given in variants(entry) {
        let (name, once) = (entry.name, run(entry, &given, acts));
        prop_assert_eq!(once, run(entry, &given, acts), "{} {:?} decides by more than events", name, given);
    }
    Ok(())
}

proptest! {
    #[test]
    fn every_algorithm_keeps_its_promises_and_decides_the_same_twice(acts in acts()) {
        for entry in REGISTRY.iter().copied() {
            keeps_its_promises(entry, &acts)?;
        }
    }
}
