//! The striping tunnel: shares, order, parity.

use crate::common::{add_striping_tunnel, bulk, column, datagrams, host, one_link, pipe, run};
use link::{CoDelConfig, FqCodelConfig, PipeConfig, QueueConfig, QueueDiscipline, QueueLimit};
use scenario::model::{Device, Experiment, Flow, Nuisances, Route, Tunnel, WakeUp};
use units::{Instant, Rate, Span};

/// Two paths of 10 Mbit/s with these delays, a tunnel over them, nothing added to packets, and this traffic.
fn striped(delays_ms: [u64; 2], flows: Vec<Flow>) -> Experiment {
    let path_pipe = |ms| PipeConfig { overhead: 0, ..pipe(Rate::from_mbit(10), Span::from_millis(ms), 100_000) };
    let mut experiment = one_link("", path_pipe(delays_ms[0]), 10);
    add_striping_tunnel(&mut experiment, path_pipe(delays_ms[1]), 4000, Span::from_secs(1));
    experiment.flows = flows.into_iter().map(|flow| Flow { route: Route::Tunnel, ..flow }).collect();
    experiment
}

fn tunnel(experiment: &mut Experiment) -> &mut Tunnel {
    experiment.tunnel.as_mut().expect("there is one")
}

/// A flow that keeps its share of the buffers: a bounded receive buffer.
fn bounded(algorithm: &str) -> Flow {
    let mut flow = bulk("flow", algorithm);
    host(&mut flow).receive_buffer.max = 600_000;
    flow
}

/// Packets per path.
fn packets(experiment: &Experiment) -> [u64; 2] {
    [0, 1].map(|path| run(experiment).paths[path].sent_packets)
}

/// Bytes per path: transmission times at 10 Mbit/s for 10 s.
fn bytes(experiment: &Experiment) -> [f64; 2] {
    [0, 1].map(|path| run(experiment).paths[path].utilisation * 10e6 * 10.0 / 8.0)
}

#[test]
fn packet_round_robin_splits_packets_by_weight_to_the_packet() {
    // One every 4 ms, 2501 of them.
    let flow = || vec![datagrams("flow", Rate::from_mbit(2), 1000)];
    for (weights, cycle) in [([3, 1], 4), ([1, 1], 2), ([5, 3], 8), ([100, 50], 3)] {
        let mut experiment = striped([10, 30], flow());
        tunnel(&mut experiment).weights = weights.to_vec();
        let [first, second] = packets(&experiment);
        assert_eq!(first + second, 2501);
        // Whole cycles split exactly, the last one at most by what it holds.
        let share = 2501.0 * f64::from(weights[0]) / f64::from(weights[0] + weights[1]);
        assert!((first as f64 - share).abs() < f64::from(cycle), "{weights:?}: {first} and {second}");
    }
}

#[test]
fn each_direction_begins_on_a_drawn_path() {
    let mut experiment = striped([10, 30], vec![datagrams("flow", Rate::from_mbit(2), 1000)]);
    tunnel(&mut experiment).nuisances.draw_first = true;
    let begins_first = |seed| ropewalk_sim::run(&experiment, seed).unwrap().paths[0].sent_packets == 1251;
    let count = (0..40).filter(|seed| begins_first(*seed)).count();
    // 20 +- 3.2.
    assert!((8..=32).contains(&count), "{count} of 40");
}

#[test]
fn stray_packets_come_at_their_rate_between_those_of_the_flow() {
    let mut experiment = striped([10, 30], vec![datagrams("flow", Rate::from_mbit(2), 1000)]);
    let without: u64 = packets(&experiment).iter().sum();
    tunnel(&mut experiment).nuisances.stray_interval = Some(Span::from_millis(50));
    let strays = packets(&experiment).iter().sum::<u64>() - without;
    // 200 +- 14.
    assert!((140..=260).contains(&strays), "{strays}");
}

#[test]
fn a_daemon_that_wakes_late_delays_packets_and_loses_none() {
    let mut experiment = striped([10, 10], vec![datagrams("flow", Rate::from_mbit(2), 1000)]);
    let (least, mean) = (Span::from_millis(1), Span::from_millis(2));
    let latency = WakeUp { least, mean };
    tunnel(&mut experiment).device = Some(Device { ring: 100, socket: 100 });
    let before = run(&experiment);
    tunnel(&mut experiment).nuisances = Nuisances { wake_up: Some(latency), ..Nuisances::default() };
    let after = run(&experiment);
    let delay = |record: &record::Run| record.flows[0].one_way_delay_ms.expect("measured").mean;
    let added = delay(&after) - delay(&before);
    // Two daemons, of which each takes what has come since it was woken: at most 2 ms each.
    assert!((2.0..=4.1).contains(&added), "{added} ms");
    assert!(after.paths.iter().all(|path| path.lost_packets == 0));
}

#[test]
fn a_reader_that_wakes_late_delays_acknowledgements() {
    let latency = WakeUp { least: Span::from_millis(5), mean: Span::from_millis(5) };
    // Two segments sent at once are acknowledged when the first has been read: an acknowledgement before would take back
    // some of the window (Linux 6.1 `__tcp_ack_snd_check`).
    let window = 2;
    for (reader, expected) in [(Some(latency), 5.0), (None, 0.0)] {
        let mut flow = bulk("flow", "reno");
        host(&mut flow).window = Some(window);
        let mut experiment = striped([10, 10], vec![flow]);
        tunnel(&mut experiment).nuisances = Nuisances { reader, ..Nuisances::default() };
        let rtt = &run(&experiment).flows[0].rtt_ms;
        let added = rtt.max - rtt.min;
        // A small packet, the end of the handshake, takes 0.07 ms.
        assert!((added - expected).abs() < 0.1, "{added} ms");
    }
}

/// Large and small packets in turn: packet round robin sends all large ones on one path.
#[test]
fn byte_deficit_splits_bytes_where_packet_round_robin_splits_packets() {
    let flow = |name, packet| datagrams(name, Rate::from_bits(u64::from(packet) * 2000), packet);
    let experiment = |scheduler: &str, weights: [u32; 2]| {
        let mut experiment = striped([10, 30], vec![flow("large", 1400), flow("small", 200)]);
        (tunnel(&mut experiment).mpt_scheduler, tunnel(&mut experiment).weights) = (scheduler.into(), weights.to_vec());
        experiment
    };
    let [large, small] = bytes(&experiment("packet-round-robin", [1, 1]));
    assert!((large / small - 7.0).abs() < 0.01, "{large} and {small} bytes");
    for weights in [[1, 1], [3, 1], [2, 5]] {
        let [first, second] = bytes(&experiment("byte-deficit", weights));
        let share = (first + second) * f64::from(weights[0]) / f64::from(weights[0] + weights[1]);
        // Behind or ahead by a large packet, and by one that is still being transmitted.
        assert!((first - share).abs() <= 2.0 * 1400.0, "{weights:?}: {first} and {second} bytes");
    }
}

#[test]
fn the_resequencer_hides_any_difference_of_delays_from_tcp() {
    for algorithm in ["reno", "cubic", "bbr"] {
        for second in [10, 11, 20, 50, 100] {
            let run = run(&striped([10, second], vec![bounded(algorithm)]));
            let (flow, tunnel) = (&run.flows[0], run.tunnel.expect("there is one"));
            assert_eq!((tunnel.timeouts, tunnel.overflows, tunnel.late_packets), (0, 0, 0), "{tunnel:?}");
            let faults = (flow.retransmitted_packets, flow.recoveries, flow.spurious_recoveries, flow.timeouts);
            assert_eq!(faults, (0, 0, 0, 0), "{algorithm}, 10 and {second} ms: {flow:?}");
            // The first packet of a burst on the second path arrives this much after what the first path carried, in
            // its stead or one transmission later.
            let (difference, transmission) = ((second - 10) as f64, 1440.0 * 8.0 / 10e3);
            assert!(tunnel.reorder_delay_ms.max >= difference - transmission, "10 and {second} ms: {tunnel:?}");
        }
    }
}

/// RACK waits for the minimum RTT over four at first and learns up to the smoothed RTT: a difference of 10 ms between
/// round trips of 50 and 60 ms is learned in the first rounds; one of 60 ms between 20 and 80 ms, or 40 between 10 and
/// 50, lies beyond the smoothed RTT of the first rounds, so it is not.
#[test]
fn a_delay_difference_within_the_smoothed_rtt_is_learned_at_once_and_one_beyond_it_is_not() {
    let disordered = |one_way: [u64; 2]| {
        let mut experiment = striped(one_way, vec![bounded("reno")]);
        tunnel(&mut experiment).resequence = None;
        host(&mut experiment.flows[0]).tick = Span::from_millis(1); // which the reordering timer waits longer
        experiment.duration = Span::from_secs(20);
        (experiment.links.iter_mut()).for_each(|link| link.forward.rate = Some(Rate::from_mbit(100)));
        experiment.sample = Some(Span::from_secs(1));
        let run = run(&experiment);
        let late = column(&run, "flow flow", "retransmitted_packets")[5..].iter().sum::<f64>();
        (run.flows[0].recoveries, run.flows[0].spurious_recoveries, late, run.flows[0].goodput_mbps)
    };
    let (episodes, _, late, near) = disordered([25, 30]);
    println!("50 and 60 ms: {episodes} episodes, {late} packets sent again after 5 s, {near} Mbit/s");
    assert!(episodes <= 3 && late == 0.0, "learned");
    for apart in [[10, 40], [5, 25]] {
        let (episodes, spurious, late, goodput) = disordered(apart);
        println!("{apart:?} ms one way: {episodes} episodes, {late} packets sent again after 5 s, {goodput} Mbit/s");
        // What is learned ends the episodes in the first rounds; these go on after 5 s.
        assert!(episodes > 20 && spurious > 0 && late > 0.0, "not learned");
    }
}

#[test]
fn the_first_position_and_stray_packets_shift_the_parity() {
    // Three packets, 100 ms apart.
    let mut flow = datagrams("flow", Rate::from_bits(80_000), 1000);
    flow.stop = Some(Instant::ZERO + Span::from_millis(300));
    for (first, stray, expected) in [(0, 0, [2, 1]), (1, 0, [1, 2]), (0, 1, [2, 2]), (1, 1, [2, 2]), (0, 2, [3, 2])] {
        let mut experiment = striped([10, 10], vec![flow.clone()]);
        (tunnel(&mut experiment).first, tunnel(&mut experiment).stray_packets) = (first, stray);
        assert_eq!(packets(&experiment), expected, "first {first}, {stray} stray");
        let large = bytes(&experiment).map(|bytes| (bytes / 1000.0).floor());
        let odd = (first + stray) % 2 == 1;
        assert_eq!(large, if odd { [1.0, 2.0] } else { [2.0, 1.0] }, "first {first}, {stray} stray");
    }
}

/// Were they one sequence, each acknowledgement would take the turn of the other path.
#[test]
fn the_two_directions_take_turns_on_their_own() {
    let mut flow = bounded("reno");
    host(&mut flow).quick_ack = true;
    let [first, second] = packets(&striped([10, 10], vec![flow]));
    assert!(first.abs_diff(second) <= 1 && first > 1000, "{first} and {second}");
}

/// RFC 6040, normal mode: the outer header is as ECN-capable as the inner one, and its mark reaches the inner one.
#[test]
fn marks_pass_through_the_tunnel() {
    for ecn in [true, false] {
        let mut experiment = striped([10, 10], vec![bulk("flow", "reno")]);
        host(&mut experiment.flows[0]).ecn = ecn;
        let discipline = QueueDiscipline::CoDel(CoDelConfig::default());
        for link in &mut experiment.links {
            link.forward.queue = QueueConfig { limit: QueueLimit::Packets(1000), discipline, ecn: true };
        }
        let run = run(&experiment);
        let (marked, dropped): (u64, u64) = run
            .paths
            .iter()
            .fold((0, 0), |(marked, dropped), path| (marked + path.marked_packets, dropped + path.dropped_packets));
        let flow = &run.flows[0];
        assert_eq!((marked > 0, dropped > 0), (ecn, !ecn), "{:?}", run.paths);
        assert_eq!(flow.retransmitted_packets > 0, !ecn, "{flow:?}");
        // A flow that ignored the marks would fill the queues: a thousand packets wait for 1.2 s.
        assert!(run.paths.iter().all(|path| path.queue_delay_ms < 50.0), "{:?}", run.paths);
    }
}

/// FQ-CoDel sees one flow a path: the outer headers are all alike.
#[test]
fn to_the_queues_of_its_paths_a_tunnel_is_one_flow() {
    let delay = |discipline| {
        let voice = datagrams("voice", Rate::from_bits(64_000), 200);
        let mut experiment = striped([10, 10], vec![bulk("flow", "cubic"), voice]);
        for link in &mut experiment.links {
            link.forward.queue = QueueConfig { limit: QueueLimit::Packets(100), discipline, ecn: false };
        }
        run(&experiment).flows[1].one_way_delay_ms.expect("measured")
    };
    let codel = CoDelConfig { target: Span::MAX, ..CoDelConfig::default() };
    let (fair, plain) = (
        delay(QueueDiscipline::FqCodel(FqCodelConfig { flows: 1024, quantum: 1514, codel })),
        delay(QueueDiscipline::DropTail),
    );
    assert!(fair.p50 > 0.8 * plain.p50 && plain.p50 > 60.0, "{fair:?} and {plain:?}");
}
