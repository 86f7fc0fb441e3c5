//! Copa's competitive mode (Arun and Balakrishnan, NSDI 2018, section 2.2): beside a flow that fills the queue, and
//! alone.

use crate::common::{bulk, column, host, mean, one_link, pipe, run_sampled, segment_by_segment};
use control::ParamValue;
use link::PipeConfig;
use scenario::model::{Flow, FlowKind};
use units::{Rate, Span};

/// A link of 20 Mbit/s with a round trip of 40 ms, 65 packets, and this queue.
fn link(packets: u64, jitter: Span) -> PipeConfig {
    PipeConfig { jitter: jitter.into(), ..pipe(Rate::from_mbit(20), Span::from_millis(20), packets) }
}

fn copa(name: &str, competitive: &str) -> Flow {
    let mut flow = bulk(name, "copa");
    let FlowKind::Tcp { congestion, .. } = &mut flow.kind else { panic!("a TCP flow") };
    congestion.parameters.insert("competitive".to_owned(), ParamValue::Choice(competitive.to_owned()));
    flow
}

/// Copa's share beside one CUBIC flow, the mean of three seeds.
fn share_beside_cubic(competitive: &str, queue: u64) -> f64 {
    // Beats of deterministic flows on one queue are no property of the algorithm (Floyd and Jacobson 1991).
    let mut experiment = one_link("cubic", link(queue, Span::from_micros(500)), 120);
    experiment.flows.push(copa("copa", competitive));
    let share = |seed| {
        let run = ropewalk_sim::run(&experiment, seed).expect("they are registered");
        run.flows[1].share.expect("two flows compete")
    };
    (1..=3).map(share).sum::<f64>() / 3.0
}

/// `1 / delta` grows by one a round trip and halves on loss: half of the link, as of one Reno flow, and within a factor
/// of two. Without the mode two packets beside a full queue: 2 of 130 packets and more, twice that as it oscillates.
#[test]
fn the_competitive_mode_gets_about_half_beside_cubic_and_the_default_mode_next_to_nothing() {
    for queue in [65, 130, 260] {
        let [off, on] = ["off", "on"].map(|competitive| share_beside_cubic(competitive, queue));
        println!("a queue of {queue} packets: {on:.3}, without the mode {off:.3}");
        assert!((0.25..=0.75).contains(&on) && off < 0.1, "{queue} packets: {on}, {off}");
    }
}

/// Its own queue oscillates between 0 and 2.5 / delta (section 3) and is so empty often enough. With jitter of more than
/// a tenth of the range of RTTs a queue that is empty does not look so, and the mode comes and goes.
#[test]
fn alone_the_competitive_mode_keeps_to_the_default_modes_queue() {
    let mut experiment = one_link("copa", link(260, Span::ZERO), 60);
    experiment.flows = vec![copa("flow", "on")];
    // Acknowledgements of super-segments tell of their own ends only, which see no empty queue; neither do those of two
    // segments whose first one has PSH, nor all of the pacer's bursts, so that the mode comes now and then.
    segment_by_segment(&mut experiment.flows[0]);
    host(&mut experiment.flows[0]).quick_ack = true;
    let run = run_sampled(experiment, Span::from_millis(10));
    let mut queue = column(&run, "path path", "queue_packets")[1000..].to_vec();
    queue.sort_by(f64::total_cmp);
    let (mean, high) = (mean(&queue), queue[queue.len() * 3 / 4]);
    println!("{mean:.2} packets, in three quarters of the time at most {high}");
    assert!((1.0..=5.0).contains(&mean) && high <= 5.0, "{mean}, {high}");
}
