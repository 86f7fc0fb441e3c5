//! The page in Chromium, driven by its DevTools protocol over two pipes.

use super::{Server, run};
use crate::program;
use serde_json::{Value, json};
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use testing::{Reason, eventually, skip};

/// A headless Chromium.
struct Browser {
    process: Child,
    requests: File,
    answers: BufReader<File>,
    latest: u64,
}

impl Browser {
    /// Starts it with named pipes in `folder`; `None`, and the test is skipped, without Chromium.
    fn start(folder: &Path) -> Option<Self> {
        if !Command::new("chromium").arg("--version").output().is_ok_and(|output| output.status.success()) {
            skip(Reason::Missing, "chromium");
            return None;
        }
        let [requests, answers] = ["requests", "answers"].map(|name| folder.join(name));
        assert!(Command::new("mkfifo").args([&requests, &answers]).status().unwrap().success());
        let line = "exec chromium --headless --no-sandbox --disable-gpu --remote-debugging-pipe --user-data-dir=profile \
                    about:blank 3<requests 4>answers";
        let mut command = Command::new("sh");
        command.args(["-c", line]).current_dir(folder).stdout(Stdio::null()).stderr(Stdio::null());
        let process = command.spawn().unwrap();
        let requests = File::options().write(true).open(requests).unwrap();
        Some(Self { process, requests, answers: BufReader::new(File::open(answers).unwrap()), latest: 0 })
    }

    /// The result of a command; events on the way to it are left out.
    fn send(&mut self, method: &str, parameters: &Value, session: Option<&str>) -> Value {
        self.latest += 1;
        let mut message = json!({ "id": self.latest, "method": method, "params": parameters });
        if let Some(session) = session {
            message["sessionId"] = session.into();
        }
        self.requests.write_all(format!("{message}\0").as_bytes()).unwrap();
        loop {
            let mut text = Vec::new();
            self.answers.read_until(0, &mut text).unwrap();
            text.pop();
            let answer: Value = serde_json::from_slice(&text).unwrap();
            if answer["id"] == self.latest {
                return answer["result"].clone();
            }
        }
    }

    /// A tab with this page: its session.
    fn open(&mut self, url: &str) -> String {
        let target = self.send("Target.createTarget", &json!({ "url": url }), None)["targetId"].clone();
        let session = self.send("Target.attachToTarget", &json!({ "targetId": target, "flatten": true }), None);
        session["sessionId"].as_str().unwrap().to_owned()
    }

    /// The value of an expression in a tab.
    fn evaluate(&mut self, tab: &str, expression: &str) -> Value {
        let parameters = json!({ "expression": expression, "returnByValue": true });
        self.send("Runtime.evaluate", &parameters, Some(tab))["result"]["value"].clone()
    }

    /// Waits until an expression in a tab is true.
    fn wait(&mut self, tab: &str, expression: &str) {
        assert!(eventually(|| self.evaluate(tab, expression) == true), "{expression}");
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

const DONE: &str = "document.documentElement.dataset.state === 'done'";
const DIGEST: &str = "document.getElementById('answer').dataset.digest";

/// Moves a key's slider to a place of a thousand, as a hand does, and returns the value in the field.
fn move_slider(key: &str, place: u32) -> String {
    format!(
        "(() => {{ const box = document.querySelector('[data-key=\"{key}\"]'); const slider = box.querySelector('[type=range]'); \
         slider.value = {place}; slider.dispatchEvent(new Event('input')); slider.dispatchEvent(new Event('change')); \
         return box.querySelector('[type=text]').value; }})()"
    )
}

#[test]
fn a_moved_slider_shows_the_run_of_the_command_line_and_leaves_another_tab_alone() {
    let Some(mut browser) = Browser::start(&program::folder("explore-browser")) else { return };
    let server = Server::start("one-link");
    let [one, two] = [0, 1].map(|_| browser.open(&format!("{}#s=one-link&set=duration%3D5s", server.url)));
    [&one, &two].into_iter().for_each(|tab| browser.wait(tab, DONE));
    let first = run("one-link", &["duration=5s"])["digest"].clone();
    assert_eq!(browser.evaluate(&one, DIGEST), first);
    let rate = browser.evaluate(&one, &move_slider("path.link.rate", 300));
    let rate = rate.as_str().unwrap();
    assert_ne!(rate, "100mbit");
    let moved = run("one-link", &["duration=5s", &format!("path.link.rate={rate}")]);
    browser.wait(&one, &format!("{DONE} && {DIGEST} === {}", moved["digest"]));
    let goodput = browser.evaluate(&one, "document.querySelector('#numbers tbody td').textContent");
    let goodput: f64 = goodput.as_str().unwrap().parse().unwrap();
    let expected = moved["flows"][0]["goodput_mbps"].as_f64().unwrap();
    assert!((goodput / expected - 1.0).abs() < 5e-3, "three digits of {expected}: {goodput}");
    assert_eq!(browser.evaluate(&two, DIGEST), first, "the other tab");
    // A wrong value is refused at its field; undo takes the latest value back.
    let field = "document.querySelector('[data-key=\"path.link.delay\"] [type=text]')";
    browser.evaluate(&one, &format!("{field}.value = 'soon'; {field}.dispatchEvent(new Event('input'))"));
    let message = "document.querySelector('.control.wrong .error')?.textContent ?? ''";
    browser.wait(&one, &format!("({message}).includes('soon')"));
    browser.evaluate(&one, "document.getElementById('undo').click()");
    browser.wait(
        &one,
        &format!("{DONE} && !document.querySelector('.control.wrong') && {DIGEST} === {}", moved["digest"]),
    );
}

/// The text of each cell of a table's body, row by row.
fn cells(table: &str) -> String {
    format!(
        "[...document.querySelectorAll('#{table} tbody tr')].map(row => [...row.children].map(cell => cell.textContent))"
    )
}

#[test]
fn pinned_runs_are_rows_of_the_table_and_a_sweep_is_drawn_over_its_values() {
    let Some(mut browser) = Browser::start(&program::folder("explore-sweep")) else { return };
    let server = Server::start("one-link");
    let tab = browser.open(&format!("{}#s=one-link&set=duration%3D3s", server.url));
    browser.wait(&tab, DONE);
    let pin = "document.getElementById('pin').click()";
    browser.evaluate(&tab, pin);
    browser.wait(&tab, &format!("{DONE} && {}.length === 2", cells("numbers")));
    let rate = browser.evaluate(&tab, &move_slider("path.link.rate", 300));
    let set = format!("path.link.rate={}", rate.as_str().unwrap());
    let moved = run("one-link", &["duration=3s", &set]);
    browser.wait(&tab, &format!("{DONE} && {DIGEST} === {}", moved["digest"]));
    browser.evaluate(&tab, pin);
    browser.wait(&tab, &format!("{DONE} && {}.length === 3", cells("numbers")));
    let rows = browser.evaluate(&tab, &cells("numbers"));
    assert_eq!((&rows[1][0], &rows[2][0]), (&json!("A×"), &json!("B×")), "{rows}");
    assert_eq!(rows[0][2], rows[2][2], "the second pin is the present run: {rows}");
    assert_eq!((&rows[1][3], &rows[0][3]), (&json!("–"), &rows[2][3]), "differences are to A: {rows}");
    assert_eq!(rows[2][6], format!("duration=3s, {set}"), "{rows}");
    // The address has the pins.
    let link = browser.evaluate(&tab, "location.href");
    let other = browser.open(link.as_str().unwrap());
    browser.wait(&other, &format!("{DONE} && {}.length === 3", cells("numbers")));
    assert_eq!(browser.evaluate(&other, &cells("numbers")), rows);
    browser.evaluate(&tab, "document.querySelector('#numbers [aria-label=\"Remove A\"]').click()");
    browser.wait(&tab, &format!("{DONE} && {}.map(row => row[0]).join() === 'now,B×'", cells("numbers")));
    // The sweep begins with seven values about the present one, and follows what is typed.
    browser.evaluate(&tab, "document.querySelector('[data-key=\"path.link.delay\"] .sweep').click()");
    let done = "document.getElementById('swept').dataset.state === 'done'";
    browser.wait(&tab, &format!("{done} && {}.length === 7", cells("swept-numbers")));
    let sweep = |values: &str| {
        format!(
            "(() => {{ document.getElementById('swept-values').value = '{values}'; \
             document.querySelector('#swept [type=submit]').click(); }})()"
        )
    };
    browser.evaluate(&tab, &sweep("5ms, 80ms"));
    browser.wait(&tab, &format!("{done} && {}.map(row => row[0]).join() === '5ms,80ms'", cells("swept-numbers")));
    let far = run("one-link", &["duration=3s", &set, "path.link.delay=80ms"]);
    let expected = far["flows"][0]["goodput_mbps"].as_f64().unwrap();
    let shown = browser.evaluate(&tab, &cells("swept-numbers"));
    let goodput: f64 = shown[1][2].as_str().unwrap().parse().unwrap();
    assert!((goodput / expected - 1.0).abs() < 5e-3, "three digits of {expected}: {shown}");
    assert_eq!(browser.evaluate(&tab, "document.querySelectorAll('#swept-figure svg').length > 0"), true);
    browser.evaluate(&tab, &sweep("soon"));
    browser.wait(&tab, "document.getElementById('swept-error').textContent.includes('soon')");
}
