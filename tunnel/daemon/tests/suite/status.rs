//! The status of a running tunnel: JSON, metrics, and `show`.

use ropewalk_daemon::control_plane::{
    ChangeReply, DataPlaneHandle, ResolveReply, SilentPath, StatusReply, encode_openmetrics, route_halves,
};
use ropewalk_daemon::data_plane::LinkEvent;
use ropewalk_daemon::event::{Cause, CauseKind};
use ropewalk_daemon::show::{dump, show};
use ropewalk_daemon::status::{PathState, TunnelStatus};
use std::collections::BTreeSet;
use std::sync::Arc;

#[test]
fn the_json_has_its_documented_form() {
    let json = serde_json::to_string_pretty(&TunnelStatus::example()).unwrap();
    assert_eq!(json, include_str!("expected/status.json").trim_end(), "\n{json}");
}

#[test]
fn show_fits_a_wide_and_a_narrow_terminal() {
    let wide = show(&TunnelStatus::example(), 160);
    assert_eq!(wide, include_str!("expected/show-wide.txt"), "\n{wide}");
    let narrow = show(&TunnelStatus::example(), 80);
    assert_eq!(narrow, include_str!("expected/show-narrow.txt"), "\n{narrow}");
    assert!(narrow.lines().all(|line| line.chars().count() <= 100), "{narrow}");
}

#[test]
fn the_cause_of_a_path_without_data_is_shown_with_its_remedy_and_is_a_metric() {
    let mut status = TunnelStatus::example();
    let path = &mut status.peers[0].paths[1];
    path.state = PathState::Down;
    let (text, remedy) = ("no route to 198.51.100.1 from 10.0.0.2 by wwan0", "`ip route add ...`");
    path.cause = Some(Cause { kind: CauseKind::NoRoute, text: text.into(), remedy: remedy.into() });
    for width in [80, 160] {
        let shown = show(&status, width);
        assert!(shown.contains(&format!("  lte: {text}\n    remedy: {remedy}\n")), "{shown}");
    }
    let metrics = encode_openmetrics(&Arc::new(status));
    let peer = "R1kDN1ki3Vq7Gkq9Yp0MLOWlbVbCNWkAPT8OhZ1xQ0Y=";
    let labels = format!("{{interface=\"rw0\",peer=\"{peer}\",name=\"office\",path=\"lte\",cause=\"no-route\"}}");
    assert!(metrics.contains(&format!("ropewalk_path_cause{labels} 1.0\n")), "{metrics}");
}

#[test]
fn the_dump_has_a_line_for_each_object_and_tabs_between_fields() {
    let text = dump(&TunnelStatus::example());
    let kinds: Vec<_> = text.lines().map(|line| line.split('\t').next().unwrap()).collect();
    assert_eq!(kinds, ["interface", "peer", "path", "path"]);
    let fields: BTreeSet<_> =
        text.lines().filter(|line| line.starts_with("path")).map(|line| line.split('\t').count()).collect();
    assert_eq!(fields, BTreeSet::from([11]));
}

/// OpenMetrics 1.0: comments, then `name{labels} value`; counters end in `_total`; `# EOF` ends it.
#[test]
fn the_metrics_are_openmetrics_in_base_units() {
    let text = encode_openmetrics(&std::sync::Arc::new(TunnelStatus::example()));
    assert!(text.ends_with("# EOF\n"), "{text}");
    let mut families = BTreeSet::new();
    for line in text.lines().filter(|line| *line != "# EOF") {
        if let Some(family) = line.strip_prefix("# TYPE ") {
            assert!(families.insert(family.split(' ').next().unwrap().to_owned()), "twice: {line}");
        } else if !line.starts_with('#') {
            let (name, value) = line.rsplit_once(' ').unwrap();
            assert!(value.parse::<f64>().is_ok(), "{line}");
            let name = name.split('{').next().unwrap();
            assert!(families.contains(name.strip_suffix("_total").unwrap_or(name)), "{line}");
        }
    }
    for line in [
        "ropewalk_path_srtt_seconds{interface=\"rw0\",peer=\"R1kDN1ki3Vq7Gkq9Yp0MLOWlbVbCNWkAPT8OhZ1xQ0Y=\",name=\"office\",path=\"fibre\"} 0.0123",
        "ropewalk_dropped_packets_total{interface=\"rw0\",reason=\"no-peer\"} 5",
        "ropewalk_uptime_seconds 3725.0",
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
}

#[test]
fn a_default_route_is_set_as_two_halves() {
    let halves = |text: &str| route_halves(text.parse().unwrap()).iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(halves("0.0.0.0/0"), ["0.0.0.0/1", "128.0.0.0/1"]);
    assert_eq!(halves("::/0"), ["::/1", "8000::/1"]);
    assert_eq!(halves("10.0.0.0/8"), ["10.0.0.0/8"]);
}

/// A data plane with one status.
struct FixedStatus;

impl DataPlaneHandle for FixedStatus {
    fn start(&self) {}

    fn request_status(&self, reply: StatusReply) -> bool {
        reply(Box::new(|| Some(TunnelStatus::example())));
        true
    }

    fn change(&self, _: &ropewalk_daemon::config::TunnelConfig, reply: ChangeReply) {
        reply(Err("not supported".into()));
    }

    fn resolve(&self, _: BTreeSet<SilentPath>, _: ResolveReply) {}

    fn on_link_event(&self, _: &str, _: LinkEvent) {}

    fn stop(&self) {}
}

#[test]
fn the_socket_serves_the_status_and_the_metrics() {
    use ropewalk_daemon::control_plane::{Client, router, socket_path};
    let folder = std::env::temp_dir().join(format!("ropewalk-socket-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    runtime.spawn({
        let listener = runtime.block_on(async { tokio::net::UnixListener::bind(socket_path(&folder, "rw0")).unwrap() });
        async move { axum::serve(listener, router(Arc::new(FixedStatus))).await }
    });
    let client = Client::new(&folder, "rw0");
    let status = client.status().unwrap();
    // Of the process that serves it.
    let process = status.process;
    assert!(!process.seccomp || process.no_new_privileges, "{process:?}");
    let (unix_ms, events, notices, program_version) = (status.unix_ms, Vec::new(), Vec::new(), Some(String::new()));
    let expected = TunnelStatus { process, unix_ms, events, notices, program_version, ..TunnelStatus::example() };
    assert_eq!(status, expected);
    assert_eq!(client.request("GET", "/v1/events?since=3", "").unwrap(), "[]");
    assert!(client.request("GET", "/metrics", "").unwrap().ends_with("# EOF\n"));
    assert!(client.request("POST", "/v1/reload", "").unwrap_err().to_string().contains("going down"));
    assert_eq!(Client::interfaces(&folder), ["rw0"]);
    assert!(Client::new(&folder, "rw1").status().unwrap_err().to_string().contains("no tunnel rw1 is up"));
    std::fs::remove_dir_all(folder).unwrap();
}
