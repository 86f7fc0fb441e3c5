//! The status of a running tunnel: JSON, metrics, and `show`.

use ropewalk_daemon::control_plane::{
    ChangeReply, DataPlaneHandle, MetricsFormat, ResolveReply, SilentPath, StatusReply, encode_metrics, route_halves,
};
use ropewalk_daemon::data_plane::LinkEvent;
use ropewalk_daemon::event::{Cause, CauseKind, EventKind, EventLevel};
use ropewalk_daemon::show::{dump, show};
use ropewalk_daemon::status::{PathState, TunnelStatus};
use std::collections::BTreeSet;
use std::io::Write as _;
use std::process::{Command, Stdio};
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
    let metrics = metrics(&status, usize::MAX, MetricsFormat::Text);
    let labels = "{interface=\"rw0\",peer=\"office\",path=\"lte\",cause=\"no-route\"}";
    assert!(metrics.contains(&format!("ropewalk_path_cause{labels} 1\n")), "{metrics}");
}

fn metrics(status: &TunnelStatus, max_peers: usize, format: MetricsFormat) -> String {
    let events = [((EventKind::PathDown, EventLevel::Warn), 3)].into();
    encode_metrics(status, &events, max_peers, format)
}

#[test]
fn metrics_that_are_not_known_are_absent_and_series_are_bounded() {
    let mut status = TunnelStatus::example();
    let has = |text: &str, name: &str, path: &str| {
        text.lines().any(|line| line.starts_with(&format!("ropewalk_{name}{{")) && line.contains(path))
    };
    let measured = ["path_srtt_seconds", "path_loss_ratio", "path_send_share_ratio", "path_capacity_bytes_per_second"];
    status.peers[0].paths[1].state = PathState::Down;
    let text = metrics(&status, usize::MAX, MetricsFormat::Text);
    for name in measured {
        assert!(has(&text, name, "\"fibre\"") && !has(&text, name, "\"lte\""), "{name}\n{text}");
    }
    assert!(text.contains("path=\"lte\"} 0\n") && !text.contains("NaN"), "{text}");
    // The key stands in one series.
    let key = status.peers[0].public_key.clone().unwrap();
    assert_eq!(text.matches(&key).count(), 1);
    // A second peer of the same name makes no series twice.
    let twin = status.peers[0].clone();
    status.peers.push(ropewalk_daemon::status::PeerStatus { public_key: Some("second-key".into()), ..twin });
    let text = metrics(&status, usize::MAX, MetricsFormat::Text);
    let series: Vec<_> =
        text.lines().filter(|line| !line.starts_with('#')).map(|line| line.rsplit_once(' ').unwrap().0).collect();
    assert_eq!(series.iter().collect::<BTreeSet<_>>().len(), series.len(), "{text}");
    let text = metrics(&status, 1, MetricsFormat::Text);
    assert!(text.contains("ropewalk_peers_without_metrics{interface=\"rw0\"} 1\n"), "{text}");
    assert!(!text.contains("second-key"));
}

#[test]
fn every_metric_of_the_shipped_dashboard_and_alerts_exists() {
    let mut status = TunnelStatus::example();
    let cause = Cause { kind: CauseKind::NoRoute, text: String::new(), remedy: String::new() };
    status.peers[0].paths[0].cause = Some(cause);
    let text = metrics(&status, usize::MAX, MetricsFormat::Text);
    let shipped = [
        include_str!("../../../../packaging/prometheus/grafana.json"),
        include_str!("../../../../packaging/prometheus/alerts.yml"),
    ];
    let is_end = |c: char| !c.is_ascii_alphanumeric() && c != '_';
    let names = shipped.iter().flat_map(|text| text.split(is_end)).filter(|word| word.starts_with("ropewalk_"));
    let names: BTreeSet<&str> = names.collect();
    assert!(names.len() > 20, "{names:?}");
    for name in names {
        assert!(text.lines().any(|line| line.starts_with(&format!("{name}{{"))), "{name}\n{text}");
    }
}

/// `promtool check metrics`, which also refuses names and descriptions that are not as Prometheus's conventions say.
#[test]
fn promtool_finds_nothing_wrong_with_the_metrics() {
    let mut command = Command::new("promtool");
    let Ok(mut child) = command.args(["check", "metrics"]).stdin(Stdio::piped()).stderr(Stdio::piped()).spawn() else {
        return testing::skip(testing::Reason::Missing, "promtool (Debian: prometheus)");
    };
    let text = metrics(&TunnelStatus::example(), usize::MAX, MetricsFormat::Text);
    child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && stderr.is_empty(), "{stderr}\n{text}");
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
    let text = metrics(&TunnelStatus::example(), usize::MAX, MetricsFormat::OpenMetrics);
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
        "ropewalk_path_srtt_seconds{interface=\"rw0\",peer=\"office\",path=\"fibre\"} 0.0123",
        "ropewalk_dropped_packets_total{interface=\"rw0\",reason=\"no-peer\"} 5",
        "ropewalk_uptime_seconds{interface=\"rw0\"} 3725",
        "ropewalk_events_total{interface=\"rw0\",kind=\"path-down\",level=\"warn\"} 3",
        "ropewalk_build_info{version=\"0.1.0\",mode=\"ropewalk\"} 1",
        "# UNIT ropewalk_path_sent_bytes bytes",
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
    let mut expected = TunnelStatus { process, unix_ms, events, notices, program_version, ..TunnelStatus::example() };
    // The server has seen the conditions for no second.
    expected.peers[0].since_unix_ms = None;
    expected.peers[0].paths.iter_mut().for_each(|path| path.since_unix_ms = None);
    assert_eq!(status, expected);
    assert_eq!(client.request("GET", "/v1/events?since=3", "").unwrap(), "[]");
    assert!(client.request("GET", "/metrics", "").unwrap().contains("\nprocess_open_fds "));
    assert!(client.request("POST", "/v1/reload", "").unwrap_err().to_string().contains("going down"));
    assert_eq!(Client::interfaces(&folder), ["rw0"]);
    assert!(Client::new(&folder, "rw1").status().unwrap_err().to_string().contains("no tunnel rw1 is up"));
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn the_published_schemas_are_those_of_the_program_and_documents_keep_to_them() {
    use ropewalk_daemon::status::schema;
    let published = [
        include_str!("../../../../docs/reference/status.schema.json"),
        include_str!("../../../../docs/reference/events.schema.json"),
    ];
    for (of_events, published) in [false, true].into_iter().zip(published) {
        let text = serde_json::to_string_pretty(&schema(of_events)).unwrap();
        assert_eq!(text, published.trim_end(), "\n{text}");
    }
    let status = serde_json::to_value(TunnelStatus::example()).unwrap();
    let [of_status, of_events] = [false, true].map(|of_events| serde_json::to_value(schema(of_events)).unwrap());
    assert_eq!(testing::violations(&of_status, &status), Vec::<String>::new());
    assert_eq!(testing::violations(&of_events, &status["events"]), Vec::<String>::new());
}
