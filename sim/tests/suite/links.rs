//! Links with rate traces and jitter.

use crate::common::{bulk, datagrams, host, one_link, pipe, run};
use link::{PipeConfig, RateTrace};
use units::{Rate, Span};

/// Seven opportunities in ten milliseconds: 8.4 Mbit/s in packets of 1500 bytes.
fn traced() -> PipeConfig {
    let trace = RateTrace { opportunities: [1, 1, 2, 5, 5, 5, 10].into(), period_ms: 10 };
    PipeConfig { rate: None, trace: Some(trace), overhead: 0, ..pipe(Rate::from_mbit(1), Span::from_millis(10), 50) }
}

#[test]
fn tcp_fills_a_trace_link() {
    let mut experiment = one_link("cubic", traced(), 60);
    experiment.links[0].reverse = pipe(Rate::from_mbit(100), Span::from_millis(10), 100);
    let max_goodput = 8.4 * 1448.0 / 1500.0;
    let goodput = run(&experiment).flows[0].goodput_mbps;
    assert!((0.97 * max_goodput..=max_goodput).contains(&goodput), "{goodput} of {max_goodput} Mbit/s");
}

/// Jitter lets a packet catch up with the one before but not overtake it.
#[test]
fn jitter_on_both_ways_does_not_look_like_reordering() {
    let jittery =
        PipeConfig { jitter: Span::from_millis(15), ..pipe(Rate::from_mbit(50), Span::from_millis(10), 100_000) };
    for algorithm in ["reno", "cubic", "bbr"] {
        let mut experiment = one_link(algorithm, jittery.clone(), 20);
        experiment.links[0].reverse.jitter = jittery.jitter;
        experiment.flows.push(bulk("second", algorithm));
        experiment.flows.iter_mut().for_each(|flow| host(flow).receive_buffer.max = 1_000_000);
        for flow in run(&experiment).flows {
            let faults = (flow.retransmitted_packets, flow.recoveries, flow.spurious_recoveries, flow.timeouts);
            assert_eq!(faults, (0, 0, 0, 0), "{algorithm}: {flow:?}");
            assert!(flow.rtt_ms.max > flow.rtt_ms.min + 15.0, "there was jitter");
        }
    }
}

#[test]
fn an_overloaded_trace_link_uses_each_of_its_opportunities() {
    let mut experiment = one_link("", traced(), 10);
    experiment.flows = vec![datagrams("flood", Rate::from_mbit(20), 1500)];
    // The last opportunity whose packet arrives in time is at 9.99 s: 999 periods.
    assert_eq!(run(&experiment).flows[0].delivered_bytes, 999 * 7 * 1500);
}
