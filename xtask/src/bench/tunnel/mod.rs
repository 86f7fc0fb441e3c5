//! `cargo xtask bench tunnel`: our tunnel beside its peers, on the same beds, in one run.
//!
//! Three benches, as wide as a person's question each:
//!
//! - `speed`: one TCP stream over 1, 2 and 4 links without limits. All ends share this machine's cores, so Gbit/s says
//!   little by itself: compare CPU seconds a gigabyte, and the ratio to raw TCP just before and after.
//! - `bond`: two links with rates, delays and losses. The share of the sum of their rates that one TCP stream gets, and
//!   how long small datagrams take beside it.
//! - `small`: 10 000 round trips a second of small datagrams: what the tunnel adds to their median.
//!
//! Everything runs in namespaces that the lab's agent makes and removes. A peer that is not installed is skipped with a
//! word. Load of the machine that is not ours is shown: numbers beside much of it mean nothing.

mod account;
mod bed;
mod load;
mod options;
mod ours;
mod peers;
pub(crate) mod probe;
mod subject;
mod table;

use crate::shell;
use account::Account;
use bed::Bed;
use load::Load;
use options::{Bench, Options};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::time::Duration;
use subject::{Carrier, Subject, Tools};

/// Two links between the hosts: name, both shapes, and the sum of their rates in Mbit/s.
const BONDS: &[(&str, [&str; 2], f64)] = &[
    ("T100+40", ["rate=100mbit queue=50ms", "rate=40mbit queue=50ms"], 140.0),
    ("D1", ["rate=100mbit delay=10ms queue=100ms", "rate=100mbit delay=10ms queue=100ms"], 200.0),
    ("D2", ["rate=100mbit delay=10ms queue=100ms", "rate=50mbit delay=30ms queue=100ms"], 150.0),
    ("D3", ["rate=100mbit delay=8ms queue=60ms", "rate=30mbit delay=40ms jitter=8ms loss=0.5% queue=200ms"], 130.0),
];
/// Numbers of links in `speed`.
const LINKS: [usize; 3] = [1, 2, 4];
/// What a tunnel gets to warm up before it is measured over shaped links, seconds.
const WARM_UP: u32 = 2;
/// Between two probes beside a load, and between two in `small`.
const PROBE_GAP: Duration = Duration::from_millis(20);
const SMALL_GAP: Duration = Duration::from_micros(100);

/// Builds, measures and prints.
pub(crate) fn run(words: &[&str]) -> Result<(), String> {
    let options = Options::read(words)?;
    shell::run("cargo build --quiet --release --package ropewalk --package ropewalk-lab --package xtask")?;
    let tools = Tools::find(&super::release_folder()?)?;
    let account = Account::open();
    let mut rows = Vec::new();
    for _ in 0..options.runs {
        for bench in &options.benches {
            match bench {
                Bench::Speed => speed(&options, &tools, &account, &mut rows)?,
                Bench::Bond => bond(&options, &tools, &account, &mut rows)?,
                Bench::Small => small(&options, &tools, &account, &mut rows)?,
            }
        }
    }
    match options.json {
        true => shell::say(&format!("{:#}\n", json!({ "account": account.what(), "rows": rows }))),
        false => shell::say(&table::print(&rows, account.what())),
    }
}

/// Each subject between two runs of raw TCP.
fn speed(options: &Options, tools: &Tools, account: &Account, rows: &mut Vec<Value>) -> Result<(), String> {
    for links in LINKS.into_iter().filter(|links| options.links.contains(links)) {
        let mut before = None;
        for subject in options.subjects.iter().filter(|subject| subject.carries(links) && **subject != Subject::Raw) {
            let raw = |rows: &mut Vec<Value>| {
                let row = one_speed(options, tools, account, Subject::Raw, links)?;
                rows.push(row.clone());
                Ok::<f64, String>(row["gbps"].as_f64().unwrap_or_default())
            };
            let first = before.map_or_else(|| raw(rows), Ok)?;
            let mut row = one_speed(options, tools, account, *subject, links)?;
            if row["skipped"].is_null() {
                let last = raw(rows)?;
                row["ratio"] = json!(row["gbps"].as_f64().unwrap_or_default() / f64::midpoint(first, last));
                before = Some(last);
            } else {
                before = Some(first);
            }
            rows.push(row);
        }
    }
    Ok(())
}

fn one_speed(
    options: &Options,
    tools: &Tools,
    account: &Account,
    subject: Subject,
    links: usize,
) -> Result<Value, String> {
    let bed = Bed::make(tools, &vec![""; links])?;
    let row = json!({ "bench": "speed", "bed": format!("{links} link{}", if links > 1 { "s" } else { "" }), "subject": subject.name() });
    with(row, subject, &bed, tools, account, |carrier| {
        let load = Load::run(&bed, account, carrier, options.seconds, 0)?;
        Ok(load.as_row())
    })
}

fn bond(options: &Options, tools: &Tools, account: &Account, rows: &mut Vec<Value>) -> Result<(), String> {
    for (name, shapes, sum_mbps) in BONDS.iter().filter(|(name, ..)| options.wants(name)) {
        for subject in options.subjects.iter().filter(|subject| subject.carries(2)) {
            let bed = Bed::make(tools, shapes)?;
            let row = json!({ "bench": "bond", "bed": name, "subject": subject.name() });
            rows.push(with(row, *subject, &bed, tools, account, |carrier| {
                let idle = probe::between(&bed, carrier, PROBE_GAP, Duration::from_secs(1))?;
                let time = Duration::from_secs(u64::from(options.seconds + WARM_UP));
                let (load, loaded) = std::thread::scope(|scope| {
                    let pings = scope.spawn(|| probe::between(&bed, carrier, PROBE_GAP, time));
                    let load = Load::run(&bed, account, carrier, options.seconds, WARM_UP);
                    (load, pings.join().expect("it does not panic"))
                });
                let (load, loaded) = (load?, loaded?);
                let mut row = load.as_row();
                row["share"] = json!(load.gbps * 1e3 / sum_mbps);
                row["ping_idle_ms"] = json!(idle.at(0.5).as_secs_f64() * 1e3);
                row["ping_p50_ms"] = json!(loaded.at(0.5).as_secs_f64() * 1e3);
                row["ping_p95_ms"] = json!(loaded.at(0.95).as_secs_f64() * 1e3);
                row["ping_lost"] = json!(loaded.lost());
                Ok(row)
            })?);
        }
    }
    Ok(())
}

fn small(options: &Options, tools: &Tools, account: &Account, rows: &mut Vec<Value>) -> Result<(), String> {
    let mut raw_us = None;
    for subject in options.subjects.iter().filter(|subject| subject.carries(1) && **subject != Subject::Mptcp) {
        let bed = Bed::make(tools, &[""])?;
        let row = json!({ "bench": "small", "bed": "1 link", "subject": subject.name() });
        let row = with(row, *subject, &bed, tools, account, |carrier| {
            let cost = account.start();
            let times = probe::between(&bed, carrier, SMALL_GAP, Duration::from_secs(u64::from(options.seconds)))?;
            let cost = cost.stop();
            let median = times.at(0.5).as_secs_f64() * 1e6;
            let mut row = json!({
                "rtt_p50_us": median, "rtt_p95_us": times.at(0.95).as_secs_f64() * 1e6, "per_second": times.per_second(),
                "ping_lost": times.lost(), "cores": cost.cores(), "foreign_cores": cost.foreign_cores(),
            });
            if *subject == Subject::Raw {
                raw_us = Some(median);
            }
            row["added_p50_us"] = json!(raw_us.map(|raw| median - raw));
            Ok(row)
        })?;
        rows.push(row);
    }
    Ok(())
}

/// Fills `row` with what `work` measures of a subject that is up, or with why there is none.
fn with(
    mut row: Value,
    subject: Subject,
    bed: &Bed,
    tools: &Tools,
    account: &Account,
    work: impl FnOnce(&Carrier) -> Result<Value, String>,
) -> Result<Value, String> {
    eprintln!("{} {} {}", row["bench"].as_str().unwrap_or(""), row["bed"].as_str().unwrap_or(""), subject.name());
    let measured = subject.start(bed, tools, account).and_then(|carrier| work(&carrier));
    let fields = measured.unwrap_or_else(|why| {
        eprintln!("  skipped: {why}");
        json!({ "skipped": why })
    });
    for (key, value) in fields.as_object().into_iter().flatten() {
        row[key] = value.clone();
    }
    Ok(row)
}

/// Where keys, configurations and peers' programs lie.
fn scratch() -> PathBuf {
    shell::root().join("target/bench-tunnel")
}
