//! Any sequence of events, for every scheduler.

use crate::world::{Act, World};
use proptest::prelude::*;
use schedule::{Pick, REGISTRY, SchedulerEntry};

const PATHS: usize = 3;

fn act() -> impl Strategy<Value = Act> {
    let path = || 0..PATHS;
    prop_oneof![
        6 => (1..60u64).prop_map(Act::Write),
        12 => (path(), 1..12usize).prop_map(|(path, packets)| Act::Acknowledge(path, packets)),
        6 => (0..100u64).prop_map(Act::Wait),
        3 => (path(), 1..40u32).prop_map(|(path, window)| Act::Window(path, window)),
        3 => (path(), 0..300u64, 0..100u32).prop_map(|(path, srtt, packets)| Act::Measure(path, srtt, packets)),
        2 => path().prop_map(Act::Die),
        3 => (path(), any::<bool>()).prop_map(|(path, backup)| Act::Live(path, backup)),
        1 => (1..100u64).prop_map(Act::Buffer),
        1 => Just(Act::Block),
    ]
}

/// What was picked; each pick is checked on the way, and in the end all data must come home.
fn run(entry: &'static SchedulerEntry, acts: &[Act]) -> Vec<Pick> {
    let mut world = World::new(entry, PATHS as u64);
    acts.iter().for_each(|act| world.act(*act));
    world.act(Act::Live(0, false));
    world.finish();
    world.picks
}

proptest! {
    #[test]
    fn every_scheduler_keeps_its_promises_and_picks_the_same_twice(
        acts in prop::collection::vec(act(), 1..150),
    ) {
        for entry in REGISTRY.iter().copied() {
            prop_assert_eq!(run(entry, &acts), run(entry, &acts), "{} picks by more than what it sees", entry.name);
        }
    }
}

fn world(name: &str, paths: u64) -> World {
    World::new(schedule::find(name).expect("registered"), paths)
}

#[test]
fn redundant_sends_every_packet_on_every_live_path_unless_it_is_acknowledged() {
    let mut world = world("redundant", 3);
    (0..3).for_each(|path| world.act(Act::Window(path, 100)));
    world.act(Act::Die(2));
    world.act(Act::Write(20));
    let all: Vec<_> = (0..20).collect();
    assert_eq!([0, 1].map(|path| world.carried(path)), [all.clone(), all.clone()]);
    world.act(Act::Acknowledge(1, 12));
    world.act(Act::Live(2, false));
    assert_eq!(world.carried(2), all[12..], "what is acknowledged is passed over");
}

#[test]
fn every_scheduler_leaves_backups_alone_while_a_regular_path_lives_and_then_uses_them() {
    for entry in REGISTRY.iter().copied() {
        let mut world = World::new(entry, 2);
        world.act(Act::Live(1, true));
        world.act(Act::Write(200));
        world.act(Act::Acknowledge(0, 5));
        assert_eq!(world.carried(1), [], "{}", entry.name);
        world.act(Act::Die(0));
        world.finish();
        assert!(!world.carried(1).is_empty(), "{}", entry.name);
    }
}

#[test]
fn no_scheduler_waits_for_a_path_that_has_died() {
    for entry in REGISTRY.iter().copied() {
        let mut world = World::new(entry, 2);
        // A slow path that it does not pay to use, until the fast one, which is full, is gone.
        world.act(Act::Measure(1, 1000, 1));
        world.act(Act::Write(12));
        world.act(Act::Die(0));
        world.finish();
    }
}

#[test]
fn a_long_queue_fills_every_window() {
    for entry in REGISTRY.iter().copied() {
        let mut world = World::new(entry, 3);
        world.act(Act::Write(2000));
        assert!((0..3).all(|path| world.carried(path).len() >= 10), "{}: equal windows, 20 to 60 ms", entry.name);
    }
}
