//! Prometheus reads a daemon's metrics, and answers the queries of the dashboard and the alerts that are shipped.

use crate::tunnel_pair::{DEVICE, IPV4, TunnelPair};
use lab::testbed::{LEFT, RIGHT};
use serde_json::Value;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use testing::{Reason, eventually, skip};

const METRICS: &str = "127.0.0.1:9754";
const PROMETHEUS: &str = "127.0.0.1:9090";

/// A process that ends with the test.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill().and_then(|()| self.0.wait());
    }
}

fn shipped(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../packaging/prometheus").join(name)
}

/// Whether Debian's prometheus is there; otherwise the test is skipped.
fn is_there() -> bool {
    let is_there = Command::new("promtool").arg("--version").output().is_ok_and(|output| output.status.success());
    if !is_there {
        skip(Reason::Missing, "promtool (Debian: prometheus)");
    }
    is_there
}

#[test]
fn the_alerts_are_right_and_fire_for_what_they_say() {
    if !is_there() {
        return;
    }
    for words in [
        &["check", "rules", "alerts.yml"][..],
        &["test", "rules", "alerts.test.yml"],
        &["check", "config", "scrape.yml"],
    ] {
        let output = Command::new("promtool").args(words).current_dir(shipped("")).output().unwrap();
        let text = [output.stdout, output.stderr].concat();
        assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&text));
    }
}

#[test]
fn prometheus_reads_a_daemon_and_answers_every_query_of_the_dashboard() {
    if !is_there() {
        return;
    }
    let Some(mut pair) = TunnelPair::configured(IPV4, &["rate=10mbit delay=5ms", "rate=5mbit delay=10ms"]) else {
        return;
    };
    pair.edit(LEFT, |text| text.replacen("[interface]\n", &format!("[interface]\nmetrics = \"{METRICS}\"\n"), 1));
    [RIGHT, LEFT].into_iter().for_each(|host| pair.start(host));
    [RIGHT, LEFT].into_iter().for_each(|host| pair.wait_until_up(host));
    let _prometheus = start_prometheus(&pair);
    let has_read = || !results(&query(&pair, "ropewalk_path_srtt_seconds")).is_empty();
    assert!(eventually(has_read), "{}", query(&pair, "up"));
    assert_eq!(results(&query(&pair, "scrape_samples_scraped > 0")).len(), 1);

    let dashboard: Value = serde_json::from_str(&fs::read_to_string(shipped("grafana.json")).unwrap()).unwrap();
    let expressions =
        dashboard["panels"].as_array().unwrap().iter().flat_map(|panel| panel["targets"].as_array().unwrap());
    let expressions: Vec<&str> = expressions.map(|target| target["expr"].as_str().unwrap()).collect();
    assert!(expressions.len() > 20, "{expressions:?}");
    for expression in expressions {
        let answer = query(&pair, &without_variables(expression));
        assert_eq!(answer["status"], "success", "{expression}: {answer}");
    }
    let paths = query(&pair, "ropewalk_path_info * on (peer, path) group_left () ropewalk_path_up");
    assert_eq!(results(&paths).len(), 2, "{paths}");
    let rules = api(&pair, "/api/v1/rules");
    let rules = rules["data"]["groups"][0]["rules"].as_array().unwrap();
    assert!(rules.len() >= 6 && rules.iter().all(|rule| rule["health"] != "err"), "{rules:?}");

    // What is not known is absent: Prometheus ends the series of a path that is down.
    let name = pair.testbed.device(0);
    pair.testbed.change(0, "both down").unwrap();
    let is_down = || {
        let of_path = |metric: &str| results(&query(&pair, &format!("{metric}{{path=\"{name}\"}}"))).first().cloned();
        of_path("ropewalk_path_up").is_some_and(|up| up["value"][1] == "0")
            && of_path("ropewalk_path_srtt_seconds").is_none()
    };
    assert!(eventually(is_down), "{}", query(&pair, "ropewalk_path_up"));
}

/// Prometheus on the left host, with the shipped files and a scrape each second.
fn start_prometheus(pair: &TunnelPair) -> Process {
    let folder = pair.folder(LEFT).join("prometheus");
    fs::create_dir_all(&folder).unwrap();
    let scrape = fs::read_to_string(shipped("scrape.yml")).unwrap();
    let text = format!("global: {{scrape_interval: 1s, evaluation_interval: 1s}}\n{scrape}");
    fs::write(folder.join("prometheus.yml"), text).unwrap();
    fs::copy(shipped("alerts.yml"), folder.join("alerts.yml")).unwrap();
    let mut command = pair.testbed.command(LEFT, "prometheus");
    command.arg(format!("--config.file={}", folder.join("prometheus.yml").display()));
    command.arg(format!("--storage.tsdb.path={}", folder.join("data").display()));
    command.arg(format!("--web.listen-address={PROMETHEUS}"));
    let log = fs::File::create(folder.join("log")).unwrap();
    let process = Process(command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).spawn().unwrap());
    let answers = || pair.testbed.within(LEFT, || Ok(TcpStream::connect(PROMETHEUS)?)).is_ok();
    assert!(eventually(answers), "{}", fs::read_to_string(folder.join("log")).unwrap());
    process
}

/// An expression of the dashboard with values in the place of its variables.
fn without_variables(expression: &str) -> String {
    let expression = expression.replace("$__rate_interval", "10s").replace("$interface", DEVICE);
    ["$instance", "$peer"].iter().fold(expression, |text, variable| text.replace(variable, ".*"))
}

fn results(answer: &Value) -> Vec<Value> {
    answer["data"]["result"].as_array().cloned().unwrap_or_default()
}

fn query(pair: &TunnelPair, expression: &str) -> Value {
    let encoded: String = expression.bytes().map(|byte| format!("%{byte:02x}")).collect();
    api(pair, &format!("/api/v1/query?query={encoded}"))
}

/// The JSON of a page of Prometheus; null if it does not answer.
fn api(pair: &TunnelPair, path: &str) -> Value {
    let Ok(mut stream) = pair.testbed.within(LEFT, || Ok(TcpStream::connect(PROMETHEUS)?)) else { return Value::Null };
    // Without a length, as HTTP/1.0 has none: the body ends with the connection.
    write!(stream, "GET {path} HTTP/1.0\r\nHost: {PROMETHEUS}\r\n\r\n").unwrap();
    let mut response = String::new();
    let _ = stream.read_to_string(&mut response);
    let body = response.split_once("\r\n\r\n").map_or("", |(_, body)| body);
    serde_json::from_str(body).unwrap_or_default()
}
