//! Algorithms against closed forms.

use crate::flow::{Connection, LINK, Link};
use ropewalk_control::ParamValue;
use units::{Instant, Span};

/// A round trip of 100 ms, without bottleneck.
const WIDE: Link = Link { transmission: Span::ZERO, delay: Span::from_millis(100), ..LINK };

/// Marks before the measurement.
const WARM_UP: usize = 20;

/// Mean window, by packets a round trip.
fn mean_window(algorithm: &str, mark_every: u64, cycles: usize) -> f64 {
    let mut flow = Connection::new(algorithm, &[], 10, &[Link { mark_every, ..WIDE }]);
    while flow.paths[0].reductions.len() < WARM_UP {
        flow.step();
    }
    let (start_una, start) = (flow.paths[0].snd_una, flow.now);
    while flow.paths[0].reductions.len() < WARM_UP + cycles {
        flow.step();
    }
    (flow.paths[0].snd_una - start_una) as f64 / (flow.now.since(start).as_secs_f64() / 0.1)
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
fn flow_reduced_at(window: u32, algorithm: &str, set: &[(&str, ParamValue)]) -> Connection {
    // The acknowledgements of one window come over half a round trip.
    let transmission = Span::from_millis(50) / u64::from(window);
    let link = Link { transmission, delay: Span::from_millis(100).saturating_sub(transmission), mark_every: 1, ..WIDE };
    let mut flow = Connection::new(algorithm, set, window, &[link]);
    while flow.paths[0].reductions.is_empty() {
        flow.step();
    }
    flow.paths[0].link.mark_every = 0;
    flow
}

#[test]
fn cubic_follows_the_rfcs_curve_after_a_loss_at_100_packets() {
    let mut flow = flow_reduced_at(100, "cubic", &[("hystart", ParamValue::Choice("off".to_owned()))]);
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
    let link = Link { transmission: Span::from_millis(1), delay: Span::from_millis(99), ..LINK };
    let mut flow = Connection::new("vegas", &[], 10, &[link]);
    // Slow start overshoots to some 300; from there it is one packet a round trip.
    for second in 80..100 {
        flow.run_until(Instant::ZERO + Span::from_secs(second));
        let window = flow.decision().cwnd;
        assert!((102..=104).contains(&window), "{window}");
    }
}

/// Each round trip adds `1 - p` packets and takes `p / 2` of the window: `2 (1 - p) / p`. Of a round trip of 5 ms instead of
/// 25 ms the fifth, which is the same rate.
#[test]
fn pragues_mean_window_is_two_over_the_mark_rate() {
    for (mark_every, round_trip_ms, expected) in [(20, 100, 38.0), (50, 100, 98.0), (50, 5, 19.6), (100, 5, 39.6)] {
        let link = Link { mark_every, delay: Span::from_millis(round_trip_ms), ..WIDE };
        let mut flow = Connection::new("prague", &[], 10, &[link]);
        let second = |seconds: u64| Instant::ZERO + Span::from_secs(seconds);
        flow.run_until(second(100));
        let start_una = flow.paths[0].snd_una;
        flow.run_until(second(200));
        let mean = (flow.paths[0].snd_una - start_una) as f64 / (100_000.0 / round_trip_ms as f64);
        assert!(
            (mean / expected - 1.0).abs() < 0.05,
            "1 in {mark_every}, {round_trip_ms} ms: {mean} instead of {expected}"
        );
    }
}
