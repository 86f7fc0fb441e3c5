//! Made-up runs of an MPTCP flow, to go by flow and subflow. Nothing here was simulated.

use record::{Flow, Run, Series, Subflow, Summary};
use std::collections::BTreeMap;

/// An MPTCP flow beside a TCP flow, with LIA and with OLIA.
pub(crate) fn runs() -> Vec<Run> {
    let subflow = |path: &str, throughput_mbps, srtt: f64| Subflow {
        flow: "both".to_owned(),
        path: path.to_owned(),
        throughput_mbps,
        srtt_ms: Summary { mean: srtt, ..Summary::default() },
        ..Subflow::default()
    };
    let flow = |name: &str, algorithm: &str, throughput_mbps| Flow {
        name: name.to_owned(),
        congestion_control: algorithm.to_owned(),
        throughput_mbps,
        ..Flow::default()
    };
    let series = |subject: &str, rates: [f64; 2]| Series {
        subject: subject.to_owned(),
        columns: vec!["throughput_mbps".to_owned()],
        time_s: vec![1.0, 2.0],
        values: vec![rates.to_vec()],
    };
    let run = |algorithm: &str, more: f64| Run {
        parameters: BTreeMap::from([("flow.both.congestion".to_owned(), algorithm.to_owned())]),
        duration_s: 2.0,
        flows: vec![flow("both", algorithm, 8.0 + more), flow("rival", "reno", 6.0)],
        subflows: vec![subflow("a", 3.0, 40.0), subflow("b", 5.0 + more, 70.0)],
        series: vec![series("flow both", [6.0, 10.0]), series("subflow both/b", [4.0, 6.0])],
        ..Run::default()
    };
    vec![run("lia", 0.0), run("olia", 2.0)]
}
