//! The real-time class: failover, copies and their budget, and what marked bulk may take from others.

use crate::simulation::{Simulation, offer, simulation};
use ropewalk_machine::{FIRST_REALTIME_STREAM, RealtimeOptions, TunnelOptions};
use testnet::{LinkConfig, ms, options};
use units::{Instant, Span};

const CALL: u8 = 9;

fn with_class(realtime: RealtimeOptions) -> TunnelOptions {
    TunnelOptions { realtime: Some(realtime), ..options("bbr-path", "overflow") }
}

/// A call of 50 packets a second beside bulk, from the first host until `end`.
fn call_beside_bulk(simulation: &mut Simulation, end: Instant) {
    let mut id = 0;
    while simulation.now < end {
        offer(simulation, 0, CALL, id, 172);
        (0..12).for_each(|n| offer(simulation, 0, 3, id * 12 + n, 6000));
        id += 1;
        simulation.run_for(Span::from_millis(20));
    }
}

fn longest_gap(simulation: &Simulation, from: Instant) -> Span {
    let call = simulation.hosts[1].delivered.iter().filter(|(stream, _, time)| *stream == CALL && *time > from);
    let times: Vec<Instant> = call.map(|(_, _, time)| *time).collect();
    times.windows(2).map(|pair| pair[1].since(pair[0])).max().expect("many")
}

fn dark_link() -> Vec<[LinkConfig; 2]> {
    let dark = LinkConfig::clean(40, 10).with_outage(ms(3000), ms(6000));
    vec![[dark; 2], [LinkConfig::clean(20, 25); 2]]
}

#[test]
fn a_call_survives_a_dark_link_without_a_gap_of_150_ms_and_whole() {
    let mut simulation = simulation(11, dark_link(), &with_class(RealtimeOptions::default()), Span::ZERO);
    simulation.run_until(ms(300));
    call_beside_bulk(&mut simulation, ms(9000));
    simulation.run_for(Span::from_secs(2));
    let ids = simulation.hosts[1].ids(CALL);
    assert!(ids.iter().copied().eq(0..ids.len() as u64) && ids.len() >= 430, "in order, none lost: {}", ids.len());
    let gap = longest_gap(&simulation, ms(400));
    assert!(gap < Span::from_millis(150), "{gap}");
    let counters = simulation.hosts[0].endpoint.status().counters;
    assert!(counters.copied_fragments > 0 && counters.first_copies > 0, "{counters:?}");
    assert!(counters.first_copies + counters.wasted_copies <= counters.copied_fragments, "{counters:?}");
    assert!((1..=3).contains(&counters.realtime_moves), "away at once, and back once: {counters:?}");
}

#[test]
fn no_budget_no_copies() {
    let none = RealtimeOptions { copy_permille: 0, ..RealtimeOptions::default() };
    let mut simulation = simulation(12, dark_link(), &with_class(none), Span::ZERO);
    simulation.run_until(ms(300));
    call_beside_bulk(&mut simulation, ms(5000));
    let counters = simulation.hosts[0].endpoint.status().counters;
    assert!(counters.realtime.packets > 200, "{counters:?}");
    assert_eq!((counters.copied_fragments, counters.copied_bytes), (0, 0));
}

#[test]
fn a_steady_path_needs_no_copies() {
    let links = [LinkConfig::clean(40, 10), LinkConfig::clean(20, 25)].map(|link| [link; 2]).to_vec();
    let mut simulation = simulation(13, links, &with_class(RealtimeOptions::default()), Span::ZERO);
    simulation.run_until(ms(300));
    for id in 0..200 {
        offer(&mut simulation, 0, CALL, id, 172);
        simulation.run_for(Span::from_millis(20));
    }
    let counters = simulation.hosts[0].endpoint.status().counters;
    assert_eq!((counters.realtime.packets, counters.copied_fragments, counters.realtime_moves), (200, 0, 0));
}

/// Marked packets and others, both more than the path carries: the class has its share of one half, and not more.
#[test]
fn marked_bulk_takes_its_share_and_no_more() {
    let links = vec![[LinkConfig::clean(20, 10); 2]];
    let mut simulation = simulation(14, links, &with_class(RealtimeOptions::default()), Span::ZERO);
    simulation.run_until(ms(300));
    for id in 0..6000 {
        offer(&mut simulation, 0, FIRST_REALTIME_STREAM, id, 1400);
        offer(&mut simulation, 0, 3, id, 1400);
        simulation.run_for(Span::from_millis(1));
    }
    let delivered = |stream| simulation.hosts[1].ids(stream).len() as f64;
    let [marked, others] = [delivered(FIRST_REALTIME_STREAM), delivered(3)];
    assert!(marked >= others * 0.9, "it goes first: {marked} and {others}");
    assert!(others / (marked + others) > 0.2, "the others are not starved: {marked} and {others}");
}

/// Small packets of one flow, as acknowledgements are, beside full ones of another that fill the path: the time of a call's
/// packet shows the queue there. 10 Mbit/s, 10 ms one way, of which the small packets take a third.
#[test]
fn small_packets_do_not_make_the_window_too_large_for_full_ones() {
    let links = vec![[LinkConfig::clean(10, 10); 2]];
    let mut simulation = simulation(15, links, &with_class(RealtimeOptions::default()), Span::ZERO);
    simulation.run_until(ms(300));
    let mut sent = Vec::new();
    for id in 0..8000 {
        offer(&mut simulation, 0, 4, 2 * id, 60);
        offer(&mut simulation, 0, 4, 2 * id + 1, 60);
        offer(&mut simulation, 0, 3, id, 1300);
        if id % 20 == 0 {
            sent.push(simulation.now);
            offer(&mut simulation, 0, CALL, id / 20, 172);
        }
        simulation.run_for(Span::from_millis(1));
    }
    let calls = simulation.hosts[1].delivered.iter().filter(|(stream, ..)| *stream == CALL);
    let mut delays: Vec<Span> = calls.map(|(_, id, time)| time.since(sent[*id as usize])).collect();
    delays.sort_unstable();
    let median = delays[delays.len() / 2];
    assert!(delays.len() > 380 && median < Span::from_millis(20), "{median} of {} packets", delays.len());
}
