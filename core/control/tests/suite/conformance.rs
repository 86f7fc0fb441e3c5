//! Any sequence of events, for every algorithm.

use crate::world::{Act, World};
use control::Decision;
use control::Entry;
use control::registry::REGISTRY;
use proptest::prelude::*;

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
    ]
}

fn acts() -> impl Strategy<Value = Vec<(usize, Act)>> {
    prop::collection::vec((0..2usize, act()), 1..300)
}

/// The decisions after each act; every call inside is checked against the promises.
fn run(entry: &'static Entry, acts: &[(usize, Act)]) -> Vec<Decision> {
    let mut world = World::new(entry);
    acts.iter()
        .map(|&(path, act)| {
            world.act(path, act);
            world.decision(path)
        })
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_algorithm_keeps_its_promises_and_decides_the_same_twice(acts in acts()) {
        for entry in REGISTRY.iter().copied() {
            prop_assert_eq!(run(entry, &acts), run(entry, &acts), "{} decides by more than events", entry.name);
        }
    }
}
