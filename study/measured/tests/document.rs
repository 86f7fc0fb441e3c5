//! Documents that are read back, those that are refused, and the page that describes them.

#![expect(clippy::disallowed_methods, reason = "tests read and write files")]

use measured::{
    BulkCall, Direction, Ends, IdleRtt, Measured, MeasuredPath, Options, Parallel, Policer, RttSample, SharedFlow,
    Stage, StageKind, Summary, TcpFlow, Together, UdpStream, parse, read,
};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::Path;

/// A document with a value for each key.
fn full() -> Measured {
    let mut measured = Measured {
        when: Some("2026-11-29T10:20:37Z".to_owned()),
        program: Some("ropewalk 0.1.0".to_owned()),
        ends: Some(Ends { here: "laptop".to_owned(), there: "server".to_owned() }),
        options: Some(Options {
            seed: Some(7),
            repeats: Some(3),
            budget_bytes: Some(50_000_000),
            planned_bytes: Some(48_000_000),
        }),
        not_measured: vec!["The kernel has no bbr.".to_owned()],
        ..Measured::default()
    };
    add_path(measured.path_mut("lte"));
    measured.path_mut("wifi");
    add_together(&mut measured);
    measured
}

/// Adds one measurement of each kind.
fn add_path(path: &mut MeasuredPath) {
    let samples = vec![RttSample { at_s: 0.0, rtt_ms: 40.25 }, RttSample { at_s: 0.1, rtt_ms: 41.0 }];
    let summary = Summary::of([40.25, 41.0]);
    let (down, cubic) = (Direction::Down, Some("cubic".to_owned()));
    path.source = Some("wwan0".to_owned());
    path.idle_rtt.push(IdleRtt {
        repeat: 0,
        interval_s: Some(0.1),
        payload_bytes: Some(64),
        sent: Some(3),
        lost: Some(1),
        samples: samples.clone(),
        rtt_ms: summary,
    });
    path.udp.push(UdpStream {
        repeat: 1,
        direction: Direction::Up,
        seconds: Some(4.0),
        rate_mbps: Some(2.0),
        payload_bytes: Some(1200),
        sent: Some(10),
        received: Some(8),
        lost: Some(2),
        reordered: Some(1),
        duplicates: Some(0),
        loss_runs: Some(vec![0, 2, 8]),
        delay_variation_ms: summary,
        jitter_rfc3550_ms: Some(0.4),
    });
    path.tcp.push(TcpFlow {
        repeat: 2,
        direction: down,
        congestion: cubic.clone(),
        seconds: Some(1.0),
        bytes: Some(2_500_000),
        goodput_mbps: Some(20.0),
        interval_s: Some(0.5),
        goodput_intervals_mbps: vec![18.0, 22.0],
        rtt_ms: summary,
        rtt_samples: samples.clone(),
        sent_segments: Some(1800),
        retransmitted_segments: Some(3),
        mss_bytes: Some(1448),
    });
    path.parallel.push(Parallel { streams: 8, flow: path.tcp[0].clone() });
    path.calls.push(BulkCall {
        repeat: 0,
        direction: down,
        congestion: cubic,
        interval_s: Some(0.02),
        payload_bytes: Some(160),
        sent: Some(3),
        lost: Some(1),
        rtt_ms: summary,
        rtt_samples: samples,
        goodput_mbps: Some(19.0),
    });
    path.policers.push(Policer {
        direction: down,
        found: Some(true),
        rate_mbps: Some(20.0),
        burst_bytes: Some(1_000_000),
    });
}

/// Adds two paths at once, and a stage.
fn add_together(measured: &mut Measured) {
    let (down, cubic) = (Direction::Down, Some("cubic".to_owned()));
    let shared = |path: &str| SharedFlow { path: path.to_owned(), goodput_mbps: Some(10.0), alone_mbps: Some(20.0) };
    measured.together.push(Together {
        repeat: 0,
        direction: down,
        congestion: cubic.clone(),
        seconds: Some(4.0),
        flows: vec![shared("lte"), shared("wifi")],
        shared_bottleneck: Some(true),
    });
    measured.stages.push(Stage {
        kind: StageKind::Tcp,
        paths: vec!["lte".to_owned()],
        direction: Some(down),
        congestion: cubic,
        repeat: 2,
        start_s: 5.5,
        seconds: 1.0,
        bytes: Some(2_600_000),
        failure: Some("The connection was reset.".to_owned()),
    });
}

/// The message about the full document after a change.
fn refusal(change: impl FnOnce(&mut Value)) -> String {
    let mut document = serde_json::to_value(full()).unwrap();
    change(&mut document);
    parse(&document.to_string(), "m.json").unwrap_err().to_string()
}

#[test]
fn a_document_that_is_written_is_read_back() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("m.json");
    std::fs::write(&file, serde_json::to_string_pretty(&full()).unwrap()).unwrap();
    assert_eq!(read(&file).unwrap(), full());
}

#[test]
fn what_was_not_measured_is_absent() {
    let mut measured = Measured::default();
    measured.path_mut("lte").idle_rtt.push(IdleRtt::default());
    let expected = json!({"version": 1, "paths": [{"name": "lte", "idle_rtt": [{"repeat": 0}]}]});
    assert_eq!(serde_json::to_value(&measured).unwrap(), expected);
    assert_eq!(parse(&expected.to_string(), "m.json").unwrap(), measured);
}

#[test]
fn documents_merge_path_by_path() {
    let mut merged = full();
    merged.merge(full());
    assert_eq!(merged.paths.len(), 2);
    assert_eq!((merged.paths[0].idle_rtt.len(), merged.paths[0].tcp.len(), merged.together.len()), (2, 2, 2));
}

#[test]
fn an_error_names_file_line_and_key() {
    let error =
        parse("{\"version\": 1,\n\"paths\": [{\"name\": \"a\",\n\"rtt\": 3}]}", "m.json").unwrap_err().to_string();
    assert!(error.starts_with("m.json:3: unknown field `rtt`"), "{error}");
    assert!(parse("{", "m.json").unwrap_err().to_string().starts_with("m.json:1: "));
}

#[test]
fn a_newer_version_is_refused_even_with_unknown_keys() {
    let error = parse("{\"version\": 2, \"links\": []}", "m.json").unwrap_err().to_string();
    assert_eq!(error, "m.json: version: 2 is unknown, this program reads versions 1 to 1");
}

#[test]
fn values_that_contradict_each_other_are_refused_with_their_key() {
    let negative = refusal(|document| document["paths"][0]["tcp"][0]["goodput_intervals_mbps"][1] = json!(-1.0));
    assert_eq!(negative, "m.json: paths[0].tcp[0].goodput_intervals_mbps[1]: -1 is not a number from 0");
    let lost = refusal(|document| document["paths"][0]["udp"][0]["lost"] = json!(11));
    assert_eq!(lost, "m.json: paths[0].udp[0].lost: 11 are more than the 10 of `sent`");
    let runs = refusal(|document| document["paths"][0]["udp"][0]["loss_runs"] = json!([1, 2, 8]));
    assert_eq!(runs, "m.json: paths[0].udp[0].loss_runs: the runs have 11 datagrams, but 10 were sent");
    for streams in [0, 1, 129] {
        let wrong = refusal(|document| document["paths"][0]["parallel"][0]["streams"] = json!(streams));
        let expected =
            format!("paths[0].parallel[0].streams: {streams} are not 2 to 128; a single flow belongs to `tcp`");
        assert_eq!(wrong, format!("m.json: {expected}"));
    }
    let unknown = refusal(|document| document["together"][0]["flows"][0]["path"] = json!("dsl"));
    assert_eq!(unknown, "m.json: together[0].flows[0].path: no path is called `dsl`");
    let twice = refusal(|document| document["paths"][1]["name"] = json!("lte"));
    assert_eq!(twice, "m.json: paths[1].name: another path is called `lte`, too");
}

#[test]
fn the_page_describes_every_key() {
    let page =
        std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/measurements.md"));
    let page = page.unwrap();
    let mut keys = BTreeSet::new();
    collect_keys(&measured::schema(), &mut keys);
    let missing: Vec<_> = keys.iter().filter(|key| !page.contains(&format!("| `{key}` |"))).collect();
    assert!(missing.is_empty(), "docs/reference/measurements.md lacks {missing:?}");
}

/// The names of all properties in a schema.
fn collect_keys(schema: &Value, keys: &mut BTreeSet<String>) {
    if let Some(properties) = schema["properties"].as_object() {
        keys.extend(properties.keys().cloned());
    }
    match schema {
        Value::Object(map) => map.values().for_each(|value| collect_keys(value, keys)),
        Value::Array(list) => list.iter().for_each(|value| collect_keys(value, keys)),
        _ => {}
    }
}
