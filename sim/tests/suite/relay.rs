//! A Ropewalk tunnel that relays TCP: connections open end to end, every byte arrives once and in order (the simulator
//! itself checks the order and the bound of memory), no flow stalls, and no congestion control sees the paths.

use crate::common::{self, bulk, column, datagrams, host, links, mean, pipe, run, run_sampled, set_size, set_up};
use link::{LossModel, PipeConfig, QueueLimit};
use proptest::prelude::*;
use scenario::model::{Application, Experiment, Flow, Relay, Ropewalk, Route, Tunnel};
use units::{Instant, Rate, Span};

/// These flows in a tunnel with a relay over these links.
fn relayed(pipes: &[PipeConfig], seconds: u64, flows: Vec<Flow>) -> Experiment {
    let mut experiment = links("cubic", pipes, seconds);
    let ropewalk = Ropewalk { relay: Some(Relay::default()), ..Ropewalk::default() };
    let tunnel = common::tunnel(pipes.len());
    experiment.tunnel = Some(Tunnel { overhead: 28, mtu: 1438, ropewalk: Some(Box::new(ropewalk)), ..tunnel });
    experiment.flows = flows.into_iter().map(|flow| Flow { route: Route::Tunnel, ..flow }).collect();
    experiment
}

fn link(mbit: u64, delay_ms: u64) -> PipeConfig {
    let mut pipe = pipe(Rate::from_mbit(mbit), Span::from_millis(delay_ms), 0);
    pipe.queue.limit = QueueLimit::Time(Span::from_millis(100));
    pipe
}

fn sized(name: &str, algorithm: &str, bytes: u64) -> Flow {
    let mut flow = bulk(name, algorithm);
    set_size(&mut flow, bytes);
    flow
}

/// SYN over the near link, open message over the tunnel, SYN and SYN-ACK over the far link, accept message back over the
/// tunnel, SYN-ACK over the near link; then the data over all three. The packets take microseconds to transmit.
#[test]
fn a_connection_opens_end_to_end_before_data() {
    let (tunnel_ms, local_ms) = (20.0, 0.5);
    let mut experiment = relayed(&[link(1000, 20)], 3, vec![sized("flow", "cubic", 100)]);
    experiment.flows[0].start = Instant::ZERO + Span::from_secs(1);
    let run = run(&experiment);
    let expected_ms = 2.0 * tunnel_ms + 4.0 * local_ms + tunnel_ms + 2.0 * local_ms;
    let completion_ms = 1e3 * run.flows[0].completion_s.expect("it completes");
    assert!((expected_ms..expected_ms + 0.5).contains(&completion_ms), "{completion_ms} ms of {expected_ms}");
    assert_eq!(run.flows[0].delivered_bytes, 100);
    assert_eq!(
        run.tunnel.as_ref().map(|tunnel| tunnel.ropewalk.map_or(0, |counted| counted.relayed_connections)),
        Some(1)
    );
    let delay = run.flows[0].one_way_delay_ms.expect("measured").max;
    assert!((tunnel_ms + 2.0 * local_ms..tunnel_ms + 2.0 * local_ms + 0.5).contains(&delay), "{delay} ms one way");
}

/// Nine tenths of what the paths deliver at the second half of a run, in the mean of four seeds and whatever the flow's congestion
/// control: it sees a local network. How soon the paths' control has learnt the random loss is chance.
#[test]
fn no_congestion_control_sees_the_paths() {
    let payload_share = 1438.0 / (1500.0 + f64::from(common::OVERHEAD));
    for (delay_ms, loss) in [(0, 0.0), (50, 0.0), (50, 0.03), (100, 0.05)] {
        for algorithm in ["vegas", "bbr"] {
            let impaired = PipeConfig { loss: LossModel::Random(loss), ..link(100, delay_ms) };
            let mut experiment = relayed(&[link(100, 0), impaired], 20, vec![bulk("bulk", algorithm)]);
            experiment.links[1].reverse.loss = LossModel::None;
            experiment.sample = Some(Span::from_secs(1));
            let goodput = |seed| {
                let run = ropewalk_sim::run(&experiment, seed).expect("registered");
                assert_eq!(run.flows[0].timeouts, 0, "{algorithm}, {delay_ms} ms, {loss}");
                mean(&column(&run, "flow bulk", "goodput_mbps")[10..])
            };
            let goodput = mean(&[1, 2, 3, 4].map(goodput));
            let attainable = (200.0 - 100.0 * loss) * payload_share;
            assert!(goodput > 0.9 * attainable, "{algorithm}, {delay_ms} ms, {loss}: {goodput} of {attainable} Mbit/s");
        }
    }
}

/// The tunnel carries a tenth of what the sender could send: the near relay stops reading, its receive window closes, and
/// the relay holds no more than the byte stream's window of 16 MiB and its chunks' overhead.
#[test]
fn a_sender_is_held_back_by_the_receive_window_of_the_near_relay() {
    let run = run(&relayed(&[link(50, 10), link(50, 40)], 10, vec![bulk("bulk", "cubic")]));
    let (flow, tunnel) = (&run.flows[0], run.tunnel.as_ref().expect("there is one"));
    assert!(flow.receive_window_limited_s + flow.send_buffer_limited_s > 8.0, "{flow:?}");
    assert!(flow.goodput_mbps > 0.9 * 100.0 * 1438.0 / 1538.0, "{flow:?}");
    assert!(
        tunnel.ropewalk.and_then(|counted| counted.max_relayed_bytes).is_some_and(|bytes| bytes < 17 << 20),
        "{tunnel:?}"
    );
}

/// No bytes move for thirty seconds; a transfer in the middle of it completes afterwards, and no sender gives up.
#[test]
fn a_transfer_survives_half_a_minute_without_any_path() {
    for bytes in [2_000_001, 40_000_000] {
        let mut experiment = relayed(&[link(50, 10), link(20, 40)], 80, vec![sized("flow", "reno", bytes)]);
        // While the connection opens, while it starts, and later.
        for down_ms in [50, 300, 1_000] {
            let change = |link, up| set_up(link, down_ms + if up { 30_000 } else { 0 }, up);
            experiment.events = vec![change(0, false), change(1, false), change(0, true), change(1, true)];
            let run = run(&experiment);
            let completion = run.flows[0].completion_s;
            assert!(completion.is_some(), "{bytes} bytes, down at {down_ms} ms: {:?} {:?}", run.flows[0], run.tunnel);
            assert_eq!(run.flows[0].delivered_bytes, bytes);
        }
    }
}

/// One of two paths is down from second 2 to second 32.
#[test]
fn a_transfer_goes_on_over_the_path_that_is_left() {
    for failing in [0, 1] {
        let mut experiment = relayed(&[link(50, 10), link(50, 15)], 60, vec![bulk("flow", "vegas")]);
        experiment.events = vec![set_up(failing, 2_000, false), set_up(failing, 32_000, true)];
        let run = run_sampled(experiment, Span::from_secs(1));
        let goodput = column(&run, "flow flow", "goodput_mbps");
        let full = 50.0 * 1438.0 / 1538.0;
        let (during, after) = (mean(&goodput[4..31]), mean(&goodput[34..]));
        assert!(during > 0.9 * full, "path {failing} is down: {during} of {full} Mbit/s");
        assert!(after > 0.9 * 2.0 * full, "path {failing} has returned: {after} Mbit/s");
    }
}

/// A sparse flow beside relayed bulk waits for what the congestion control of the fast path keeps in that path's queue, and
/// for one message, what the paths carry in a millisecond: datagrams at the ingress, a relayed flow at the relay, too. Each
/// segment of that is one fragment. And at both ends it waits for a pause of the event loop, 0.55 ms at most.
#[test]
fn a_sparse_flow_beside_relayed_bulk_waits_for_one_message_at_the_relay_and_one_at_the_ingress() {
    let voice = datagrams("voice", Rate::from_bits(80_000), 200);
    let mut relayed_flow = bulk("relayed", "cubic");
    *common::application(&mut relayed_flow) = Application::Steady { rate: Rate::from_bits(200_000), write: Some(1386) };
    let paths = [link(100, 5), link(100, 50)];
    for (sparse, messages_ms) in [(voice, 1.0), (relayed_flow, 2.0)] {
        let alone = run(&relayed(&paths, 20, vec![sparse.clone()])).flows[0].one_way_delay_ms.expect("measured").mean;
        let beside = run(&relayed(&paths, 20, vec![sparse, bulk("bulk", "cubic")]));
        let (delay, queue) = (beside.flows[0].one_way_delay_ms.expect("measured").mean, beside.paths[0].queue_delay_ms);
        println!("alone {alone} ms, beside bulk {delay} ms, of which {queue} ms in the path's queue");
        assert!(delay < alone + queue + messages_ms + 2.0 * 0.55, "{alone} {delay} {queue}");
    }
}

#[test]
fn relayed_flows_share_the_tunnel_evenly() {
    let algorithms = ["cubic", "vegas", "bbr", "reno", "westwood"];
    let flows = (0..20).map(|index| bulk(&format!("flow {index}"), algorithms[index % 5])).collect();
    let run = run(&relayed(&[link(100, 5), link(50, 40)], 20, flows));
    let total: f64 = run.flows.iter().map(|flow| flow.goodput_mbps).sum();
    assert!(total > 0.9 * 150.0 * 1438.0 / 1538.0, "{total}");
    assert!(run.jain.is_some_and(|jain| jain > 0.95), "{:?}", run.jain);
}

/// A flow of every kind that a tunnel carries beside relayed ones.
#[test]
fn datagrams_cross_beside_the_relay_and_a_stopped_flow_delivers_what_it_sent() {
    let mut flows = vec![datagrams("steady", Rate::from_mbit(1), 1000), bulk("stopped", "bbr"), bulk("slow", "cubic")];
    flows[0].stop = Some(Instant::ZERO + Span::from_secs(5));
    flows[1].stop = Some(Instant::ZERO + Span::from_secs(3));
    *common::application(&mut flows[2]) = Application::Steady { rate: Rate::from_mbit(1), write: Some(700) };
    let run = run(&relayed(&[link(50, 10), link(20, 40)], 10, flows));
    assert_eq!(run.flows[0].delivered_bytes, 1000 * run.flows[0].sent_packets);
    let stopped = &run.flows[1];
    assert_eq!(stopped.delivered_bytes, 1386 * (stopped.sent_packets - stopped.retransmitted_packets));
    assert!((run.flows[2].goodput_mbps - 1.0).abs() < 0.01, "{:?}", run.flows[2]);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    /// Whatever the paths do to datagrams, every byte arrives and the flow completes.
    #[test]
    fn every_byte_arrives_over_any_paths(
        bytes in 1..3_000_000u64,
        loss in [0.0..0.2, 0.0..0.05],
        mbit in [5..40u64, 5..40],
        delay_ms in [0..30u64, 0..150],
        jitter_ms in 0..20u64,
        duplicate in 0.0..0.05,
        corrupt in 0.0..0.05,
        algorithm in prop::sample::select(vec!["cubic", "vegas", "bbr", "reno", "dctcp"]),
        sack in any::<bool>(),
        seed in 0..1000u64,
    ) {
        let pipe = |index: usize| PipeConfig {
            loss: LossModel::Random(loss[index]),
            jitter: Span::from_millis(jitter_ms).into(),
            duplicate,
            corrupt,
            ..link(mbit[index], delay_ms[index])
        };
        let mut flow = sized("flow", algorithm, bytes);
        host(&mut flow).sack = sack;
        let experiment = relayed(&[pipe(0), pipe(1)], 60, vec![flow, sized("rival", "cubic", 500_000)]);
        let [run, again] = [0, 1].map(|_| ropewalk_sim::run(&experiment, seed).expect("registered"));
        prop_assert_eq!(&run.digest, &again.digest);
        prop_assert_eq!([run.flows[0].delivered_bytes, run.flows[1].delivered_bytes], [bytes, 500_000]);
        prop_assert!(run.flows.iter().all(|flow| flow.completion_s.is_some()), "{:?}", run.flows);
    }
}
