//! On this machine's own kernel.

use crate::{Study, namespaces, path, study};

/// Two paths of 20 Mbit/s.
fn run(name: &str, flow: &str) -> Option<Study> {
    let study = study(name, 4, &[&path("one", 20, 60), &path("two", 20, 60), flow].concat(), "netns")?;
    assert_eq!(namespaces(study.pid), [""; 0], "left on the machine");
    assert!(study.file("setup.sh").contains(&format!("rw-{}-", study.pid)), "its namespaces have its number");
    Some(study)
}

/// MPTCP's options take 20 bytes of a full segment or more: at most 1428 of 1538 are payload. Of 4 s are lost: 20 ms of handshake,
/// two round trips more on the second path until its subflow has joined, 40 ms until the windows fill the paths (10 packets,
/// then 20, 40; 34 are needed), up to 57 ms at the end behind a hole: 3.5 %. A disturbance takes 1 %, a link's rate is
/// right to 2 %.
#[test]
fn mptcp_gets_the_sum_of_two_paths() {
    let Some(study) = run("lab-netns-mptcp", "[[flow]]\nname = \"data\"\nkind = \"mptcp\"\n") else { return };
    study.assert_fills(40.0 * 1428.0 / 1538.0, 0.93, None);
    let shares = study.run["subflows"].as_array().unwrap();
    assert_eq!(shares.len(), 2);
}

/// A piece has 62 bytes of its own in each 1500: at most 1438 of 1538 are the inner packets, with headers of their own. One path
/// carries half of it: with three quarters both are used, and neither waits for the other.
#[test]
fn our_tunnel_gets_the_sum_of_two_paths() {
    let Some(study) = run("lab-netns-tunnel", "[[flow]]\nname = \"data\"\n[tunnel]\nmode = \"ropewalk\"\n") else {
        return;
    };
    study.assert_fills(40.0 * 1438.0 / 1538.0, 0.75, None);
    assert!(!study.dir.join("raw/0-1/near.key").exists(), "secrets are not kept");
    assert!(!study.file("near.log").is_empty() && study.file("rwfar.toml").contains("private-key-file"));
}
