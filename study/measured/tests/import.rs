//! Files that the programs themselves have written, between two hosts with 20 Mbit/s in each direction (headers included).

#![expect(clippy::disallowed_methods, reason = "tests read and write files")]

use measured::{Direction, Measured, Parallel, parse, read};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// The most payload of TCP on that link, Mbit/s: 1448 of 1514 bytes.
const LIMIT_MBPS: f64 = 20.0 * 1448.0 / 1514.0;

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/files").join(name)
}

fn import(name: &str) -> Measured {
    read(&file(name)).unwrap()
}

/// What iperf3 itself says at a place of its report.
fn said(name: &str, pointer: &str) -> f64 {
    let report: Value = serde_json::from_str(&std::fs::read_to_string(file(name)).unwrap()).unwrap();
    report.pointer(pointer).unwrap().as_f64().unwrap()
}

fn lacks(measured: &Measured, words: &str) -> bool {
    measured.not_measured.iter().any(|line| line.contains(words))
}

#[test]
fn an_upload_of_iperf3_has_its_own_numbers_and_rtts_but_no_intervals() {
    let measured = import("iperf3-tcp.json");
    let [path] = &measured.paths[..] else { panic!("one path") };
    let [tcp] = &path.tcp[..] else { panic!("one flow") };
    assert_eq!((path.name.as_str(), measured.program.as_deref()), ("iperf3-tcp", Some("iperf 3.12")));
    assert_eq!((tcp.direction, tcp.congestion.as_deref(), tcp.mss_bytes), (Direction::Up, Some("bbr"), Some(1448)));
    assert_eq!(tcp.goodput_mbps, Some(said("iperf3-tcp.json", "/end/sum_received/bits_per_second") / 1e6));
    assert!(tcp.goodput_mbps.unwrap() <= LIMIT_MBPS);
    let rtts: Vec<f64> = tcp.rtt_samples.iter().map(|sample| sample.rtt_ms).collect();
    assert_eq!((rtts, tcp.retransmitted_segments), (vec![27.541, 10.781, 11.259, 9.747], Some(253)));
    // 4814600 bytes in segments of 1448, and those that were sent again.
    assert_eq!(tcp.sent_segments, Some(3325 + 253));
    // The sender's intervals say 29 Mbit/s at first, which no link of 20 carries.
    assert!(tcp.goodput_intervals_mbps.is_empty() && lacks(&measured, "goodput by interval"));
}

#[test]
fn the_receivers_intervals_of_iperf3_are_taken_from_either_end() {
    let down = import("iperf3-tcp-reverse.json");
    let tcp = &down.paths[0].tcp[0];
    assert_eq!((tcp.direction, tcp.congestion.as_deref()), (Direction::Down, Some("reno")));
    assert_eq!((tcp.goodput_intervals_mbps.len(), tcp.rtt_ms), (4, None));
    assert!(lacks(&down, "RTTs of the flow"));
    let up = import("iperf3-tcp-server.json");
    let tcp = &up.paths[0].tcp[0];
    assert_eq!((tcp.direction, tcp.goodput_intervals_mbps.len()), (Direction::Up, 1), "the last one is shorter");
    assert!(tcp.rtt_ms.is_some() && up.not_measured.is_empty(), "{:?}", up.not_measured);
}

#[test]
fn a_stream_of_iperf3_has_the_receivers_counts() {
    let measured = import("iperf3-udp.json");
    let udp = &measured.paths[0].udp[0];
    assert_eq!((udp.direction, udp.payload_bytes), (Direction::Up, Some(1200)));
    assert_eq!((udp.sent, udp.lost, udp.received, udp.reordered), (Some(417), Some(0), Some(417), Some(0)));
    assert_eq!(udp.jitter_rfc3550_ms, Some(said("iperf3-udp.json", "/end/sum_received/jitter_ms")));
    let down = import("iperf3-udp-reverse.json");
    assert_eq!((down.paths[0].udp[0].direction, down.paths[0].udp[0].sent), (Direction::Down, Some(4032)));
}

#[test]
fn parallel_streams_of_iperf3_are_together_what_it_says_of_their_sum() {
    let name = "iperf3-parallel-reverse.json";
    let measured = import(name);
    let path = &measured.paths[0];
    let [Parallel { streams, flow }] = &path.parallel[..] else { panic!("one set of flows") };
    assert_eq!((*streams, flow.direction, path.tcp.len()), (2, Direction::Down, 0));
    assert_eq!(flow.goodput_mbps, Some(said(name, "/end/sum_received/bits_per_second") / 1e6));
    let sums = [0, 1].map(|interval| said(name, &format!("/intervals/{interval}/sum/bits_per_second")) / 1e6);
    for (own, sum) in flow.goodput_intervals_mbps.iter().zip(sums) {
        // The streams' intervals end some microseconds apart.
        assert!((own / sum - 1.0).abs() < 1e-3, "{own} {sum}");
    }
    assert_eq!(flow.goodput_intervals_mbps.len(), 2);
}

#[test]
fn streams_in_both_directions_and_a_failure_of_iperf3_are_no_flow() {
    let measured = import("iperf3-bidir.json");
    assert!(measured.paths[0].tcp.is_empty() && measured.paths[0].parallel.is_empty());
    assert!(lacks(&measured, "4 streams"), "{:?}", measured.not_measured);
    let error = parse(r#"{"start": {}, "error": "unable to connect"}"#, "f.json").unwrap_err().to_string();
    assert_eq!(error, "f.json: iperf3 failed: unable to connect");
}

#[test]
fn ping_of_iputils_and_of_busybox_tell_the_same() {
    let measured = import("ping-iputils.txt");
    let idle = &measured.paths[0].idle_rtt[0];
    assert_eq!((idle.sent, idle.lost, idle.payload_bytes), (Some(5), Some(0), Some(56)));
    let rtts: Vec<f64> = idle.samples.iter().map(|sample| sample.rtt_ms).collect();
    assert_eq!(rtts, [0.049, 0.054, 0.053, 0.083, 0.048]);
    // Its summary says 848 ms for four intervals.
    assert_eq!((idle.interval_s, idle.samples[4].at_s), (Some(0.212), 0.848));
    let measured = import("ping-busybox.txt");
    let idle = &measured.paths[0].idle_rtt[0];
    assert_eq!((idle.sent, idle.lost, idle.payload_bytes, idle.interval_s), (Some(3), Some(0), Some(56), None));
    assert_eq!((idle.samples.len(), idle.samples[2].at_s), (3, 2.0));
    assert!(lacks(&measured, "1 s is assumed"));
}

#[test]
fn ping_with_times_or_without_answers_is_read() {
    let stamps = import("ping-stamps.txt");
    let idle = &stamps.paths[0].idle_rtt[0];
    assert!((idle.interval_s.unwrap() - 0.312_011).abs() < 1e-6);
    assert!((idle.samples[1].at_s - 0.314_724).abs() < 1e-5, "the answers' times less their RTTs");
    let quiet = import("ping-quiet.txt");
    let idle = &quiet.paths[0].idle_rtt[0];
    let rtt = idle.rtt_ms.unwrap();
    assert_eq!((rtt.min, rtt.mean, rtt.max, rtt.deviation), (Some(0.052), Some(0.057), Some(0.060), Some(0.003)));
    assert_eq!((idle.sent, idle.lost, idle.samples.len(), rtt.p95), (Some(4), Some(0), 0, None));
}

#[test]
fn losses_of_ping_are_those_of_its_summary_and_duplicates_do_not_count() {
    let text = "PING 192.0.2.1 (192.0.2.1) 56(84) bytes of data.\n\
        64 bytes from 192.0.2.1: icmp_seq=1 ttl=64 time=10.0 ms\n\
        64 bytes from 192.0.2.1: icmp_seq=1 ttl=64 time=10.5 ms (DUP!)\n\
        64 bytes from 192.0.2.1: icmp_seq=4 ttl=64 time=12 ms\n\n\
        --- 192.0.2.1 ping statistics ---\n\
        4 packets transmitted, 2 received, +1 duplicates, 50% packet loss, time 3003ms\n\
        rtt min/avg/max/mdev = 10.000/10.833/12.000/0.849 ms\n";
    let measured = parse(text, "/tmp/wifi.txt").unwrap();
    let idle = &measured.paths[0].idle_rtt[0];
    assert_eq!((measured.paths[0].name.as_str(), idle.sent, idle.lost), ("wifi", Some(4), Some(2)));
    assert_eq!((idle.samples.len(), idle.samples[1].at_s), (2, 3.003));
}

#[test]
fn irtt_tells_round_trips_and_each_direction() {
    let measured = import("irtt.json");
    assert_eq!(measured.program.as_deref(), Some("irtt 0.9.0"));
    let path = &measured.paths[0];
    let idle = &path.idle_rtt[0];
    assert_eq!((idle.sent, idle.lost, idle.interval_s, idle.payload_bytes), (Some(10), Some(0), Some(0.1), Some(100)));
    assert_eq!((idle.samples[0].rtt_ms, idle.samples[1].at_s), (0.478_001, 0.1));
    let [up, down] = &path.udp[..] else { panic!("two directions") };
    assert_eq!((up.direction, down.direction), (Direction::Up, Direction::Down));
    assert_eq!((up.sent, up.lost, down.sent, down.lost), (Some(10), Some(0), Some(10), Some(0)));
    // 6859013 less 108021 ns, as its own statistics say.
    assert!((up.delay_variation_ms.unwrap().max.unwrap() - 6.750_992).abs() < 1e-9);
}

#[test]
fn flent_tells_a_flow_the_times_next_to_it_and_those_without_load() {
    let measured = import("lte.flent.gz");
    let path = &measured.paths[0];
    let tcp = &path.tcp[0];
    assert_eq!((path.name.as_str(), tcp.direction, tcp.interval_s), ("lte", Direction::Down, Some(0.2)));
    assert_eq!((tcp.goodput_mbps, tcp.seconds), (Some(19.0), Some(1.0)));
    let idle: Vec<f64> = path.idle_rtt[0].samples.iter().map(|sample| sample.rtt_ms).collect();
    assert_eq!(idle, [20.0, 21.0, 20.5, 20.2, 20.1]);
    let loaded: Vec<f64> = path.calls[0].rtt_samples.iter().map(|sample| sample.rtt_ms).collect();
    assert_eq!(loaded, [40.0, 45.0, 50.0, 55.0]);
    assert!(lacks(&measured, "retransmissions"));
}

#[test]
fn snapshots_of_ss_tell_the_flow_that_this_host_sent() {
    let measured = import("ss.txt");
    let [tcp] = &measured.paths[0].tcp[..] else { panic!("one flow") };
    assert_eq!((tcp.direction, tcp.congestion.as_deref(), tcp.mss_bytes), (Direction::Up, Some("cubic"), Some(1448)));
    assert_eq!((tcp.sent_segments, tcp.retransmitted_segments), (Some(3409), Some(5)));
    assert_eq!((tcp.bytes, tcp.rtt_samples.len()), (Some(4_845_046 - 1_038_254), 4));
    assert!(tcp.goodput_mbps.unwrap() <= LIMIT_MBPS);
    assert!(lacks(&measured, "1 connections sent less"), "iperf3's own connection");
}

#[test]
fn rates_over_time_are_read_as_scenarios_read_them() {
    // 10 s of 12 Mbit/s, and 10 s of 6.
    let lines: String =
        (0..=20).map(|second| format!("{second} {}\n", if second <= 10 { 12.0 } else { 6.0 })).collect();
    let measured = parse(&lines, "lte.txt").unwrap();
    let tcp = &measured.paths[0].tcp[0];
    assert_eq!((tcp.interval_s, tcp.seconds, tcp.goodput_mbps), (Some(1.0), Some(20.0), Some(9.0)));
    assert_eq!(tcp.goodput_intervals_mbps, [[12.0; 10], [6.0; 10]].concat());
    assert!(lacks(&measured, "congestion control, RTTs and losses"));
    let csv = "time_s,throughput_kbps\n0,0\n1,12000\n2,12000\n3,6000\n4,6000\n5,6000\n6,6000\n";
    assert_eq!(parse(csv, "a.csv").unwrap().paths[0].tcp[0].goodput_intervals_mbps, [12.0, 12.0, 6.0, 6.0, 6.0, 6.0]);
}

#[test]
fn the_history_of_a_tunnel_tells_round_trips_of_steps_without_load() {
    let text = r#"{"version": 1, "from_s": 1000, "step_s": 1, "steps": 4, "series": [
        {"peer": "k", "path": null, "class": null, "rtt_ms": [9, 9, 9, 9]},
        {"peer": "k", "path": "lte", "class": null, "state": ["up", "up", "up", null],
         "send_rate_bps": [800, 9000000, 800, null], "receive_rate_bps": [800, 800, 800, null],
         "rtt_ms": [40.5, 90.0, 41.5, null], "queue_ms": [0, 49, 0, null], "loss_ratio": [0, 0.01, 0, null]}]}"#;
    let measured = parse(text, "history.json").unwrap();
    let [path] = &measured.paths[..] else { panic!("sums are no path") };
    let samples: Vec<(f64, f64)> = path.idle_rtt[0].samples.iter().map(|sample| (sample.at_s, sample.rtt_ms)).collect();
    assert_eq!((path.name.as_str(), samples), ("lte", vec![(0.0, 40.5), (2.0, 41.5)]));
    assert!(lacks(&measured, "rates and losses"));
}

#[test]
fn a_speed_test_tells_a_flow_by_the_tunnels_algorithm_and_round_trips_without_and_under_load() {
    let rtt = r#"{"min_ms": 50.0, "median_ms": 60.0, "p95_ms": 80.0, "answered": 98, "lost": 2}"#;
    let packets = r#"{"sent": 1000, "lost": 3}"#;
    let text = format!(
        r#"{{"version": 2, "interface": "rw0", "address": "10.77.0.1", "seconds": 5, "congestion": "discern", "idle_rtt": {rtt},
        "verdict": "", "measurements": [
        {{"path": "lte", "backup": false, "direction": "down", "order": 1, "idle_rtt": {rtt}, "rate_bps": 2e7, "rtt": {rtt}}},
        {{"path": "lte", "backup": false, "direction": "up", "order": 3, "rate_bps": 4e6, "rtt": {rtt}, "packets": {packets}}},
        {{"path": null, "backup": false, "direction": "down", "order": 2, "rate_bps": 5e7, "rtt": {rtt}}}]}}"#
    );
    let measured = parse(&text, "test.json").unwrap();
    let [path] = &measured.paths[..] else { panic!("all together are no path") };
    let call = &path.calls[0];
    assert_eq!(
        (call.direction, call.goodput_mbps, call.sent, call.lost),
        (Direction::Down, Some(20.0), Some(100), Some(2))
    );
    assert_eq!((call.rtt_ms.unwrap().p50, call.rtt_ms.unwrap().p95), (Some(60.0), Some(80.0)));
    assert_eq!((path.idle_rtt.len(), path.idle_rtt[0].rtt_ms.unwrap().min), (1, Some(50.0)));
    let [down, up] = &path.tcp[..] else { panic!("a flow per direction") };
    assert_eq!(
        (down.congestion.as_deref(), down.goodput_mbps, down.sent_segments),
        (Some("discern"), Some(20.0), None)
    );
    assert_eq!((up.direction, up.sent_segments, up.retransmitted_segments), (Direction::Up, Some(1000), Some(3)));
    assert!(lacks(&measured, "the tunnel repairs them") && !lacks(&measured, "taken for CUBIC's"));
}

#[test]
fn a_file_of_no_known_format_is_refused_with_the_formats() {
    for (text, name) in [("{}", "a.json"), ("hello\n", "a.txt"), ("", "empty"), ("[1, 2]", "list.json")] {
        let error = parse(text, name).unwrap_err().to_string();
        assert!(error.starts_with(name) && error.contains("iperf3 (-J)"), "{error}");
    }
    let error = parse(r#"{"data_flow_direction": "upload", "config": {}}"#, "ibox.json").unwrap_err().to_string();
    assert!(error.contains("ropewalk new --ibox FILE"), "{error}");
}

#[test]
fn every_import_keeps_to_the_rules_of_documents_and_no_cut_file_panics() {
    for entry in std::fs::read_dir(file("")).unwrap() {
        let path = entry.unwrap().path();
        let document = serde_json::to_string(&read(&path).unwrap()).unwrap();
        assert!(parse(&document, "again.json").is_ok(), "{}", path.display());
        let bytes = std::fs::read(&path).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let cut = folder.path().join("cut");
        for length in (0..bytes.len()).step_by(97) {
            std::fs::write(&cut, &bytes[..length]).unwrap();
            // Either is right, if only it ends.
            let _ = read(&cut);
        }
    }
}
