//! The page of a trace in Chromium, used by its keys and its pointer.

use crate::page::page;
use crate::{FLOWS, experiment};
use ropewalk_trace::events;
use std::fs;
use std::path::Path;
use std::process::Command;
use testing::{Reason, skip};

/// A page with the page of a trace in a frame as wide as a phone, which writes what that reports.
const FRAME: &str = "<!doctype html><meta charset=utf-8><body><script>addEventListener('message', event => \
    document.body.append(Object.assign(document.createElement('p'), { textContent: event.data })))</script>\
    <iframe src=page.html width=400 height=900 style='border: 0'></iframe>";

/// What the page reports, by name, and the lines of the console; none, and the test is skipped, without Chromium.
fn reports(folder: &Path) -> Option<(String, Vec<String>)> {
    if !Command::new("chromium").arg("--version").output().is_ok_and(|output| output.status.success()) {
        skip(Reason::Missing, "chromium");
        return None;
    }
    let mut command = Command::new("chromium");
    command.args(["--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr"]);
    command.args(["--virtual-time-budget=60000", "--dump-dom"]);
    command.arg(format!("--user-data-dir={}", folder.join("browser").display()));
    let output = command.arg(format!("file://{}", folder.join("frame.html").display())).output().expect("Chromium");
    let log = String::from_utf8_lossy(&output.stderr);
    let console = log.lines().filter(|line| line.contains(":CONSOLE")).map(str::to_owned).collect();
    Some((String::from_utf8_lossy(&output.stdout).into_owned(), console))
}

#[test]
fn the_page_shows_the_counts_of_the_record_and_is_used_by_keys_and_pointer() {
    let folder = tempfile::tempdir().expect("a folder");
    let (text, run) = page(&experiment(FLOWS[1]), &folder.path().join("page.html"));
    let driven = text.replace("</body>", &format!("<script>{}</script></body>", include_str!("drive.js")));
    fs::write(folder.path().join("page.html"), driven).expect("a page");
    fs::write(folder.path().join("frame.html"), FRAME).expect("a frame");
    let Some((document, console)) = reports(folder.path()) else { return };
    let report = |name: &str| {
        let (_, rest) = document.split_once(&format!("<p>{name}: ")).unwrap_or_else(|| panic!("{name}: {document}"));
        rest.split("</p>").next().unwrap_or_default().to_owned()
    };
    assert_eq!(report("done"), "");
    assert_eq!(console, [""; 0], "no messages");
    let flow = &run.flows[0];
    let lost = flow.dropped_packets;
    assert_eq!(report("packets"), format!("{},{},{lost}", flow.sent_packets, flow.retransmitted_packets));
    assert_eq!(report("losses"), format!("{lost},{lost}"), "each says where");
    assert_eq!(report("too wide"), "0");
    assert!(report("colours").parse::<u32>().is_ok_and(|colours| colours > 10), "something is drawn");
    assert_eq!(report("wrong"), "0", "bands and ranges");
    let is_choice =
        |text: &str| text.contains(". It saw wifi: ") && text.contains("; lte: ") && text.contains(" buffered");
    assert!(report("choice").starts_with("Scheduler at ") && report("choice").contains(" gets data "));
    assert!(is_choice(&report("choice")), "{}", report("choice"));
    assert!(report("packet").contains(" Chosen at ") && is_choice(&report("packet")), "{}", report("packet"));
    let (rows, new) =
        (events(&experiment(FLOWS[1]), 7).expect("a run").1, flow.sent_packets - flow.retransmitted_packets);
    let samples = rows.iter().filter(|row| row.event == "rtt").count();
    assert_eq!(report("samples"), samples.to_string());
    assert!(report("chosen").ends_with(",true") && report("chosen").split(',').next() >= Some(&*new.to_string()));
    // Enter shows 4 ms with the mark in them. A drag takes the second quarter of 4 s, and a wheel zooms in by e^½.
    assert_eq!([report("zoomed"), report("zoomed out"), report("all")], ["4000 1", "8000", "0 4000000"]);
    assert_eq!([report("dragged"), report("wheel"), report("panels")], ["100,200", "0.152", "number of data"]);
}
