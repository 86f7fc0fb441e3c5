//! On User-Mode Linux.

use crate::{MAX_SECONDS, path, study};

/// The receiver's window, half its buffer, is 45 packets: a queue of 100 has room for all of them, and for all of them
/// once more. So no machine is so slow that a packet is dropped.
const FLOW: &str = "[[flow]]\nname = \"tcp\"\ncongestion = \"reno\"\nsize = \"2MB\"\n\
                    [host]\nreceive_buffer = [\"4096b\", \"131072b\", \"131072b\"]\n";
const SIZE: u64 = 2_000_000;
/// MPT's GRE in UDP over all paths. Inner packets of 1440 bytes, 36 more on a path.
const TUNNEL: &str = "[tunnel]\nkind = \"mpt-gre\"\nresequence = { window = \"1600p\", timeout = \"300ms\" }\n";

fn number(object: &serde_json::Value, key: &str) -> u64 {
    object[key].as_u64().unwrap_or_else(|| panic!("{key} of {object}"))
}

#[test]
fn one_flow_delivers_all_over_one_path_and_the_files_of_the_run_are_kept() {
    let scenario = [&path("wire", 10, 100), FLOW].concat();
    let Some(study) = study("lab-uml-single", MAX_SECONDS, &scenario, "uml") else { return };
    study.assert_carried(SIZE, 10.0 * 1448.0 / 1538.0);
    assert_eq!(number(&study.run["paths"][0], "dropped_packets"), 0);
    let min_rtt = study.run["flows"][0]["rtt_ms"]["min"].as_f64().unwrap();
    assert!(min_rtt >= 20.0, "minimum RTT {min_rtt} ms");
    let script = study.file("setup.sh");
    let picture = script.lines().find(|line| line.starts_with("# ") && line.contains("s0 --+--")).unwrap();
    assert!(picture.contains("10 Mbit/s, queue 100 packets, 10 ms") && picture.ends_with("d0"), "{picture}");
    assert!(script.contains(" tbf rate 10000000bit ") && script.contains("ip netns add s0"), "{script}");
    assert_eq!(study.raw("plan.json")["flows"][0]["transport"]["Tcp"]["congestion"], "reno");
    assert!(!study.file("messages").is_empty(), "the output of the commands");
    assert!(std::fs::read_to_string(study.dir.join("setup.txt")).unwrap().contains(" tbf rate 10000000bit "));
    assert!(std::fs::read_to_string(study.dir.join("manifest.json")).unwrap().contains("User-Mode Linux"));
}

/// The bucket has room for 10.4 packets of 1438 bytes, and 800 bit/s bring the tokens of one in 14 s.
#[test]
fn a_policer_passes_what_its_bucket_holds() {
    let path = format!("{}policer = {{ rate = \"800bit\", burst = \"15kB\" }}\n", path("wire", 10, 100));
    let flow = "[[flow]]\nname = \"udp\"\nkind = \"udp\"\nrate = \"1mbit\"\npacket = \"1400b\"\n";
    let Some(study) = study("lab-uml-policer", 1, &[&path, flow].concat(), "uml") else { return };
    assert_eq!(number(&study.run["flows"][0], "delivered_bytes"), 14_000);
    let [sent, dropped] = ["sent_packets", "dropped_packets"].map(|key| number(&study.run["paths"][0], key));
    assert!(sent > 10 && dropped == sent - 10, "{dropped} of {sent}");
}

/// netem flips one bit of a frame of 1014 bytes. Nothing checks the 6 bytes of the sender's address; with 25 frames, more
/// than 4 are flipped there once in a million runs.
#[test]
fn corrupted_packets_are_discarded_and_every_duplicate_arrives() {
    let flow = "[[flow]]\nname = \"udp\"\nkind = \"udp\"\nrate = \"200kbit\"\npacket = \"1000b\"\n";
    for (impairment, arrivals, unchecked) in [("corrupt", 0, 4), ("duplicate", 2, 0)] {
        let path = format!("{}{impairment} = \"100%\"\n", path("wire", 10, 100));
        let Some(study) = study(&format!("lab-uml-{impairment}"), 1, &[&path, flow].concat(), "uml") else { return };
        let flow = &study.run["flows"][0];
        let [sent, delivered] = ["sent_packets", "delivered_bytes"].map(|key| number(flow, key));
        let [least, most] = [0, unchecked].map(|packets| 1000 * (arrivals * sent + packets));
        assert!((1..=26).contains(&sent), "{impairment}: {sent} packets");
        assert!((least..=most).contains(&delivered), "{impairment}: {delivered} bytes of {sent} packets");
    }
}

/// Packets take the paths in turn, so each carries half of the 1441 segments, first or again.
#[test]
fn a_tunnel_in_mpt_mode_uses_two_paths_in_turn() {
    let scenario = [&path("one", 5, 100), &path("two", 5, 100), FLOW, TUNNEL].concat();
    let Some(study) = study("lab-uml-tunnel", MAX_SECONDS, &scenario, "uml") else { return };
    study.assert_carried(SIZE, 10.0 * 1388.0 / 1514.0);
    let shares = [0, 1].map(|k| number(&study.run["paths"][k], "sent_packets"));
    assert!(shares.iter().all(|share| *share >= SIZE / 1388 / 2), "{shares:?}");
    let script = study.file("setup.sh");
    assert!(script.contains("mode = \"mpt\"") && script.contains("a tunnel in mpt mode"), "{script}");
    assert!(study.file("rwnear.toml").contains("scheduler = { name = \"packet-round-robin\" }"));
}
