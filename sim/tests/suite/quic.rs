//! Multipath QUIC flows: header bytes, rates beside TCP's and the square-root law, a path that dies, streams, digests.

use crate::common::{column, host, links, mean, multipath, pipe, run, set_size, set_subflows, set_up};
use link::{LossModel, PipeConfig};
use scenario::model::{Experiment, Link, MultipathTransport, Quic};
use units::{Rate, Span};

/// IPv4, UDP, short header, STREAM frame and tag: 20 + 8 + 13 + 11 + 16.
const HEADERS: f64 = 68.0;

fn path(mbit: u64, ms: u64) -> PipeConfig {
    pipe(Rate::from_mbit(mbit), Span::from_millis(ms), 100)
}

/// One flow with so many streams over paths of one link each.
fn quic(algorithm: &str, pipes: &[PipeConfig], streams: u32, seconds: u64) -> Experiment {
    let mut experiment = links(algorithm, pipes, seconds);
    set_subflows(&mut experiment.flows[0], &(0..pipes.len()).collect::<Vec<_>>());
    let multipath = multipath(&mut experiment.flows[0]);
    multipath.scheduler.name = "minrtt".to_owned();
    multipath.transport = MultipathTransport::Quic(Quic { streams, ..Quic::default() });
    experiment
}

#[test]
fn paths_of_unlike_rate_and_delay_carry_their_sum() {
    for algorithm in ["reno", "cubic", "lia", "olia", "bbr"] {
        let flow = run(&quic(algorithm, &[path(50, 10), path(20, 30)], 1, 30)).flows.remove(0);
        // 70 Mbit/s but for headers and the link's own overhead; slow start and valleys take the rest.
        let max_goodput = 70.0 * (1500.0 - HEADERS) / 1538.0;
        assert!(
            flow.goodput_mbps < max_goodput && flow.goodput_mbps > 0.95 * max_goodput,
            "{algorithm}: {} of {max_goodput}",
            flow.goodput_mbps
        );
    }
}

#[test]
fn goodput_is_throughput_without_headers() {
    for (ip, headers) in [(20, HEADERS), (40, HEADERS + 20.0)] {
        let mut experiment = quic("cubic", &[path(50, 10)], 1, 20);
        host(&mut experiment.flows[0]).ip_header = ip;
        let flow = run(&experiment).flows.remove(0);
        let ratio = flow.goodput_mbps / flow.throughput_mbps;
        // What was retransmitted counts as throughput only.
        assert!((ratio / ((1500.0 - headers) / 1500.0) - 1.0).abs() < 2e-3, "IP header of {ip}: {ratio}");
    }
}

/// On one clean link QUIC with one path and TCP fill the same queue with the same windows: what is between them is their
/// headers, 68 bytes a packet and 52.
#[test]
fn over_one_path_quic_and_tcp_have_the_same_throughput() {
    for algorithm in ["reno", "cubic", "bbr"] {
        let pipes = [pipe(Rate::from_mbit(20), Span::from_millis(20), 70)];
        let quic = run(&quic(algorithm, &pipes, 1, 60)).flows.remove(0);
        let mut tcp = links(algorithm, &pipes, 60);
        tcp.flows = vec![crate::common::bulk("flow", algorithm)];
        let tcp = run(&tcp).flows.remove(0);
        let ratio = quic.throughput_mbps / tcp.throughput_mbps;
        assert!((ratio - 1.0).abs() < 0.02, "{algorithm}: {} and {}", quic.throughput_mbps, tcp.throughput_mbps);
    }
}

/// Mathis et al. 1997, as for TCP: rate = C MSS / (RTT sqrt(p)), with C = 1.31 for independent losses and growth per packet.
#[test]
fn reno_obeys_the_square_root_law() {
    for p in [0.0004, 0.001] {
        let random =
            PipeConfig { loss: LossModel::Random(p), ..pipe(Rate::from_mbit(1000), Span::from_millis(25), 100_000) };
        let mut experiment = quic("reno", &[random], 1, 1000);
        // As the test of TCP: losses on the data's way only.
        experiment.links[0].reverse.loss = LossModel::None;
        let flow = run(&experiment).flows.remove(0);
        let packets_per_second = flow.goodput_mbps * 1e6 / 8.0 / (1500.0 - HEADERS);
        let expected = 1.31 / p.sqrt() / 0.050;
        let ratio = packets_per_second / expected;
        println!("p = {p}: {packets_per_second:.0} packets/s, the law says {expected:.0}: ratio {ratio:.3}");
        assert!((ratio - 1.0).abs() < 0.05, "p = {p}: ratio {ratio}");
    }
}

#[test]
fn a_path_that_dies_and_comes_back_is_used_again() {
    let mut experiment = quic("cubic", &[path(20, 10), path(20, 10)], 1, 30);
    experiment.sample = Some(Span::from_secs(1));
    experiment.events = vec![set_up(1, 5_000, false), set_up(1, 15_000, true)];
    let result = run(&experiment);
    let goodput = |from: usize, to: usize| mean(&column(&result, "flow flow", "goodput_mbps")[from..to]);
    let second = &column(&result, "subflow flow/path 1", "throughput_mbps")[6..15];
    // Probes of path 1 back off for ten seconds: the next one may come as late as at 15 + 10 s.
    let (both_paths, one_path, recovered) = (goodput(1, 5), goodput(6, 15), goodput(28, 30));
    assert!((36.0..40.0).contains(&both_paths) && (18.0..20.0).contains(&one_path), "{both_paths} {one_path}");
    assert!(recovered > 1.5 * one_path && mean(second) == 0.0, "{recovered}");
    assert_eq!((result.subflows[0].failures, result.subflows[1].failures), (Some(0), Some(1)));
    assert!(result.flows[0].multipath.expect("QUIC").reinjected_packets > 0);
}

#[test]
fn a_sized_flow_delivers_its_bytes_through_loss_over_any_streams() {
    for streams in [1, 3, 50] {
        let lossy = |ms| PipeConfig { loss: LossModel::Random(0.05), ..path(10, ms) };
        let mut experiment = quic("olia", &[lossy(5), lossy(40)], streams, 120);
        set_size(&mut experiment.flows[0], 1_000_001);
        let flow = run(&experiment).flows.remove(0);
        assert_eq!(flow.delivered_bytes, 1_000_001, "{streams} streams");
        assert!(flow.completion_s.is_some());
    }
}

#[test]
fn streams_are_not_held_up_by_each_others_losses() {
    let wait = |streams| {
        let lossy = PipeConfig { loss: LossModel::Random(0.01), ..path(50, 20) };
        let mut experiment = quic("bbr", &[lossy], streams, 20);
        experiment.links[0].reverse.loss = LossModel::None;
        run(&experiment).flows[0].multipath.expect("QUIC").head_of_line_delay_ms.mean
    };
    // A retransmission takes a round trip more than a packet. With one stream all that arrives in it waits, with twenty a
    // twentieth. Losses that fall into one round trip make it somewhat less than twenty times.
    let (one, twenty) = (wait(1), wait(20));
    assert!(twenty * 5.0 < one && twenty * 40.0 > one, "{one} ms and {twenty} ms");
}

#[test]
fn the_flow_control_window_holds_back_a_sender_with_a_small_receive_buffer() {
    let mut experiment = quic("cubic", &[path(50, 50)], 1, 20);
    host(&mut experiment.flows[0]).receive_buffer.max = 131_072;
    let flow = run(&experiment).flows.remove(0);
    // Half of the buffer in whole chunks, a round trip of 100 ms and a packet's time.
    let chunks = f64::from(131_072 / 2 / 1432);
    let expected = chunks * 1432.0 * 8.0 / 1e6 / 0.1;
    assert!(flow.goodput_mbps < expected && flow.goodput_mbps > 0.9 * expected, "{} of {expected}", flow.goodput_mbps);
    assert!(flow.receive_window_limited_s > 15.0);
}

#[test]
fn the_same_seed_gives_the_same_digest_and_another_seed_another() {
    let lossy = |ms| PipeConfig { loss: LossModel::Random(0.01), ..path(20, ms) };
    let experiment = quic("balia", &[lossy(5), lossy(25)], 4, 5);
    let digest = |seed| ropewalk_sim::run(&experiment, seed).expect("registered").digest;
    assert_eq!(digest(7), digest(7));
    assert_ne!(digest(7), digest(8));
}

/// One flow over 100 Mbit/s and 40 ms, of which these packets overtake those of the 5 ms before: up to 41 of them. (With the
/// wire's overhead 8.1 packets pass in a millisecond.)
fn reordered(algorithm: &str, share: f64, options: Quic) -> record::Flow {
    let mut experiment = quic(algorithm, &[pipe(Rate::from_mbit(100), Span::from_millis(15), 400)], 1, 20);
    let overtaken = PipeConfig { reorder: share.into(), delay: Span::from_millis(5), ..PipeConfig::default() };
    experiment.links.push(Link::new("netem".to_owned(), overtaken, PipeConfig::default()));
    (experiment.paths[0].links, experiment.paths[0].turn) = (vec![0, 1], 2);
    multipath(&mut experiment.flows[0]).transport = MultipathTransport::Quic(options);
    run(&experiment).flows.remove(0)
}

/// Known truth: without reordering the same flow fills the link.
#[test]
fn an_adaptive_sender_with_undo_loses_little_to_reordering_and_a_static_window_nearly_all() {
    let static_options = Quic { adaptive_loss_thresholds: false, undo: false, ..Quic::default() };
    for (algorithm, share) in [("cubic", 0.001), ("reno", 0.01), ("bbr", 0.1)] {
        let in_order = reordered(algorithm, 0.0, static_options);
        let adaptive = reordered(algorithm, share, Quic::default());
        let ratio = adaptive.goodput_mbps / in_order.goodput_mbps;
        assert!(ratio > 0.9, "{algorithm}: {} of {}", adaptive.goodput_mbps, in_order.goodput_mbps);
        let static_flow = reordered(algorithm, share, static_options);
        let is_hurt = static_flow.goodput_mbps < 0.5 * in_order.goodput_mbps;
        assert!(is_hurt || algorithm == "bbr", "{algorithm}: {}", static_flow.goodput_mbps);
        assert_eq!(static_flow.spurious_recoveries, 0, "{algorithm}");
        // Nothing is dropped: all but what is under way at the end was declared lost falsely, and the record says so.
        assert_eq!(static_flow.dropped_packets, 0, "{algorithm}");
        assert!(
            static_flow.quic.expect("QUIC").declared_lost_packets - static_flow.quic.expect("QUIC").spurious_losses
                <= 41,
            "{algorithm}: {static_flow:?}"
        );
    }
}

#[test]
fn a_path_that_keeps_order_has_no_spurious_losses() {
    for algorithm in ["cubic", "bbr"] {
        let flow = reordered(algorithm, 0.0, Quic::default());
        assert_eq!((flow.quic.expect("QUIC").spurious_losses, flow.spurious_recoveries), (0, 0), "{algorithm}");
    }
}
