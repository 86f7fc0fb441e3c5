//! Random networks: whatever they do, no packet is delivered twice, altered, or out of its stream's order; memory is
//! bounded; and once a path works, everything that waited gets through.

use crate::simulation::{offer, simulation};
use std::collections::BTreeSet;
use units::{RngStream, Span};

/// Counts of rare situations, each of which the campaign has to reach.
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
}

fn run(seed: u64, met: &mut Met) {
    let mut random = RngStream::named(seed, "any world");
    let links = testnet::random_paths(&mut random, 4);
    let options = testnet::random_options(&mut random);
    // Clocks are told modulo 2^32 us, and compared: so far apart, differences turn over.
    let ahead = if random.chance(0.5) { Span::ZERO } else { Span::from_micros((1 << 31) - random.below(200_000)) };
    let mut simulation = simulation(seed, links, &options, ahead);
    let packets = 50 + random.below(300);
    let mut offered = [0u64; 2];
    for id in 0..packets {
        let side = usize::from(random.chance(0.3));
        let length = if random.chance(0.3) { 40 + random.below(100) } else { 100 + random.below(30_000) };
        offer(&mut simulation, side, (id % 5) as u8, id, length as u32);
        offered[side] += 1;
        simulation.run_for(Span::from_micros(random.below(25_000)));
        simulation.assert_memory(testnet::MEMORY_BYTES);
    }
    simulation.assert_drained_within(Span::from_secs(600));
    for (side, offered) in offered.into_iter().enumerate() {
        let sender = simulation.hosts[side].endpoint.status();
        let receiver = &simulation.hosts[1 - side];
        let ids: Vec<u64> = receiver.delivered.iter().map(|(_, id, _)| *id).collect();
        assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), ids.len(), "seed {seed}: no packet is delivered twice");
        if options.in_order {
            for stream in 0..5 {
                assert!(receiver.ids(stream).is_sorted(), "seed {seed}: stream {stream} is delivered in order");
            }
        }
        let status = receiver.endpoint.status();
        let lost = status.counters.missing_fragments
            + sender.counters.ingress_dropped_packets
            + sender.counters.abandoned_fragments;
        if lost == 0 {
            assert_eq!(ids.len() as u64, offered, "seed {seed}: all that was not given up is delivered: {status:?}");
        }
        assert_eq!(status.counters.malformed_frames, 0, "seed {seed}");
        met.repaired += sender.counters.retransmitted_fragments;
        met.given_up += sender.counters.abandoned_fragments;
        met.copies += sender.counters.redundant_fragments;
        met.duplicates += status.counters.duplicate_fragments;
        met.late += status.counters.late_fragments;
        met.spurious += sender.paths.iter().map(|path| path.spurious_losses).sum::<u64>();
        met.failures += sender.paths.iter().map(|path| path.failures).sum::<u64>();
        met.smaller += sender.paths.iter().filter(|path| path.up && path.max_datagram_size < 1472).count() as u64;
    }
}

#[test]
fn no_network_breaks_the_guarantees() {
    let mut met = Met::default();
    (0..testnet::seeds(300)).for_each(|seed| run(seed, &mut met));
    let Met { repaired, given_up, duplicates, late, spurious, failures, copies, smaller } = met;
    let all = [repaired, given_up, duplicates, late, spurious, failures, copies, smaller];
    assert!(all.iter().all(|count| *count > 0), "the campaign has to reach all of these: {met:?}");
}
