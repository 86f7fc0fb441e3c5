//! ECN from end to end: marks by queues, echoes, reductions.

use crate::common::{OVERHEAD, bulk, column, host, mean, one_link, pipe, run, segment_by_segment};
use link::{CoDelConfig, DualPi2Config, PipeConfig, QueueConfig, QueueDiscipline, QueueLimit};
use scenario::model::Experiment;
use units::{Rate, Span};

/// 100 Mbit/s, a round trip of twice `delay`, and a queue that marks whatever waited for longer than `step`.
fn stepped(algorithm: &str, delay: Span, step: Span) -> Experiment {
    let codel = CoDelConfig { target: Span::MAX, ce_threshold: Some(step), ..CoDelConfig::default() };
    let queue =
        QueueConfig { limit: QueueLimit::Packets(10_000), discipline: QueueDiscipline::CoDel(codel), ecn: true };
    let link = PipeConfig { queue, ..pipe(Rate::from_mbit(100), delay, 0) };
    let mut experiment = one_link(algorithm, link, 60);
    experiment.sample = Some(Span::from_millis(1));
    // Otherwise packets come in pairs or more, and the queue that the last one meets is longer by the others.
    segment_by_segment(&mut experiment.flows[0]);
    host(&mut experiment.flows[0]).quick_ack = true;
    experiment
}

/// M. Alizadeh et al., "Data Center TCP (DCTCP)", 2010, section 3.3, for one flow. The window grows to `W* + 1`,
/// `W* = C RTT + K`, at which the queue stands above K for a round trip, whose packets are all marked. So once a cycle
/// the share marked is 1, and `alpha` is one over the cycle's round trips, of which there are as many as packets were
/// given up:
/// - one cut of `alpha / 2` gives up `W* alpha / 2`: `alpha = sqrt(2 / W*)`, and the queue swings by `sqrt(2 W*) / 2`;
/// - Linux comes down packet by packet: of the window after the cut the first `2 / alpha` packets are marked, too, and
///   that is another window: two cuts give up `W* alpha`, `alpha = sqrt(1 / W*)`, and the queue swings by `sqrt(W*)`.
///
/// Marks that stop between the two leave some cycles with one cut: the truth lies between the two forms.
#[test]
fn dctcp_keeps_the_queue_at_its_step_as_its_closed_form_says() {
    for (delay_ms, step_ms) in [(5, 3), (10, 5), (10, 10), (20, 10)] {
        let (delay, step) = (Span::from_millis(delay_ms), Span::from_millis(step_ms));
        let run = run(&stepped("dctcp", delay, step));
        let capacity = 1e8 / 8.0 / f64::from(1500 + OVERHEAD);
        let k = capacity * step.as_secs_f64();
        let w = capacity * 2.0 * delay.as_secs_f64() + k;
        let queue = &column(&run, "path path", "queue_packets")[20_000..];
        let marked = &column(&run, "path path", "marked_packets")[20_000..];
        let share = marked.iter().sum::<f64>() / (capacity * 40.0);
        println!("W* {w:.0}: {share:.4} marked, {:.4} to {:.4}", (1.0 / w).sqrt(), (2.0 / w).sqrt());
        assert!(((1.0 / w).sqrt()..(2.0 / w).sqrt()).contains(&share), "W* {w}: {share}");
        let max_queue = queue.iter().copied().fold(0.0, f64::max);
        assert!((max_queue - (k + 1.0)).abs() <= 1.0, "the queue stands at K and one: {max_queue} for {k}");
        // A saw tooth: on average half its height below its peak.
        let height = 2.0 * (k + 1.0 - mean(queue));
        println!("W* {w:.0}: swings by {height:.1}, {:.1} to {:.1}", (2.0 * w).sqrt() / 2.0, w.sqrt());
        assert!(((2.0 * w).sqrt() / 2.0..w.sqrt()).contains(&height), "W* {w}: {height}");
        assert_eq!((run.flows[0].retransmitted_packets, run.paths[0].dropped_packets), (0, 0));
    }
}

/// Reno answers each of these marks by half its window, which is more than the queue holds.
#[test]
fn a_step_that_is_enough_for_dctcp_leaves_reno_with_an_idle_link() {
    let idle = |algorithm: &str| {
        let mut experiment = stepped(algorithm, Span::from_millis(10), Span::from_millis(5));
        host(&mut experiment.flows[0]).ecn = true;
        let run = run(&experiment);
        column(&run, "path path", "queue_packets")[20_000..].iter().filter(|packets| **packets == 0.0).count()
    };
    // From W* = 203 down to 101, back up by one each round trip of 20 ms; up to 163 packets the queue is empty: about
    // 62 x 20 ms of a cycle of 62 x 20 + 40 x 22 ms.
    let (dctcp, reno) = (idle("dctcp"), idle("reno"));
    assert_eq!(dctcp, 0);
    assert!((reno as f64 / 40_000.0 - 0.58).abs() < 0.05, "{reno} of 40000 ms");
}

/// Linux's `TCP_CONG_NEEDS_ECN`: an algorithm that needs marks negotiates ECN, and each packet's mark counts.
#[test]
fn dctcp_negotiates_ecn_on_a_host_that_does_not() {
    let mut experiment = stepped("dctcp", Span::from_millis(10), Span::from_millis(5));
    assert!(!host(&mut experiment.flows[0]).ecn);
    assert!(run(&experiment).paths[0].marked_packets > 0);
    let plain = stepped("reno", Span::from_millis(10), Span::from_millis(5));
    assert_eq!(run(&plain).paths[0].marked_packets, 0);
}

/// RFC 9332: about the same rate for both. Its authors (arXiv 2209.01078): L4S packets wait for less than 2 ms in the 99th
/// percentile, and none is lost to congestion; the others stand at the target of 15 ms.
#[test]
fn prague_and_cubic_share_a_dualpi2_queue() {
    for mbit in [40, 100] {
        let queue = QueueConfig::new(QueueDiscipline::DualPi2(DualPi2Config::default()));
        let link = PipeConfig { queue, ..pipe(Rate::from_mbit(mbit), Span::from_millis(5), 0) };
        let mut experiment = one_link("prague", link, 40);
        experiment.flows.push(bulk("cubic", "cubic"));
        let run = run(&experiment);
        let [prague, cubic] = [&run.flows[0], &run.flows[1]];
        let ratio = prague.goodput_mbps / cubic.goodput_mbps;
        println!("{mbit}: {ratio}, {:?}, {:?}", prague.rtt_ms, cubic.rtt_ms);
        assert!((0.5..2.0).contains(&ratio), "{} and {} Mbit/s", prague.goodput_mbps, cubic.goodput_mbps);
        assert!(prague.rtt_ms.p99 < 12.0 && prague.retransmitted_packets == 0, "{prague:?}");
        assert!((23.0..27.0).contains(&cubic.rtt_ms.mean), "{cubic:?}");
    }
}
