//! Applications on TCP, writers at a constant rate and clients with requests, against closed forms on a path with a
//! short queue.

use crate::common::{application, bulk, column, host, links, one_link, pipe, requests, run, run_sampled, set_up};
use link::LossModel;
use scenario::model::{Application, Change, Directions, Distribution, Experiment, Flow};
use units::{Rate, Span};

const RTT_MS: f64 = 100.0;
const MSS: u32 = 1448;

fn answered(flow: &record::Flow) -> record::Requests {
    flow.requests.expect("it makes some")
}

/// 1 Gbit/s: a packet takes 12 us, nothing beside 100 ms.
fn wide(flow: Flow, seconds: u64) -> Experiment {
    let mut experiment = one_link("", pipe(Rate::from_mbit(1000), Span::from_millis(50), 10_000), seconds);
    experiment.flows = vec![flow];
    experiment
}

fn steady(algorithm: &str, rate: Rate, write: Option<u64>) -> Flow {
    let mut flow = bulk("flow", algorithm);
    *application(&mut flow) = Application::Steady { rate, write };
    flow
}

/// Linux (`tcp_cwnd_validate`) lets a window that is not filled grow to twice of what is used, in slow start, and no
/// further.
#[test]
fn a_writer_gets_its_rate_and_its_window_stays_at_what_it_uses() {
    let rate = Rate::from_mbit(2);
    let outstanding = (2e6 * RTT_MS / 1e3 / 8.0 / f64::from(MSS)).ceil() + 1.0;
    for algorithm in ["reno", "cubic", "bic", "htcp"] {
        let mut flow = steady(algorithm, rate, None);
        host(&mut flow).quick_ack = true;
        let run = run_sampled(wide(flow, 60), Span::from_millis(10));
        // The last round trip is on its way.
        assert!((run.flows[0].goodput_mbps / 2.0 - 1.0).abs() < 0.003, "{algorithm}: {}", run.flows[0].goodput_mbps);
        // What was written during the handshake is sent in the first second. The window that it took stays: Linux takes it back
        // after a timeout without acknowledgements only.
        let max = |column: &[f64]| column.iter().copied().fold(0.0, f64::max);
        let max_cwnd = max(column(&run, "flow flow", "cwnd_packets"));
        let in_flight = column(&run, "flow flow", "in_flight_packets");
        assert!(max_cwnd <= 2.0 * max(in_flight) + 2.0, "{algorithm}: {max_cwnd} packets, {} are used", max(in_flight));
        let max_in_flight = max(&in_flight[500..]);
        assert!(
            (outstanding - 2.0..=outstanding).contains(&max_in_flight),
            "{algorithm}: {max_in_flight} of {outstanding}"
        );
    }
}

/// Its rate is below the path's, so no queue can stand: nothing waits but for a delayed acknowledgement.
#[test]
fn a_writer_gets_its_rate_with_bbr_and_keeps_no_queue() {
    for algorithm in ["bbr", "bbr3"] {
        let run = run(&wide(steady(algorithm, Rate::from_mbit(2), None), 60));
        assert!((run.flows[0].goodput_mbps / 2.0 - 1.0).abs() < 0.003, "{algorithm}: {}", run.flows[0].goodput_mbps);
        assert!(run.flows[0].rtt_ms.p99 < RTT_MS + 41.0, "the longest wait is a delayed acknowledgement's");
    }
}

#[test]
fn a_writer_that_wants_more_than_the_path_has_gets_what_the_path_has() {
    let mut experiment = one_link("", pipe(Rate::from_mbit(10), Span::from_millis(10), 20), 30);
    experiment.flows = vec![steady("cubic", Rate::from_mbit(100), None)];
    let greedy = one_link("cubic", pipe(Rate::from_mbit(10), Span::from_millis(10), 20), 30);
    let [writer, greedy] = [experiment, greedy].map(|experiment| run(&experiment).flows.remove(0).goodput_mbps);
    assert!((writer / greedy - 1.0).abs() < 0.01, "{writer} for {greedy}");
}

/// A write of 100 segments every 0.95 s takes one to three round trips to leave. The sender then stands idle for more
/// than two timeouts of 300 ms (SRTT 100 ms, and at least 200 ms of variance) and less than three: the window is halved
/// twice (RFC 2861, Linux `tcp_cwnd_restart`).
#[test]
fn a_window_that_stood_idle_is_halved_once_a_timeout() {
    let run = run_sampled(
        wide(steady("reno", Rate::from_bits(1_220_000), Some(100 * u64::from(MSS))), 10),
        Span::from_millis(2),
    );
    let window = column(&run, "flow flow", "cwnd_packets");
    let interval = 100.0 * f64::from(MSS) * 8.0 / 1.22e6;
    // (The first write waits for the handshake, so that the time before the second is shorter.)
    for write in 2..9 {
        let sample = (f64::from(write) * interval / 0.002).floor() as usize;
        // Samples end at 2, 4, ... ms: `sample - 1` is the last one before the write, 4 more are well before its first
        // ACK.
        let (cwnd_before, cwnd_after) = (window[sample - 1], window[sample + 4]);
        assert!(cwnd_before >= 40.0, "write {write}: a window of {cwnd_before} would show nothing");
        assert_eq!(cwnd_after, (cwnd_before / 4.0).floor().max(10.0), "write {write}: from {cwnd_before}");
    }
}

/// Thirty segments are windows of 10 and 20: 1.5 round trips for the request, the SYN and its answer, one for the first
/// window, and half of one for the second. Once the window is open, a request takes a round trip.
#[test]
fn a_request_takes_the_rounds_of_slow_start() {
    let bytes = 30 * MSS;
    let times = |think, new_connections| {
        run(&wide(requests("reno", bytes, think, new_connections), 60)).flows[0]
            .requests
            .expect("it makes some")
            .response_time_ms
    };
    let is_near = |time: f64, rounds: f64| (0.0..1.0).contains(&(time - rounds * RTT_MS));
    let persistent = times(Span::from_millis(10), false);
    assert!(is_near(persistent.max, 3.0), "with the handshake: {persistent:?}");
    assert!(is_near(persistent.min, 1.0) && is_near(persistent.p99, 1.0), "with an open window: {persistent:?}");
    let idle = times(Span::from_secs(10), false);
    assert!(is_near(idle.max, 3.0) && is_near(idle.min, 2.0), "back to the initial window: {idle:?}");
    let reconnecting = times(Span::from_millis(10), true);
    assert!(
        is_near(reconnecting.max, 3.0) && is_near(reconnecting.min, 3.0),
        "every one as the first: {reconnecting:?}"
    );
}

/// A request of one segment and nothing to think about: one a round trip, and bytes are counted to the last.
#[test]
fn small_requests_follow_each_other_once_a_round_trip() {
    let flow = run(&wide(requests("cubic", 1000, Span::ZERO, false), 60)).flows.remove(0);
    // The first takes two round trips.
    assert!((595..=599).contains(&answered(&flow).requests), "{}", answered(&flow).requests);
    assert_eq!(flow.delivered_bytes, 1000 * answered(&flow).requests);
    assert_eq!(flow.retransmitted_packets, 0);
    let reconnecting = run(&wide(requests("cubic", 1000, Span::ZERO, true), 60)).flows.remove(0);
    assert!((297..=300).contains(&answered(&reconnecting).requests), "{}", answered(&reconnecting).requests);
    assert!(
        reconnecting.sent_packets - answered(&reconnecting).requests <= 1,
        "counters go on from connection to connection: {reconnecting:?}"
    );
}

/// Lost requests and responses are retransmitted: no client waits for ever.
#[test]
fn every_request_is_answered_through_heavy_loss() {
    for new_connections in [false, true] {
        let mut experiment = wide(requests("cubic", 5000, Span::ZERO, new_connections), 300);
        experiment.links[0].forward.loss = LossModel::Random(0.1);
        experiment.links[0].reverse.loss = LossModel::Random(0.3);
        let run = |seed| answered(&ropewalk_sim::run(&experiment, seed).expect("registered").flows[0]).requests;
        let requests: Vec<u64> = (0..20).map(run).collect();
        // Timeouts of one second, doubled: 0.8 s a request, and 1.5 s a handshake on average.
        assert!(requests.iter().sum::<u64>() > 20 * 300 / 3, "new connections {new_connections}: {requests:?}");
        // A SYN that is lost seven times waits for 127 s; after two such, one flow in sixty, the rest suffices for twenty.
        assert!(requests.iter().all(|requests| *requests >= 20), "new connections {new_connections}: {requests:?}");
    }
}

/// A flow of requests over two subflows of 100 ms.
fn over_two_subflows(size: u32, seconds: u64) -> Experiment {
    let mut experiment =
        links("cubic", &[1, 2].map(|_| pipe(Rate::from_mbit(1000), Span::from_millis(50), 10_000)), seconds);
    *application(&mut experiment.flows[0]) = application(&mut requests("cubic", size, Span::ZERO, false)).clone();
    experiment
}

/// As over one path: a segment takes a round trip, the first one two. Twenty are one fragment of the send buffer, which goes to
/// one subflow: a round trip, once its window has grown to as many.
#[test]
fn requests_over_mptcp_take_as_long_as_over_tcp() {
    let flow = run(&over_two_subflows(1000, 60)).flows.remove(0);
    assert!((595..=599).contains(&answered(&flow).requests), "{}", answered(&flow).requests);
    assert_eq!((flow.delivered_bytes, flow.retransmitted_packets), (1000 * answered(&flow).requests, 0));
    let times = run(&over_two_subflows(20 * 1424, 60)).flows[0].requests.expect("it makes some").response_time_ms;
    let is_near = |time: f64, rounds: f64| (0.0..1.0).contains(&(time - rounds * RTT_MS));
    assert!(is_near(times.min, 1.0) && is_near(times.p95, 1.0), "{times:?}");
}

/// A path is gone after a second: a request that goes there is repeated on the other one.
#[test]
fn requests_over_mptcp_go_on_when_a_path_is_down() {
    for (link, directions) in [(0, Directions::Both), (0, Directions::Reverse), (1, Directions::Both)] {
        let mut experiment = over_two_subflows(5000, 60);
        experiment.events = vec![Change { directions, ..set_up(link, 1000, false) }];
        let flow = run(&experiment).flows.remove(0);
        println!(
            "{link} {directions:?}: {} requests, {:?}",
            answered(&flow).requests,
            answered(&flow).response_time_ms
        );
        // 590 without the outage; it costs some timeouts, doubled while acknowledgements are lost.
        assert!(answered(&flow).requests > 300, "{link} {directions:?}: {}", answered(&flow).requests);
    }
}

#[test]
fn every_request_over_mptcp_is_answered_through_heavy_loss() {
    let mut experiment = over_two_subflows(5000, 300);
    for link in &mut experiment.links {
        link.forward.loss = LossModel::Random(0.1);
        link.reverse.loss = LossModel::Random(0.3);
    }
    for seed in 0..5 {
        let flow = ropewalk_sim::run(&experiment, seed).expect("registered").flows.remove(0);
        assert!(answered(&flow).requests > 300 / 7, "seed {seed}: {} requests", answered(&flow).requests);
    }
}

/// The mean of n exponential draws has a standard error of mean / sqrt(n).
#[test]
fn sizes_and_thinking_are_drawn_with_their_means() {
    let mut flow = requests("cubic", 0, Span::ZERO, false);
    if let Application::Requests(requests) = application(&mut flow) {
        (requests.size, requests.think) = (Distribution::Exponential(20_000.0), Distribution::Exponential(400e6));
    }
    let flow = run(&wide(flow, 2000)).flows.remove(0);
    let count = answered(&flow).requests as f64;
    let size = flow.delivered_bytes as f64 / count;
    assert!((size / 20_000.0 - 1.0).abs() < 5.0 / count.sqrt(), "{size} bytes a request");
    let think = 2_000_000.0 / count - answered(&flow).response_time_ms.mean;
    assert!((think / 400.0 - 1.0).abs() < 5.0 / count.sqrt(), "{think} ms of thinking");
}

/// Goodput = receive window / RTT. Half of a buffer of 128 KiB is window, less what the packet occupies that has just come: 44
/// segments.
#[test]
fn a_small_receive_buffer_limits_the_flow_to_a_window_a_round_trip() {
    let mut flow = bulk("flow", "cubic");
    host(&mut flow).receive_buffer.max = 131_072;
    host(&mut flow).quick_ack = true; // or the odd segment of a window waits for its acknowledgement
    let flow = run(&wide(flow, 60)).flows.remove(0);
    let expected = f64::from((65_536 - 2304 / 2) / MSS * MSS) * 8.0 / (RTT_MS / 1e3) / 1e6;
    assert!((flow.goodput_mbps / expected - 1.0).abs() < 0.01, "{} for {expected} Mbit/s", flow.goodput_mbps);
    // All but the handshake and three rounds of slow start.
    assert!((59.4..59.7).contains(&flow.receive_window_limited_s), "{} s", flow.receive_window_limited_s);
}

/// A full link's goodput is the same in every half second, to a packet at each end; so is a writer's, to a write.
#[test]
fn the_peak_of_a_steady_flow_is_its_rate() {
    let greedy = run(&one_link("reno", pipe(Rate::from_mbit(10), Span::from_millis(10), 100), 30)).flows.remove(0);
    let packet = f64::from(MSS) * 8.0 / 0.5 / 1e6;
    let full = 10.0 * f64::from(MSS) / 1538.0;
    // A hole that is filled delivers at once what had waited for it: a window of packets.
    assert!(
        (full - packet..full + 150.0 * packet).contains(&greedy.peak_mbps.expect("TCP")),
        "{} for {full}",
        greedy.peak_mbps.expect("TCP")
    );
    let writer = run(&wide(steady("reno", Rate::from_mbit(2), None), 30)).flows.remove(0);
    // What was written in the handshake comes a round trip late, in the first half second.
    assert!((writer.peak_mbps.expect("TCP") - 2.0).abs() <= packet, "{}", writer.peak_mbps.expect("TCP"));
}
