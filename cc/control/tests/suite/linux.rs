//! Against a real kernel: Linux 6.1, one bulk flow, 100 Mbit/s, 20.008 ms round trip, 165 packets of queue at the
//! sender's own interface, every second packet acknowledged. Its window, threshold and pacing rate were read every 100
//! ms.

use crate::path::{Flow, Link};
use units::INFINITE_SSTHRESH;
use units::{Instant, Span};

/// 1538 bytes on the wire take 123.04 us.
const KERNELS: Link = Link {
    service: Span::from_nanos(123_040),
    delay: Span::from_nanos(20_008_000 - 123_040),
    queue: 165,
    mark_every: 0,
    delayed_acks: true,
};

fn flow(algorithm: &str) -> Flow {
    Flow::new(algorithm, &[], 10, KERNELS)
}

fn at(millis: u64) -> Instant {
    Instant::ZERO + Span::from_millis(millis)
}

/// The thresholds that the flow has in 20 s, in order.
fn thresholds(flow: &mut Flow) -> Vec<u32> {
    let mut seen = vec![INFINITE_SSTHRESH];
    while flow.now < at(20_000) {
        flow.step();
        let threshold = flow.decision().ssthresh;
        if seen.last() != Some(&threshold) {
            seen.push(threshold);
        }
    }
    seen
}

/// `first` and `last` are the samples (in tenths of a second) that the kernel's first and last cut followed, `periods`
/// cuts apart. Ours are as far apart, within the kernel's sampling.
fn assert_period(flow: &Flow, first: u64, last: u64, periods: usize) {
    let start = flow.cuts.len() - 1 - periods;
    let ours = flow.cuts[start + periods].since(flow.cuts[start]);
    let kernels = Span::from_millis(100) * (last - first);
    let slack = Span::from_millis(100);
    assert!(ours + slack > kernels && ours < kernels + slack, "{periods} periods: {ours}, kernel {kernels}");
}

#[test]
fn reno_saws_between_the_kernels_windows_in_the_kernels_time() {
    let mut flow = flow("reno");
    assert_eq!(thresholds(&mut flow), [INFINITE_SSTHRESH, 164]);
    assert_period(&flow, 54, 154, 2);
}

#[test]
fn cubic_leaves_slow_start_early_and_waves_as_the_kernel() {
    let mut flow = flow("cubic");
    let seen = thresholds(&mut flow);
    // The kernel's ACK train ended at 244; a burst or two may come earlier or later.
    assert!(seen[1].abs_diff(244) <= 4, "{seen:?}");
    assert_eq!(seen[2..], [229]);
    assert_period(&flow, 55, 154, 2);
}

#[test]
fn cubics_wave_has_the_kernels_shape() {
    let mut flow = flow("cubic");
    while flow.cuts.len() < 3 || flow.decision().cwnd != 231 {
        flow.step();
    }
    let start = flow.now;
    for (tenths, kernels) in [(5, 252), (10, 270), (15, 286), (20, 298), (25, 308), (30, 315), (35, 320), (40, 324)] {
        flow.run_until(start + Span::from_millis(100 * tenths));
        let window = flow.decision().cwnd;
        assert!(window.abs_diff(kernels) <= 3, "{window} after {tenths} tenths, kernel {kernels}");
    }
}

#[test]
fn highspeed_halves_out_of_slow_start_and_then_keeps_five_eighths_as_the_kernel() {
    let mut flow = flow("highspeed");
    assert_eq!(thresholds(&mut flow), [INFINITE_SSTHRESH, 164, 203]);
    assert_period(&flow, 31, 183, 7);
}

#[test]
fn vegas_stands_where_the_kernel_stands() {
    let mut flow = flow("vegas");
    assert_eq!(thresholds(&mut flow), [INFINITE_SSTHRESH, 164]);
    assert_eq!(flow.decision().cwnd, 167);
}

#[test]
fn a_reduction_ends_at_the_threshold_and_never_goes_below() {
    for algorithm in ["reno", "cubic", "highspeed"] {
        let mut flow = flow(algorithm);
        while flow.cuts.is_empty() {
            flow.step();
        }
        let (high, mut least) = (flow.now + Span::from_millis(60), u32::MAX);
        while flow.now < high {
            flow.step();
            least = least.min(flow.decision().cwnd);
        }
        assert_eq!(least, flow.decision().ssthresh, "{algorithm}");
    }
}

#[test]
fn bbr_has_the_kernels_windows_and_rates() {
    let mut flow = flow("bbr");
    let mut most = 0;
    while flow.decision().ssthresh == INFINITE_SSTHRESH {
        flow.step();
        most = most.max(flow.decision().cwnd);
    }
    assert_eq!((most, flow.decision().ssthresh), (536, 230), "startup");
    // The phases that give back, cruise, and probe; the kernel's rates in bytes a second.
    let kernels = [(344, 8_739_493), (350, 11_652_657), (358, 14_565_715)];
    let mut seen = [false; 3];
    for tenth in 10..100 {
        flow.run_until(at(100 * tenth));
        let decision = flow.decision();
        let rate = decision.pacing_rate.expect("BBR paces").as_bits() / 8;
        let ca_state = kernels.iter().position(|&(_, kernels)| rate.abs_diff(kernels) * 2_000 < kernels);
        let ca_state = ca_state.unwrap_or_else(|| panic!("{rate} bytes a second in no phase"));
        seen[ca_state] = true;
        assert!(kernels.iter().any(|&(window, _)| window == decision.cwnd), "{decision:?}");
    }
    assert_eq!(seen, [true; 3]);
}

#[test]
fn bbr_empties_the_path_for_200_ms_after_ten_seconds_as_the_kernel() {
    let mut flow = flow("bbr");
    let mut emptied = Vec::new();
    while flow.now < at(20_000) {
        flow.step();
        if flow.decision().cwnd == 4 {
            emptied.push(flow.now);
        }
    }
    let (start, end) = (emptied[0], emptied[emptied.len() - 1]);
    assert!((at(10_000)..at(10_200)).contains(&start), "{start:?}");
    assert!((200..300).contains(&end.since(start).as_millis()), "{:?}", end.since(start));
    let rate = flow.decision().pacing_rate.map_or(0, |rate| rate.as_bits() / 8);
    assert!(rate > 8_700_000, "what was sent meanwhile does not lower the bandwidth: {rate}");
}
