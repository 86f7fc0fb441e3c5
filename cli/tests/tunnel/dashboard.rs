//! The dashboard of a daemon, in a browser and as its requests see it, while a path goes down.

use crate::traffic::Transfer;
use crate::tunnel_pair::{DEVICE, IPV4, TunnelPair};
use daemon::control_plane::Client;
use daemon::status::PathState;
use lab::testbed::{LEFT, RIGHT};
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::Command;
use testing::{Reason, eventually, skip};

pub(crate) const ADDRESS: &str = "127.0.0.1:9780";
const LINKS: [&str; 2] = ["rate=10mbit delay=5ms", "rate=5mbit delay=10ms"];

/// A pair whose left daemon has a dashboard and a history file.
pub(crate) fn pair(keys: &str) -> Option<TunnelPair> {
    let mut pair = TunnelPair::configured(IPV4, &LINKS)?;
    let history = pair.folder(LEFT).join("rw0.history");
    let token = pair.folder(LEFT).join("token");
    std::fs::write(&token, daemon::keys::genpsk().as_bytes()).unwrap();
    std::fs::set_permissions(token, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    pair.edit(LEFT, |text| {
        let keys = format!("[interface]\ndashboard = \"{ADDRESS}\"\nhistory = \"{}\"\n{keys}", history.display());
        text.replacen("[interface]\n", &keys, 1)
    });
    [RIGHT, LEFT].into_iter().for_each(|host| pair.start(host));
    [RIGHT, LEFT].into_iter().for_each(|host| pair.wait_until_up(host));
    Some(pair)
}

/// A response of the left host's dashboard: its head and its body.
fn request(pair: &TunnelPair, path: &str, header: &str) -> (String, String) {
    let mut stream = connect(pair, path, header);
    let mut response = String::new();
    stream.read_to_string(&mut response).unwrap();
    let (head, body) = response.split_once("\r\n\r\n").unwrap();
    (head.to_owned(), body.to_owned())
}

fn connect(pair: &TunnelPair, path: &str, header: &str) -> TcpStream {
    let mut stream = pair.testbed.within(LEFT, || Ok(TcpStream::connect(ADDRESS)?)).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nConnection: close\r\n{header}\r\n\r\n").unwrap();
    stream
}

/// The history of a path: the values of a field.
fn history(pair: &TunnelPair, path: &str, field: &str) -> Vec<Value> {
    let text = Client::new(&pair.folder(LEFT), DEVICE).request("GET", "/v1/history?step=1", "").unwrap();
    let history: Value = serde_json::from_str(&text).unwrap();
    let series = history["series"].as_array().unwrap().iter().find(|series| series["path"] == path);
    series.map(|series| series[field].as_array().unwrap().clone()).unwrap_or_default()
}

/// The page's document after its script has run, as Chromium has it; `None`, and the test is skipped, without Chromium.
fn document(pair: &TunnelPair, options: &str) -> Option<String> {
    if !Command::new("chromium").arg("--version").output().is_ok_and(|output| output.status.success()) {
        skip(Reason::Missing, "chromium");
        return None;
    }
    let profile = pair.folder(LEFT).join("browser");
    let mut command = pair.testbed.command(LEFT, "chromium");
    command.args(["--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=5000", "--dump-dom"]);
    command.arg(format!("--user-data-dir={}", profile.display())).arg(format!("http://{ADDRESS}/#300&still{options}"));
    let output = command.output().unwrap();
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[test]
fn the_dashboard_shows_the_paths_their_rates_and_the_one_that_went_down() {
    let Some(mut pair) = pair("") else { return };
    let names = [0, 1].map(|link| pair.testbed.device(link));
    let transfer = Transfer::endless(&pair, LEFT);
    let carries = |name: &str| history(&pair, name, "send_rate_bps").iter().any(|bps| bps.as_u64() > Some(1_000_000));
    assert!(names.iter().all(|name| eventually(|| carries(name))), "{:#?}", pair.status(LEFT).peers[0]);
    pair.testbed.change(0, "both down").unwrap();
    assert!(eventually(|| pair.path(LEFT, 0).state == PathState::Down));
    assert!(eventually(|| history(&pair, &names[0], "state").last() == Some(&"down".into())));
    // A link of 10 Mbit/s carries no more in a second, but for its queue and the second's edges.
    let greatest = history(&pair, &names[0], "send_rate_bps").iter().filter_map(Value::as_u64).max();
    assert!(greatest < Some(20_000_000), "{greatest:?}");
    let Some(document) = document(&pair, "") else { return };
    for phrase in [
        &*format!("<title>(1) {DEVICE} – Ropewalk</title>"),
        "1 of 2",
        &format!("<b>{} is down</b>", names[0]),
        "class=\"ribbon up\"",
        "class=\"ribbon down\"",
        "Round-trip time (ms)",
        "Queueing delay (ms)",
        "Loss (%)",
        "role=\"slider\"",
        &format!("{} down", names[0]),
    ] {
        assert!(document.contains(phrase), "{phrase}: {document}");
    }
    // A busy machine may make a link slower than usual.
    let works = |state: &str| document.contains(&format!("{} {state},", names[1]));
    assert!(works("up") || works("degraded"), "{document}");
    // Words stand in the place of empty headings until the first data.
    let waiting = "<main class=\"waiting\">";
    let (_, page) = request(&pair, "/", "Host: localhost");
    assert!(page.contains(waiting) && page.contains("Loading the tunnel's state from its daemon"), "{page}");
    assert!(!document.contains(waiting), "{document}");
    assert!(transfer.stop() > 0);
}

#[test]
fn the_stream_has_a_sample_each_second_and_no_other_host_or_method_is_served() {
    let Some(pair) = pair("") else { return };
    let stream = BufReader::new(connect(&pair, "/v1/stream", "Host: localhost:9780"));
    let data: Vec<String> =
        stream.lines().map_while(Result::ok).filter(|line| line.starts_with("data: {\"time_s\"")).take(2).collect();
    let times = data.iter().map(|line| serde_json::from_str::<Value>(&line[6..]).unwrap()["time_s"].as_u64().unwrap());
    let times: Vec<u64> = times.collect();
    assert!(times[0] < times[1], "{data:?}");
    let (head, body) = request(&pair, "/", "Host: localhost");
    assert!(head.starts_with("HTTP/1.1 200") && body.contains("<!doctype html>"), "{head}");
    let policy = head.lines().find(|line| line.starts_with("content-security-policy: ")).unwrap();
    let nonce = policy.split("'nonce-").nth(1).unwrap().split('\'').next().unwrap();
    assert!(body.contains(&format!("<script nonce=\"{nonce}\">")) && !head.contains("access-control"), "{head}");
    for (path, header, status) in [
        ("/", "Host: evil.example", "403"),
        ("/v1/status", "Host: evil.example:9780", "403"),
        ("/v1/history?step=fast", "Host: 127.0.0.1", "400"),
        ("/v1/down", "Host: localhost", "404"),
    ] {
        let (head, _) = request(&pair, path, header);
        assert!(head.starts_with(&format!("HTTP/1.1 {status}")), "{path}: {head}");
    }
}

#[test]
fn a_dashboard_with_a_token_wants_it_and_the_history_outlives_a_restart() {
    let Some(mut pair) = pair("dashboard-token-file = \"token\"\n") else { return };
    let token = std::fs::read_to_string(pair.folder(LEFT).join("token")).unwrap();
    let authorization = format!("Host: x\r\nAuthorization: Bearer {}", token.trim());
    assert!(request(&pair, "/v1/status", "Host: x").0.starts_with("HTTP/1.1 401"));
    assert!(request(&pair, "/v1/status", &authorization).0.starts_with("HTTP/1.1 200"));
    let name = pair.testbed.device(0);
    let up = |pair: &TunnelPair| history(pair, &name, "state").iter().filter(|state| **state == "up").count();
    assert!(eventually(|| up(&pair) > 2));
    pair.stop(LEFT);
    pair.start(LEFT);
    pair.wait_until_started(LEFT);
    // The second of the restart is recorded anew.
    assert!(up(&pair) > 0, "the seconds before the restart are there");
}

#[test]
fn every_listener_of_a_host_on_loopback_refuses_the_name_of_another_site() {
    let Some(pair) = pair("metrics = \"127.0.0.1:9754\"\nspeed-test = true\n") else { return };
    // Enrolment and speed tests are not HTTP, and bound to the tunnel's device.
    let sockets = pair.testbed.run(LEFT, "ss -Hltn").unwrap();
    let addresses: Vec<_> = sockets.lines().filter_map(|line| line.split_whitespace().nth(3)).collect();
    let addresses: Vec<_> = addresses.into_iter().filter(|address| !address.contains("%rw0")).collect();
    assert_eq!(addresses.len(), 2, "{sockets}");
    for address in addresses {
        for (host, status) in [("evil.example", "403"), ("localhost", "200")] {
            let mut stream = pair.testbed.within(LEFT, || Ok(TcpStream::connect(address)?)).unwrap();
            write!(stream, "GET /metrics HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n").unwrap();
            let mut response = String::new();
            stream.read_to_string(&mut response).unwrap();
            assert!(response.starts_with(&format!("HTTP/1.1 {status}")), "{address}, {host}: {response}");
        }
    }
}
