//! A qlog has the fields and types of draft-ietf-quic-qlog-main-schema and draft-ietf-quic-qlog-quic-events, and the counts of
//! the record.

use crate::experiment;
use ropewalk_trace::{Outputs, QlogVersion, trace};
use serde_json::Value;

/// Members of the draft's definitions with their CDDL types; `?` marks optional ones. The draft has more of them.
const DEFINITIONS: [(&str, &[(&str, &str)]); 9] = [
    ("event", &[("time", "float64"), ("name", "text"), ("data", "map"), ("?tuple", "text"), ("?group_id", "text")]),
    ("quic:packet_sent", &[("header", "map"), ("?frames", "list"), ("?raw", "map"), ("?trigger", "text")]),
    ("quic:packet_received", &[("header", "map"), ("?frames", "list"), ("?raw", "map")]),
    ("quic:packet_lost", &[("?header", "map"), ("?trigger", "text")]),
    ("header", &[("packet_type", "text"), ("?packet_number", "uint64")]),
    (
        "quic:recovery_metrics_updated",
        &[
            ("?smoothed_rtt", "float64"),
            ("?congestion_window", "uint64"),
            ("?bytes_in_flight", "uint64"),
            ("?packets_in_flight", "uint64"),
            ("?ssthresh", "uint64"),
            ("?pacing_rate", "uint64"),
        ],
    ),
    ("quic:congestion_state_updated", &[("?old", "text"), ("new", "text"), ("?trigger", "text")]),
    (
        "stream",
        &[("frame_type", "text"), ("stream_id", "uint64"), ("?offset", "uint64"), ("?fin", "bool"), ("?raw", "map")],
    ),
    ("ack", &[("frame_type", "text"), ("?ack_delay", "float64"), ("?acked_ranges", "list")]),
];

/// Checks that a map has the members of a definition, and no others.
fn check(definition: &str, value: &Value) {
    let Some((_, members)) = DEFINITIONS.iter().find(|(name, _)| *name == definition) else { return };
    let map = value.as_object().expect("a map");
    for (name, kind) in *members {
        let member = map.get(name.trim_start_matches('?'));
        let has_kind = |value: &Value| match *kind {
            "float64" => value.is_number(),
            "uint64" => value.is_u64(),
            "text" => value.is_string(),
            "bool" => value.is_boolean(),
            "list" => value.is_array(),
            _ => value.is_object(),
        };
        assert!(member.map_or(name.starts_with('?'), has_kind), "{definition}.{name} is a {kind}: {value}");
    }
    let is_known = |name: &String| members.iter().any(|(known, _)| known.trim_start_matches('?') == name);
    assert!(map.keys().all(is_known), "{definition}: {value}");
}

/// The events of a run of a flow with these keys, checked, and its record.
fn log(keys: &str) -> (Vec<Value>, record::Run) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("run.sqlog");
    let experiment = experiment(&format!("[[flow]]\nname = \"f\"\n{keys}"));
    let outputs = Outputs { qlog: Some((&path, QlogVersion::Draft12)), ..Outputs::default() };
    let run = trace(&experiment, 7, &outputs).expect("a trace");
    let text = std::fs::read_to_string(&path).expect("a log");
    let records: Vec<Value> = text
        .split_terminator('\n')
        .map(|record| serde_json::from_str(record.strip_prefix('\u{1e}').expect("RFC 7464")).expect("JSON"))
        .collect();
    let (head, events) = records.split_first().expect("a head");
    assert_eq!(head["file_schema"], "urn:ietf:params:qlog:file:sequential");
    assert_eq!(head["serialization_format"], "application/qlog+json-seq");
    assert_eq!(head["trace"]["event_schemas"][0], "urn:ietf:params:qlog:events:quic-12");
    assert_eq!(head["trace"]["common_fields"]["reference_time"]["epoch"], "unknown", "as a monotonic clock must");
    for event in events {
        check("event", event);
        check(event["name"].as_str().expect("text"), &event["data"]);
        if !event["data"]["header"].is_null() {
            check("header", &event["data"]["header"]);
        }
        for frame in event["data"]["frames"].as_array().into_iter().flatten() {
            check(frame["frame_type"].as_str().expect("text"), frame);
        }
        assert_eq!(event["group_id"], "f");
    }
    assert!(events.is_sorted_by_key(|event| event["time"].as_f64().map(f64::to_bits)), "in order of time");
    (events.to_vec(), run)
}

fn count(events: &[Value], name: &str, is_counted: impl Fn(&Value) -> bool) -> u64 {
    events.iter().filter(|event| event["name"] == name && is_counted(event)).count() as u64
}

#[test]
fn a_quic_flow_has_the_packets_and_losses_of_its_record() {
    let (events, run) = log("kind = \"mpquic\"\n");
    let is_stream = |event: &Value| event["data"]["frames"][0]["frame_type"] == "stream";
    assert_eq!(count(&events, "quic:packet_sent", is_stream), run.flows[0].sent_packets);
    assert_eq!(count(&events, "quic:packet_sent", |event| event["data"]["header"]["packet_type"] == "initial"), 1);
    for subflow in &run.subflows {
        let is_on = |event: &Value| event["tuple"] == subflow.path.as_str();
        assert_eq!(
            count(&events, "quic:packet_lost", is_on),
            subflow.quic.expect("QUIC").declared_lost_packets,
            "{}",
            subflow.path
        );
        assert!(subflow.quic.expect("QUIC").declared_lost_packets > 10, "{}", subflow.path);
        let is_recovery = |event: &Value| is_on(event) && event["data"]["new"] == "recovery";
        let recoveries = count(&events, "quic:congestion_state_updated", is_recovery);
        assert!(recoveries > 2 && Some(recoveries) <= subflow.recoveries, "{recoveries} of {:?}", subflow.recoveries);
    }
}

#[test]
fn tcp_and_mptcp_flows_have_their_recovery() {
    for (keys, has_tuple) in [("path = \"lte\"\n", false), ("kind = \"mptcp\"\n", true)] {
        let (events, _) = log(keys);
        assert!(events.iter().all(|event| event["tuple"].is_string() == has_tuple), "{keys}");
        let states: Vec<&Value> =
            events.iter().filter(|event| event["name"] == "quic:congestion_state_updated").collect();
        assert_eq!(states[0]["data"]["new"], "slow_start", "{keys}");
        assert!(count(&events, "quic:congestion_state_updated", |event| event["data"]["new"] == "recovery") > 1);
        assert!(count(&events, "quic:recovery_metrics_updated", |_| true) > 1000, "{keys}");
        assert_eq!(count(&events, "quic:packet_sent", |_| true), 0, "TCP has no QUIC packets");
    }
}

/// Of a Ropewalk tunnel each end's paths have their recovery.
#[test]
fn the_paths_of_a_tunnel_have_their_recovery() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("run.sqlog");
    let outputs = Outputs { qlog: Some((&path, QlogVersion::Draft12)), ..Outputs::default() };
    let tunnel = "[[flow]]\nname = \"f\"\n[tunnel]\nmode = \"ropewalk\"\npaths = [\"wifi\", \"lte\"]\n";
    trace(&experiment(tunnel), 7, &outputs).expect("a trace");
    let text = std::fs::read_to_string(&path).expect("a log");
    let events = text
        .split_terminator('\n')
        .skip(1)
        .map(|record| serde_json::from_str::<Value>(record.strip_prefix('\u{1e}').expect("RFC 7464")).expect("JSON"));
    let mut counts = std::collections::BTreeMap::new();
    for event in events.filter(|event| event["group_id"].as_str().is_some_and(|group| group.starts_with("tunnel"))) {
        check("event", &event);
        check("quic:recovery_metrics_updated", &event["data"]);
        *counts.entry(format!("{} {}", event["group_id"], event["tuple"])).or_insert(0) += 1;
    }
    assert_eq!(counts.len(), 4, "two ends of two paths: {counts:?}");
    assert!(["wifi", "lte"].iter().all(|path| counts[&format!("\"tunnel\" \"{path}\"")] > 1000), "{counts:?}");
}

/// qvis reads JSON-SEQ with this head, splits the events of the trace by `group_id`, and looks packets, acknowledgements, losses
/// and metrics up by these names.
#[test]
fn version_0_3_has_the_same_events_by_the_names_that_qvis_knows() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("run.sqlog");
    let outputs = Outputs { qlog: Some((&path, QlogVersion::V03)), ..Outputs::default() };
    trace(&experiment("[[flow]]\nname = \"f\"\nkind = \"mpquic\"\n"), 7, &outputs).expect("a trace");
    let text = std::fs::read_to_string(&path).expect("a log");
    let mut records = text
        .split_terminator('\n')
        .map(|record| serde_json::from_str::<Value>(record.strip_prefix('\u{1e}').expect("RFC 7464")).expect("JSON"));
    let head = records.next().expect("a head");
    assert_eq!([&head["qlog_version"], &head["qlog_format"]], ["0.3", "JSON-SEQ"]);
    assert_eq!(head["trace"]["common_fields"]["time_format"], "relative");
    let events: Vec<Value> = records.collect();
    let (latest, _) = log("kind = \"mpquic\"\n");
    assert_eq!(events.len(), latest.len());
    for (event, latest) in events.iter().zip(&latest) {
        let name = match latest["name"].as_str().expect("text") {
            "quic:packet_sent" => "transport:packet_sent",
            "quic:packet_received" => "transport:packet_received",
            "quic:packet_lost" => "recovery:packet_lost",
            "quic:recovery_metrics_updated" => "recovery:metrics_updated",
            _ => "recovery:congestion_state_updated",
        };
        let group = format!("f, {}", latest["tuple"].as_str().expect("text"));
        assert_eq!((&event["name"], &event["group_id"]), (&name.into(), &group.into()));
        assert_eq!((&event["time"], &event["data"]), (&latest["time"], &latest["data"]));
    }
}
