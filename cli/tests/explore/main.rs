//! `ropewalk explore`: who may ask, what it answers, and the page in a browser.

#[path = "../program/mod.rs"]
mod program;

mod browser;

use program::{command, ropewalk};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Stdio};

/// A running server, ended with the test.
pub(crate) struct Server {
    process: Child,
    /// The address of the page.
    pub(crate) url: String,
    /// Its host and port.
    host: String,
    token: String,
}

impl Server {
    pub(crate) fn start(scenario: &str) -> Self {
        let arguments = ["explore", scenario, "--no-browser"];
        let mut process = command(&arguments).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut url = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut url).unwrap();
        let (host, token) = url.trim().strip_prefix("http://").unwrap().split_once("/?token=").unwrap();
        let (host, token) = (host.to_owned(), token.to_owned());
        Self { process, url: url.trim().to_owned(), host, token }
    }

    /// The status and the body of a response.
    fn request(&self, method: &str, path: &str, headers: &str, body: &str) -> (u16, String) {
        let mut stream = TcpStream::connect(&self.host).unwrap();
        let length = body.len();
        let json = "Content-Type: application/json\r\nConnection: close";
        write!(stream, "{method} {path} HTTP/1.1\r\n{headers}{json}\r\nContent-Length: {length}\r\n\r\n{body}")
            .unwrap();
        let mut response = String::new();
        stream.read_to_string(&mut response).unwrap();
        let (head, body) = response.split_once("\r\n\r\n").unwrap();
        (head.split_whitespace().nth(1).unwrap().parse().unwrap(), body.to_owned())
    }

    fn ask(&self, path: &str, question: &Value) -> (u16, Value) {
        let headers = format!("Host: {}\r\nAuthorization: Bearer {}\r\n", self.host, self.token);
        let (status, body) = self.request("POST", path, &headers, &question.to_string());
        (status, serde_json::from_str(&body).unwrap_or_default())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The run of the command line with these sets, as JSON.
pub(crate) fn run(scenario: &str, sets: &[&str]) -> Value {
    runs(scenario, sets)[0].clone()
}

/// The runs of the command line with these sets, as JSON.
fn runs(scenario: &str, sets: &[&str]) -> Vec<Value> {
    let mut arguments = vec!["run", scenario, "--no-store", "--json", "--quiet"];
    sets.iter().for_each(|set| arguments.extend(["--set", set]));
    let outcome = ropewalk(&arguments);
    let document: Value = serde_json::from_str(&outcome.stdout).unwrap_or_else(|error| panic!("{error}: {outcome:?}"));
    document["runs"].as_array().unwrap().clone()
}

#[test]
fn only_who_has_the_token_and_names_this_server_is_answered() {
    let server = Server::start("one-link");
    let (host, token) = (&server.host, &server.token);
    let port = host.rsplit_once(':').unwrap().1;
    let page = format!("/?token={token}");
    let wrong = format!("/?token={}", "0".repeat(token.len()));
    for (path, host, status) in [
        (page.as_str(), host.as_str(), 200),
        (&page, &format!("localhost:{port}"), 200),
        (&page, "evil.example", 403),
        (&page, &format!("evil.example:{port}"), 403),
        (&page, "127.0.0.1:1", 403),
        ("/", host, 403),
        (&wrong, host, 403),
        ("/?token=", host, 403),
        ("/v1/scenarios", host, 403),
        (&format!("/v1/scenarios?token={token}"), host, 403),
    ] {
        assert_eq!(server.request("GET", path, &format!("Host: {host}\r\n"), "").0, status, "{path} {host}");
    }
    assert_eq!(server.request("GET", &page, "", "").0, 403, "no Host");
    let bearer = |token: &str| format!("Host: {host}\r\nAuthorization: Bearer {token}\r\n");
    assert_eq!(server.request("GET", "/v1/scenarios", &bearer(token), "").0, 200);
    assert_eq!(server.request("GET", "/v1/scenarios", &bearer(&token[1..]), "").0, 403);
    assert_eq!(server.request("POST", "/v1/run", &format!("Host: {host}\r\n"), "{}").0, 403);
}

#[test]
fn an_answer_is_the_run_of_the_command_line() {
    let server = Server::start("one-link");
    let sets = ["path.link.rate=20mbit", "duration=5s", "flow.tcp.congestion=reno"];
    let (status, answer) = server.ask("/v1/run", &json!({ "scenario": "one-link", "sets": sets }));
    let run = run("one-link", &sets);
    assert_eq!((status, &answer["digest"]), (200, &run["digest"]), "{answer}");
    assert_eq!(answer["rows"][0]["cells"][0][0]["mean"], run["flows"][0]["goodput_mbps"]);
    assert_eq!(answer["rows"][0]["cells"][1][0]["mean"], run["flows"][0]["rtt_ms"]["p95"]);
    assert!(answer["figures"].as_str().unwrap().contains("Throughput"));
    // The copied trace is of the same run, whose digest `trace` prints.
    let folder = program::folder("explore-trace");
    let line = answer["trace"].as_str().unwrap().replace("ropewalk", env!("CARGO_BIN_EXE_ropewalk"));
    let output = std::process::Command::new("sh").args(["-c", &line]).current_dir(folder).output().unwrap();
    assert!(String::from_utf8_lossy(&output.stdout).contains(answer["digest"].as_str().unwrap()), "{output:?}");
    // What is pinned are other runs, the last one under the new one.
    let pins = [["path.link.rate=10mbit", "duration=5s"], ["path.link.rate=40mbit", "duration=5s"]];
    let pinned = json!({ "scenario": "one-link", "sets": sets, "pinned": pins });
    let answer = server.ask("/v1/run", &pinned).1;
    for (index, pin) in pins.iter().enumerate() {
        let goodput = self::run("one-link", pin)["flows"][0]["goodput_mbps"].clone();
        assert_eq!(answer["rows"][0]["cells"][0][index + 1]["mean"], goodput);
    }
    assert!(answer["figures"].as_str().unwrap().contains(", pinned"));
}

#[test]
fn a_sweep_has_the_means_of_the_command_line_at_each_value() {
    let server = Server::start("wifi-lte");
    let sets = ["flow.download.congestion=lia", "duration=2s", "repetitions=3"];
    let losses = ["0%", "0.5%", "2%"];
    let question = |key: &str, values: &[&str]| json!({ "scenario": "wifi-lte", "sets": sets, "sweep": { "key": key, "values": values } });
    let (status, answer) = server.ask("/v1/sweep", &question("path.lte.loss", &losses));
    assert_eq!(status, 200, "{answer}");
    let swept = format!("sweep.path.lte.loss={losses:?}");
    let runs = runs("wifi-lte", &[&sets[..], &[&swept]].concat());
    assert_eq!(runs.len(), 9);
    for (index, loss) in losses.iter().enumerate() {
        let of_loss = runs.iter().filter(|run| run["parameters"]["path.lte.loss"] == *loss);
        let goodput: Vec<f64> = of_loss.map(|run| run["flows"][0]["goodput_mbps"].as_f64().unwrap()).collect();
        let (row, mean) = (&answer["rows"][index], goodput.iter().sum::<f64>() / 3.0);
        assert_eq!((&row["value"], &row["flow"]), (&json!(loss), &json!("download")));
        assert!((row["cells"][0]["mean"].as_f64().unwrap() / mean - 1.0).abs() < 1e-9, "{row}: {goodput:?}");
        // Three seeds: the quantile of Student's t with two degrees of freedom is 4.30265.
        let variance = goodput.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / 2.0;
        let half = 4.30265 * (variance / 3.0).sqrt();
        assert!((row["cells"][0]["half"].as_f64().unwrap() - half).abs() < 1e-6 * mean, "{row}: {half}");
    }
    let figure = answer["figure"].as_str().unwrap();
    assert_eq!(figure.matches("class=\"w\"").count(), losses.len(), "whiskers: {figure}");
    // The copied command is that sweep. Names are swept as well as numbers, and a wrong value gets the reader's message.
    assert!(answer["command"].as_str().unwrap().contains(&swept), "{answer}");
    let (_, bars) = server.ask("/v1/sweep", &question("flow.download.congestion", &["lia", "olia"]));
    assert_eq!(bars["rows"][1]["value"], "olia", "{bars}");
    let (status, refusal) = server.ask("/v1/sweep", &question("path.lte.loss", &["1%", "much"]));
    assert_eq!(status, 422);
    assert!(refusal["message"].as_str().unwrap().contains("much"), "{refusal}");
}

#[test]
fn all_seeds_are_a_band_and_an_interval_and_the_copied_scenario_gives_them_again() {
    let server = Server::start("wifi-lte");
    let sets = ["flow.download.congestion=lia", "path.lte.loss=1%", "duration=3s", "repetitions=3", "sample=100ms"];
    let (_, answer) = server.ask("/v1/run", &json!({ "scenario": "wifi-lte", "sets": sets, "all_seeds": true }));
    assert_eq!(answer["runs"], 3);
    assert!(answer["rows"][0]["cells"][0][0]["half"].as_f64() > Some(0.0), "{answer}");
    assert!(answer["figures"].as_str().unwrap().contains("class=\"band\""));
    let folder = program::folder("explore-copied");
    program::write(&folder, "copied.toml", answer["text"].as_str().unwrap());
    let copied = run(&folder.join("copied.toml").display().to_string(), &[]);
    assert_eq!(copied["digest"], answer["digest"]);
}

#[test]
fn a_wrong_value_gets_the_message_of_the_reader_at_its_key() {
    let server = Server::start("one-link");
    for (set, key, part) in [
        ("path.link.rate=fast", "path.link.rate", "fast"),
        ("flow.tcp.congestion=cubik", "flow.tcp.congestion", "unknown congestion control `cubik`"),
        ("path.lonk.rate=1mbit", "path.lonk.rate", "unknown path `lonk`"),
    ] {
        let (status, refusal) = server.ask("/v1/run", &json!({ "scenario": "one-link", "sets": [set] }));
        assert_eq!((status, refusal["key"].as_str()), (422, Some(key)), "{refusal}");
        let message = refusal["message"].as_str().unwrap();
        assert!(message.contains(part), "{message}");
        let line = ropewalk(&["run", "one-link", "--no-store", "--set", set]);
        assert!(line.stderr.contains(message), "{message}: {}", line.stderr);
    }
}

#[test]
fn no_request_opens_a_file() {
    let server = Server::start("one-link");
    let secret = program::folder("explore-secret");
    program::write(&secret, "secret.trace", "1\n2\n3\n");
    let trace = format!("path.link.reverse.trace={}", secret.join("secret.trace").display());
    let policy = "flow.tcp.congestion={ name = \"policy\", file = \"/etc/hostname\" }";
    for set in [trace.as_str(), "path.link.reverse.trace=../secret.trace", policy] {
        let (status, refusal) = server.ask("/v1/run", &json!({ "scenario": "one-link", "sets": [set] }));
        assert_eq!(status, 422, "{refusal}");
        assert!(refusal["message"].as_str().unwrap().contains("leads out of the scenario's folder"), "{refusal}");
    }
    for scenario in ["/etc/passwd", "../Cargo.toml", "no-such-scenario"] {
        assert_eq!(server.ask("/v1/run", &json!({ "scenario": scenario, "sets": [] })).0, 404);
    }
}

#[test]
fn a_file_is_opened_by_its_path_and_a_shipped_one_has_its_traces() {
    let folder = program::folder("explore-files");
    let text = |name: &str| scenario::built_in().find(|built_in| built_in.name() == name).unwrap().text;
    program::write(&folder, "mine.toml", &text("one-link").replace("100mbit", "90mbit"));
    program::write(&folder, "shipped.toml", text("mptcp-mpquic"));
    for (file, scenario) in [("mine.toml", None), ("shipped.toml", Some("mptcp-mpquic"))] {
        let path = folder.join(file).display().to_string();
        let server = Server::start(&path);
        let scenario = scenario.unwrap_or(&path);
        let (status, keys) = server.ask("/v1/describe", &json!({ "scenario": scenario, "sets": [] }));
        assert_eq!(status, 200, "{scenario}: {keys}");
    }
}

#[test]
fn every_built_in_scenario_has_its_keys() {
    let server = Server::start("one-link");
    let headers = format!("Host: {}\r\nAuthorization: Bearer {}\r\n", server.host, server.token);
    let list: Value = serde_json::from_str(&server.request("GET", "/v1/scenarios", &headers, "").1).unwrap();
    assert_eq!(list["first"], "one-link");
    let names: Vec<_> = list["scenarios"].as_array().unwrap().iter().map(|row| row["name"].clone()).collect();
    assert_eq!(names.len(), scenario::built_in().count());
    for name in names {
        let (status, keys) = server.ask("/v1/describe", &json!({ "scenario": name, "sets": [] }));
        assert_eq!(status, 200, "{name}: {keys}");
        assert!(keys["controls"].as_array().unwrap().iter().any(|control| control["is_main"] == true), "{name}");
    }
}
