//! `ropewalk fleet`: the tunnels of several hosts together, by their dashboards' HTTP API. It only reads.
//!
//! A file names the hosts; `curl` asks them, all at once and each within a bounded time, so that TLS and its certificates are
//! those of the system. `page` writes the same as a page.

mod page;

use crate::{Failure, output};
use clap::Args;
use daemon::config::unix_time;
use parse::{Diagnostic, Error, Spanned, deserialize};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

/// The longest status of a host, bytes.
const MAX_LEN: &str = "16777216";
/// The most hosts that are asked at the same time.
const AT_ONCE: usize = 32;
/// A clock that differs by more is reported, seconds.
const CLOCK_TOLERANCE: i64 = 60;
/// The most names of lost peers in a line.
const MAX_NAMES: usize = 5;

#[derive(Args, Debug)]
pub(crate) struct Fleet {
    /// The hosts: a TOML file with [[server]] tables of name, url, token-file and ca-file
    #[arg(default_value = "/etc/ropewalk/servers.toml")]
    file: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Also write a page, which needs no other file
    #[arg(long, value_name = "FILE")]
    page: Option<PathBuf>,
    /// Repeat this often until interrupted
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(1..=86_400))]
    every: Option<u32>,
    /// The longest time for a host's answer
    #[arg(long, value_name = "SECONDS", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=60))]
    timeout: u32,
}

/// The file of hosts.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Hosts {
    #[serde(default)]
    server: Vec<Spanned<HostTable>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct HostTable {
    name: Spanned<String>,
    url: Spanned<String>,
    token_file: Option<Spanned<String>>,
    ca_file: Option<Spanned<String>>,
}

/// A host to ask.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Host {
    name: String,
    url: String,
    token_file: Option<PathBuf>,
    ca_file: Option<PathBuf>,
}

/// A host's tunnel, or why it did not answer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
struct Row {
    name: String,
    url: String,
    /// Why there is no answer; null if there is one.
    error: Option<String>,
    interface: Option<String>,
    version: Option<String>,
    uptime_s: Option<u64>,
    /// How far the host's clock is ahead of this one's.
    clock_ahead_s: Option<i64>,
    peers: Option<usize>,
    peers_connected: Option<usize>,
    paths: Option<usize>,
    paths_up: Option<usize>,
    send_rate_bps: Option<u64>,
    receive_rate_bps: Option<u64>,
    /// Peers that had a session since the daemon's start, and to which no path works.
    lost_peers: Vec<String>,
    /// Things on the host that limit the tunnel.
    notices: Vec<String>,
}

/// Runs the command.
pub(crate) fn fleet(arguments: &Fleet) -> Result<(), Failure> {
    let hosts = read(&arguments.file)?;
    loop {
        let rows = ask_all(&hosts, arguments.timeout);
        if arguments.json {
            output::json(&rows)?;
        } else {
            output::print(&table(&rows))?;
        }
        if let Some(file) = &arguments.page {
            page::write(file, &rows, arguments.every)?;
        }
        let Some(seconds) = arguments.every else { return verdict(&rows) };
        thread::sleep(Duration::from_secs(seconds.into()));
    }
}

/// A failure if hosts do not answer.
fn verdict(rows: &[Row]) -> Result<(), Failure> {
    let silent: Vec<_> = rows.iter().filter(|row| row.error.is_some()).map(|row| row.name.as_str()).collect();
    if silent.is_empty() {
        return Ok(());
    }
    Err(Failure::Run(format!("{} of {} hosts do not answer: {}", silent.len(), rows.len(), silent.join(", "))))
}

fn read(file: &Path) -> Result<Vec<Host>, Failure> {
    let name = file.display().to_string();
    let unreadable = |error| Error::unreadable(&name, format!("cannot read the list of hosts: {error}"));
    let text = fs::read_to_string(file).map_err(|error| Failure::Configuration(unreadable(error).into()))?;
    let folder = file.parent().unwrap_or(Path::new(""));
    let wrong = |diagnostic| Failure::Configuration(Error::new(&name, &text, diagnostic).into());
    parse_hosts(&text, folder).map_err(wrong)
}

fn parse_hosts(text: &str, folder: &Path) -> Result<Vec<Host>, Diagnostic> {
    let tables = parse::parse(text).and_then(deserialize::<Hosts>)?;
    let mut hosts: Vec<Host> = Vec::new();
    for table in &tables.server {
        let HostTable { name, url, token_file, ca_file } = table.get();
        if hosts.iter().any(|host| host.name == *name.get()) {
            return Err(Diagnostic::new(name.span(), format!("there is another server `{}`", name.get())));
        }
        let is_url = url.get().starts_with("http://") || url.get().starts_with("https://");
        if !is_url || url.get().contains(|c: char| c.is_control() || matches!(c, '"' | '\\' | ' ')) {
            let diagnostic = Diagnostic::new(url.span(), "this is not the address of a dashboard");
            return Err(diagnostic.with_help("such as `https://gateway.example.org/` or `http://127.0.0.1:9780/`"));
        }
        let path = |text: &Option<Spanned<String>>| text.as_ref().map(|text| folder.join(text.get()));
        let url = format!("{}/", url.get().trim_end_matches('/'));
        hosts.push(Host { name: name.get().clone(), url, token_file: path(token_file), ca_file: path(ca_file) });
    }
    if hosts.is_empty() {
        return Err(Diagnostic::new(0..0, "there is no [[server]]").with_help("a [[server]] has a `name` and a `url`"));
    }
    Ok(hosts)
}

/// Asks all hosts.
fn ask_all(hosts: &[Host], timeout_s: u32) -> Vec<Row> {
    let mut rows = Vec::new();
    for group in hosts.chunks(AT_ONCE) {
        let asked: Vec<Row> = thread::scope(|scope| {
            let asking: Vec<_> = group.iter().map(|host| scope.spawn(move || row(host, timeout_s))).collect();
            asking.into_iter().filter_map(|thread| thread.join().ok()).collect()
        });
        rows.extend(asked);
    }
    rows
}

fn row(host: &Host, timeout_s: u32) -> Row {
    let row = Row { name: host.name.clone(), url: host.url.clone(), ..Row::default() };
    let status = ask(host, timeout_s).and_then(|text| {
        let status: Value =
            serde_json::from_str(&text).map_err(|_| "the answer is no status of a tunnel".to_owned())?;
        if status["peers"].is_array() { Ok(status) } else { Err("the answer is no status of a tunnel".to_owned()) }
    });
    match status {
        Ok(status) => of_status(row, &status),
        Err(error) => Row { error: Some(error), ..row },
    }
}

/// The status of a host, by `curl`. Its configuration comes by standard input, so that no list of processes shows the token.
fn ask(host: &Host, timeout_s: u32) -> Result<String, String> {
    let mut config = format!("url = \"{}v1/status\"\n", host.url);
    if let Some(file) = &host.token_file {
        let token = fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))?;
        let token = token.trim();
        if token.contains(|c: char| c.is_control() || matches!(c, '"' | '\\')) {
            return Err(format!("{}: this is not a token", file.display()));
        }
        config += &format!("header = \"Authorization: Bearer {token}\"\n");
    }
    let mut command = Command::new("curl");
    command.args(["--silent", "--show-error", "--fail", "--noproxy", "*", "--proto", "=http,https"]);
    command.args(["--max-filesize", MAX_LEN, "--max-time", &timeout_s.to_string(), "--config", "-"]);
    if let Some(file) = &host.ca_file {
        command.arg("--cacert").arg(file);
    }
    let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let mut child = child.map_err(|error| format!("curl: {error}"))?;
    let written = child.stdin.take().map(|mut input| input.write_all(config.as_bytes()));
    written.transpose().map_err(|error| format!("curl: {error}"))?;
    let output = child.wait_with_output().map_err(|error| format!("curl: {error}"))?;
    if output.status.success() {
        return String::from_utf8(output.stdout).map_err(|_| "the answer is not UTF-8".to_owned());
    }
    let error = String::from_utf8_lossy(&output.stderr);
    let error = error.lines().next().unwrap_or("curl fails");
    Err(error.split_once(") ").map_or(error, |(_, reason)| reason).to_owned())
}

/// The row of a host's status, of this version or of another one.
fn of_status(row: Row, status: &Value) -> Row {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let peers: Vec<&Value> = status["peers"].as_array().into_iter().flatten().collect();
    let paths_of = |peer: &Value| peer["paths"].as_array().cloned().unwrap_or_default();
    let is_up = |path: &Value| path["state"] == "up";
    let is_connected = |peer: &&&Value| paths_of(peer).iter().any(is_up);
    let paths: Vec<Value> = peers.iter().flat_map(|peer| paths_of(peer)).collect();
    let lost = peers.iter().filter(|peer| !is_connected(peer) && peer["handshake_age_ms"].is_number());
    let name = |peer: &&Value| text(&peer["name"]).or_else(|| text(&peer["public_key"])).unwrap_or_default();
    let sum = |key: &str| paths.iter().filter_map(|path| path[key].as_u64()).sum();
    let clock = status["unix_ms"].as_i64().filter(|ms| *ms > 0).map(|ms| ms / 1000 - unix_time() as i64);
    Row {
        interface: text(&status["interface"]["name"]),
        version: text(&status["program_version"]),
        uptime_s: status["uptime_s"].as_f64().map(|seconds| seconds as u64),
        clock_ahead_s: clock,
        peers: Some(peers.len()),
        peers_connected: Some(peers.iter().filter(is_connected).count()),
        paths: Some(paths.len()),
        paths_up: Some(paths.iter().filter(|path| is_up(path)).count()),
        send_rate_bps: Some(sum("send_rate_bps")),
        receive_rate_bps: Some(sum("receive_rate_bps")),
        lost_peers: lost.map(name).collect(),
        notices: status["notices"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|notice| text(&notice["text"]))
            .collect(),
        ..row
    }
}

/// What is wrong with a host, a line each.
fn problems(row: &Row) -> Vec<String> {
    let mut lines: Vec<String> = row.error.iter().cloned().collect();
    if !row.lost_peers.is_empty() {
        let more = row.lost_peers.len().saturating_sub(MAX_NAMES);
        let more = if more == 0 { String::new() } else { format!(" and {more} more") };
        lines.push(format!(
            "lost: {}{more}",
            row.lost_peers.iter().take(MAX_NAMES).cloned().collect::<Vec<_>>().join(", ")
        ));
    }
    if let Some(ahead) = row.clock_ahead_s.filter(|ahead| ahead.abs() > CLOCK_TOLERANCE) {
        lines.push(format!("its clock is {} s {}", ahead.abs(), if ahead > 0 { "ahead" } else { "behind" }));
    }
    lines.extend(row.notices.iter().cloned());
    lines
}

/// The columns of a host.
fn columns(row: &Row) -> [String; 7] {
    let number = |value: Option<usize>| value.map_or("-".to_owned(), |value| value.to_string());
    let share = |part, all| format!("{} of {}", number(part), number(all));
    let rate = |bps: Option<u64>| bps.map_or("-".to_owned(), |bps| format!("{:.1}", bps as f64 / 1e6));
    let state = if row.error.is_some() {
        "no answer"
    } else if problems(row).is_empty() {
        "well"
    } else {
        "look"
    };
    [
        row.name.clone(),
        state.to_owned(),
        row.version.clone().unwrap_or("-".to_owned()),
        share(row.peers_connected, row.peers),
        share(row.paths_up, row.paths),
        rate(row.send_rate_bps),
        rate(row.receive_rate_bps),
    ]
}

const HEADINGS: [&str; 7] = ["HOST", "STATE", "VERSION", "PEERS", "PATHS", "SENT Mbit/s", "RECEIVED Mbit/s"];

/// A line for each host, those with problems first, and their problems below.
fn table(rows: &[Row]) -> String {
    let rows = sorted(rows);
    let lines: Vec<[String; 7]> =
        std::iter::once(HEADINGS.map(str::to_owned)).chain(rows.iter().map(|row| columns(row))).collect();
    let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0);
    let widths: [usize; 7] = std::array::from_fn(width);
    let text = |line: &[String; 7]| {
        let cells = line.iter().zip(widths).map(|(cell, width)| format!("{cell:<width$}"));
        format!("{}\n", cells.collect::<Vec<_>>().join("  ").trim_end())
    };
    let mut table = text(&lines[0]);
    for (line, row) in lines[1..].iter().zip(rows) {
        table += &text(line);
        problems(row).iter().for_each(|problem| table += &format!("  {problem}\n"));
    }
    table
}

/// Hosts without an answer first, then those with problems, each in the order of the file.
fn sorted(rows: &[Row]) -> Vec<&Row> {
    let mut rows: Vec<&Row> = rows.iter().collect();
    rows.sort_by_key(|row| (row.error.is_none(), problems(row).is_empty()));
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::net::TcpListener;

    const STATUS: &str = r#"{"program_version":"0.1.0","interface":{"name":"rw0"},"uptime_s":12.5,"unix_ms":1000,
        "notices":[{"text":"eth2 is no path"}],"peers":[
        {"name":"a","handshake_age_ms":5.0,"paths":[{"state":"up","send_rate_bps":2000000},{"state":"down"}]},
        {"name":"b","handshake_age_ms":9.0,"paths":[{"state":"down"}]},
        {"name":"new","handshake_age_ms":null,"paths":[]}]}"#;

    #[test]
    fn a_file_of_hosts_is_read_and_its_errors_are_at_their_place() {
        let text = "[[server]]\nname = \"a\"\nurl = \"https://a.example/site7\"\ntoken-file = \"a.token\"\n";
        let hosts = parse_hosts(text, Path::new("/etc/ropewalk")).unwrap();
        assert_eq!(hosts[0].url, "https://a.example/site7/");
        assert_eq!(hosts[0].token_file.as_deref(), Some(Path::new("/etc/ropewalk/a.token")));
        for (text, phrase) in [
            (String::new(), "no [[server]]"),
            (format!("{text}{text}"), "another server `a`"),
            (text.replace("https", "ftp"), "not the address"),
            (text.replace("site7", "si\\\"te"), "not the address"),
            (text.replace("token-file", "token"), "token"),
        ] {
            let error = parse_hosts(&text, Path::new("")).unwrap_err();
            assert!(Error::new("servers.toml", &text, error).to_string().contains(phrase), "{text}");
        }
    }

    #[test]
    fn a_status_becomes_a_row_whatever_its_version() {
        let row = of_status(Row::default(), &serde_json::from_str(STATUS).unwrap());
        assert_eq!((row.peers, row.peers_connected, row.paths, row.paths_up), (Some(3), Some(1), Some(3), Some(1)));
        assert_eq!((row.send_rate_bps, &row.lost_peers[..]), (Some(2_000_000), &["b".to_owned()][..]));
        let text = problems(&row).join("\n");
        assert!(text.starts_with("lost: b\nits clock is ") && text.ends_with(" behind\neth2 is no path"), "{text}");
        assert_eq!(of_status(Row::default(), &serde_json::json!({ "peers": [] })).version, None);
    }

    #[test]
    fn hosts_that_do_not_answer_are_named_first_and_take_no_more_than_their_time() {
        if Command::new("curl").arg("--version").output().is_err() {
            return testing::skip(testing::Reason::Missing, "curl");
        }
        let bind = || TcpListener::bind("127.0.0.1:0").unwrap();
        let (good, silent, other) = (bind(), bind(), bind());
        let url = |listener: &TcpListener| format!("http://{}/", listener.local_addr().unwrap());
        let host = |name: &str, url: String| Host { name: name.into(), url, token_file: None, ca_file: None };
        let closed = url(&bind());
        let hosts = [
            host("good", url(&good)),
            host("silent", url(&silent)),
            host("closed", closed),
            host("other", url(&other)),
        ];
        let serve = |listener: TcpListener, body: &'static str| {
            thread::spawn(move || {
                let (mut stream, _) = listener.accept().unwrap();
                let mut request = [0; 1024];
                let len = stream.read(&mut request).unwrap();
                let answer =
                    format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}", body.len());
                stream.write_all(answer.as_bytes()).unwrap();
                String::from_utf8_lossy(&request[..len]).into_owned()
            })
        };
        let (asked, _other) = (serve(good, STATUS), serve(other, "<html>"));
        let rows = ask_all(&hosts, 2);
        assert!(asked.join().unwrap().starts_with("GET /v1/status HTTP/1.1\r\n"));
        let errors: Vec<_> = rows.iter().map(|row| row.error.is_some()).collect();
        assert_eq!(errors, [false, true, true, true], "{rows:?}");
        assert!(rows[3].error.as_deref().is_some_and(|error| error.contains("no status")), "{rows:?}");
        let text = table(&rows);
        let places: Vec<_> =
            ["silent", "closed", "other", "good"].iter().map(|name| text.find(&format!("\n{name} "))).collect();
        assert!(places.is_sorted() && places[0].is_some(), "{text}");
        let failure = verdict(&rows).unwrap_err().to_string();
        assert!(failure.contains("3 of 4 hosts do not answer: silent, closed, other"), "{failure}");
    }
}
