//! Where slow start ends over a satellite, whose delay varies before any queue has built up: a cycle of 2 s, as
//! draft-chung-ietf-ccwg-00 reports it of GEO links with RTTs of 600 ms (section 4, "Window Size").

use crate::common::{OVERHEAD, column, host, one_link, pipe, run, run_sampled};
use control::ParamValue;
use scenario::model::{Change, Directions, Experiment, FlowKind};
use units::{Instant, Rate, Span};

/// Packets of a window that fills 20 Mbit/s in 600 ms.
const BDP: f64 = 20e6 / 8.0 / (1500 + OVERHEAD) as f64 * 0.6;

/// One flow of CUBIC whose slow start ends in this way, through a queue of so many windows. The delay goes up by this
/// much, and down again, every 2 s.
fn satellite(hystart: &str, queue: f64, variation: Span) -> Experiment {
    let link = pipe(Rate::from_mbit(20), Span::from_millis(300), (queue * BDP) as u64);
    let mut experiment = one_link("cubic", link, 30);
    let flow = &mut experiment.flows[0];
    host(flow).receive_buffer.max = 64 << 20;
    host(flow).send_buffer = 64 << 20;
    let FlowKind::Tcp { congestion, .. } = &mut flow.kind else { panic!("a TCP flow") };
    congestion.parameters.insert("hystart".to_owned(), ParamValue::Choice(hystart.to_owned()));
    experiment.events = (0..300)
        .map(|step: u64| Change {
            at: Instant::ZERO + Span::from_millis(100 * step),
            directions: Directions::Forward,
            delay: Some(Span::from_millis(300) + variation * (step % 20).min(20 - step % 20) / 10),
            ..Change::default()
        })
        .collect();
    experiment
}

/// How slow start ended.
#[derive(Debug)]
struct End {
    /// The largest window in it, BDPs.
    largest: f64,
    /// The threshold after it, BDPs.
    threshold: f64,
    /// Whether a packet was sent again until a second later.
    lost: bool,
}

fn end_of_slow_start(experiment: Experiment) -> End {
    let run = run_sampled(experiment, Span::from_millis(10));
    let of_flow = |name| column(&run, "flow flow", name);
    let (cwnd, ssthresh) = (of_flow("cwnd_packets"), of_flow("ssthresh_packets"));
    let end = ssthresh.iter().position(|ssthresh| ssthresh.is_finite()).expect("slow start ends");
    let lost = of_flow("retransmitted_packets")[..end + 100].iter().any(|packets| *packets > 0.0);
    let largest = cwnd[..end].iter().copied().fold(0.0, f64::max);
    End { largest: largest / BDP, threshold: ssthresh[end] / BDP, lost }
}

/// How slow start ends behind a queue of so many BDPs, with a delay that varies by 40 ms.
fn varying(hystart: &str, queue: f64) -> End {
    let end = end_of_slow_start(satellite(hystart, queue, Span::from_millis(40)));
    println!("{hystart}, queue of {queue} BDPs: {end:?}");
    end
}

/// HyStart takes the 16 ms of its threshold for a queue.
#[test]
fn hystart_leaves_slow_start_on_a_varying_delay_and_search_does_not() {
    for queue in [1.0, 3.0, 7.0] {
        assert!(varying("on", queue).threshold < 0.5);
        assert!(varying("search", queue).threshold > 1.0);
    }
}

/// Bursts double each RTT until that of 1280 packets, 1.31 BDPs, keeps the path busy; `t` RTTs later the window is
/// `1.31 + t`, and the RTT of what is acknowledged then `1.31 + (t - 1.31) / 2`. That long ago, the last window of 3.5
/// had brought 2.69 (0.66 of them by the burst before) at `t = 5.38`, of which twice is 3.5 / 0.65. The next bin's end is
/// up to 0.35 later. The five bins of two initial RTTs brought 1.75.
#[test]
fn search_ends_slow_start_before_a_deep_queue_overflows() {
    let end = end_of_slow_start(satellite("search", 7.0, Span::ZERO));
    println!("{end:?}");
    assert!(end.largest > 1.0 && end.largest < 1.31 + 5.38 + 0.35 && !end.lost, "{end:?}");
    assert!((end.largest - end.threshold - 1.75).abs() < 0.03, "{end:?}: within 20 ms of acknowledgements");
    assert!(!varying("search", 7.0).lost && varying("off", 7.0).lost);
}

/// The draft's detection is late by its RTT, which counts the queue.
#[test]
fn a_queue_of_three_windows_overflows_before_search_ends_slow_start() {
    assert!(varying("search", 3.0).lost);
}

/// A satellite's flow that has sent with `saved_cwnd` before, and now sends so much.
fn resumed(saved_cwnd: f64, queue: f64, packets: Option<u64>) -> Experiment {
    let mut experiment = satellite("off", queue, Span::ZERO);
    let FlowKind::Tcp { congestion, size, host, .. } = &mut experiment.flows[0].kind else { panic!("a TCP flow") };
    (host.receive_buffer.default, host.receive_buffer.max) = (1 << 40, 1 << 40); // no window of a receiver
    *size = packets.map(|packets| packets * 1448);
    if saved_cwnd > 0.0 {
        congestion.parameters.insert("saved_cwnd".to_owned(), ParamValue::Number(saved_cwnd));
        congestion.parameters.insert("saved_rtt_ms".to_owned(), ParamValue::Number(600.0));
    }
    experiment
}

/// After the handshake, slow start takes seven RTTs for 10, 20, ... 640 packets, and with half of a full window in the
/// second one, two for 10 and 487. The rest comes at the path's rate, the last packet half an RTT after it was sent.
#[test]
fn careful_resume_saves_five_rounds_of_slow_start() {
    let seconds = |saved_cwnd| {
        let run = run(&resumed(saved_cwnd, 3.0, Some(3400)));
        assert_eq!(run.flows[0].retransmitted_packets, 0);
        run.flows[0].completion_s.expect("it completes")
    };
    let expected = |rounds: f64, packets: f64| 0.6 * (1.0 + rounds + (3400.0 - packets) / BDP + 0.5);
    for (saved_cwnd, expected) in [(0.0, expected(7.0, 1270.0)), (BDP, expected(2.0, 497.0))] {
        let seconds = seconds(saved_cwnd);
        println!("{saved_cwnd}: {seconds:.3} s of {expected:.3} s");
        assert!((seconds - expected).abs() < 0.02, "{saved_cwnd}: {seconds} s, not {expected} s");
    }
}

/// Two BDPs in an RTT fill a queue of half a BDP in half of it; an RTT and that queue later, when a BDP has been
/// acknowledged, the loss shows. The two BDPs lose a quarter, and 1.5 of them are the PipeSize at the end.
#[test]
fn careful_resume_retreats_from_a_path_that_carries_a_quarter_of_what_it_did() {
    let run = run_sampled(resumed(4.0 * BDP, 0.5, None), Span::from_millis(10));
    let of_flow = |name| column(&run, "flow flow", name);
    let (cwnd, ssthresh) = (of_flow("cwnd_packets"), of_flow("ssthresh_packets"));
    let retreat = ssthresh.iter().position(|ssthresh| ssthresh.is_finite()).expect("packets are lost");
    let length = cwnd[retreat..].iter().position(|window| *window != cwnd[retreat]).expect("it ends");
    let [window, threshold] = [cwnd[retreat], ssthresh[retreat + length]].map(|packets| packets / BDP);
    println!("retreat to {window:.3} for {length} samples, threshold {threshold:.3}");
    assert!((window - 0.5).abs() < 0.02 && (threshold - 0.75).abs() < 0.02, "{window}, {threshold}");
}
