//! Flows: constant-rate background, beginnings, ends and sizes.

use crate::common::{OVERHEAD, column, datagrams, host, one_link, pipe, run, set_size};
use scenario::model::Experiment;
use units::{Instant, Rate, Span};

fn seconds(s: u64) -> Instant {
    Instant::ZERO + Span::from_secs(s)
}

/// A flow that cannot fill the queue: its receive buffer is bounded.
fn bounded(mbit: u64, duration: u64) -> Experiment {
    let mut experiment = one_link("cubic", pipe(Rate::from_mbit(mbit), Span::from_millis(10), 100_000), duration);
    host(&mut experiment.flows[0]).receive_buffer.max = 1_000_000;
    experiment
}

#[test]
fn constant_rate_datagrams_take_their_rate_and_tcp_takes_the_rest() {
    let mut experiment = bounded(10, 60);
    experiment.flows.push(datagrams("background", Rate::from_mbit(4), 1000));
    let run = run(&experiment);
    let (tcp, udp) = (&run.flows[0], &run.flows[1]);
    // One every 2 ms, the first at 0 and the last at 60 s.
    assert_eq!(udp.sent_packets, 30_001);
    assert_eq!(run.paths[0].dropped_packets, 0);
    // Those that were sent in the last moments are on their way; none waits longer than the rest of the buffer lasts.
    assert!((udp.goodput_mbps - 4.0).abs() < 4.0 * 0.02, "{}", udp.goodput_mbps);
    let overhead = f64::from(OVERHEAD);
    let rest = (10.0 - 4.0 * (1000.0 + overhead) / 1000.0) * 1448.0 / (1500.0 + overhead);
    assert!((tcp.goodput_mbps / rest - 1.0).abs() < 0.02, "{} of {rest} Mbit/s", tcp.goodput_mbps);
}

#[test]
fn datagrams_alone_load_the_link_by_their_bytes() {
    let mut experiment = bounded(10, 10);
    experiment.flows = vec![datagrams("background", Rate::from_mbit(4), 1000)];
    experiment.flows[0].start = seconds(2);
    experiment.flows[0].stop = Some(seconds(7));
    let run = run(&experiment);
    assert_eq!((run.flows[0].sent_packets, run.flows[0].delivered_bytes), (2500, 2_500_000));
    assert!((run.flows[0].goodput_mbps - 4.0).abs() < 1e-9, "over the time it was on: {}", run.flows[0].goodput_mbps);
    let busy = 2500.0 * f64::from(1000 + OVERHEAD) * 8.0 / 10e6 / 10.0;
    assert!((run.paths[0].utilisation - busy).abs() < 1e-9, "{} for {busy}", run.paths[0].utilisation);
}

#[test]
fn a_flow_sends_between_its_start_and_its_stop_only() {
    let mut experiment = bounded(20, 12);
    experiment.sample = Some(Span::from_millis(100));
    experiment.flows[0].start = seconds(3);
    experiment.flows[0].stop = Some(seconds(8));
    let run = run(&experiment);
    let goodput = column(&run, "flow flow", "goodput_mbps");
    assert!(goodput[..30].iter().all(|mbps| *mbps == 0.0), "before it starts");
    // What the application had given to TCP still goes: at most 0.4 s of a receive buffer at 20 Mbit/s.
    assert!(goodput[85..].iter().all(|mbps| *mbps == 0.0), "after it stops");
    let full_rate = 20.0 * 1448.0 / (1500.0 + f64::from(OVERHEAD));
    assert!((35..80).all(|i| (goodput[i] / full_rate - 1.0).abs() < 0.02), "while it is on: {:?}", &goodput[35..80]);
}

/// Half a round trip for the SYN and half for its answer, then the data at the link's rate: nothing is faster.
#[test]
fn a_sized_flow_takes_the_time_of_its_bytes() {
    let mut experiment = bounded(20, 30);
    experiment.flows[0].start = seconds(1);
    set_size(&mut experiment.flows[0], 10_000_000);
    let run = run(&experiment);
    let flow = &run.flows[0];
    let transmission = 10e6 / 1448.0 * f64::from(1500 + OVERHEAD) * 8.0 / 20e6;
    let completion_s = flow.completion_s.expect("it completes");
    assert_eq!(flow.delivered_bytes, 10_000_000);
    // Slow start from ten packets to the 34 that fill the pipe wastes two rounds at most.
    assert!(
        (0.030..0.080).contains(&(completion_s - transmission)),
        "{completion_s} s, {transmission} s of it transmission"
    );
    assert!((flow.goodput_mbps - 80.0 / completion_s).abs() < 1e-6);
}
