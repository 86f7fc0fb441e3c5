//! What limited a sender, in flows whose limit is known.

use crate::common::{application, bulk, host, links, one_link, pipe, run};
use link::{LossModel, PipeConfig};
use record::{Flow, LimitTimes};
use scenario::Overrides;
use scenario::model::{self, Application, Experiment};
use std::path::Path;
use units::{Rate, Span};

/// 1 Gbit/s and a round trip of 100 ms.
fn wide(flow: model::Flow, seconds: u64) -> Experiment {
    let mut experiment = one_link("", pipe(Rate::from_mbit(1000), Span::from_millis(50), 10_000), seconds);
    experiment.flows = vec![flow];
    experiment
}

fn limits(flow: &Flow) -> LimitTimes {
    flow.limited_s.expect("the simulator measures them")
}

/// 128 kB of a product of 12.5 MB: the first rounds of slow start are below it, and no later one.
#[test]
fn a_receive_buffer_far_below_the_bandwidth_delay_product_is_the_limit() {
    let mut flow = bulk("flow", "cubic");
    host(&mut flow).receive_buffer.max = 131_072;
    host(&mut flow).quick_ack = true;
    let flow = run(&wide(flow, 60)).flows.remove(0);
    let limits = limits(&flow);
    assert_eq!(limits.receive_window, flow.receive_window_limited_s);
    assert!((59.4..59.7).contains(&limits.receive_window), "{limits:?}");
    assert!((0.1..0.1001).contains(&limits.handshake), "a round trip: {limits:?}");
}

/// A round trip carries at most what the send buffer holds.
#[test]
fn a_send_buffer_far_below_the_bandwidth_delay_product_is_the_limit() {
    let mut flow = bulk("flow", "cubic");
    (host(&mut flow).send_buffer, host(&mut flow).tso) = (128 << 10, false);
    let flow = run(&wide(flow, 60)).flows.remove(0);
    let limits = limits(&flow);
    assert!(flow.goodput_mbps < f64::from(128 << 10) * 8.0 / 0.1 / 1e6, "{}", flow.goodput_mbps);
    assert_eq!(limits.send_buffer, flow.send_buffer_limited_s);
    assert!(limits.send_buffer > 59.0, "{limits:?}");
}

/// Five packets a round trip: what is written is sent at once.
#[test]
fn an_application_with_little_to_send_is_the_limit() {
    let mut flow = bulk("flow", "cubic");
    *application(&mut flow) = Application::Steady { rate: Rate::from_bits(500_000), write: Some(1448) };
    let limits = limits(&run(&wide(flow, 60)).flows[0]);
    assert!((limits.application - (60.0 - limits.handshake)).abs() < 1e-6, "{limits:?}");
}

#[test]
fn a_flow_alone_on_a_link_is_limited_by_its_window_or_by_its_pacing() {
    for (algorithm, is_paced) in [("reno", false), ("cubic", false), ("bbr", true)] {
        for multipath in [false, true] {
            let pipe = pipe(Rate::from_mbit(10), Span::from_millis(10), 100);
            let experiment = if multipath { links(algorithm, &[pipe], 30) } else { one_link(algorithm, pipe, 30) };
            let limits = limits(&run(&experiment).flows[0]);
            let by_algorithm = if is_paced { limits.pacing } else { limits.window + limits.recovery };
            assert!(by_algorithm > 0.95 * 30.0, "{algorithm}: {limits:?}");
        }
    }
}

/// LTE's packets fill the send buffer. Wi-Fi carries data, limited by its window, or it has room, and there is no data.
#[test]
fn a_send_buffer_full_of_another_subflows_data_limits_the_faster_one() {
    let wifi = pipe(Rate::from_mbit(30), Span::from_millis(10), 50);
    let lte = PipeConfig { loss: LossModel::Random(0.01), ..pipe(Rate::from_mbit(20), Span::from_millis(30), 100) };
    let run = run(&links("olia", &[wifi, lte], 20));
    let (connection, of_wifi) = (limits(&run.flows[0]), run.subflows[0].limited_s.expect("measured"));
    let used = run.paths[0].utilisation;
    assert!((0.5..0.7).contains(&used), "{used}");
    assert!((of_wifi.send_buffer / 20.0 + used - 1.0).abs() < 0.05, "{used} and {of_wifi:?}");
    // The connection waits for memory also while Wi-Fi's window is full, which is not its limit then.
    assert!(connection.send_buffer >= of_wifi.send_buffer, "{connection:?}");
    assert!(connection.send_buffer < run.flows[0].send_buffer_limited_s, "{connection:?}");
}

/// Of two paths, the second is a backup: it has room, and gets nothing.
#[test]
fn a_backup_gets_nothing_from_the_scheduler() {
    let link = || pipe(Rate::from_mbit(10), Span::from_millis(10), 100);
    let mut experiment = links("cubic", &[link(), link()], 20);
    crate::common::multipath(&mut experiment.flows[0]).subflows[1].backup = true;
    let run = run(&experiment);
    let backup = run.subflows[1].limited_s.expect("measured");
    assert_eq!(run.subflows[1].sent_packets, 0);
    assert!((backup.scheduler - (20.0 - backup.handshake)).abs() < 1e-6, "{backup:?}");
    let connection = limits(&run.flows[0]);
    assert_eq!(connection.scheduler, 0.0, "the regular path's window is the limit: {connection:?}");
}

/// An application that stops in the microsecond in which it is woken to write is not waited for: a time that has passed would be
/// polled for ever. Acknowledgements wake it every 12 to 24 us here, so that some of these times are within.
#[test]
fn a_flow_may_stop_at_any_time() {
    let text = |kind: &str, stop: u64| {
        format!(
            "name = \"x\"\nduration = \"40ms\"\n[[path]]\nname = \"p\"\nrate = \"1gbit\"\ndelay = \"200us\"\nqueue = {{ limit = \"100p\" }}\n\
             [[flow]]\nname = \"f\"\nkind = \"{kind}\"\nstop = \"{stop}ns\"\n[host]\nsend_buffer = \"64kB\"\n"
        )
    };
    for kind in ["tcp", "mptcp", "mpquic"] {
        for step in 0..300 {
            let text = text(kind, 20_000_000 + 970 * step);
            let scenario = scenario::parse("x", &text, Path::new(""), &Overrides::default()).unwrap();
            assert!(run(&scenario.cells[0].experiment).flows[0].delivered_bytes > 1_000_000, "{kind} {step}");
        }
    }
}
