//! Algorithms against closed forms.

use crate::flow::{Flow, LINK, Link};
use control::ParamValue;
use units::{Instant, Span};

/// A round trip of 100 ms, without bottleneck.
const WIDE: Link = Link { service: Span::from_nanos(1), delay: Span::from_millis(100), queue: u64::MAX, ..LINK };

/// Marks before the measurement.
const WARM_UP: usize = 20;

/// Mean window, by packets a round trip.
fn mean_window(algorithm: &str, mark_every: u64, cycles: usize) -> f64 {
    let mut flow = Flow::new(algorithm, &[], 10, Link { mark_every, ..WIDE });
    while flow.reductions.len() < WARM_UP {
        flow.step();
    }
    let (una, start) = (flow.una, flow.now);
    while flow.reductions.len() < WARM_UP + cycles {
        flow.step();
    }
    (flow.una - una) as f64 / (flow.now.since(start).as_secs_f64() / 0.1)
}

#[test]
fn renos_mean_window_is_1_22_over_the_root_of_the_mark_rate() {
    // The formula is for large windows: these are 122 and 245 packets.
    for mark_every in [10_000, 40_000] {
        let expected = (1.5 * mark_every as f64).sqrt();
        let mean = mean_window("reno", mark_every, 30);
        assert!((mean / expected - 1.0).abs() < 0.03, "1 in {mark_every}: {mean} instead of {expected}");
    }
}

/// A flow of 100 ms round trips after its first reduction, at `window` packets.
fn reduced_at(window: u32, algorithm: &str, set: &[(&str, ParamValue)]) -> Flow {
    // The acknowledgements of one window come over half a round trip.
    let service = Span::from_millis(50) / u64::from(window);
    let link = Link { service, delay: Span::from_millis(100).saturating_sub(service), mark_every: 1, ..WIDE };
    let mut flow = Flow::new(algorithm, set, window, link);
    while flow.reductions.is_empty() {
        flow.step();
    }
    flow.link.mark_every = 0;
    flow
}

#[test]
fn scalable_recovers_in_the_same_number_of_round_trips_at_any_window() {
    // ln(8/7) / ln(1.01) = 13.4 round trips from 7/8 of a window back to it, after one of reduction.
    for window in [400, 1_600, 6_400] {
        let mut flow = reduced_at(window, "scalable", &[]);
        let start = flow.now;
        flow.run_until(start + Span::from_millis(100));
        while flow.decision().cwnd < window {
            flow.step();
        }
        let rounds = flow.now.since(start).as_secs_f64() / 0.1;
        assert!((13.4..=15.4).contains(&rounds), "from {window}: {rounds} round trips");
    }
}

#[test]
fn cubic_follows_the_rfcs_curve_after_a_loss_at_100_packets() {
    let mut flow = reduced_at(100, "cubic", &[("hystart", ParamValue::Choice("off".to_owned()))]);
    // The reduction takes a round trip; then the curve begins at 70.
    let epoch = flow.now + Span::from_millis(100);
    for (millis, packets) in [(0, 70), (1000, 86), (2000, 95), (4200, 100), (6000, 102)] {
        flow.run_until(epoch + Span::from_millis(millis));
        let window = flow.decision().cwnd;
        assert!(window.abs_diff(packets) <= 2, "{window} after {millis} ms, not {packets}");
    }
}

#[test]
fn vegas_keeps_two_to_four_packets_in_the_queue() {
    // 1 ms a packet, 100 ms round trip: 100 packets without queue.
    let link = Link { service: Span::from_millis(1), delay: Span::from_millis(99), queue: 1_000, ..WIDE };
    let mut flow = Flow::new("vegas", &[], 10, link);
    // Slow start overshoots to some 300; from there it is one packet a round trip.
    for second in 80..100 {
        flow.run_until(Instant::ZERO + Span::from_secs(second));
        let window = flow.decision().cwnd;
        assert!((102..=104).contains(&window), "{window}");
    }
}
