//! Steady state of algorithms that use delay, rate or marks: one bulk flow, a bottleneck of 1 ms a packet, 20 ms round
//! trip, so that 20 packets fill the path and the rest of the window is queued.

use crate::flow::{Connection, LINK, Link};
use ropewalk_control::ParamValue;
use units::{INFINITE_SSTHRESH, Instant, Span};

/// The windows at every 10 ms between these seconds.
fn windows(connection: &mut Connection, seconds: std::ops::Range<u64>) -> Vec<u32> {
    let time = |hundredths: u64| Instant::ZERO + Span::from_millis(10 * hundredths);
    let mut sample = |hundredths| {
        connection.run_until(time(hundredths));
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
        let (min, max) = queues.iter().fold((f64::MAX, 0.0f64), |(min, max), &queue| (min.min(queue), max.max(queue)));
        assert!((1.0..=1.5).contains(&mean), "delta {delta}: {mean}");
        assert!(min <= 0.25 && (2.0..=3.0).contains(&max), "delta {delta}: {min} to {max}");
    }
}

#[test]
fn nv_queues_its_pad_until_the_min_rtt_expires() {
    let mut connection = Connection::new("nv", &[], 10, &[LINK]);
    // The first minimum RTT holds for 2 s; the second, of the time with the pad, for 3.75 s at least.
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
        let transmission = Span::from_millis(50) / u64::from(cwnd);
        let delay = Span::from_millis(100).saturating_sub(transmission);
        let link = Link { transmission, delay, mark_every: 1, ..LINK };
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

/// Bandwidth probes of BBR v3 in 20 s on a path of this many packets, one a millisecond.
fn probes(packets: u64) -> u32 {
    let delay = Span::from_millis(packets - 1);
    let mut flow = Connection::new("bbr3", &[], 10, &[Link { delay, ..LINK }]);
    flow.run_until(Instant::ZERO + Span::from_secs(3));
    assert!(u64::from(flow.decision().ssthresh).abs_diff(packets) <= 2, "after startup: {:?}", flow.decision());
    // 1448 bytes a millisecond, less a hundredth.
    let pacing_rate_at_gain_1 = 1448.0 * 8.0 * 1000.0 * 0.99;
    let (mut probes, mut was_up) = (0, false);
    for hundredth in 300..2_300 {
        flow.run_until(Instant::ZERO + Span::from_millis(10 * hundredth));
        let gain = flow.decision().pacing_rate.expect("BBR paces").as_bits() as f64 / pacing_rate_at_gain_1;
        assert!((0.88..=1.30).contains(&gain), "{gain}");
        let is_up = gain > 1.15;
        probes += u32::from(is_up && !was_up);
        was_up = is_up;
    }
    probes
}

#[test]
fn bbr3_probes_after_two_to_three_seconds_or_as_often_as_reno_has_losses() {
    // Of 100 packets: a wait of 2 to 3 s and half a second for refill and probe; RTT probing restarts the wait every
    // 5 s, so that there is one probe in between, or two.
    let probes_at_100 = probes(100);
    assert!((4..=8).contains(&probes_at_100), "{probes_at_100}");
    // Of 20 packets: some 20 rounds of 20 ms, and 100 ms for refill and probe.
    let probes_at_20 = probes(20);
    assert!((30..=45).contains(&probes_at_20), "{probes_at_20}");
}

#[test]
fn dctcp_reduces_little_with_few_marks() {
    // One mark in 2000 packets: a reduction about every 2 s, with a small alpha.
    let mut flow =
        Connection::new("dctcp", &[("alpha", ParamValue::Number(0.0))], 100, &[Link { mark_every: 2_000, ..LINK }]);
    while flow.paths[0].reductions.is_empty() {
        flow.step();
    }
    let cwnd = flow.decision().cwnd;
    flow.run_until(flow.now + Span::from_secs(1));
    let ssthresh = flow.decision().ssthresh;
    assert!(ssthresh < INFINITE_SSTHRESH && ssthresh > cwnd * 9 / 10, "{cwnd} became {ssthresh}");
}

#[test]
fn low_priority_flows_leave_the_queue_short() {
    let queue = |algorithm, parameters| {
        let mut flow = Connection::new(algorithm, parameters, 10, &[Link { queue: 60, ..LINK }]);
        mean(&windows(&mut flow, 20..60)) - 20.0
    };
    let (lp, reno) = (queue("lp", &[("delay", ParamValue::Choice("path".to_owned()))]), queue("reno", &[]));
    assert!(lp < reno / 2.0, "LP {lp}, Reno {reno}");
}

#[test]
fn cdg_backs_off_before_the_queue_overflows() {
    let mut flow = Connection::new("cdg", &[], 10, &[Link { queue: 200, ..LINK }]);
    flow.run_until(Instant::ZERO + Span::from_secs(20));
    let overflows = flow.paths[0].reductions.len();
    let mut reno = Connection::new("reno", &[], 10, &[Link { queue: 200, ..LINK }]);
    reno.run_until(Instant::ZERO + Span::from_secs(20));
    let queue = mean(&windows(&mut flow, 20..60)) - 20.0;
    assert!(
        queue < 100.0 && flow.paths[0].reductions.len() == overflows,
        "{queue} packets, {:?}",
        flow.paths[0].reductions
    );
}
