//! Applications other than greedy ones, on this machine's own kernel. Only facts that hold however busy the machine is:
//! what was sent has arrived or was lost, and each flow has its own counts.

use crate::{MAX_SECONDS, Study, path, study};
use serde_json::Value;

const TUNNELS: [&str; 2] = [
    "[tunnel]\nkind = \"mpt-gre\"\nresequence = { window = \"1600p\", timeout = \"300ms\" }\n",
    "[tunnel]\nmode = \"ropewalk\"\n",
];

/// Two paths of 20 Mbit/s.
fn run(name: &str, rest: &str) -> Option<Study> {
    study(name, MAX_SECONDS, &[&path("one", 20, 60), &path("two", 20, 60), rest].concat(), "netns")
}

fn number(object: &Value, key: &str) -> u64 {
    object[key].as_u64().unwrap_or_else(|| panic!("{key} of {object}"))
}

/// 1000 full segments and 500, all of which the tunnel has delivered.
#[test]
fn flows_share_a_tunnel_in_either_mode() {
    let sizes = [1_388_000, 694_000];
    let flows = sizes.map(|size| format!("[[flow]]\nname = \"of-{size}\"\nsize = \"{size}b\"\n[flow.host]\n")).concat();
    for (tunnel, mode) in TUNNELS.iter().zip(["mpt", "ropewalk"]) {
        let Some(study) = run(&format!("lab-shared-{mode}"), &format!("{tunnel}{flows}")) else { return };
        let flow_records = study.run["flows"].as_array().unwrap();
        assert_eq!(sizes.map(Some), [0, 1].map(|k| flow_records.get(k).map(|flow| number(flow, "delivered_bytes"))));
        assert!(flow_records.iter().all(|flow| flow["completion_s"].is_f64()), "{flow_records:?}");
        assert_eq!(
            number(&flow_records[1], "timeouts") + number(&flow_records[1], "recoveries"),
            0,
            "counted with the first flow"
        );
        let new_segments = |flow: &Value| number(flow, "sent_packets") - number(flow, "retransmitted_packets");
        assert!(
            new_segments(&flow_records[0]) >= 1000 && new_segments(&flow_records[1]) >= 500,
            "segments of 1388 bytes: {flow_records:?}"
        );
        // The far end may deliver several packets merged in one, with one header; the payload is counted all the same.
        let far_status: Value =
            serde_json::from_str(study.raw("results.json")["tunnel_statuses"][1].as_str().unwrap()).unwrap();
        let received_bytes = far_status["interface"]["received"]["bytes"].as_u64().unwrap();
        assert!(
            received_bytes >= sizes.iter().sum::<u64>() && number(&study.run["tunnel"], "delivered_packets") > 0,
            "{received_bytes} bytes"
        );
    }
}

/// One path of 20 Mbit/s, 20 ms there and back, and on it all kinds of applications.
const APPLICATIONS: &str = r#"
[[flow]]
name = "call"
kind = "udp"
rate = "1mbit"
packet = "500b"
stop = "2s"

[[flow]]
name = "burst"
kind = "udp"
rate = "800mbit"
packet = "1000b"
start = "1s"
stop = "1010ms"

[[flow]]
name = "steady"
rate = "1mbit"
write = "1000b"
size = "100kB"

[[flow]]
name = "new"
requests = { size = "20kB", think = "50ms", connection = "new" }

[[flow]]
name = "kept"
requests = { size = "20kB", think = "50ms" }
"#;

#[test]
fn what_applications_send_arrives_or_is_lost_and_not_too_soon() {
    let scenario = [path("one", 20, 60).as_str(), APPLICATIONS].concat();
    let Some(study) = study("lab-applications", 4, &scenario, "netns") else { return };
    let [call, burst, steady, new, kept] = [0, 1, 2, 3, 4].map(|k| &study.run["flows"][k]);
    // One datagram every 4 ms for 2 s; one every 0.01 ms for 0.01 s, which the path would need 0.4 s for.
    for (flow, count, bytes) in [(call, 500, 500), (burst, 1000, 1000)] {
        assert_eq!(number(flow, "sent_packets"), count);
        assert_eq!(number(flow, "delivered_bytes") + number(flow, "dropped_packets") * bytes, count * bytes, "{flow}");
        assert!(flow["one_way_delay_ms"]["min"].as_f64().unwrap() >= 10.0, "{flow}");
    }
    let path = &study.run["paths"][0];
    let lost = |flow: &Value| number(flow, "dropped_packets");
    let total_lost = [call, burst, steady, new, kept].map(lost).iter().sum::<u64>();
    assert!(
        lost(burst) > 0 && total_lost == lost(path) + number(path, "lost_packets"),
        "at the hosts and on the way: {path}"
    );
    // The last of a hundred writes is due 99 times 8 ms after the first.
    assert!(steady["completion_s"].as_f64().is_some_and(|seconds| seconds >= 0.792 + 0.010), "{steady}");
    assert_eq!(number(steady, "delivered_bytes"), 100_000);
    // An answer of 14 segments takes two round trips of data, of which the first is the request's; a connection one
    // more.
    for (flow, min_ms) in [(new, 60.0), (kept, 20.0)] {
        let (requests, bytes) = (number(flow, "requests"), number(flow, "delivered_bytes"));
        assert!(requests > 0 && (requests * 20_000..(requests + 1) * 20_000).contains(&bytes), "{flow}");
        assert!(number(flow, "sent_packets") >= requests * 14, "of all connections: {flow}");
        let fastest = flow["response_time_ms"]["min"].as_f64().unwrap();
        assert!(fastest >= min_ms, "{flow}");
    }
}
