//! A real kernel on a known path has to give what can be worked out by hand: else the lab measures itself.
//!
//! In virtual time: rates and windows. In real time, however busy the machine is: what was counted, and in which order.

use lab::{BackendChoice, Error, Lab};
use ropewalk_lab as lab;
use scenario::Overrides;
use scenario::model::{Change, Directions, Experiment};
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use testing::{Reason, skip};

/// 10 Mbit/s with 38 bytes around each packet of 1500, 20 ms there and back; a queue of 40 packets.
const SCENARIO: &str = r#"
name = "known"
duration = "3s"
sample = "100ms"

[host]
tick = "10ms"

[[path]]
name = "wire"
rate = "10mbit"
delay = "10ms"
overhead = "38b"
queue = { limit = "40p" }

[[flow]]
name = "tcp"
congestion = "reno"
"#;

fn experiment(sets: &[&str]) -> Experiment {
    let sets: Vec<String> = sets.iter().map(|set| (*set).to_owned()).collect();
    let scenario = scenario::parse("test", SCENARIO, Path::new(""), &Overrides { sets, quick: false });
    scenario.unwrap_or_else(|error| panic!("{error}")).cells[0].experiment.clone()
}

/// An event that changes the path's rate or takes it down.
fn event(at: units::Instant, up: Option<bool>, rate: Option<units::Rate>) -> Change {
    Change { at, link: 0, directions: Directions::Both, up, rate, delay: None, loss: None }
}

/// The lab, if there is one.
fn lab() -> Option<Lab> {
    // Without a tunnel's daemon, which is `ropewalk`: that is tested in `cli/tests/lab`.
    match Lab::find(BackendChoice::Uml, env!("CARGO_BIN_EXE_ropewalk-lab-agent"), "lab-agent") {
        Ok(lab) => Some(lab),
        Err(Error::NoKernel(reason)) => {
            skip(Reason::Missing, &reason);
            None
        }
        Err(Error::Processor(reason)) => {
            skip(Reason::Processor, &reason);
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// The lab, if its time is virtual in this experiment.
fn virtual_lab(experiment: &Experiment) -> Option<Lab> {
    let lab = lab()?;
    if !lab.is_virtual([experiment]) {
        skip(Reason::Kernel, "the kernel's time is real; `cargo xtask kernel` builds one whose time is virtual");
        return None;
    }
    Some(lab)
}

/// What the kernel did. One guest at a time.
fn run(lab: &Lab, experiment: &Experiment) -> record::Run {
    static LOCK: Mutex<()> = Mutex::new(());
    let _lock = LOCK.lock().unwrap_or_else(PoisonError::into_inner);
    lab.run(experiment, 1, None).unwrap_or_else(|error| panic!("{error}"))
}

fn column<'a>(run: &'a record::Run, name: &str) -> &'a [f64] {
    let series = &run.series[0];
    &series.values[series.columns.iter().position(|column| column == name).expect("a column of the series")]
}

#[test]
fn reno_fills_a_path_as_the_closed_form_says() {
    let experiment = experiment(&[]);
    let Some(lab) = virtual_lab(&experiment) else { return };
    let run = run(&lab, &experiment);
    let flow = &run.flows[0];
    // 1448 of 1538 bytes on the wire are payload. The queue never runs dry once slow start is over.
    let max_goodput = 10.0 * 1448.0 / 1538.0;
    let after_first_second = &column(&run, "goodput_mbps")[10..];
    let goodput = after_first_second.iter().sum::<f64>() / after_first_second.len() as f64;
    assert!((goodput / max_goodput - 1.0).abs() < 0.03, "goodput {goodput}, closed form {max_goodput}");
    assert!((20.0..21.0).contains(&flow.rtt_ms.min), "minimum RTT {} ms", flow.rtt_ms.min);
    // Window and queue: 17 packets in flight fill the path, 40 more the queue.
    let window = column(&run, "cwnd_packets").iter().fold(0.0_f64, |max, window| max.max(*window));
    assert!(window > 57.0, "the window never passed what path and queue hold: {window}");
    assert_eq!(flow.dropped_packets, run.paths[0].dropped_packets, "counted at the hosts and at the queue");
    assert!(flow.dropped_packets > 0);
}

/// Every dropped packet has been retransmitted when the flow is complete.
#[test]
fn every_byte_arrives_and_every_drop_is_counted_and_repaired() {
    let Some(lab) = lab() else { return };
    let run = run(&lab, &experiment(&["duration=60s", "flow.tcp.size=2MB"]));
    let flow = &run.flows[0];
    assert_eq!(flow.delivered_bytes, 2_000_000);
    assert_eq!(flow.dropped_packets, run.paths[0].dropped_packets, "counted at the hosts and at the queue");
    assert!(flow.retransmitted_packets >= flow.dropped_packets, "{flow:?}");
    assert!(flow.sent_packets - flow.retransmitted_packets >= 2_000_000_u64.div_ceil(1448), "{flow:?}");
    assert!(flow.rtt_ms.min >= 20.0, "minimum RTT {} ms", flow.rtt_ms.min);
    assert!(flow.completion_s.is_some_and(|duration| duration >= 2.0 * 8.0 / 10.0), "{flow:?}");
}

/// Samples are taken in order with the event, each when it is due or later.
#[test]
fn nothing_but_what_is_in_flight_arrives_once_a_path_is_down() {
    let Some(lab) = lab() else { return };
    let mut experiment = experiment(&["duration=4s"]);
    experiment.events.push(event(units::Instant(1_500_000_000), Some(false), None));
    let run = run(&lab, &experiment);
    // 1500 bytes a packet in tenths of a second; the sample at 1.5 s comes before the event.
    let arrived: Vec<f64> = column(&run, "throughput_mbps").iter().map(|mbps| mbps * 1e5 / 8.0 / 1500.0).collect();
    let [before, after] = [&arrived[..15], &arrived[16..]].map(|samples| samples.iter().sum::<f64>());
    // 17 packets fill the path, 40 its queue.
    assert!(before > 0.0 && after <= 57.0, "{before} before, {after} after");
}

#[test]
fn an_event_changes_the_rate_and_a_flow_stops() {
    let mut experiment = experiment(&["duration=4s", "flow.tcp.stop=2500ms"]);
    let Some(lab) = virtual_lab(&experiment) else { return };
    experiment.events.push(event(units::Instant(1_500_000_000), None, Some(units::Rate::from_mbit(2))));
    let run = run(&lab, &experiment);
    let mean = |column: &[f64], from: usize, to: usize| column[from..to].iter().sum::<f64>() / (to - from) as f64;
    // What arrives, and not what is delivered in order: a loss as the rate falls would hold that back for a while. What
    // has been sent goes on for three tenths after the source's stop.
    let arrived = column(&run, "throughput_mbps");
    let wire_share = 1500.0 / 1538.0;
    let (before, after) = (mean(arrived, 10, 15), mean(arrived, 21, 27));
    assert!((before / (10.0 * wire_share) - 1.0).abs() < 0.05, "before: {before}");
    assert!((after / (2.0 * wire_share) - 1.0).abs() < 0.05, "after: {after}");
    let goodput = column(&run, "goodput_mbps");
    assert!(mean(goodput, 35, 40) < 0.1, "a second after its source stopped: {goodput:?}");
}
