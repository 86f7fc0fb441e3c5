//! Random networks: no packet is delivered twice, altered, or out of its stream's order; memory is bounded; and once a
//! path works, everything queued is delivered.

use crate::simulation::{offer, simulation};
use ropewalk_machine::{RealtimeOptions, TunnelOptions};
use std::collections::BTreeSet;
use units::{RngStream, Span};

/// Counts of rare situations, each of which the campaign has to reach.
#[derive(Debug, Default)]
struct Situations {
    retransmitted: u64,
    abandoned: u64,
    duplicates: u64,
    late: u64,
    spurious: u64,
    failures: u64,
    redundant: u64,
    small_mtu: u64,
    copied: u64,
    first_copies: u64,
}

fn run(seed: u64, realtime: Option<RealtimeOptions>, situations: &mut Situations) {
    let mut rng = RngStream::named(seed, "any world");
    let links = testnet::random_paths(&mut rng, 4);
    let options = TunnelOptions { realtime, ..testnet::random_options(&mut rng) };
    // Receive timestamps are modulo 2^32 us: the difference of clocks that are 2^31 us apart changes its sign.
    let clock_offset = if rng.chance(0.5) { Span::ZERO } else { Span::from_micros((1 << 31) - rng.below(200_000)) };
    let mut simulation = simulation(seed, links, &options, clock_offset);
    let packets = 50 + rng.below(300);
    let mut offered = [0u64; 2];
    for id in 0..packets {
        let host = usize::from(rng.chance(0.3));
        let length = if rng.chance(0.3) { 40 + rng.below(100) } else { 100 + rng.below(30_000) };
        offer(&mut simulation, host, (id % 5) as u8, id, length as u32);
        offered[host] += 1;
        simulation.run_for(Span::from_micros(rng.below(25_000)));
        simulation.assert_memory(testnet::MEMORY_BYTES);
    }
    simulation.assert_drained_within(Span::from_secs(600));
    for (host, offered) in offered.into_iter().enumerate() {
        let sender = simulation.hosts[host].endpoint.status();
        let receiver = &simulation.hosts[1 - host];
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
        situations.retransmitted += sender.counters.retransmitted_fragments;
        situations.abandoned += sender.counters.abandoned_fragments;
        situations.redundant += sender.counters.redundant_fragments;
        situations.duplicates += status.counters.duplicate_fragments;
        situations.copied += sender.counters.copied_fragments;
        situations.first_copies += sender.counters.first_copies;
        situations.late += status.counters.late_fragments;
        situations.spurious += sender.paths.iter().map(|path| path.spurious_losses).sum::<u64>();
        situations.failures += sender.paths.iter().map(|path| path.failures).sum::<u64>();
        situations.small_mtu +=
            sender.paths.iter().filter(|path| path.up && path.max_datagram_size < 1472).count() as u64;
    }
}

#[test]
fn the_guarantees_hold_on_any_network() {
    let mut situations = Situations::default();
    let seeds = testing::campaign(300);
    seeds.range().for_each(|seed| run(seed, None, &mut situations));
    let Situations { retransmitted, abandoned, duplicates, late, spurious, failures, redundant, small_mtu, .. } =
        situations;
    let all = [retransmitted, abandoned, duplicates, late, spurious, failures, redundant, small_mtu];
    let reached = all.iter().all(|count| *count > 0);
    assert!(reached || !seeds.reach_every_situation(), "the campaign has to reach all of these: {situations:?}");
}

/// With copies of whatever is sparse, and a budget that does not end.
#[test]
fn the_guarantees_hold_with_copies_on_any_network() {
    let realtime = RealtimeOptions { copy_permille: 1000, copy_on_metered: true, share_permille: 1000 };
    let mut situations = Situations::default();
    let seeds = testing::campaign(200);
    seeds.range().for_each(|seed| run(seed, Some(realtime), &mut situations));
    let reached = situations.copied > 0 && situations.first_copies > 0;
    assert!(reached || !seeds.reach_every_situation(), "the campaign has to reach these: {situations:?}");
}
