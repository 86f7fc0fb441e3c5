//! Traffic by iperf3 and FTP, on this machine's own kernel: the record has what these programs report.

use crate::program::{folder, ropewalk, write};
use crate::{MAX_SECONDS, namespaces, path, study};

/// iperf3 ends when its client has written all: its server may have read less, and never more than the kernel had for
/// it.
#[test]
fn the_record_has_what_iperf3_counted() {
    let flow = "[[flow]]\nname = \"tcp\"\ncongestion = \"reno\"\nsize = \"3MB\"\n";
    let scenario = ["sample = \"100ms\"\n", &path("wire", 20, 60), flow].concat();
    let Some(study) = study("lab-tools-iperf3", MAX_SECONDS, &scenario, "netns --traffic iperf3") else { return };
    assert_eq!(namespaces(study.pid), [""; 0], "left on the machine");
    let (end, flow) = (&study.raw("iperf3-0.json")["end"], &study.run["flows"][0]);
    assert_eq!(end["sender_tcp_congestion"], "reno");
    assert_eq!(flow["delivered_bytes"], end["sum_received"]["bytes"]);
    let samples = &study.raw("results.json")["flows"][0]["samples"];
    let kernel = samples.as_array().unwrap().iter().filter_map(|sample| sample["received"].as_u64()).max().unwrap();
    let [read, written] = ["sum_received", "sum_sent"].map(|side| end[side]["bytes"].as_u64().unwrap());
    // The end of a connection takes a number of its own.
    assert!(written >= 3_000_000 && read <= kernel && kernel <= written + 1, "{read}, {kernel}, {written}");
    let [completion_s, iperf3_s] =
        [&flow["completion_s"], &end["sum_received"]["seconds"]].map(|seconds| seconds.as_f64().unwrap());
    assert!(
        completion_s >= iperf3_s && iperf3_s >= read as f64 * 8.0 / 20e6,
        "{completion_s} s, by iperf3 {iperf3_s} s"
    );
}

/// Each subflow's bytes in order are the file's, once or twice, and its own end.
#[test]
fn a_file_by_ftp_comes_over_both_paths() {
    let flow = "[[flow]]\nname = \"file\"\nkind = \"mptcp\"\ncongestion = \"reno\"\nsize = \"5MB\"\n";
    let scenario = ["sample = \"100ms\"\n", &path("one", 20, 60), &path("two", 20, 60), flow].concat();
    let Some(study) = study("lab-tools-ftp", MAX_SECONDS, &scenario, "netns --traffic ftp") else { return };
    assert_eq!(namespaces(study.pid), [""; 0], "left on the machine");
    let log = study.file("wget-0.log");
    assert!(log.contains("saved [5000000]"), "{log}");
    assert_eq!(study.run["flows"][0]["delivered_bytes"], 5_000_000);
    let completion_s = study.run["flows"][0]["completion_s"].as_f64().unwrap();
    assert!(completion_s >= 5e6 * 8.0 / 40e6, "{completion_s} s");
    let subflows = &study.raw("results.json")["flows"][0]["subflows"];
    let max_received =
        |samples: &serde_json::Value| samples.as_array()?.iter().filter_map(|sample| sample["received"].as_u64()).max();
    let shares: Vec<u64> = subflows.as_array().unwrap().iter().filter_map(max_received).collect();
    assert!(shares.len() == 2 && shares.iter().all(|share| *share > 500_000), "{shares:?}");
    assert!(shares.iter().sum::<u64>() >= 5_000_000, "{shares:?}");
}

#[test]
fn programs_for_what_they_cannot_do_are_refused() {
    let dir = folder("lab-tools-refused");
    write(
        &dir,
        "x.toml",
        &format!("name = \"x\"\nduration = \"1s\"\n{}[[flow]]\nname = \"tcp\"\n", path("wire", 20, 60)),
    );
    let file = dir.join("x.toml").display().to_string();
    let simulated = ropewalk(&["run", &file, "--traffic", "iperf3"]);
    assert!(simulated.code == Some(2) && simulated.stderr.contains("add --on kernel"), "{}", simulated.stderr);
    if lab::testbed::possible().is_ok() {
        let endless = ropewalk(&["run", &file, "--on", "netns", "--traffic", "ftp"]);
        assert!(endless.code == Some(3) && endless.stderr.contains("flow.tcp.size"), "{}", endless.stderr);
    }
}
