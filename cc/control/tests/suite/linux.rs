//! Comparison with Linux 6.1: one bulk flow, 100 Mbit/s, 20.008 ms round trip, 165 packets of queue at the sender's own
//! interface, every second packet acknowledged. Its window, threshold and pacing rate were sampled every 100 ms.

use crate::flow::{Connection, LINK, Link};
use ropewalk_control::Decision;
use units::{INFINITE_SSTHRESH, Instant, Span};

/// 1538 bytes on the wire take 123.04 us.
const KERNEL_LINK: Link = Link {
    transmission: Span::from_nanos(123_040),
    delay: Span::from_nanos(20_008_000 - 123_040),
    queue: 165,
    delayed_acks: true,
    ..LINK
};

fn flow(algorithm: &str) -> Connection {
    Connection::new(algorithm, &[], 10, &[KERNEL_LINK])
}

fn time(millis: u64) -> Instant {
    Instant::ZERO + Span::from_millis(millis)
}

/// The thresholds of the flow in 20 s, in order.
fn thresholds(flow: &mut Connection) -> Vec<u32> {
    let mut thresholds = vec![INFINITE_SSTHRESH];
    while flow.now < time(20_000) {
        flow.step();
        let threshold = flow.decision().ssthresh;
        if thresholds.last() != Some(&threshold) {
            thresholds.push(threshold);
        }
    }
    thresholds
}

/// Asserts that `periods` periods take as long as in the kernel, within its sampling interval: `first` and `last` are
/// the kernel's samples (in tenths of a second) before the first and last reduction.
fn assert_period(flow: &Connection, first: u64, last: u64, periods: usize) {
    let start = flow.paths[0].reductions.len() - 1 - periods;
    let duration = flow.paths[0].reductions[start + periods].since(flow.paths[0].reductions[start]);
    let expected = Span::from_millis(100) * (last - first);
    let sampling_interval = Span::from_millis(100);
    assert!(
        duration + sampling_interval > expected && duration < expected + sampling_interval,
        "{periods} periods: {duration}, kernel {expected}"
    );
}

#[test]
fn renos_thresholds_and_period_are_the_kernels() {
    let mut flow = flow("reno");
    assert_eq!(thresholds(&mut flow), [INFINITE_SSTHRESH, 164]);
    assert_period(&flow, 54, 154, 2);
}

#[test]
fn cubics_thresholds_and_period_are_the_kernels() {
    let mut flow = flow("cubic");
    let thresholds = thresholds(&mut flow);
    // The kernel's ACK train ended at 244, within a burst or two.
    assert!(thresholds[1].abs_diff(244) <= 4, "{thresholds:?}");
    assert_eq!(thresholds[2..], [229]);
    assert_period(&flow, 55, 154, 2);
}

#[test]
fn cubics_curve_is_the_kernels() {
    let mut flow = flow("cubic");
    while flow.paths[0].reductions.len() < 3 || flow.decision().cwnd != 231 {
        flow.step();
    }
    let start = flow.now;
    for (tenths, expected) in [(5, 252), (10, 270), (15, 286), (20, 298), (25, 308), (30, 315), (35, 320), (40, 324)] {
        flow.run_until(start + Span::from_millis(100 * tenths));
        let window = flow.decision().cwnd;
        assert!(window.abs_diff(expected) <= 3, "{window} after {tenths} tenths, kernel {expected}");
    }
}

#[test]
fn highspeeds_thresholds_and_period_are_the_kernels() {
    let mut flow = flow("highspeed");
    assert_eq!(thresholds(&mut flow), [INFINITE_SSTHRESH, 164, 203]);
    assert_period(&flow, 31, 183, 7);
}

#[test]
fn vegas_settles_at_the_kernels_window() {
    let mut flow = flow("vegas");
    assert_eq!(thresholds(&mut flow), [INFINITE_SSTHRESH, 164]);
    assert_eq!(flow.decision().cwnd, 167);
}

#[test]
fn a_reduction_ends_at_the_threshold() {
    for algorithm in ["reno", "cubic", "highspeed"] {
        let mut flow = flow(algorithm);
        while flow.paths[0].reductions.is_empty() {
            flow.step();
        }
        let (end, mut min_cwnd) = (flow.now + Span::from_millis(60), u32::MAX);
        while flow.now < end {
            flow.step();
            min_cwnd = min_cwnd.min(flow.decision().cwnd);
        }
        assert_eq!(min_cwnd, flow.decision().ssthresh, "{algorithm}");
    }
}

/// The decision once the pacing rate has been the same for a millisecond: after a change of phase the window grows by
/// the packets that each acknowledgement covers, as the kernel's does between two of its samples.
fn decision_within_a_phase(flow: &mut Connection) -> Decision {
    loop {
        let last_decision = flow.decision();
        flow.run_until(flow.now + Span::from_millis(1));
        if flow.decision().pacing_rate == last_decision.pacing_rate {
            return flow.decision();
        }
    }
}

#[test]
fn bbr_has_the_kernels_windows_and_rates() {
    let mut flow = flow("bbr");
    let mut max_cwnd = 0;
    while flow.decision().ssthresh == INFINITE_SSTHRESH {
        flow.step();
        max_cwnd = max_cwnd.max(flow.decision().cwnd);
    }
    assert_eq!((max_cwnd, flow.decision().ssthresh), (536, 230), "startup");
    // Windows and rates (bytes a second) of the kernel in the phases that drain, cruise, and probe.
    let expected = [(344, 8_739_493), (350, 11_652_657), (358, 14_565_715)];
    let mut seen_phases = [false; 3];
    for tenth in 10..100 {
        flow.run_until(time(100 * tenth));
        let decision = decision_within_a_phase(&mut flow);
        let rate = decision.pacing_rate.expect("BBR paces").as_bits() / 8;
        let phase = expected.iter().position(|&(_, expected)| rate.abs_diff(expected) * 2_000 < expected);
        let phase = phase.unwrap_or_else(|| panic!("{rate} bytes a second in no phase"));
        seen_phases[phase] = true;
        assert_eq!(decision.cwnd, expected[phase].0, "{decision:?}");
    }
    assert_eq!(seen_phases, [true; 3]);
}

#[test]
fn bbrs_probe_rtt_is_the_kernels() {
    let mut flow = flow("bbr");
    let mut probe_rtt_times = Vec::new();
    while flow.now < time(20_000) {
        flow.step();
        if flow.decision().cwnd == 4 {
            probe_rtt_times.push(flow.now);
        }
    }
    let (start, end) = (probe_rtt_times[0], probe_rtt_times[probe_rtt_times.len() - 1]);
    assert!((time(10_000)..time(10_200)).contains(&start), "{start:?}");
    assert!((200..300).contains(&end.since(start).as_millis()), "{:?}", end.since(start));
    let rate = flow.decision().pacing_rate.map_or(0, |rate| rate.as_bits() / 8);
    assert!(rate > 8_700_000, "ProbeRTT does not lower the bandwidth: {rate}");
}
