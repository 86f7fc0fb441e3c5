//! The deterministic campaign: the daemon's machines, cipher and codec included, in worlds drawn by seed. Whatever the
//! network does: no parcel comes up twice or altered, nothing of a stranger's is taken, streams keep their order, and once
//! a path works, all is well again within a stated time. A failure names its seed.

mod world;

use protocol::tunnel::Setup;
use ropewalk_host::{Event, Nonsense};
use std::collections::BTreeMap;
use std::sync::Arc;
use units::{Instant, PathId, Rate, Span, Stream};
use world::{Make, Wire, World};

/// After everything works again, so long at most until parcels come up.
const RECOVERY: Span = Span::from_secs(8);

fn setup(congestion: &str, scheduler: &str, order: bool, seed: u64) -> Setup {
    let none = BTreeMap::new();
    let controller = (congestion != "off")
        .then(|| control::registry::find(congestion).expect("registered").controller(&none).expect("has defaults"));
    Setup {
        scheduler: schedule::find(scheduler).expect("registered").scheduler(&[], 0, &none).expect("has defaults"),
        controller,
        repair: true,
        order,
        deliver_late: false,
        hold_most: Span::from_millis(500),
        probe: Span::from_millis(200),
        target: Span::from_millis(5),
        interval: Span::from_millis(100),
        memory: 16 << 20,
        seed,
    }
}

fn make(congestion: &'static str, scheduler: &'static str, order: bool) -> Make {
    Arc::new(move |seed| setup(congestion, scheduler, order, seed))
}

fn plain(mbit: u64, delay_ms: u64) -> Wire {
    Wire {
        rate: Rate::from_mbit(mbit),
        delay: Span::from_millis(delay_ms),
        jitter: Span::ZERO,
        loss: 0.0,
        duplication: 0.0,
        corruption: 0.0,
        largest: 1500,
        down: None,
    }
}

fn ms(n: u64) -> Instant {
    Instant::ZERO + Span::from_millis(n)
}

#[test]
fn a_client_with_two_paths_meets_a_server_that_knows_none() {
    let wires = vec![[plain(100, 5); 2], [plain(50, 20); 2]];
    let mut world = World::new(1, wires, make("bbr", "minrtt", true));
    world.run(ms(300));
    for id in 0..100 {
        world.offer((id % 2) as usize, 1, id, 20_000);
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
    let dead = Wire { down: Some((Instant::ZERO, Instant::NEVER)), ..plain(100, 5) };
    let mut world = World::new(2, vec![[dead; 2], [plain(50, 20); 2]], make("bbr", "minrtt", true));
    world.run(ms(1000));
    assert!(world.ends[0].is_up(1) && !world.ends[0].is_up(0));
}

#[test]
fn keys_change_every_two_minutes_and_no_parcel_is_lost() {
    let mut world = World::new(3, vec![[plain(20, 10); 2]], make("bbr", "minrtt", true));
    world.run(ms(300));
    for id in 0..3000 {
        world.offer(0, 1, id, 500);
        world.run(world.now + Span::from_millis(100));
    }
    world.run(world.now + Span::from_secs(1));
    let established =
        |side: usize| world.ends[side].events.iter().filter(|event| matches!(event, Event::Established { .. })).count();
    assert!(established(0) >= 3 && established(1) >= 3, "300 s: {} and {}", established(0), established(1));
    assert!(world.ends[1].up.iter().map(|(_, id)| *id).eq(0..3000));
}

#[test]
fn a_client_that_moves_is_followed() {
    let mut world = World::new(4, vec![[plain(20, 10); 2]], make("bbr", "minrtt", true));
    world.run(ms(300));
    world.rebind(0);
    for id in 0..50 {
        world.offer(0, 1, id, 2000);
        world.offer(1, 1, 1000 + id, 2000);
        world.run(world.now + Span::from_millis(10));
    }
    world.run(world.now + Span::from_secs(2));
    assert!(world.ends[1].events.contains(&Event::Moved(PathId(0))));
    assert_eq!((world.ends[0].up.len(), world.ends[1].up.len()), (50, 50));
}

#[test]
fn a_server_that_restarts_is_found_again() {
    let mut world = World::new(5, vec![[plain(20, 10); 2], [plain(20, 10); 2]], make("bbr", "minrtt", true));
    world.run(ms(300));
    for id in 0..20 {
        world.offer(0, 1, id, 2000);
    }
    world.run(ms(600));
    world.restart(1);
    let restarted = world.now;
    let mut id = 100;
    while world.ends[1].up.is_empty() {
        world.offer(0, 1, id, 2000);
        id += 1;
        world.run(world.now + Span::from_millis(50));
        assert!(world.now.since(restarted) < RECOVERY, "{}", world.now.since(restarted));
    }
}

#[test]
fn a_path_that_a_person_takes_out_of_use_is_silent_and_comes_back() {
    let mut world = World::new(6, vec![[plain(20, 10); 2], [plain(20, 10); 2]], make("bbr", "minrtt", true));
    world.run(ms(500));
    let both = |world: &World, path| [0, 1].map(|side| world.ends[side].is_up(path));
    assert_eq!((both(&world, 0), both(&world, 1)), ([true; 2], [true; 2]));
    let refused = |world: &World| world.ends.iter().map(|end| end.refused).sum::<u64>();
    let before = refused(&world);
    // The server does it, which has only learned of the path.
    world.set_enabled(1, 0, false);
    let launched = world.launched[1][0];
    for id in 0..100 {
        world.offer(0, 1, id, 2000);
        world.offer(1, 1, 1000 + id, 2000);
        world.run(world.now + Span::from_millis(20));
    }
    world.run(world.now + Span::from_secs(1));
    assert_eq!(world.launched[1][0], launched, "not even answers to probes");
    assert_eq!((both(&world, 0), both(&world, 1)), ([false; 2], [true; 2]));
    assert_eq!((world.ends[0].up.len(), world.ends[1].up.len()), (100, 100));
    world.set_enabled(1, 0, true);
    world.run(world.now + RECOVERY);
    assert_eq!(both(&world, 0), [true; 2]);
    assert_eq!(refused(&world), before, "its numbers went on");
}

#[test]
fn a_path_that_is_taken_away_is_gone_at_both_ends_and_nothing_is_lost_with_it() {
    let mut world = World::new(10, vec![[plain(20, 10); 2], [plain(20, 40); 2]], make("bbr", "minrtt", true));
    world.run(ms(500));
    for id in 0..200 {
        if id == 100 {
            assert!(!world.is_quiet(), "something is on its way");
            world.remove_path(1);
        }
        world.offer(0, 1, id, 8000);
        world.offer(1, 1, 1000 + id, 8000);
        world.run(world.now + Span::from_millis(3));
    }
    world.run(world.now + Span::from_secs(3));
    assert_eq!([world.ends[0].paths(), world.ends[1].paths()], [[0], [0]], "what was late opened nothing again");
    assert_eq!((world.ends[0].up.len(), world.ends[1].up.len()), (200, 200));
    // The same number is another path now.
    world.add_path(1, 1);
    world.run(world.now + Span::from_secs(1));
    assert!(world.ends[0].is_up(1) && world.ends[1].is_up(1));
    for id in 2000..2100 {
        world.offer(0, 1, id, 8000);
        world.run(world.now + Span::from_millis(3));
    }
    world.run(world.now + Span::from_secs(2));
    assert_eq!(world.ends[1].up.len(), 300);
}

#[test]
fn a_peer_that_misses_the_word_is_told_again_and_forgets_a_silent_path_at_last() {
    let mut world = World::new(11, vec![[plain(20, 10); 2], [plain(20, 10); 2]], make("bbr", "minrtt", true));
    world.run(ms(500));
    // Nothing of the client's arrives while it takes the path away.
    let before = world.wires.clone();
    world.wires.iter_mut().for_each(|wires| wires[0].down = Some((world.now, Instant::NEVER)));
    world.remove_path(1);
    world.run(world.now + Span::from_millis(50));
    assert_eq!(world.ends[1].paths(), [0, 1]);
    world.wires.clone_from(&before);
    world.offer(1, 1, 1, 100);
    world.run(world.now + Span::from_secs(3));
    assert_eq!(world.ends[1].paths(), [0], "its probes were answered so");
    // A path that falls silent for good, which nobody takes away.
    world.add_path(2, 1);
    world.run(world.now + Span::from_secs(1));
    assert_eq!(world.ends[1].paths(), [0, 2]);
    world.wires[1].iter_mut().for_each(|wire| wire.down = Some((world.now, Instant::NEVER)));
    world.run(world.now + Span::from_secs(59));
    assert_eq!(world.ends[1].paths(), [0, 2]);
    world.run(world.now + Span::from_secs(30));
    assert_eq!([world.ends[0].paths(), world.ends[1].paths()], [vec![0, 2], vec![0]], "whose own it is keeps it");
}

#[test]
fn a_secret_that_both_ends_change_makes_a_new_session_and_loses_nothing() {
    let mut world = World::new(12, vec![[plain(20, 10); 2]], make("bbr", "minrtt", true));
    world.run(ms(500));
    let established = |world: &World| {
        world.ends.each_ref().map(|end| end.events.iter().filter(|it| matches!(it, Event::Established { .. })).count())
    };
    assert_eq!(established(&world), [1, 1]);
    for id in 0..200 {
        match id {
            20 => world.share(0, 7),
            100 => world.share(1, 7),
            _ => {}
        }
        if id == 99 {
            assert_eq!(established(&world), [1, 1], "not with the secret at one end only");
        }
        world.offer(0, 1, id, 2000);
        world.offer(1, 1, 1000 + id, 2000);
        world.run(world.now + Span::from_millis(60));
    }
    world.run(world.now + Span::from_secs(2));
    assert_eq!(established(&world), [2, 2]);
    assert_eq!((world.ends[0].up.len(), world.ends[1].up.len()), (200, 200));
}

#[test]
fn a_link_that_goes_down_fails_its_paths_at_once() {
    let mut world = World::new(7, vec![[plain(20, 10); 2], [plain(20, 10); 2]], make("bbr", "minrtt", true));
    world.run(ms(500));
    world.ends[0].host.on_link_down(world.now, 1);
    assert!(world.ends[0].is_up(0) && !world.ends[0].is_up(1));
}

#[test]
fn a_peer_that_says_goodbye_is_asked_for_a_new_session() {
    let mut world = World::new(8, vec![[plain(20, 10); 2]], make("bbr", "minrtt", true));
    world.run(ms(500));
    world.close(1);
    world.run(ms(3000));
    let fresh =
        |side: usize| world.ends[side].events.iter().filter(|it| **it == Event::Established { fresh: true }).count();
    assert_eq!([fresh(0), fresh(1)], [2, 2], "one at the start, one after the goodbye");
    assert!(world.ends[0].is_up(0) && world.ends[1].is_up(0));
}

#[test]
fn datagrams_of_a_life_that_ended_while_they_waited_to_be_taken_are_dropped() {
    let mut world = World::new(9, vec![[plain(20, 10); 2]], make("bbr", "minrtt", true));
    world.run(ms(500));
    assert_eq!(world.take_after_restart(), Err(Nonsense));
}

fn wire(random: &mut Stream) -> Wire {
    let down = random.chance(0.2).then(|| {
        let from = ms(random.below(4000));
        (from, from + Span::from_millis(random.below(3000)))
    });
    Wire {
        rate: Rate::from_mbit(2 + random.below(100)),
        delay: Span::from_micros(50 + random.below(100_000)),
        jitter: Span::from_micros(if random.chance(0.5) { 0 } else { random.below(20_000) }),
        loss: if random.chance(0.6) { 0.0 } else { 0.05 * random.unit() },
        duplication: if random.chance(0.6) { 0.0 } else { 0.1 * random.unit() },
        corruption: if random.chance(0.6) { 0.0 } else { 0.02 * random.unit() },
        largest: if random.chance(0.7) { 1500 } else { 1200 + random.below(300) as usize },
        down,
    }
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
    let count = 1 + random.below(3) as usize;
    let wires = (0..count).map(|_| [wire(&mut random), wire(&mut random)]).collect();
    let congestion = ["bbr", "cubic", "off"][random.below(3) as usize];
    let scheduler = ["minrtt", "byte-deficit", "redundant", "ecf"][random.below(4) as usize];
    let order = random.chance(0.8);
    let mut world = World::new(seed, wires, make(congestion, scheduler, order));
    let long = random.chance(0.05);
    for id in 0..100 + random.below(150) {
        let (side, stream) = (usize::from(random.chance(0.4)), (id % 4) as u8);
        world.offer(side, stream, id, 16 + random.below(12_000) as usize);
        let pause = if long { random.below(4_000_000) } else { random.below(40_000) };
        world.run(world.now + Span::from_micros(pause));
        match random.below(200) {
            0 => {
                world.restart(usize::from(random.chance(0.5)));
                met.restarts += 1;
            }
            1 => world.rebind(random.below(count as u64) as usize),
            2..20 => world.replay(),
            20 => {
                world.wall[usize::from(random.chance(0.5))] += 1 << random.below(50);
                met.clock_jumps += 1;
            }
            _ => {}
        }
        if order {
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
        assert!(status.waiting_bytes + status.held * 1500 < 32 << 20, "seed {seed}: memory is bounded");
        met.refused += end.refused;
        met.repaired += status.counters.repaired;
        met.failures += status.paths.iter().map(|path| path.failures).sum::<u64>();
        met.moved += end.events.iter().filter(|event| matches!(event, Event::Moved(_))).count() as u64;
        met.rekeyed += end.events.iter().filter(|event| **event == Event::Established { fresh: false }).count() as u64;
    }
    met.corrupted += world.corrupted;
    met.replayed += world.replayed;
}

/// The network becomes well; then both ends must reach each other in time.
fn settle_down(seed: u64, world: &mut World) {
    for wires in &mut world.wires {
        *wires = [plain(50, 10); 2];
    }
    for end in &mut world.ends {
        end.events.retain(|event| !matches!(event, Event::Tunnel(_)));
    }
    let well = world.now;
    let reached = [1 << 40, 1 << 41];
    let mut next = 0;
    while !(0..2).all(|side| world.ends[1 - side].all.range(reached[side]..reached[side] + (1 << 40)).next().is_some())
    {
        assert!(world.now.since(well) < RECOVERY, "seed {seed}: all is well since {well:?}, and nothing gets through");
        for (side, first) in reached.iter().enumerate() {
            world.offer(side, 9, first + next, 100);
        }
        next += 1;
        world.run(world.now + Span::from_millis(100));
    }
    let last = world.now + Span::from_secs(60);
    while world.now < last && !world.is_quiet() {
        world.run(world.now + Span::from_secs(1));
    }
    assert!(world.is_quiet(), "seed {seed}: nothing is left on its way");
}

#[test]
fn no_network_and_no_restart_breaks_the_promises() {
    let mut met = Met::default();
    let worlds = std::env::var("ROPEWALK_WORLDS").ok().and_then(|n| n.parse().ok()).unwrap_or(200);
    (0..worlds).for_each(|seed| run(seed, &mut met));
    let Met { restarts, moved, corrupted, refused, replayed, repaired, failures, rekeyed, clock_jumps } = met;
    let all = [restarts, moved, corrupted, refused, replayed, repaired, failures, rekeyed, clock_jumps];
    assert!(all.iter().all(|count| *count > 0), "the campaign is to meet all of these: {met:?}");
}
