//! LEDBAT++ against what its draft promises: the target delay and nine tenths of the rate alone, next to nothing beside
//! a flow that fills the queue, and a latecomer that leaves the first flow its share.

use crate::common::{bulk, column, one_link, pipe, run, run_sampled};
use control::ParamValue;
use link::PipeConfig;
use scenario::model::{Experiment, FlowKind};
use units::{Instant, Rate, Span};

/// 20 Mbit/s; the queue holds 240 ms.
fn link(delay_ms: u64) -> PipeConfig {
    // Beats of deterministic flows on one queue are no property of the algorithm (Floyd and Jacobson 1991).
    let jitter = Span::from_micros(500);
    PipeConfig { jitter: jitter.into(), ..pipe(Rate::from_mbit(20), Span::from_millis(delay_ms), 400) }
}

/// Packets of 1538 bytes on the wire in 60 ms.
const TARGET: f64 = 20e6 / 8.0 / 1538.0 * 0.060;

/// Draft sections 4.3 and 4.4. The window oscillates by a few packets below the target's; each slowdown shows two
/// packets, and nine times its duration goes by from where the former window is reached to the next one.
#[test]
fn alone_it_queues_the_target_and_its_slowdowns_take_a_tenth_of_the_time() {
    for delay_ms in [5, 10, 20, 40] {
        let run = run_sampled(one_link("ledbat-plus-plus", link(delay_ms), 120), Span::from_millis(10));
        let goodput_share = run.flows[0].goodput_mbps / (20.0 * 1448.0 / 1538.0);
        let (window, threshold) =
            (column(&run, "flow flow", "cwnd_packets"), column(&run, "flow flow", "ssthresh_packets"));
        let starts: Vec<usize> = (1000..window.len()).filter(|&i| window[i] == 2.0 && window[i - 1] > 2.0).collect();
        let mut queue: Vec<f64> = column(&run, "path path", "queue_packets")[1000..].to_vec();
        queue.sort_by(f64::total_cmp);
        let quantile = |share: f64| queue[(share * queue.len() as f64) as usize];
        let (median, high) = (quantile(0.5), quantile(0.98));
        println!("{delay_ms} ms: {goodput_share:.3} of the rate, queue {median} and {high} of {TARGET:.1} packets");
        assert!((0.9..=0.99).contains(&goodput_share), "{delay_ms} ms: {goodput_share}");
        assert!((TARGET - 6.0..=TARGET + 1.0).contains(&median) && high <= TARGET + 6.0, "{delay_ms} ms: {median}");
        assert!(starts.len() > 3, "{delay_ms} ms: {starts:?}");
        for pair in starts.windows(2) {
            let ramp_end = (pair[0]..).find(|&i| window[i] >= threshold[i]).expect("it gets back");
            let ratio = (pair[1] - ramp_end) as f64 / (ramp_end - pair[0]) as f64;
            assert!((8.7..=9.3).contains(&ratio), "{delay_ms} ms: {ratio}");
        }
    }
}

/// This flow, and 20 s later the other.
fn first_and_second(first: &str, second: &str, seconds: u64) -> Experiment {
    let mut experiment = one_link(first, link(20), seconds);
    experiment.flows.push(bulk("second", second));
    experiment.flows[1].start = Instant::ZERO + Span::from_secs(20);
    experiment
}

/// CUBIC's queue of up to 240 ms is above the target most of the time.
#[test]
fn beside_cubic_it_takes_some_percent() {
    for first in ["ledbat-plus-plus", "cubic"] {
        let second = if first == "cubic" { "ledbat-plus-plus" } else { "cubic" };
        let run = run(&first_and_second(first, second, 120));
        let share = run.flows[usize::from(first == "cubic")].share.expect("two flows compete");
        println!("{first} first: {share:.4}");
        assert!(share < 0.05, "{first} first: {share}");
    }
}

/// The share that the first of two flows keeps: the mean of four seeds.
fn first_ones_share(slowdown: &str) -> f64 {
    let mut experiment = first_and_second("ledbat-plus-plus", "ledbat-plus-plus", 300);
    for flow in &mut experiment.flows {
        let FlowKind::Tcp { congestion, .. } = &mut flow.kind else { panic!("a TCP flow") };
        congestion.parameters.insert("slowdown".to_owned(), ParamValue::Choice(slowdown.to_owned()));
    }
    let share = |seed| {
        let run = ropewalk_sim::run(&experiment, seed).expect("it is registered");
        run.flows[0].share.expect("two flows compete")
    };
    (1..=4).map(share).sum::<f64>() / 4.0
}

/// Without slowdowns the latecomer takes the first one's queue for the path's delay, and has the first one yield
/// (RFC 6817 section 4.4: latecomer's advantage).
#[test]
fn a_latecomer_leaves_the_first_flow_its_share_because_of_the_slowdowns() {
    let [with, without] = ["on", "off"].map(first_ones_share);
    println!("the first flow's share: {with:.3} with slowdowns, {without:.3} without");
    assert!((0.4..=0.6).contains(&with) && without < 0.1, "{with}, {without}");
}
