//! The second implementation of the protocol (`python/protocol_peer.py`, written from docs/reference/protocol.md) as the daemon's
//! peer.

use crate::python;
use crate::tunnel_pair::{IPV4, PORT, TunnelPair};
use daemon::event::{Event, EventKind};
use daemon::keys;
use lab::testbed::{LEFT, RIGHT};
use std::path::Path;
use std::process::Command;

const LINKS: [&str; 2] = ["rate=20mbit delay=5ms", "rate=10mbit delay=10ms"];

#[test]
fn a_second_implementation_shakes_hands_and_exchanges_packets_and_bundles_over_two_paths() {
    let Some(result) = exchange("1", ["line-0", "line-1"]) else { return };
    assert!(result["bundles"].as_u64() > Some(0), "{result}");
}

#[test]
fn a_peer_of_an_earlier_version_gets_no_bundles_and_its_paths_have_numbers() {
    let Some(result) = exchange("0", ["path-0", "path-1"]) else { return };
    assert_eq!(result["bundles"], 0);
}

/// What the second implementation with these capabilities prints, whose paths have these names at the daemon; `None` if the
/// machine cannot run it.
fn exchange(capabilities: &str, names: [&str; 2]) -> Option<serde_json::Value> {
    let interpreter = python::interpreter()?;
    let mut pair = TunnelPair::configured(IPV4, &LINKS)?;
    let [private, peer_private] = [LEFT, RIGHT].map(|host| pair.private_key(host).to_owned());
    pair.start(RIGHT);
    pair.wait_until_started(RIGHT);
    let route = |link: usize| format!("{}:{PORT}={}:{PORT}", pair.testbed.v4(link, LEFT), pair.testbed.v4(link, RIGHT));
    let mut command = pair.testbed.command(LEFT, &interpreter.to_string_lossy());
    command.arg(python::folder().join("protocol_peer.py"));
    command.args([capabilities.to_owned(), private, keys::pubkey(&peer_private).unwrap()]);
    command.args([LEFT, RIGHT].map(|host| IPV4.inner_address(host).to_string())).args([route(0), route(1)]);
    let output = command.output().unwrap();
    let [stdout, stderr] = [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    assert!(output.status.success(), "{stdout}{stderr}");
    let result: serde_json::Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!(result["replies"], 30);
    for reason in ["malformed", "incomplete", "unallowed-source", "authentication-failed", "replayed", "invalid-mac1"] {
        assert_eq!(pair.drops(RIGHT, reason), 0, "{reason}");
    }
    let events = pair.client(RIGHT).request("GET", "/v1/events?since=0", "").unwrap();
    let events: Vec<Event> = serde_json::from_str(&events).unwrap();
    let is_added = |name: &str| {
        events.iter().any(|event| event.kind == EventKind::PathAdded && event.path.as_deref() == Some(name))
    };
    assert!(names.into_iter().all(is_added), "{events:#?}");
    Some(result)
}

#[test]
fn a_second_implementation_computes_the_test_vectors() {
    let Some(interpreter) = python::interpreter() else { return };
    let vectors = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tunnel/seal/tests/vectors.json");
    let output = Command::new(interpreter).arg(python::folder().join("protocol_vectors.py")).arg(vectors).output();
    let output = output.unwrap();
    let text = [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    assert!(output.status.success() && text[0].ends_with(" messages\n"), "{}{}", text[0], text[1]);
}
