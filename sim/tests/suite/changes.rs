//! Links that change while flows use them.

use crate::common::{OVERHEAD, column, mean, one_link, pipe, run, set_up};
use link::{CoDelConfig, QueueConfig, QueueDiscipline};
use scenario::model::{Change, Directions, Experiment};
use units::{Instant, Rate, Span};

/// A change of the link without effect.
fn change(at_ms: u64) -> Change {
    Change { at: Instant::ZERO + Span::from_millis(at_ms), ..Change::default() }
}

fn experiment(algorithm: &str, events: Vec<Change>) -> Experiment {
    let plain = one_link(algorithm, pipe(Rate::from_mbit(20), Span::from_millis(10), 60), 30);
    Experiment { sample: Some(Span::from_millis(100)), events, ..plain }
}

/// Goodput of a full link, Mbit/s.
fn full_goodput(mbit: f64) -> f64 {
    mbit * 1448.0 / f64::from(1500 + OVERHEAD)
}

fn goodput(run: &record::Run, from_s: usize, to_s: usize) -> f64 {
    mean(&column(run, "flow flow", "goodput_mbps")[10 * from_s..10 * to_s])
}

#[test]
fn a_link_that_was_down_carries_the_flow_again() {
    for algorithm in ["reno", "cubic", "bbr"] {
        for directions in [Directions::Both, Directions::Forward, Directions::Reverse] {
            let [down, up] = [(8_000, false), (10_000, true)];
            let event = |(ms, up)| Change { directions, ..set_up(0, ms, up) };
            let run = run(&experiment(algorithm, vec![event(down), event(up)]));
            // Data that is on its way when only the way back is cut still arrives: a receive buffer at most.
            assert!(goodput(&run, 9, 10) == 0.0, "{algorithm}: {} Mbit/s while down", goodput(&run, 9, 10));
            assert!(run.flows[0].timeouts > 0, "{algorithm} {directions:?}: {:?}", run.flows[0]);
            // The last timeout before the link is up is at most as far away as the outage was long.
            let goodput_after = goodput(&run, 18, 30);
            assert!(
                goodput_after > 0.9 * full_goodput(20.0),
                "{algorithm} {directions:?}: {goodput_after} Mbit/s afterwards"
            );
        }
    }
}

/// Conservation, and with it the slab, is checked at the end of every run.
#[test]
fn nothing_leaks_from_a_flapping_link_whatever_its_queue() {
    let codel = QueueDiscipline::CoDel(CoDelConfig::default());
    for discipline in [QueueDiscipline::DropTail, codel] {
        let flaps = (1..290).map(|i| set_up(0, 100 * i, i % 2 == 0));
        let mut experiment = experiment("cubic", flaps.collect());
        let pipe = &mut experiment.links[0].forward;
        pipe.queue = QueueConfig { discipline, ..pipe.queue };
        let run = run(&experiment);
        assert!(run.paths[0].lost_packets > 0 && run.flows[0].delivered_bytes > 0, "{:?}", run.paths[0]);
    }
}

#[test]
fn goodput_follows_the_rate() {
    for algorithm in ["reno", "cubic", "bbr"] {
        let rate_change = |mbit, at_ms| Change { rate: Some(Rate::from_mbit(mbit)), ..change(at_ms) };
        let run = run(&experiment(algorithm, vec![rate_change(5, 10_000), rate_change(10, 20_000)]));
        for (mbit, from, to) in [(20.0, 5, 10), (5.0, 14, 20), (10.0, 25, 30)] {
            let observed = goodput(&run, from, to);
            assert!((observed / full_goodput(mbit) - 1.0).abs() < 0.06, "{algorithm}: {observed} at {mbit} Mbit/s");
        }
    }
}

#[test]
fn the_rtt_follows_the_delay() {
    let delay_change = |ms, at_ms| Change { delay: Some(Span::from_millis(ms)), ..change(at_ms) };
    let run = run(&experiment("cubic", vec![delay_change(40, 10_000), delay_change(5, 20_000)]));
    let rtt = column(&run, "flow flow", "srtt_ms");
    // A data packet and its acknowledgement are transmitted, and at most 60 packets wait.
    let transmission = Rate::from_mbit(20).time_for(u64::from(1500 + 52 + 2 * OVERHEAD)).as_millis_f64();
    let queue = Rate::from_mbit(20).time_for(61 * u64::from(1500 + OVERHEAD)).as_millis_f64();
    for (ms, from, to) in [(20.0, 30, 100), (80.0, 130, 200), (10.0, 230, 300)] {
        let observed = &rtt[from..to];
        let range = ms + transmission..=ms + transmission + queue + 1.0;
        assert!(observed.iter().all(|rtt| range.contains(rtt)), "{observed:?} for {ms} ms");
    }
}
