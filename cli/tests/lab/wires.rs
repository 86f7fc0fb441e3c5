//! What a link does to packets in the machine's own kernel, as the record of a run tells it: against what can be worked out.

use crate::{skip, turn};
use lab::{BackendChoice, Error, Lab};
use record::Run;
use scenario::Overrides;
use std::path::Path;

const SCENARIO: &str = "name = \"wire\"\nduration = \"6s\"\n\
    [[path]]\nname = \"wire\"\nrate = \"20mbit\"\ndelay = \"20ms\"\nqueue = { limit = \"100p\" }\n\
    [[flow]]\nname = \"tcp\"\ncongestion = \"cubic\"\n";
/// An emulated link looks every so often for what has come, and as often for what is due, milliseconds.
const LOOK: f64 = 0.26;

fn run(sets: &[&str]) -> Option<Run> {
    let _turn = turn();
    let sets: Vec<String> = sets.iter().map(|set| (*set).to_owned()).collect();
    let scenario = scenario::parse("test", SCENARIO, Path::new(""), &Overrides { sets, quick: false });
    let scenario = scenario.unwrap_or_else(|error| panic!("{error}"));
    let lab = Lab::find(BackendChoice::Netns, env!("CARGO_BIN_EXE_ropewalk"), "lab-agent");
    match lab.and_then(|lab| lab.run(&scenario.cells[0].experiment, 1, None)) {
        Ok(run) => Some(run),
        Err(Error::NoKernel(why)) => skip(&why),
        Err(other) => panic!("{other}"),
    }
}

#[test]
fn the_least_round_trip_is_both_delays_in_either_family() {
    for ip in ["4", "6"] {
        let Some(run) = run(&["flow.tcp.size=2MB", &format!("host.ip={ip}")]) else { return };
        let least = run.flows[0].rtt_ms.min;
        assert!((40.0..40.0 + 4.0 * LOOK).contains(&least), "IPv{ip}: {least} ms");
    }
}

#[test]
fn packets_of_1500_bytes_pass_in_either_family() {
    for (ip, payload) in [("4", 1448.0), ("6", 1428.0)] {
        let Some(run) = run(&["flow.tcp.size=2MB", &format!("host.ip={ip}")]) else { return };
        let flow = &run.flows[0];
        let mean = 2e6 / (flow.sent_packets - flow.retransmitted_packets) as f64;
        // An application that writes 128 KiB at once may leave one packet in 90 half empty.
        assert!((0.99 * payload..=payload).contains(&mean), "IPv{ip}: {mean} bytes a packet");
        assert_eq!(flow.delivered_bytes, 2_000_000);
        let by_hand = 2e6 * 8.0 / flow.completion_s.expect("it is done") / 1e6;
        assert!((flow.goodput_mbps / by_hand - 1.0).abs() < 1e-3, "{} Mbit/s, by hand {by_hand}", flow.goodput_mbps);
    }
}

#[test]
fn the_share_lost_is_within_five_standard_errors() {
    let Some(run) = run(&["path.wire.loss=1%", "path.wire.delay=5ms"]) else { return };
    let path = &run.paths[0];
    let (sent, lost) = ((path.sent_packets - path.dropped_packets) as f64, path.lost_packets as f64);
    let (expected, error) = (sent * 0.01, (sent * 0.01 * 0.99).sqrt());
    assert!(sent > 3000.0 && (lost - expected).abs() < 5.0 * error, "{lost} of {sent}, expected {expected} +- {error}");
}

#[test]
fn jitter_delays_by_no_more_than_it_may_and_keeps_the_order() {
    let Some(run) = run(&["path.wire.jitter=10ms", "flow.tcp.size=1MB", "path.wire.rate=100mbit"]) else { return };
    let flow = &run.flows[0];
    // In order, a packet is as late as the latest before it: the mean of one way lies between half of the jitter and all
    // of it. The queue of 100 packets, at 100 Mbit/s, adds 12 ms at most.
    let mean = flow.rtt_ms.mean;
    assert!((40.0 + 10.0..40.0 + 20.0 + 12.2 + 4.0 * LOOK).contains(&mean), "mean RTT {mean} ms");
    assert!(flow.rtt_ms.min >= 40.0);
    assert_eq!(flow.retransmitted_packets, run.paths[0].dropped_packets, "nothing seemed to be lost");
}
