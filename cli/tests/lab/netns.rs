//! On this machine's own kernel.

use crate::{MAX_SECONDS, Study, namespaces, path, study};

/// The size of each flow, bytes: some four thousand packets.
const SIZE: u64 = 6_000_000;

/// One flow over two paths of 20 Mbit/s.
fn run(name: &str, kind: &str, tunnel: &str) -> Option<Study> {
    let flow = format!("[[flow]]\nname = \"data\"\nsize = \"{SIZE}b\"\n{kind}{tunnel}");
    let study = study(name, MAX_SECONDS, &[path("one", 20, 60), path("two", 20, 60), flow].concat(), "netns")?;
    assert_eq!(namespaces(study.pid), [""; 0], "left on the machine");
    assert!(study.file("setup.sh").contains(&format!("rw-{}-", study.pid)), "its namespaces have its number");
    Some(study)
}

/// Packets of each entry: a path, or a flow's part of one.
fn packets(entries: &serde_json::Value) -> Vec<u64> {
    entries.as_array().unwrap().iter().map(|entry| entry["sent_packets"].as_u64().unwrap()).collect()
}

/// MPTCP's options take 20 bytes of a full segment or more: at most 1428 of 1538 are payload. A path and its queue hold
/// 94 packets: what is written beyond that goes to the other one.
#[test]
fn mptcp_uses_two_paths_and_delivers_all() {
    let Some(study) = run("lab-netns-mptcp", "kind = \"mptcp\"\n", "") else { return };
    study.assert_carried(SIZE, 40.0 * 1428.0 / 1538.0);
    let shares = packets(&study.run["subflows"]);
    assert!(shares.len() == 2 && shares.iter().all(|share| *share > 94), "{shares:?}");
}

/// A fragment has 62 bytes of its own in each 1500: at most 1438 of 1538 are the inner packets, with headers of their
/// own.
#[test]
fn our_tunnel_uses_two_paths_and_delivers_all() {
    let Some(study) = run("lab-netns-tunnel", "", "[tunnel]\nmode = \"ropewalk\"\n") else { return };
    study.assert_carried(SIZE, 40.0 * 1438.0 / 1538.0);
    let shares = packets(&study.run["paths"]);
    assert!(shares.len() == 2 && shares.iter().all(|share| *share > 94), "{shares:?}");
    assert_eq!(study.run["tunnel"]["relayed_connections"], 0);
    assert!(!study.dir.join("raw/0-1/near.key").exists(), "secrets are not kept");
    assert!(!study.file("near.log").is_empty() && study.file("rwfar.toml").contains("private-key-file"));
}

/// The model lies in the source tree; the daemons, each in its namespace, read it there.
#[test]
fn our_tunnel_runs_a_policy_from_a_file() {
    let model =
        |name: &str| std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../cc/policy/tests/models").join(name);
    let tunnel = |name: &str| {
        let file = model(name).display().to_string();
        format!("[tunnel]\nmode = \"ropewalk\"\ncongestion = {{ name = \"policy\", file = \"{file}\" }}\n")
    };
    let Some(study) = run("lab-netns-policy", "", &tunnel("group.onnx")) else { return };
    // The policy leaves the initial window: ten packets of 1500 bytes in a round trip of 20 ms on each of two paths.
    study.assert_carried(SIZE, 12.0);
    assert_eq!(study.run["controller_failures"], 0);
    let Some(study) = run("lab-netns-policy-nan", "", &tunnel("nan-answer.onnx")) else { return };
    assert_eq!(
        (study.run["controller_failures"].as_u64(), &study.run["controller_failure"]),
        (Some(2), &"the policy answered NaN".into())
    );
}

/// The inner packets are messages of the relay.
#[test]
fn a_relaying_tunnel_splits_the_connection_and_delivers_all() {
    let tunnel = "[tunnel]\nmode = \"ropewalk\"\nrelay = \"tcp\"\nrelay_congestion = \"reno\"\n";
    let Some(study) = run("lab-netns-relay", "", tunnel) else { return };
    study.assert_carried(SIZE, 40.0 * 1438.0 / 1538.0);
    let shares = packets(&study.run["paths"]);
    assert!(shares.len() == 2 && shares.iter().all(|share| *share > 94), "{shares:?}");
    assert_eq!(study.run["tunnel"]["relayed_connections"], 1);
}
