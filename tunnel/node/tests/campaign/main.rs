//! The deterministic campaign: the daemon's machines, cipher and codec included, in worlds drawn by seed. Whatever the
//! network does: no parcel comes up twice or altered, nothing of a stranger's is taken, streams keep their order, and once
//! a path works, all is well again within a stated time. A failure names its seed.

mod world;

use ropewalk_node::{Malformed, NodeEvent};
use testnet::{Kind, Wire, ms};
use units::{Instant, PathId, Span, Stream};
use world::{World, add_path, offer, rebind, remove_path, restart, share, take_after_restart, world};

/// After everything works again, so long at most until parcels come up.
const RECOVERY: Span = Span::from_secs(8);

/// How most ends are built here.
const USUAL: Kind = Kind::new("bbr", "minrtt");

#[test]
fn a_client_with_two_paths_meets_a_server_that_knows_none() {
    let wires = vec![[Wire::plain(100, 5); 2], [Wire::plain(50, 20); 2]];
    let mut world = world(1, wires, USUAL);
    world.run(ms(300));
    for id in 0..100 {
        offer(&mut world, (id % 2) as usize, 1, id, 20_000);
        world.run(ms(300 + 3 * id));
    }
    world.run(ms(3000));
    assert!([0, 1].iter().all(|path| world.ends[0].is_up(*path) && world.ends[1].is_up(*path)));
    for side in 0..2u64 {
        let ids: Vec<u64> = world.ends[1 - side as usize].up.iter().map(|(_, id)| *id).collect();
        assert!(ids.iter().copied().eq((0..100).filter(|id| id % 2 == side)), "{ids:?}");
    }
}

#[test]
fn a_dead_first_path_does_not_stop_the_start() {
    let dead = Wire { down: Some((Instant::ZERO, Instant::NEVER)), ..Wire::plain(100, 5) };
    let mut world = world(2, vec![[dead; 2], [Wire::plain(50, 20); 2]], USUAL);
    world.run(ms(1000));
    assert!(world.ends[0].is_up(1) && !world.ends[0].is_up(0));
}

#[test]
fn keys_change_every_two_minutes_and_no_parcel_is_lost() {
    let mut world = world(3, vec![[Wire::plain(20, 10); 2]], USUAL);
    world.run(ms(300));
    for id in 0..3000 {
        offer(&mut world, 0, 1, id, 500);
        world.run_for(Span::from_millis(100));
    }
    world.run_for(Span::from_secs(1));
    let established = |side: usize| {
        world.ends[side].events.iter().filter(|event| matches!(event, NodeEvent::Established { .. })).count()
    };
    assert!(established(0) >= 3 && established(1) >= 3, "300 s: {} and {}", established(0), established(1));
    assert!(world.ends[1].up.iter().map(|(_, id)| *id).eq(0..3000));
}

#[test]
fn a_client_that_moves_is_followed() {
    let mut world = world(4, vec![[Wire::plain(20, 10); 2]], USUAL);
    world.run(ms(300));
    rebind(&mut world, 0);
    for id in 0..50 {
        offer(&mut world, 0, 1, id, 2000);
        offer(&mut world, 1, 1, 1000 + id, 2000);
        world.run_for(Span::from_millis(10));
    }
    world.run_for(Span::from_secs(2));
    assert!(world.ends[1].events.contains(&NodeEvent::Moved(PathId(0))));
    assert_eq!((world.ends[0].up.len(), world.ends[1].up.len()), (50, 50));
}

#[test]
fn a_server_that_restarts_is_found_again() {
    let mut world = world(5, vec![[Wire::plain(20, 10); 2], [Wire::plain(20, 10); 2]], USUAL);
    world.run(ms(300));
    for id in 0..20 {
        offer(&mut world, 0, 1, id, 2000);
    }
    world.run(ms(600));
    restart(&mut world, 1);
    let restarted = world.now;
    let mut id = 100;
    while world.ends[1].up.is_empty() {
        offer(&mut world, 0, 1, id, 2000);
        id += 1;
        world.run_for(Span::from_millis(50));
        assert!(world.now.since(restarted) < RECOVERY, "{}", world.now.since(restarted));
    }
}

#[test]
fn a_path_that_a_person_takes_out_of_use_is_silent_and_comes_back() {
    let mut world = world(6, vec![[Wire::plain(20, 10); 2], [Wire::plain(20, 10); 2]], USUAL);
    world.run(ms(500));
    let both = |world: &World, path| [0, 1].map(|side| world.ends[side].is_up(path));
    assert_eq!((both(&world, 0), both(&world, 1)), ([true; 2], [true; 2]));
    let refused = |world: &World| world.ends.iter().map(|end| end.refused).sum::<u64>();
    let before = refused(&world);
    // The server does it, which has only learned of the path.
    world.act(1, |server, now| server.host.set_enabled(now, server.peer, 0, false));
    let launched = world.launched[1][0];
    for id in 0..100 {
        offer(&mut world, 0, 1, id, 2000);
        offer(&mut world, 1, 1, 1000 + id, 2000);
        world.run_for(Span::from_millis(20));
    }
    world.run_for(Span::from_secs(1));
    assert_eq!(world.launched[1][0], launched, "not even answers to probes");
    assert_eq!((both(&world, 0), both(&world, 1)), ([false; 2], [true; 2]));
    assert_eq!((world.ends[0].up.len(), world.ends[1].up.len()), (100, 100));
    world.act(1, |server, now| server.host.set_enabled(now, server.peer, 0, true));
    world.run_for(RECOVERY);
    assert_eq!(both(&world, 0), [true; 2]);
    assert_eq!(refused(&world), before, "its numbers went on");
}

#[test]
fn a_path_that_is_taken_away_is_gone_at_both_ends_and_nothing_is_lost_with_it() {
    let mut world = world(10, vec![[Wire::plain(20, 10); 2], [Wire::plain(20, 40); 2]], USUAL);
    world.run(ms(500));
    for id in 0..200 {
        if id == 100 {
            assert!(testnet::End::status(&world.ends[0]).fragments_in_flight > 0, "something is on its way");
            remove_path(&mut world, 1);
        }
        offer(&mut world, 0, 1, id, 8000);
        offer(&mut world, 1, 1, 1000 + id, 8000);
        world.run_for(Span::from_millis(3));
    }
    world.run_for(Span::from_secs(3));
    assert_eq!([world.ends[0].paths(), world.ends[1].paths()], [[0], [0]], "what was late opened nothing again");
    assert_eq!((world.ends[0].up.len(), world.ends[1].up.len()), (200, 200));
    // The same number is another path now.
    add_path(&mut world, 1, 1);
    world.run_for(Span::from_secs(1));
    assert!(world.ends[0].is_up(1) && world.ends[1].is_up(1));
    for id in 2000..2100 {
        offer(&mut world, 0, 1, id, 8000);
        world.run_for(Span::from_millis(3));
    }
    world.run_for(Span::from_secs(2));
    assert_eq!(world.ends[1].up.len(), 300);
}

#[test]
fn a_peer_that_misses_the_word_is_told_again_and_forgets_a_silent_path_at_last() {
    let mut world = world(11, vec![[Wire::plain(20, 10); 2], [Wire::plain(20, 10); 2]], USUAL);
    world.run(ms(500));
    // Nothing of the client's arrives while it takes the path away.
    let before = world.wires.clone();
    world.wires.iter_mut().for_each(|wires| wires[0].down = Some((world.now, Instant::NEVER)));
    remove_path(&mut world, 1);
    world.run_for(Span::from_millis(50));
    assert_eq!(world.ends[1].paths(), [0, 1]);
    world.wires.clone_from(&before);
    offer(&mut world, 1, 1, 1, 100);
    world.run_for(Span::from_secs(3));
    assert_eq!(world.ends[1].paths(), [0], "its probes were answered so");
    // A path that falls silent for good, which nobody takes away.
    add_path(&mut world, 2, 1);
    world.run_for(Span::from_secs(1));
    assert_eq!(world.ends[1].paths(), [0, 2]);
    world.wires[1].iter_mut().for_each(|wire| wire.down = Some((world.now, Instant::NEVER)));
    world.run_for(Span::from_secs(59));
    assert_eq!(world.ends[1].paths(), [0, 2]);
    world.run_for(Span::from_secs(30));
    assert_eq!([world.ends[0].paths(), world.ends[1].paths()], [vec![0, 2], vec![0]], "whose own it is keeps it");
}

#[test]
fn a_secret_that_both_ends_change_makes_a_new_session_and_loses_nothing() {
    let mut world = world(12, vec![[Wire::plain(20, 10); 2]], USUAL);
    world.run(ms(500));
    let established = |world: &World| {
        world
            .ends
            .each_ref()
            .map(|end| end.events.iter().filter(|it| matches!(it, NodeEvent::Established { .. })).count())
    };
    assert_eq!(established(&world), [1, 1]);
    for id in 0..200 {
        match id {
            20 => share(&mut world, 0, 7),
            100 => share(&mut world, 1, 7),
            _ => {}
        }
        if id == 99 {
            assert_eq!(established(&world), [1, 1], "not with the secret at one end only");
        }
        offer(&mut world, 0, 1, id, 2000);
        offer(&mut world, 1, 1, 1000 + id, 2000);
        world.run_for(Span::from_millis(60));
    }
    world.run_for(Span::from_secs(2));
    assert_eq!(established(&world), [2, 2]);
    assert_eq!((world.ends[0].up.len(), world.ends[1].up.len()), (200, 200));
}

#[test]
fn a_link_that_goes_down_fails_its_paths_at_once() {
    let mut world = world(7, vec![[Wire::plain(20, 10); 2], [Wire::plain(20, 10); 2]], USUAL);
    world.run(ms(500));
    world.act(0, |client, now| client.host.on_link_down(now, 1));
    assert!(world.ends[0].is_up(0) && !world.ends[0].is_up(1));
}

#[test]
fn a_peer_that_says_goodbye_is_asked_for_a_new_session() {
    let mut world = world(8, vec![[Wire::plain(20, 10); 2]], USUAL);
    world.run(ms(500));
    world.act(1, |server, _| server.host.close());
    world.run(ms(3000));
    let fresh = |side: usize| {
        world.ends[side].events.iter().filter(|it| **it == NodeEvent::Established { fresh: true }).count()
    };
    assert_eq!([fresh(0), fresh(1)], [2, 2], "one at the start, one after the goodbye");
    assert!(world.ends[0].is_up(0) && world.ends[1].is_up(0));
}

#[test]
fn datagrams_of_a_life_that_ended_while_they_waited_to_be_taken_are_dropped() {
    let mut world = world(9, vec![[Wire::plain(20, 10); 2]], USUAL);
    world.run(ms(500));
    assert_eq!(take_after_restart(&mut world), Err(Malformed));
}

/// Rare situations, which the campaign must have met.
#[derive(Debug, Default)]
struct Met {
    restarts: u64,
    moved: u64,
    corrupted: u64,
    refused: u64,
    replayed: u64,
    repaired: u64,
    failures: u64,
    rekeyed: u64,
    clock_jumps: u64,
}

fn run(seed: u64, met: &mut Met) {
    let mut random = Stream::named(seed, "campaign");
    let wires = testnet::wires(&mut random, 3);
    let kind = Kind::draw(&mut random);
    let paths = wires.len() as u64;
    let mut world = world(seed, wires, kind);
    let long = random.chance(0.05);
    for id in 0..100 + random.below(150) {
        let (side, stream) = (usize::from(random.chance(0.4)), (id % 4) as u8);
        offer(&mut world, side, stream, id, 16 + random.below(12_000) as usize);
        let pause = if long { random.below(4_000_000) } else { random.below(40_000) };
        world.run_for(Span::from_micros(pause));
        match random.below(200) {
            0 => {
                restart(&mut world, usize::from(random.chance(0.5)));
                met.restarts += 1;
            }
            1 => rebind(&mut world, random.below(paths) as usize),
            2..20 => world.replay(),
            20 => {
                world.ends[usize::from(random.chance(0.5))].wall += 1 << random.below(50);
                met.clock_jumps += 1;
            }
            _ => {}
        }
        world.assert_memory();
        if kind.in_order {
            for end in &world.ends {
                (0..4).for_each(|stream| {
                    let ids = end.up.iter().filter(|(of, _)| *of == stream).map(|(_, id)| *id);
                    assert!(ids.is_sorted(), "seed {seed}: stream {stream} keeps its order");
                });
            }
        }
    }
    settle_down(seed, &mut world);
    for end in &world.ends {
        let status = end.host.endpoint(end.peer).expect("it is there").status();
        met.refused += end.refused;
        met.repaired += status.counters.retransmitted;
        met.failures += status.paths.iter().map(|path| path.failures).sum::<u64>();
        met.moved += end.events.iter().filter(|event| matches!(event, NodeEvent::Moved(_))).count() as u64;
        met.rekeyed +=
            end.events.iter().filter(|event| **event == NodeEvent::Established { fresh: false }).count() as u64;
    }
    met.corrupted += world.corrupted;
    met.replayed += world.replayed;
}

/// The network becomes well; then both ends must reach each other in time.
fn settle_down(seed: u64, world: &mut World) {
    for wires in &mut world.wires {
        *wires = [Wire::plain(50, 10); 2];
    }
    for end in &mut world.ends {
        end.events.retain(|event| !matches!(event, NodeEvent::Tunnel(_)));
    }
    let well = world.now;
    let reached = [1 << 40, 1 << 41];
    let mut next = 0;
    while !(0..2).all(|side| world.ends[1 - side].all.range(reached[side]..reached[side] + (1 << 40)).next().is_some())
    {
        assert!(world.now.since(well) < RECOVERY, "seed {seed}: all is well since {well:?}, and nothing gets through");
        for (side, first) in reached.iter().enumerate() {
            offer(world, side, 9, first + next, 100);
        }
        next += 1;
        world.run_for(Span::from_millis(100));
    }
    world.assert_quiet_within(Span::from_secs(60));
}

#[test]
fn no_network_and_no_restart_breaks_the_promises() {
    let mut met = Met::default();
    (0..testnet::count(200)).for_each(|seed| run(seed, &mut met));
    let Met { restarts, moved, corrupted, refused, replayed, repaired, failures, rekeyed, clock_jumps } = met;
    let all = [restarts, moved, corrupted, refused, replayed, repaired, failures, rekeyed, clock_jumps];
    assert!(all.iter().all(|count| *count > 0), "the campaign is to meet all of these: {met:?}");
}
