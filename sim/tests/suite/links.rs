//! Links with rate traces, jitter, impairments and hand-overs.

use crate::common::{add_striping_tunnel, bulk, datagrams, host, links, one_link, pipe, run, run_sampled};
use link::{PipeConfig, RateTrace};
use scenario::Overrides;
use scenario::model::{Change, Directions, Flow, FlowKind, Handover, Route};
use std::path::Path;
use units::{Instant, Rate, Span};

/// Seven opportunities in ten milliseconds: 8.4 Mbit/s in packets of 1500 bytes.
fn traced() -> PipeConfig {
    let trace = RateTrace { opportunities: [1, 1, 2, 5, 5, 5, 10].into(), period_ms: 10 };
    PipeConfig { rate: None, trace: Some(trace), overhead: 0, ..pipe(Rate::from_mbit(1), Span::from_millis(10), 50) }
}

#[test]
fn tcp_fills_a_trace_link() {
    let mut experiment = one_link("cubic", traced(), 60);
    experiment.links[0].reverse = pipe(Rate::from_mbit(100), Span::from_millis(10), 100);
    let max_goodput = 8.4 * 1448.0 / 1500.0;
    let goodput = run(&experiment).flows[0].goodput_mbps;
    assert!((0.97 * max_goodput..=max_goodput).contains(&goodput), "{goodput} of {max_goodput} Mbit/s");
}

/// Jitter lets a packet catch up with the one before but not overtake it.
#[test]
fn jitter_on_both_ways_does_not_look_like_reordering() {
    let jittery = PipeConfig {
        jitter: Span::from_millis(15).into(),
        ..pipe(Rate::from_mbit(50), Span::from_millis(10), 100_000)
    };
    for algorithm in ["reno", "cubic", "bbr"] {
        let mut experiment = one_link(algorithm, jittery.clone(), 20);
        experiment.links[0].reverse.jitter = jittery.jitter;
        experiment.flows.push(bulk("second", algorithm));
        experiment.flows.iter_mut().for_each(|flow| host(flow).receive_buffer.max = 1_000_000);
        for flow in run(&experiment).flows {
            let faults = (flow.retransmitted_packets, flow.recoveries, flow.spurious_recoveries, flow.timeouts);
            assert_eq!(faults, (0, 0, 0, 0), "{algorithm}: {flow:?}");
            assert!(flow.rtt_ms.max > flow.rtt_ms.min + 15.0, "there was jitter");
        }
    }
}

/// 20 Mbit/s of datagrams over 10 Mbit/s, which are nothing from 2 to 5 s, and from 9 s to the end of a run of 10 s.
#[test]
fn a_rate_of_zero_carries_nothing_until_the_next_rate() {
    let mut experiment = one_link("", pipe(Rate::from_mbit(10), Span::from_millis(10), 50), 10);
    experiment.flows = vec![datagrams("flood", Rate::from_mbit(20), 1500)];
    let change = |s, mbit| Change {
        at: Instant::ZERO + Span::from_secs(s),
        rate: Some(Rate::from_mbit(mbit)),
        ..Change::default()
    };
    experiment.events = vec![change(2, 0), change(5, 10), change(9, 0)];
    // 6 s at 10 Mbit/s, and the rest of the packet that is in transmission when each outage begins.
    let carried = run(&experiment).flows[0].delivered_bytes as f64 * 1538.0 / 1500.0;
    assert!((7.5e6 - 1538.0..=7.5e6 + 2.0 * 1538.0).contains(&carried), "{carried} bytes");
    let mut reversed = experiment.clone();
    for event in &mut reversed.events {
        event.directions = Directions::Reverse;
    }
    let uncut = run(&reversed).flows[0].delivered_bytes as f64 * 1538.0 / 1500.0;
    assert!((12.4e6..=12.5e6).contains(&uncut), "{uncut} bytes");
}

#[test]
fn an_overloaded_trace_link_uses_each_of_its_opportunities() {
    let mut experiment = one_link("", traced(), 10);
    experiment.flows = vec![datagrams("flood", Rate::from_mbit(20), 1500)];
    // The last opportunity whose packet arrives in time is at 9.99 s: 999 periods.
    assert_eq!(run(&experiment).flows[0].delivered_bytes, 999 * 7 * 1500);
}

/// Packets are forwarded along a chain of links, up to the next change or sample: samples that are closer than a link's delay
/// leave an event for each hop.
#[test]
fn a_chain_of_links_carries_the_same_with_an_event_for_each_hop_and_without() {
    let hop = |mbit, packets| PipeConfig {
        jitter: Span::from_micros(700).into(),
        ..pipe(Rate::from_mbit(mbit), Span::from_millis(7), packets)
    };
    let [near, bottleneck, far] = [hop(1000, 500), hop(40, 60), hop(200, 100)];
    for algorithm in ["reno", "cubic", "bbr"] {
        let pipes = [&near, &bottleneck, &far, &near, &far].map(Clone::clone);
        let mut experiment = links("", &pipes, 10);
        experiment.paths[0].links = vec![0, 1, 2];
        experiment.paths[1].links = vec![3, 1, 4];
        experiment.paths.truncate(2);
        let second = Flow { route: Route::Path(1), ..bulk("second", "cubic") };
        experiment.flows = vec![bulk("first", algorithm), second];
        let change = |link, at_ms| Change { link, at: Instant::ZERO + Span::from_millis(at_ms), ..Change::default() };
        experiment.events = vec![
            Change { rate: Some(Rate::from_mbit(10)), ..change(1, 3_000) },
            Change { delay: Some(Span::from_millis(30)), ..change(2, 5_000) },
            Change { up: Some(false), ..change(4, 7_000) },
            Change { up: Some(true), ..change(4, 7_500) },
        ];
        let [run, sampled] = [run(&experiment), run_sampled(experiment, Span::from_millis(1))];
        assert_eq!((&run.digest, &run.flows, &run.paths), (&sampled.digest, &sampled.flows, &sampled.paths));
        let [events, events_with_hops] = [run.work.events, sampled.work.events - 10_000];
        // Of three hops in each direction one needs no event, so that a third fewer would be without timers.
        assert!(events * 6 < events_with_hops * 5, "{events} of {events_with_hops} events");
    }
}

/// A corrupted packet crosses both links, and is the flow's loss; TCP delivers what it would without.
#[test]
fn corrupted_packets_are_lost_at_the_end_of_the_path() {
    let clean = pipe(Rate::from_mbit(10), Span::from_millis(5), 100);
    let corrupting = PipeConfig { corrupt: 0.01, ..clean.clone() };
    let mut experiment = links("", &[corrupting, clean], 60);
    experiment.paths[0].links = vec![0, 1];
    experiment.flows = vec![datagrams("udp", Rate::from_mbit(5), 1000)];
    let run = run(&experiment);
    let (path, flow) = (&run.paths[0], &run.flows[0]);
    assert_eq!(flow.dropped_packets, path.corrupted_packets.expect("counted"));
    assert_eq!(flow.delivered_bytes, 1000 * (path.delivered_packets - path.corrupted_packets.expect("counted")));
    assert_eq!((path.lost_packets, path.dropped_packets), (0, 0));
    let (expected, error) = (path.delivered_packets as f64 * 0.01, (path.delivered_packets as f64 * 0.0099).sqrt());
    assert!((path.corrupted_packets.expect("counted") as f64 - expected).abs() < 5.0 * error, "{path:?}");
}

/// Duplicates are no new data to TCP, MPT's resequencer or Ropewalk's replay window, and no loss.
#[test]
fn a_file_over_duplicating_paths_arrives_once() {
    let duplicating = PipeConfig { duplicate: 0.5, ..pipe(Rate::from_mbit(10), Span::from_millis(5), 1000) };
    let mut experiment = one_link("cubic", duplicating.clone(), 30);
    experiment.links[0].reverse.duplicate = 0.5;
    let FlowKind::Tcp { size, .. } = &mut experiment.flows[0].kind else { unreachable!() };
    *size = Some(3_000_000);
    let mut mpt = experiment.clone();
    add_striping_tunnel(&mut mpt, duplicating, 1000, Span::from_millis(300));
    for experiment in [experiment, mpt] {
        let run = run(&experiment);
        let flow = &run.flows[0];
        assert_eq!((flow.delivered_bytes, flow.timeouts), (3_000_000, 0), "{flow:?}");
        assert!(run.paths[0].duplicated_packets.expect("counted") > 300 && flow.completion_s.is_some(), "{flow:?}");
    }
}

/// Datagrams are sent at 0.5, 1.5, ... ms. At 15, 30 and 45 s the 20 that are on the wire are lost, and the 80 that are
/// sent while it is down.
#[test]
fn a_handover_loses_what_is_on_the_wire_and_what_is_sent_during_the_outage() {
    let [period, outage, delay] = [15_000, 80, 20].map(Span::from_millis);
    let mut experiment = one_link("", PipeConfig { rate: None, ..pipe(Rate::from_mbit(1), delay, 100) }, 60);
    experiment.links[0].handover = Some(Handover { period, outage, delay: Some((delay, delay)) });
    experiment.flows = vec![datagrams("udp", Rate::from_mbit(8), 1000)];
    experiment.flows[0].start = Instant::ZERO + Span::from_micros(500);
    let run = run(&experiment);
    assert_eq!((run.paths[0].lost_packets, run.flows[0].sent_packets), (300, 60_000));
    assert_eq!(
        (run.flows[0].one_way_delay_ms.expect("measured").min, run.flows[0].one_way_delay_ms.expect("measured").max),
        (20.0, 20.0)
    );
}

/// Two hosts below the same switch send to one another over the same two links: of a full-duplex link each direction carries
/// its own data, and acknowledgements of 40 to 52 bytes for every second packet.
#[test]
fn a_path_that_turns_crosses_links_in_their_other_direction() {
    let text = "name = \"swap\"\nduration = \"5s\"\n[fat_tree]\nk = 2\nrate = \"10mbit\"\ndelay = \"1ms\"\n[[flow]]\nname = \"host\"\n";
    let scenario = scenario::parse("swap", text, Path::new(""), &Overrides::default()).unwrap();
    let run = run(&scenario.cells[0].experiment);
    for flow in &run.flows {
        assert!((8.0..9.6).contains(&flow.goodput_mbps), "{}: {}", flow.name, flow.goodput_mbps);
    }
}
