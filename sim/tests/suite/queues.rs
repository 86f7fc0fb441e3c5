//! Queue disciplines, with and without ECN, as TCP meets them.

use crate::common::{
    OVERHEAD, bulk, column, datagrams, host, mean, one_link, pipe, run, run_sampled, segment_by_segment,
};
use link::{CakeConfig, CoDelConfig, FqCodelConfig, PipeConfig, QueueConfig, QueueDiscipline, QueueLimit, RedConfig};
use scenario::model::Experiment;
use units::{Rate, Span};

/// No early drop below 20 packets; so high an upper threshold that a slow start does not reach it.
const RED: QueueDiscipline =
    QueueDiscipline::Red(RedConfig { min: 30_000, max: 1_000_000, probability: 0.1, weight: 0.002, hard_drop: true });
const TARGET: Span = Span::from_millis(5);
const INTERVAL: Span = Span::from_millis(100);
const CODEL: QueueDiscipline =
    QueueDiscipline::CoDel(CoDelConfig { target: TARGET, interval: INTERVAL, ce_threshold: None });

/// 50 Mbit/s, 20 ms: 81 packets in flight fill the link.
fn link(discipline: QueueDiscipline, packets: u64) -> PipeConfig {
    let queue = QueueConfig { limit: QueueLimit::Packets(packets), discipline, ecn: true };
    PipeConfig { queue, ..pipe(Rate::from_mbit(50), Span::from_millis(10), 0) }
}

fn reno_under(discipline: QueueDiscipline, ecn: bool) -> Experiment {
    let mut experiment = one_link("reno", link(discipline, 10_000), 60);
    experiment.sample = Some(Span::from_millis(1));
    host(&mut experiment.flows[0]).ecn = ecn;
    experiment
}

/// RFC 3168 section 6.1.2: a mark halves Reno's window as a loss would, but nothing is sent again.
#[test]
fn a_mark_halves_the_window_and_nothing_is_sent_again() {
    for discipline in [RED, CODEL] {
        let run = run(&reno_under(discipline, true));
        let (flow, path) = (&run.flows[0], &run.paths[0]);
        assert_eq!((path.dropped_packets, flow.retransmitted_packets, flow.timeouts), (0, 0, 0), "{flow:?}");
        let (marked, window) = (column(&run, "path path", "marked_packets"), column(&run, "flow flow", "cwnd_packets"));
        let marks: Vec<usize> = (0..marked.len()).filter(|ms| marked[*ms] > 0.0).collect();
        let isolated = marks.windows(3).filter(|marks| marks[1] - marks[0] > 500 && marks[2] - marks[1] > 500);
        let isolated: Vec<usize> = isolated.map(|marks| marks[1]).collect();
        assert!(isolated.len() > 10, "{discipline:?}: {} marks, {} isolated", marks.len(), isolated.len());
        for mark in isolated {
            // The echo is back, and the window down, after at most two round trips of 60 ms with their queue.
            let cwnds = &window[mark..mark + 120];
            let max = cwnds.iter().copied().fold(0.0, f64::max);
            let min = cwnds.iter().copied().fold(f64::MAX, f64::min);
            assert!((min - max / 2.0).abs() <= 1.0, "{discipline:?}: {max} to {min} after {mark} ms");
        }
    }
}

/// RFC 3168 section 6.1.2: no more than one reduction a window of data, however many of its packets are marked.
#[test]
fn many_marks_in_a_window_cut_it_once() {
    let run = run(&reno_under(RED, true));
    let (marked, threshold) =
        (column(&run, "path path", "marked_packets"), column(&run, "flow flow", "ssthresh_packets"));
    let is_cut = |ms: &usize| !threshold[*ms].is_nan() && threshold[*ms] != threshold[*ms - 1];
    let cuts: Vec<usize> = (1..1000).filter(is_cut).collect();
    let marks: f64 = marked[..1000].iter().sum();
    assert!(cuts.len() > 2 && marks > 2.0 * cuts.len() as f64, "slow start: {marks} marks, {} cuts", cuts.len());
    assert!(cuts.windows(2).all(|pair| pair[1] - pair[0] >= 20), "two cuts within a round trip: {cuts:?} ms");
}

#[test]
fn without_ecn_in_the_host_the_same_queues_drop() {
    for discipline in [RED, CODEL] {
        let run = run(&reno_under(discipline, false));
        let (flow, path) = (&run.flows[0], &run.paths[0]);
        assert_eq!(path.marked_packets, 0);
        assert!(path.dropped_packets > 0 && flow.recoveries > 0, "{flow:?}");
        // The retransmission of the last 100 ms' drops may be under way.
        let dropped = column(&run, "path path", "dropped_packets");
        let until_then: f64 = dropped[..dropped.len() - 100].iter().sum();
        assert!(flow.retransmitted_packets as f64 >= until_then, "{until_then}: {flow:?}, {path:?}");
    }
}

/// RFC 8289: CoDel lets bursts pass and dissolves the standing queue; drop-tail keeps it.
#[test]
fn codel_holds_the_delay_at_its_target_where_drop_tail_fills_the_buffer() {
    let [codel, drop_tail] = [CODEL, QueueDiscipline::DropTail].map(|discipline| {
        let run = run_sampled(one_link("cubic", link(discipline, 400), 60), Span::from_millis(10));
        (column(&run, "path path", "queue_ms")[1000..].to_vec(), run.paths[0].utilisation)
    });
    // Above target for no longer than an interval and the round trip in which a cut arrives, then empty for as long as
    // it takes to grow back: on average below target.
    assert!(mean(&codel.0) < TARGET.as_millis_f64(), "{} ms", mean(&codel.0));
    assert!(codel.1 > 0.9, "{}", codel.1);
    // CUBIC swings between 0.7 (81 + 400) and 81 + 400 packets: never fewer than 255 wait once the first cut is over.
    let packet = Rate::from_mbit(50).time_for(u64::from(1500 + OVERHEAD)).as_millis_f64();
    let (min, max) = drop_tail.0.iter().fold((f64::MAX, 0.0_f64), |(min, max), ms| (min.min(*ms), max.max(*ms)));
    assert!(min > 250.0 * packet && (max - 400.0 * packet).abs() < 2.0 * packet, "{min} to {max} ms");
}

/// Acknowledgements wait in a queue of their own: it delays them, and loses some, without touching the data's queue.
#[test]
fn acknowledgements_queue_on_their_own_way_back() {
    let mut experiment = one_link("reno", pipe(Rate::from_mbit(1000), Span::from_millis(10), 100_000), 20);
    let reverse = pipe(Rate::from_bits(500_000), Span::from_millis(10), 50);
    experiment.links[0].reverse = reverse;
    // Of super-segments the acknowledgements come in bursts, between which the queue drains.
    segment_by_segment(&mut experiment.flows[0]);
    host(&mut experiment.flows[0]).window = Some(1000);
    let run = run(&experiment);
    // 50 waiting and one in transmission, 52 bytes and the overhead each; with SACK they would be larger.
    let queue = Rate::from_bits(500_000).time_for(51 * u64::from(52 + OVERHEAD)).as_millis_f64();
    let (flow, path) = (&run.flows[0], &run.paths[0]);
    assert!((flow.rtt_ms.p50 - (20.0 + queue)).abs() < 5.0, "{} ms, {queue} ms of queue", flow.rtt_ms.p50);
    assert!(path.queue_delay_ms < 1.0 && path.dropped_packets == 0, "{path:?}");
    assert_eq!((flow.retransmitted_packets, flow.timeouts), (0, 0), "{flow:?}");
}

/// RFC 3168 section 6.1.5: what is sent again must not be ECN-capable, so it can be dropped but not marked.
#[test]
fn two_flows_with_and_without_ecn_meet_the_same_queue() {
    let mut experiment = reno_under(CODEL, true);
    experiment.flows.push(bulk("plain", "reno"));
    let run = run(&experiment);
    assert!(run.paths[0].marked_packets > 0 && run.paths[0].dropped_packets > 0);
    assert_eq!(run.flows[0].retransmitted_packets, 0, "only the other one loses packets");
    assert!(run.flows[1].retransmitted_packets > 0);
}

const FQ_CODEL: QueueDiscipline = QueueDiscipline::FqCodel(FqCodelConfig {
    flows: 1024,
    quantum: 1514,
    codel: CoDelConfig { target: TARGET, interval: INTERVAL, ce_threshold: None },
});
const CAKE: QueueDiscipline = QueueDiscipline::Cake(CakeConfig { rtt: INTERVAL });

/// Each of `n` backlogged flows gets 1/n; a flow without congestion control gets no more, whatever it sends.
#[test]
fn flow_queues_give_equal_shares_to_unequal_flows() {
    for discipline in [FQ_CODEL, CAKE] {
        let mut experiment = one_link("cubic", link(discipline, 1000), 60);
        experiment.flows.extend([bulk("aggressive", "scalable"), datagrams("flood", Rate::from_mbit(40), 1500)]);
        let run = run(&experiment);
        let payload = |flow: &record::Flow| if flow.name == "flood" { 1500.0 } else { 1448.0 };
        let on_wire = |flow: &record::Flow| flow.goodput_mbps * f64::from(1500 + OVERHEAD) / payload(flow);
        let [cubic, scalable, flood] = [0, 1, 2].map(|index| on_wire(&run.flows[index]) / (50.0 / 3.0));
        // CoDel's cuts leave CUBIC, in its share 27 packets to fill the path with, with 0.7 of 27 + 7: for some round
        // trips three packets less than the path holds. The others take what it leaves.
        assert!(cubic > 0.97 && cubic < 1.0, "{discipline:?}: {cubic}, {scalable}, {flood}");
        assert!((scalable - 1.0).abs() < 0.03 && (flood - 1.0).abs() < 0.03, "{cubic}, {scalable}, {flood}");
    }
}

/// RFC 8290, section 1: a flow that builds no queue of its unloaded waits for the packet in transmission, and that is
/// all.
#[test]
fn a_sparse_flow_is_not_delayed_by_a_bulk_flow_in_another_flow_queue() {
    let voice = |discipline| {
        let mut experiment = one_link("cubic", link(discipline, 400), 60);
        // One of 200 bytes every 25 ms.
        experiment.flows.push(datagrams("voice", Rate::from_bits(64_000), 200));
        let run = run(&experiment);
        assert!(run.flows[0].goodput_mbps > 0.9 * 50.0 * 1448.0 / 1538.0, "{:?}", run.flows[0]);
        (run.flows[1].one_way_delay_ms.expect("measured"), run.flows[1].delivered_bytes / 200)
    };
    let rate = Rate::from_mbit(50);
    let unloaded = 10.0 + rate.time_for(u64::from(200 + OVERHEAD)).as_millis_f64();
    let packet = rate.time_for(u64::from(1500 + OVERHEAD)).as_millis_f64();
    for discipline in [FQ_CODEL, CAKE] {
        let (delay, count) = voice(discipline);
        assert!(delay.min >= unloaded && delay.max <= unloaded + packet + 1e-6, "{discipline:?}: {delay:?}");
        assert!(count >= 2399, "and not one is dropped: {count}");
    }
    // Never fewer than 250 packets wait once CUBIC has filled the queue (see above), which takes it a second or two.
    let (delay, _) = voice(QueueDiscipline::DropTail);
    assert!(delay.p50 > unloaded + 250.0 * packet && delay.max > unloaded + 390.0 * packet, "{delay:?}");
    let (delay, _) = voice(CODEL);
    assert!(
        delay.mean < unloaded + TARGET.as_millis_f64() && delay.p95 > unloaded + 2.0 * packet,
        "CoDel delays all: {delay:?}"
    );
}
