//! Links in the machine's own kernel: records of runs against values worked out by hand.

use crate::cpu_lock;
use lab::{BackendChoice, Error, Lab};
use record::Run;
use scenario::Overrides;
use std::path::Path;
use testing::{Reason, skip};

const SCENARIO: &str = "name = \"wire\"\nduration = \"60s\"\n\
    [[path]]\nname = \"wire\"\nrate = \"20mbit\"\ndelay = \"20ms\"\nqueue = { limit = \"100p\" }\n\
    [[flow]]\nname = \"tcp\"\ncongestion = \"cubic\"\nsize = \"2MB\"\n";

fn run(sets: &[&str]) -> Option<Run> {
    let _cpu_lock = cpu_lock();
    let sets: Vec<String> = sets.iter().map(|set| (*set).to_owned()).collect();
    let scenario = scenario::parse("test", SCENARIO, Path::new(""), &Overrides { sets, quick: false });
    let scenario = scenario.unwrap_or_else(|error| panic!("{error}"));
    let lab = Lab::find(BackendChoice::Netns, env!("CARGO_BIN_EXE_ropewalk"), "lab-agent");
    match lab.and_then(|lab| lab.run(&scenario.cells[0].experiment, 1, None)) {
        Ok(run) => Some(run),
        Err(Error::NoKernel(reason)) => {
            skip(Reason::Missing, &reason);
            None
        }
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn no_round_trip_is_shorter_than_both_delays_in_either_family() {
    for ip in ["4", "6"] {
        let Some(run) = run(&[&format!("host.ip={ip}")]) else { return };
        let min_rtt = run.flows[0].rtt_ms.min;
        assert!(min_rtt >= 40.0, "IPv{ip}: {min_rtt} ms");
    }
}

#[test]
fn packets_of_1500_bytes_pass_in_either_family() {
    for (ip, payload) in [("4", 1448.0), ("6", 1428.0)] {
        let Some(run) = run(&[&format!("host.ip={ip}")]) else { return };
        let flow = &run.flows[0];
        let mean = 2e6 / (flow.sent_packets - flow.retransmitted_packets) as f64;
        // An application that writes 128 KiB at once may leave one packet in 90 half empty.
        assert!((0.99 * payload..=payload).contains(&mean), "IPv{ip}: {mean} bytes a packet");
        assert_eq!(flow.delivered_bytes, 2_000_000);
        let by_hand = 2e6 * 8.0 / flow.completion_s.expect("it is done") / 1e6;
        assert!((flow.goodput_mbps / by_hand - 1.0).abs() < 1e-3, "{} Mbit/s, by hand {by_hand}", flow.goodput_mbps);
    }
}

/// Of 4144 packets and those that replace the lost ones; all have arrived or are lost when the flow is done.
#[test]
fn the_share_lost_is_within_five_standard_errors() {
    let Some(run) = run(&["path.wire.loss=1%", "path.wire.delay=5ms", "flow.tcp.size=6MB"]) else { return };
    let path = &run.paths[0];
    let (sent, lost) = ((path.sent_packets - path.dropped_packets) as f64, path.lost_packets as f64);
    let (expected, error) = (sent * 0.01, (sent * 0.01 * 0.99).sqrt());
    assert!(sent > 4144.0 && (lost - expected).abs() < 5.0 * error, "{lost} of {sent}, expected {expected} +- {error}");
}

/// In order, a packet is as late as the latest before it: the mean of one way is at least half of the jitter.
#[test]
fn jitter_adds_to_both_delays() {
    let Some(run) = run(&["path.wire.jitter=10ms", "flow.tcp.size=1MB", "path.wire.rate=100mbit"]) else { return };
    let rtt = &run.flows[0].rtt_ms;
    assert!(rtt.min >= 40.0 && rtt.mean >= 40.0 + 10.0, "{rtt:?}");
}
