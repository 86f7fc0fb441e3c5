//! Steady state of algorithms that use delay, rate or marks: one bulk flow, a bottleneck of 1 ms a packet, 20 ms round
//! trip, so that 20 packets fill the path and the rest of the window is queued.

use crate::flow::{Connection, LINK, Link};
use control::ParamValue;
use units::{Instant, Span};

/// The windows at every 10 ms between these seconds.
fn windows(connection: &mut Connection, seconds: std::ops::Range<u64>) -> Vec<u32> {
    let at = |hundredths: u64| Instant::ZERO + Span::from_millis(10 * hundredths);
    let mut sample = |hundredths| {
        connection.run_until(at(hundredths));
        connection.decision().cwnd
    };
    (100 * seconds.start..100 * seconds.end).map(&mut sample).collect()
}

fn mean(windows: &[u32]) -> f64 {
    windows.iter().map(|&window| f64::from(window)).sum::<f64>() / windows.len() as f64
}

#[test]
fn copas_queue_oscillates_between_zero_and_two_and_a_half_over_delta() {
    // The paper's section 3: between 0 and 2.5 / delta. On a path that holds many times as much.
    for delta in [0.5, 0.1] {
        let set = [("delta", ParamValue::Number(delta))];
        let mut connection = Connection::new("copa", &set, 10, &[Link { delay: Span::from_millis(99), ..LINK }]);
        let queues: Vec<f64> =
            windows(&mut connection, 30..60).into_iter().map(|window| (f64::from(window) - 100.0) * delta).collect();
        let mean = queues.iter().sum::<f64>() / queues.len() as f64;
        let (least, most) = queues.iter().fold((f64::MAX, 0.0f64), |(low, high), &q| (low.min(q), high.max(q)));
        assert!((1.0..=1.5).contains(&mean), "delta {delta}: {mean}");
        assert!(least <= 0.25 && (2.0..=3.0).contains(&most), "delta {delta}: {least} to {most}");
    }
}

#[test]
fn nv_queues_its_pad_until_the_least_rtt_expires() {
    let mut connection = Connection::new("nv", &[], 10, &[LINK]);
    // The first least RTT holds for 2 s; the second, of the time with the pad, for 3.75 s at least.
    let first = windows(&mut connection, 3..5);
    assert!(first.iter().all(|window| window.abs_diff(30) <= 1), "{first:?}");
    let last = windows(&mut connection, 15..20);
    assert!(last.iter().all(|&window| window >= 40), "{last:?}");
}

#[test]
fn scalable_recovers_in_the_same_number_of_round_trips_at_any_window() {
    // ln(8/7) / ln(1.01) = 13.4 round trips from 7/8 of a window back to it, after one of reduction.
    for cwnd in [400, 1_600, 6_400] {
        // The acknowledgements of one window come over half a round trip.
        let transmission_us = 50_000 / cwnd;
        let delay = Span::from_micros(u64::from(100_000 - transmission_us));
        let link = Link { transmission_us, delay, mark_every: 1, ..LINK };
        let mut connection = Connection::new("scalable", &[], cwnd, &[link]);
        connection.run_until_reductions(1);
        connection.paths[0].link.mark_every = 0;
        let start = connection.now;
        connection.run_until(start + Span::from_millis(100));
        while connection.decision().cwnd < cwnd {
            connection.run_until(connection.now + Span::from_millis(1));
        }
        let rounds = connection.now.since(start).as_secs_f64() / 0.1;
        assert!((13.4..=15.4).contains(&rounds), "from {cwnd}: {rounds} round trips");
    }
}

#[test]
fn low_priority_flows_leave_the_queue_short() {
    let queue = |algorithm, parameters| {
        let mut connection = Connection::new(algorithm, parameters, 10, &[Link { mark_above: 80, ..LINK }]);
        mean(&windows(&mut connection, 20..60)) - 20.0
    };
    let (lp, reno) = (queue("lp", &[("delay", ParamValue::Choice("path".to_owned()))]), queue("reno", &[]));
    assert!(lp < reno / 2.0, "LP {lp}, Reno {reno}");
}

#[test]
fn cdg_backs_off_before_the_queue_overflows() {
    let mut connection = Connection::new("cdg", &[], 10, &[Link { mark_above: 220, ..LINK }]);
    connection.run_until(Instant::ZERO + Span::from_secs(20));
    let overflows = connection.paths[0].reductions.len();
    let queue = mean(&windows(&mut connection, 20..60)) - 20.0;
    assert!(
        queue < 100.0 && connection.paths[0].reductions.len() == overflows,
        "{queue} packets, {:?}",
        connection.paths[0].reductions
    );
}
