//! Random worlds: whatever networks do, no parcel comes up twice, altered, or out of its stream's order; memory is bounded;
//! and once a path works, everything that waited gets through.

use crate::world::{Wire, World, setup};
use std::collections::BTreeSet;
use units::{Instant, Rate, Span, Stream};

const CONGESTION: [&str; 6] = ["bbr", "cubic", "reno", "off", "bbr3", "balia"];
const SCHEDULERS: [&str; 8] =
    ["minrtt", "byte-deficit", "redundant", "adaptive-redundant", "blest", "ecf", "roundrobin", "weighted"];

fn wire(random: &mut Stream) -> Wire {
    let down = random.chance(0.3).then(|| {
        let from = Instant::ZERO + Span::from_millis(random.below(3000));
        (from, from + Span::from_millis(random.below(2500)))
    });
    Wire {
        rate: Rate::from_mbit(1 + random.below(200)),
        delay: Span::from_micros(50 + random.below(150_000)),
        jitter: Span::from_micros(if random.chance(0.5) { 0 } else { random.below(30_000) }),
        loss: if random.chance(0.5) { 0.0 } else { 0.1 * random.unit() },
        duplication: if random.chance(0.7) { 0.0 } else { 0.2 * random.unit() },
        queue: Span::from_millis(5 + random.below(300)),
        largest: if random.chance(0.7) { 1500 } else { 1200 + random.below(300) as u32 },
        down,
    }
}

/// Rare situations, which the campaign must have met.
#[derive(Debug, Default)]
struct Met {
    repaired: u64,
    given_up: u64,
    duplicates: u64,
    late: u64,
    spurious: u64,
    failures: u64,
    copies: u64,
    smaller: u64,
    dropped: u64,
}

fn run(seed: u64, met: &mut Met) {
    let mut random = Stream::named(seed, "any world");
    let count = 1 + random.below(4) as usize;
    let wires: Vec<[Wire; 2]> = (0..count).map(|_| [wire(&mut random), wire(&mut random)]).collect();
    let congestion = CONGESTION[random.below(CONGESTION.len() as u64) as usize];
    let scheduler = SCHEDULERS[random.below(SCHEDULERS.len() as u64) as usize];
    let (repair, order) = (random.chance(0.8), random.chance(0.9));
    let mut world = World::new(seed, wires, |seed| setup(congestion, scheduler, repair, order, seed));
    let parcels = 50 + random.below(300);
    let mut offered = [0u64; 2];
    for id in 0..parcels {
        let side = usize::from(random.chance(0.3));
        let length = if random.chance(0.3) { 40 + random.below(100) } else { 100 + random.below(30_000) };
        world.offer(side, (id % 5) as u8, id, length as u32);
        offered[side] += 1;
        let pause = Span::from_micros(random.below(25_000));
        world.run(world.now + pause);
    }
    let last = world.now + Span::from_secs(600);
    while world.now < last && !world.is_quiet() {
        world.run(world.now + Span::from_secs(5));
    }
    for (side, offered) in offered.into_iter().enumerate() {
        let sender = world.ends[side].endpoint.status();
        let receiver = &world.ends[1 - side];
        let ids: Vec<u64> = receiver.up.iter().map(|(_, id, _)| *id).collect();
        assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), ids.len(), "seed {seed}: no parcel comes up twice");
        if order {
            for stream in 0..5 {
                assert!(receiver.ids(stream).is_sorted(), "seed {seed}: stream {stream} comes up in order");
            }
        }
        assert_eq!(
            (sender.outstanding, sender.waiting),
            (0, 0),
            "seed {seed} {congestion} {scheduler}: nothing is left on its way: {sender:?}"
        );
        let status = receiver.endpoint.status();
        assert_eq!(status.held, 0, "seed {seed}: nothing is held for ever");
        let lost = status.counters.missed + sender.counters.dropped + sender.counters.given_up;
        if lost == 0 {
            assert_eq!(ids.len() as u64, offered, "seed {seed}: all that was not given up came: {status:?}");
        }
        assert_eq!(status.counters.nonsense, 0, "seed {seed}");
        met.repaired += sender.counters.repaired;
        met.given_up += sender.counters.given_up;
        met.copies += sender.counters.copies;
        met.dropped += sender.counters.dropped;
        met.duplicates += status.counters.duplicates;
        met.late += status.counters.late;
        met.spurious += sender.paths.iter().map(|path| path.spurious).sum::<u64>();
        met.failures += sender.paths.iter().map(|path| path.failures).sum::<u64>();
        met.smaller += sender.paths.iter().filter(|path| path.up && path.largest < 1472).count() as u64;
    }
}

#[test]
fn no_network_breaks_the_promises() {
    let mut met = Met::default();
    let worlds = std::env::var("ROPEWALK_WORLDS").ok().and_then(|n| n.parse().ok()).unwrap_or(300);
    (0..worlds).for_each(|seed| run(seed, &mut met));
    let Met { repaired, given_up, duplicates, late, spurious, failures, copies, smaller, dropped: _ } = met;
    let all = [repaired, given_up, duplicates, late, spurious, failures, copies, smaller];
    assert!(all.iter().all(|count| *count > 0), "the campaign is to meet all of these: {met:?}");
}
