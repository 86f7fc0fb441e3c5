//! `ropewalk fleet` asks daemons over HTTP, and a host that is gone is named.

use crate::dashboard::{ADDRESS, pair};
use crate::tunnel_pair::program;
use lab::testbed::LEFT;
use serde_json::Value;
use std::fs;
use std::process::{Command, Output};
use testing::{Reason, skip};

#[test]
fn several_hosts_are_shown_together_with_their_tokens_and_one_that_is_gone_is_named() {
    if Command::new("curl").arg("--version").output().is_err() {
        return skip(Reason::Missing, "curl");
    }
    let Some(pair) = pair("dashboard-token-file = \"token\"\n") else { return };
    let folder = pair.folder(LEFT);
    let host = |name: &str, address: &str, token: &str| {
        format!("[[server]]\nname = \"{name}\"\nurl = \"http://{address}\"\ntoken-file = \"{token}\"\n")
    };
    fs::write(folder.join("wrong"), "AAAA\n").unwrap();
    let hosts = [
        host("here", ADDRESS, "token"),
        host("refused", ADDRESS, "wrong"),
        host("gone", "127.0.0.1:9", "token"),
        host("no-token", ADDRESS, "missing"),
    ];
    fs::write(folder.join("servers.toml"), hosts.concat()).unwrap();
    let fleet = |options: &[&str]| -> Output {
        let mut command = pair.testbed.command(LEFT, &program());
        command.arg("fleet").arg(folder.join("servers.toml")).args(options).output().unwrap()
    };
    let page = folder.join("fleet.html");
    let output = fleet(&["--json", "--page", page.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(1));
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(stderr.contains("3 of 4 hosts do not answer: refused, gone, no-token"), "{stderr}");
    let rows: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap();
    let here = &rows[0];
    assert_eq!((&here["error"], &here["peers_connected"], &here["paths_up"]), (&Value::Null, &1.into(), &2.into()));
    assert!(here["version"].is_string() && here["clock_ahead_s"].as_i64().is_some_and(|s| s.abs() <= 60), "{here}");
    assert!(rows[1]["error"].as_str().is_some_and(|error| error.contains("401")), "{rows:?}");
    assert!(rows[3]["error"].as_str().is_some_and(|error| error.contains("missing: ")), "{rows:?}");
    let page = fs::read_to_string(page).unwrap();
    assert!(page.contains("<td>1 of 1</td><td>2 of 2</td>") && page.contains("(!) Ropewalk: 4 hosts"), "{page}");
    let table = String::from_utf8(fleet(&[]).stdout).unwrap();
    assert!(table.contains("\nhere ") && table.find("\ngone ") < table.find("\nhere "), "{table}");
}
