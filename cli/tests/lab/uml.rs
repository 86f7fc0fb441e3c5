//! On User-Mode Linux.

use crate::{path, study};

/// The receiver's window, half its buffer, is 45 packets: more than a path of 10 Mbit/s holds (17) and less than path and queue
/// (57). Nothing is lost.
const FLOW: &str = "[[flow]]\nname = \"tcp\"\ncongestion = \"reno\"\n\
                    [host]\nreceive_buffer = [\"4096b\", \"131072b\", \"131072b\"]\n";
/// MPT's GRE in UDP over all paths. Inner packets of 1440 bytes, 36 more on a path.
const TUNNEL: &str = "[tunnel]\nkind = \"mpt-gre\"\nresequence = { window = \"1600p\", timeout = \"300ms\" }\n";

/// Of 4 s are lost: 20 ms of handshake, as much until the window fills the path (10 packets, then 20), 10 ms on the way. In
/// real time one per cent more.
#[test]
fn one_flow_fills_one_path_and_what_the_run_leaves_is_kept() {
    let Some(study) = study("lab-uml-single", 4, &[&path("wire", 10, 40), FLOW].concat(), "uml") else { return };
    study.assert_fills(10.0 * 1448.0 / 1538.0, 0.97, Some(0));
    let least = study.run["flows"][0]["rtt_ms"]["min"].as_f64().unwrap();
    assert!(least >= 20.0, "least RTT {least} ms");
    let script = study.file("setup.sh");
    let picture = script.lines().find(|line| line.starts_with("# ") && line.contains("s0 --+--")).unwrap();
    assert!(picture.contains("10 Mbit/s, queue 40 packets, 10 ms") && picture.ends_with("d0"), "{picture}");
    assert!(script.contains(" tbf rate 10000000bit ") && script.contains("ip netns add s0"), "{script}");
    assert_eq!(study.raw("plan.json")["flows"][0]["transport"]["Tcp"]["congestion"], "reno");
    assert!(!study.file("messages").is_empty(), "what the commands said");
    assert!(std::fs::read_to_string(study.dir.join("setup.txt")).unwrap().contains(" tbf rate 10000000bit "));
    assert!(std::fs::read_to_string(study.dir.join("manifest.json")).unwrap().contains("User-Mode Linux"));
}

/// As above: 18 packets fill both paths.
#[test]
fn a_tunnel_in_mpt_mode_adds_two_paths_up() {
    let paths = [path("one", 5, 40), path("two", 5, 40)].concat();
    let Some(study) = study("lab-uml-tunnel", 5, &[&paths, FLOW, TUNNEL].concat(), "uml") else { return };
    study.assert_fills(10.0 * 1388.0 / 1514.0, 0.97, Some(0));
    let script = study.file("setup.sh");
    assert!(script.contains("mode = \"mpt\"") && script.contains("a tunnel in mpt mode"), "{script}");
    assert!(study.file("rwnear.toml").contains("scheduler = \"packet-round-robin\""));
}
