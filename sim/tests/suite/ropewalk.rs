//! Ropewalk's own tunnel: everything once and in order, link failures, marks, fragments.

use crate::common::{self, application, bulk, column, datagrams, host, links, mean, pipe, run, run_sampled, set_up};
use link::{CoDelConfig, DualPi2Config, LossModel, PipeConfig, QueueConfig, QueueDiscipline, QueueLimit};
use scenario::model::{Application, Change, Experiment, Flow, FlowKind, Relay, Ropewalk, Route, Tunnel};
use units::{Instant, Rate, Span};

/// These flows in a tunnel over these links.
fn tunnel(pipes: &[PipeConfig], seconds: u64, flows: Vec<Flow>) -> Experiment {
    let mut experiment = links("cubic", pipes, seconds);
    let tunnel = common::tunnel(pipes.len());
    experiment.tunnel = Some(Tunnel { overhead: 28, mtu: 1438, ropewalk: Some(Box::default()), ..tunnel });
    experiment.flows = flows.into_iter().map(|flow| Flow { route: Route::Tunnel, ..flow }).collect();
    experiment
}

fn settings(experiment: &mut Experiment) -> &mut Ropewalk {
    experiment.tunnel.as_mut().and_then(|tunnel| tunnel.ropewalk.as_mut()).expect("the tunnel is Ropewalk's")
}

fn link(mbit: u64, delay_ms: u64) -> PipeConfig {
    let mut pipe = pipe(Rate::from_mbit(mbit), Span::from_millis(delay_ms), 0);
    pipe.queue.limit = QueueLimit::Time(Span::from_millis(100));
    pipe
}

/// Every datagram arrives, and a TCP flow retransmits nothing.
#[test]
fn over_lossy_jittery_paths_everything_arrives_once_and_in_order() {
    let lossy = |mbit, delay, loss| PipeConfig {
        loss: LossModel::Random(loss),
        jitter: Span::from_millis(8).into(),
        ..link(mbit, delay)
    };
    // CUBIC's window is some 11 packets at 1 % of loss: 5 Mbit/s at 25 ms.
    for (congestion, mbit) in [("bbr", 15), ("cubic", 1)] {
        let pipes = [lossy(50, 8, 0.01), lossy(20, 40, 0.02)];
        let flows = vec![datagrams("steady", Rate::from_mbit(2), 1000), bounded("bulk", mbit)];
        let mut experiment = tunnel(&pipes, 10, flows);
        set_congestion(&mut experiment, congestion);
        // The ingress queue may keep what the windows do not let out: its drops are not what this is about.
        settings(&mut experiment).options.codel_target = Span::from_secs(10);
        experiment.flows[0].start = Instant::ZERO + Span::from_secs(1);
        experiment.flows[0].stop = Some(Instant::ZERO + Span::from_secs(8));
        let run = run(&experiment);
        let tunnel = run.tunnel.as_ref().expect("there is one");
        // A slow flow uses the first path alone as long as that can carry it.
        let lost = [0, 1].map(|path: usize| run.paths[path].lost_packets);
        assert!(lost[0] > 20 && lost[1] > 5, "{:?}", run.paths);
        let steady = &run.flows[0];
        assert_eq!(steady.delivered_bytes, steady.sent_packets * 1000, "{congestion}: {tunnel:?}");
        let bulk = &run.flows[1];
        let faults = (bulk.retransmitted_packets, bulk.spurious_recoveries, bulk.timeouts);
        assert_eq!(faults, (0, 0, 0), "{congestion}: {bulk:?} {tunnel:?}");
        assert!(
            counted(tunnel).retransmitted_fragments.expect("counted") > 0
                && counted(tunnel).missing_fragments.expect("counted") == 0,
            "{tunnel:?}"
        );
    }
}

/// A TCP flow that writes less than the paths carry.
fn bounded(name: &str, mbit: u64) -> Flow {
    let mut flow = bulk(name, "cubic");
    *application(&mut flow) = Application::Steady { rate: Rate::from_mbit(mbit), write: None };
    flow
}

fn set_congestion(experiment: &mut Experiment, congestion: &str) {
    settings(experiment).options.congestion = congestion.into();
}

/// The second of two links, from second 4 to second 8.
fn with_outage(congestion: &str) -> record::Run {
    let mut experiment = tunnel(&[link(50, 10), link(50, 15)], 12, vec![bulk("flow", "cubic")]);
    set_congestion(&mut experiment, congestion);
    experiment.sample = Some(Span::from_millis(100));
    experiment.events = vec![set_up(1, 4_000, false), set_up(1, 8_000, true)];
    run(&experiment)
}

#[test]
fn a_failed_link_is_left_within_a_second_and_used_again_within_a_second_of_its_return() {
    for congestion in ["bbr", "cubic"] {
        let run = with_outage(congestion);
        let goodput = column(&run, "flow flow", "goodput_mbps");
        let second = column(&run, "path path 1", "throughput_mbps");
        let full = 50.0 * f64::from(1438 - 52) / f64::from(1438 + 62 + 38);
        // Over a second: what is lost at the ingress, whose traffic is now too much, holds up the rest for tenths of
        // it.
        let (at_first, steady) = (mean(&goodput[45..55]), mean(&goodput[55..80]));
        assert!(
            at_first > 0.75 * full,
            "{congestion}: {at_first} half a second after the outage of one of two links began"
        );
        assert!(steady > 0.85 * full, "{congestion}: {steady} over the link that is left");
        let samples_in_use = second[80..90].iter().filter(|mbps| **mbps > 5.0).count();
        assert!(samples_in_use >= 3, "{congestion}: {:?} in the first second after its return", &second[80..90]);
        let recovered = mean(&second[90..]);
        assert!(recovered > 25.0, "{congestion}: {recovered} over the link that came back");
        assert_eq!(run.paths[1].tunnel.map(|sender| sender.failures), Some(1), "{:?}", run.paths[1]);
    }
}

/// RFC 6040: the outer header is as ECN-capable as the inner one, and its mark reaches the inner one; so does the
/// ingress queue's.
#[test]
fn marks_of_the_paths_and_of_the_ingress_queue_reach_the_flow() {
    for ecn in [true, false] {
        let mut experiment = tunnel(&[link(20, 10), link(20, 10)], 10, vec![bulk("flow", "reno")]);
        host(&mut experiment.flows[0]).ecn = ecn;
        let discipline = QueueDiscipline::CoDel(CoDelConfig::default());
        for link in &mut experiment.links {
            link.forward.queue = QueueConfig { limit: QueueLimit::Packets(1000), discipline, ecn: true };
        }
        let run = run(&experiment);
        let (tunnel, flow) = (run.tunnel.as_ref().expect("there is one"), &run.flows[0]);
        // Of a flow that is not ECN-capable the ingress queue counts here the super-segments that it has trimmed.
        let at_ingress = if ecn { counted(tunnel).marked_packets } else { 0 };
        let marked = at_ingress + run.paths.iter().map(|path| path.marked_packets).sum::<u64>();
        assert_eq!((marked > 0, flow.retransmitted_packets == 0), (ecn, ecn), "{tunnel:?} {flow:?}");
        // A flow that ignored the marks would fill the queues: a thousand packets wait for 0.6 s.
        assert!(run.paths.iter().all(|path| path.queue_delay_ms < 50.0), "{:?}", run.paths);
    }
}

/// ECT(1) stands on the datagrams too: Prague's are in the L4S queue of the path, which marks above 1 ms, DCTCP's in the
/// Classic one, which has a target of 15 ms.
#[test]
fn an_l4s_flow_keeps_its_short_queue_in_the_tunnel() {
    let [prague, dctcp] = ["prague", "dctcp"].map(|algorithm| {
        let mut experiment = tunnel(&[link(20, 10)], 20, vec![bulk("flow", algorithm)]);
        experiment.links[0].forward.queue = QueueConfig::new(QueueDiscipline::DualPi2(DualPi2Config::default()));
        let run = run(&experiment);
        println!("{algorithm}: {:?}", run.paths[0]);
        assert!(run.paths[0].marked_packets > 0, "{:?}", run.paths[0]);
        run.paths[0].queue_delay_ms
    });
    assert!(prague < 2.0 && dctcp > prague, "{prague} and {dctcp} ms");
}

/// A flow of 20 MB over a link of 50 Mbit/s: 14 431 segments of 1386 bytes, the handshake's two packets, no loss.
fn whole_transfer(offload: bool) -> record::Run {
    let mut experiment = tunnel(&[link(50, 10)], 6, vec![bulk("flow", "cubic")]);
    settings(&mut experiment).offload = offload;
    settings(&mut experiment).options.codel_target = Span::from_secs(10);
    if let FlowKind::Tcp { size, .. } = &mut experiment.flows[0].kind {
        *size = Some(20_000_000);
    }
    let run = run(&experiment);
    assert_eq!((run.flows[0].delivered_bytes, run.flows[0].sent_packets), (20_000_000, 14_431), "{:?}", run.flows[0]);
    run
}

/// Linux `tcp_tso_autosize`: in 2^-10 s of 1.2 times 46 Mbit/s there are 4.9 segments of 1386 bytes, in slow start at twice
/// the window more.
#[test]
fn a_super_segment_crosses_as_one_packet_if_the_device_has_offload() {
    let [whole, cut] = [true, false].map(whole_transfer);
    let packets = |run: &record::Run| run.tunnel.as_ref().expect("there is one").delivered_packets;
    assert_eq!(packets(&cut), 14_431 + 2);
    let segments = 14_431.0 / (packets(&whole) - 2) as f64;
    assert!((2.0..8.0).contains(&segments), "{segments} a packet");
}

/// A packet that CoDel would drop loses its first segment instead, if it has several; all that the flow retransmits.
#[test]
fn codel_takes_one_segment_of_a_super_segment() {
    let mut link = link(20, 10);
    link.queue.limit = QueueLimit::Time(Span::from_secs(1));
    let mut experiment = tunnel(&[link], 20, vec![bulk("flow", "reno")]);
    let host = host(&mut experiment.flows[0]);
    // A flow that waits for window or buffer, or for the repair of a loss, sends a TLP probe.
    host.receive_buffer.max *= 8;
    host.receive_buffer.default = host.receive_buffer.max;
    host.send_buffer *= 8;
    for seed in 1..=4 {
        let run = ropewalk_sim::run(&experiment, seed).expect("registered");
        let (flow, tunnel) = (&run.flows[0], run.tunnel.as_ref().expect("there is one"));
        let limited_s = flow.receive_window_limited_s + flow.send_buffer_limited_s;
        assert_eq!((limited_s, counted(tunnel).retransmitted_fragments), (0.0, Some(0)), "{flow:?}");
        let (trimmed, dropped) = (counted(tunnel).marked_packets, tunnel.dropped_packets);
        assert!(trimmed > 3, "{tunnel:?}");
        assert_eq!(flow.retransmitted_packets, trimmed + dropped, "{flow:?} {tunnel:?}");
    }
}

/// The queue that a download makes is not that of its acknowledgements, which have their link to themselves. They do not wait,
/// and nor do the tunnel's own, by which slow start ends: with 8 samples of a round whose queue is 4 ms. The window, some 40
/// packets then, is twice doubled before it is known, which is 100 ms of the link's second.
#[test]
fn a_download_does_not_hold_up_the_acknowledgements_that_end_its_slow_start() {
    for seed in 1..=4 {
        let mut link = link(20, 10);
        link.queue.limit = QueueLimit::Time(Span::from_secs(1));
        let mut experiment = tunnel(&[link], 4, vec![bulk("flow", "reno")]);
        experiment.sample = Some(Span::from_millis(100));
        let run = ropewalk_sim::run(&experiment, seed).expect("registered");
        let longest = column(&run, "path path 0", "queue_ms").iter().copied().fold(0.0, f64::max);
        assert!(longest < 150.0, "{longest} ms");
    }
}

/// Three fragments a packet: as many packets are delivered as were sent.
#[test]
fn a_packet_larger_than_a_datagram_crosses_in_fragments() {
    let mut experiment = tunnel(&[link(50, 10), link(50, 20)], 5, vec![datagrams("flow", Rate::from_mbit(10), 4000)]);
    experiment.flows[0].stop = Some(Instant::ZERO + Span::from_secs(4));
    let run = run(&experiment);
    let (flow, tunnel) = (&run.flows[0], run.tunnel.as_ref().expect("there is one"));
    assert_eq!(flow.delivered_bytes, 4000 * flow.sent_packets, "{tunnel:?}");
    assert!(counted(tunnel).sent_fragments.expect("counted") >= 3 * flow.sent_packets, "{tunnel:?}");
}

/// Two links of 60 Mbit/s, 5 and 10 ms, in a tunnel with this flow; payload in Mbit/s and data packets of the slower
/// link in seconds 5 to 10, when CUBIC's window of a path has had time to grow.
fn run_alone(flow: Flow) -> (f64, f64) {
    let run = run_sampled(tunnel(&[link(60, 5), link(60, 10)], 10, vec![flow]), Span::from_millis(500));
    let steady = |subject, name| mean(&column(&run, subject, name)[10..]);
    (steady("flow flow", "goodput_mbps"), steady("path path 1", "throughput_mbps"))
}

/// The flow has little more in flight than the measured bandwidth-delay product, so that the ingress queue stays short.
#[test]
fn a_flow_that_paces_itself_uses_both_paths() {
    for algorithm in ["bbr", "bbr3", "cubic"] {
        let (goodput, slower) = run_alone(bulk("flow", algorithm));
        println!("{algorithm}: {goodput} Mbit/s, of these {slower} by the slower path");
        assert!(goodput > 0.85 * 120.0 * 0.95 && slower > 30.0, "{algorithm}: {goodput} Mbit/s, {slower}");
    }
}

#[test]
fn a_flow_that_one_path_carries_leaves_the_slower_one_alone() {
    for mbit in [5, 40] {
        let (goodput, slower) = run_alone(bounded("flow", mbit));
        assert!((goodput - mbit as f64).abs() < 0.02 * mbit as f64, "{goodput} of {mbit} Mbit/s");
        assert!(slower < 0.1, "{slower} Mbit/s of probes, and no data");
    }
}

/// A path that is left because it has become slow, 20 ms instead of 5 for a second, is used again once probes, some seconds
/// apart, find that it is fast. What its rate is has to be learned again: until then the other path has a part.
#[test]
fn a_path_that_was_slow_for_a_while_gets_the_flow_back() {
    let mut experiment = tunnel(&[link(60, 5), link(60, 10)], 8, vec![bounded("flow", 10)]);
    let delayed = |ms, delay| Change { up: None, delay: Some(Span::from_millis(delay)), ..set_up(0, ms, true) };
    experiment.events = vec![delayed(2_000, 20), delayed(3_000, 5)];
    let run = run_sampled(experiment, Span::from_millis(500));
    let slower = column(&run, "path path 1", "throughput_mbps");
    assert!(slower[5] > 5.0, "{slower:?}: the first path is left");
    assert!(mean(&slower[12..]) < 5.0, "{slower:?}: it has most of the flow back");
}

/// Two paths of 100 Mbit/s, of which one is longer by a delay and has random loss: the share of what they deliver that a flow
/// gets, in the mean of eight seeds and once it is past slow start.
fn share_of_impaired_paths(algorithm: &str, delay_ms: u64, loss: f64, set: impl Fn(&mut Ropewalk)) -> f64 {
    let impaired = PipeConfig { loss: LossModel::Random(loss), ..link(100, delay_ms) };
    let mut experiment = tunnel(&[link(100, 0), impaired], 15, vec![bulk("bulk", algorithm)]);
    experiment.links[1].reverse.loss = LossModel::None;
    experiment.sample = Some(Span::from_secs(1));
    set(settings(&mut experiment));
    let goodput = |seed| {
        let run = ropewalk_sim::run(&experiment, seed).expect("registered");
        mean(&column(&run, "flow bulk", "goodput_mbps")[5..])
    };
    let payload_share = 1386.0 / (1500.0 + f64::from(common::OVERHEAD));
    mean(&[1, 2, 3, 4, 5, 6, 7, 8].map(goodput)) / ((200.0 - 100.0 * loss) * payload_share)
}

/// Nine tenths are the goal.
const GOAL: f64 = 0.9;

#[test]
fn through_a_relay_delay_and_loss_together_cost_no_more_than_either() {
    for (delay_ms, loss) in [(0, 0.05), (50, 0.0), (50, 0.05)] {
        let relay = |ropewalk: &mut Ropewalk| ropewalk.relay = Some(Relay::default());
        let share = share_of_impaired_paths("cubic", delay_ms, loss, relay);
        assert!(share > GOAL, "{delay_ms} ms, {loss}: {share}");
    }
}

/// End to end, the default control has 0.89 with both, which `bbr-path`, for links of one's own, has not.
#[test]
fn end_to_end_delay_or_loss_costs_no_more_than_a_tenth_and_both_together_on_links_of_ones_own() {
    for (control, delay_ms, loss) in [
        ("discern", 0, 0.05),
        ("discern", 50, 0.0),
        ("bbr-path", 0, 0.05),
        ("bbr-path", 50, 0.0),
        ("bbr-path", 50, 0.05),
    ] {
        for algorithm in ["reno", "cubic"] {
            let set = |ropewalk: &mut Ropewalk| ropewalk.options.congestion = control.into();
            let share = share_of_impaired_paths(algorithm, delay_ms, loss, set);
            assert!(share > GOAL, "{control}, {algorithm}, {delay_ms} ms, {loss}: {share}");
        }
    }
}

fn counted(tunnel: &record::Tunnel) -> record::RopewalkTunnel {
    tunnel.ropewalk.expect("it is Ropewalk's")
}
