//! A real kernel on a known path has to give what can be worked out by hand: else the lab measures itself.
//!
//! Where there is no User-Mode Linux (or it may not run) the tests say `skipped:`, which `cargo xtask test` counts.

use lab::{BackendChoice, Error, Lab};
use ropewalk_lab as lab;
use scenario::Overrides;
use scenario::model::Experiment;
use std::io::Write;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

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

/// The lab, if there is one.
fn lab() -> Option<Lab> {
    // Without a tunnel's daemon, which is `ropewalk`: that is tested in `cli/tests/lab`.
    match Lab::find(BackendChoice::Uml, env!("CARGO_BIN_EXE_ropewalk-lab-agent"), "lab-agent") {
        Ok(lab) => Some(lab),
        Err(Error::NoKernel(why)) => skip(&why),
        Err(other) => panic!("{other}"),
    }
}

/// What the kernel did, unless it is one in real time and the machine was too busy for it. One guest at a time.
fn run(experiment: &Experiment) -> Option<record::Run> {
    static ALONE: Mutex<()> = Mutex::new(());
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let kept = tempfile::tempdir().expect("there is room for temporary files");
    let run = lab()?.run(experiment, 1, Some(kept.path())).unwrap_or_else(|why| panic!("{why}"));
    let results = std::fs::read(kept.path().join("results.json")).expect("the results are kept");
    let results: serde_json::Value = serde_json::from_slice(&results).expect("it is JSON");
    let stolen = results["stolen"].as_f64().expect("nanoseconds") / experiment.duration.as_nanos() as f64;
    if stolen > 0.01 {
        return skip(&format!("the kernel waited for the CPU {:.1} % of the time", stolen * 100.0));
    }
    Some(run)
}

/// The message goes past the test's captured output.
fn skip<T>(why: &str) -> Option<T> {
    writeln!(std::io::stdout(), "skipped: {why}").expect("standard output is open");
    None
}

fn column<'a>(run: &'a record::Run, name: &str) -> &'a [f64] {
    let series = &run.series[0];
    &series.values[series.columns.iter().position(|column| column == name).expect("a column of the series")]
}

#[test]
fn reno_fills_a_path_as_the_closed_form_says() {
    let Some(run) = run(&experiment(&[])) else { return };
    let flow = &run.flows[0];
    // 1448 of 1538 bytes on the wire are payload. The queue never runs dry once slow start is over.
    let full = 10.0 * 1448.0 / 1538.0;
    let after_first_second = &column(&run, "goodput_mbps")[10..];
    let goodput = after_first_second.iter().sum::<f64>() / after_first_second.len() as f64;
    assert!((goodput / full - 1.0).abs() < 0.03, "goodput {goodput}, closed form {full}");
    assert!((20.0..21.0).contains(&flow.rtt_ms.min), "least RTT {} ms", flow.rtt_ms.min);
    // Window and queue: 17 packets in flight fill the path, 40 more the queue.
    let window = column(&run, "cwnd_packets").iter().fold(0.0_f64, |most, window| most.max(*window));
    assert!(window > 57.0, "the window never passed what path and queue hold: {window}");
    assert_eq!(flow.dropped_packets, run.paths[0].dropped_packets, "counted at the hosts and at the queue");
    assert!(flow.dropped_packets > 0 && flow.retransmitted_packets >= flow.dropped_packets);
}

#[test]
fn an_event_changes_the_rate_and_a_flow_stops() {
    let mut experiment = experiment(&["duration=4s", "flow.tcp.stop=2500ms"]);
    experiment.events.push(scenario::model::Change {
        at: units::Instant(1_500_000_000),
        link: 0,
        directions: scenario::model::Directions::Both,
        up: None,
        rate: Some(units::Rate::from_mbit(2)),
        delay: None,
        loss: None,
    });
    let Some(run) = run(&experiment) else { return };
    let mean = |column: &[f64], from: usize, to: usize| column[from..to].iter().sum::<f64>() / (to - from) as f64;
    // What arrives, and not what is delivered in order: a loss as the rate falls would hold that back for a while. In real
    // time the commands of a change take a tenth of a second, and for three more the shaper pays for what it let through
    // before. What has been sent goes on for three tenths after the source's stop.
    let arrived = column(&run, "throughput_mbps");
    let full = 1500.0 / 1538.0;
    let (before, after) = (mean(arrived, 10, 15), mean(arrived, 21, 27));
    assert!((before / (10.0 * full) - 1.0).abs() < 0.05, "before: {before}");
    assert!((after / (2.0 * full) - 1.0).abs() < 0.05, "after: {after}");
    let goodput = column(&run, "goodput_mbps");
    assert!(mean(goodput, 35, 40) < 0.1, "a second after its source stopped: {goodput:?}");
}
