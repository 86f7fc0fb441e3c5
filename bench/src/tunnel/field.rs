//! `cargo xtask bench field`: the cases and criteria of `scenarios/studies/field.toml` with the real daemon, over emulated
//! links between namespaces, in less time: the event of a case happens after 12 s instead of 15 s.
//!
//! Two calls of 50 packets per second and one bulk flow (iperf3, CUBIC) in each direction, through a tunnel over a fixed
//! line and a mobile one. An event happens after [`EVENT`] seconds; a failed link comes back at [`RETURN`].

use super::calls::{Calls, Heard};
use super::cpu_accounting::CpuAccounting;
use super::programs::Programs;
use super::ropewalk::{self, INNER_ADDRESSES};
use super::testbed::{CLIENT, SERVER, Testbed};
use crate::shell;
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::process::Stdio;
use std::time::{Duration, Instant};

const EVENT: f64 = 12.0;
const RETURN: f64 = 24.0;
/// Duration of a run.
const END: f64 = 32.0;
/// Duration if a call has two seconds to move to another path; these must hold less than 5 % of its packets.
const LONG_END: f64 = 46.0;
/// Time at which calls begin.
const CALL_START: f64 = 1.0;
/// The default scheduler.
const SCHEDULER: &str = "overflow";
/// Seconds between two counts of a bulk flow's bytes.
const INTERVAL_S: f64 = 0.1;
/// TCP payload in a packet of a link: 36.8 of 40 Mbit/s, as the study has it.
const PAYLOAD: f64 = 0.92;
/// The links: the first is the fixed line, the second the mobile one.
const LINKS: [&str; 2] =
    ["rate=40mbit delay=10ms jitter=1ms queue=100ms", "rate=20mbit delay=25ms jitter=3ms queue=200ms"];
/// The bounds of the varying rate, Mbit/s.
const MOVING_MBPS: [u64; 2] = [16, 40];
const MOVING_INTERVAL: Duration = Duration::from_millis(100);

/// A criterion that a run must meet.
#[derive(Clone, Copy, Debug)]
enum Criterion {
    /// No gap of 150 ms or more at the receivers of calls.
    Gap,
    /// At most three packets of a call in a row are lost.
    Losses,
    /// The 99th percentile of the delay of calls is below 150 ms.
    P99,
    /// The 95th percentile of the delay of calls is below 140 ms.
    P95,
    /// Bulk in both directions has at least these rates of payload, Mbit/s, from one second to another.
    Bulk(f64, f64, [f64; 2]),
}

/// A case of the study.
struct Case {
    name: &'static str,
    links: [&'static str; 2],
    /// Time, link and change of each event.
    events: &'static [(f64, usize, &'static str)],
    criteria: &'static [Criterion],
}

const fn both(mbps: f64) -> [f64; 2] {
    [mbps * PAYLOAD, mbps * PAYLOAD]
}

const COLD_START: Criterion = Criterion::Bulk(7.0, EVENT, both(0.6 * 60.0));

const CASES: [Case; 9] = [
    Case {
        name: "dark-fixed",
        links: LINKS,
        events: &[(EVENT, 0, "both down"), (RETURN, 0, "both up")],
        criteria: &[
            Criterion::Gap,
            Criterion::Losses,
            COLD_START,
            Criterion::Bulk(EVENT + 3.0, RETURN, both(0.75 * 20.0)),
            Criterion::Bulk(RETURN + 2.0, RETURN + 4.0, both(20.0)),
        ],
    },
    Case {
        name: "dark-mobile",
        links: LINKS,
        events: &[(EVENT, 1, "both down"), (RETURN, 1, "both up")],
        criteria: &[
            Criterion::Gap,
            Criterion::Losses,
            COLD_START,
            Criterion::Bulk(EVENT + 3.0, RETURN, both(0.75 * 40.0)),
            Criterion::Bulk(RETURN + 2.0, RETURN + 4.0, both(40.0)),
        ],
    },
    Case {
        name: "dark-one-way",
        links: LINKS,
        events: &[(EVENT, 0, "forward down"), (RETURN, 0, "forward up")],
        criteria: &[
            Criterion::Gap,
            Criterion::Losses,
            Criterion::Bulk(EVENT + 3.0, RETURN, [0.75 * 20.0 * PAYLOAD, 0.0]),
            Criterion::Bulk(RETURN + 2.0, RETURN + 4.0, [20.0 * PAYLOAD, 0.0]),
        ],
    },
    Case {
        name: "falls-to-50",
        links: LINKS,
        events: &[(EVENT, 0, "both rate=20mbit")],
        criteria: &[
            Criterion::Gap,
            Criterion::Losses,
            Criterion::P99,
            Criterion::Bulk(EVENT + 5.0, END, both(0.75 * 40.0)),
        ],
    },
    Case {
        name: "falls-to-20",
        links: LINKS,
        events: &[(EVENT, 0, "both rate=8mbit")],
        criteria: &[
            Criterion::Gap,
            Criterion::Losses,
            Criterion::P99,
            Criterion::Bulk(EVENT + 5.0, END, both(0.75 * 28.0)),
        ],
    },
    Case {
        name: "rises",
        links: ["rate=8mbit delay=10ms jitter=1ms queue=100ms", LINKS[1]],
        events: &[(EVENT, 0, "both rate=40mbit")],
        criteria: &[Criterion::Gap, Criterion::Losses, Criterion::Bulk(EVENT + 10.0, END, both(0.75 * 60.0))],
    },
    Case {
        name: "standby",
        links: [
            "rate=100mbit delay=10ms jitter=1ms queue=100ms / rate=10mbit delay=10ms jitter=1ms queue=100ms",
            "rate=20mbit delay=25ms jitter=3ms queue=200ms police=500kbit:16kb",
        ],
        events: &[],
        criteria: &[
            Criterion::Gap,
            Criterion::Losses,
            Criterion::Bulk(10.0, END, [0.75 * 100.0 * PAYLOAD, 0.75 * 10.0 * PAYLOAD]),
        ],
    },
    Case {
        name: "moving",
        links: LINKS,
        events: &[],
        criteria: &[Criterion::Gap, Criterion::Losses, Criterion::Bulk(10.0, END, both(0.75 * 36.0))],
    },
    Case {
        name: "delayed",
        links: LINKS,
        events: &[(EVENT, 0, "both delay=110ms")],
        criteria: &[Criterion::Losses, COLD_START, Criterion::P95],
    },
];

/// `[--only CASE,...] [--scheduler NAME] [--json]`
pub(crate) fn run(arguments: &[&str]) -> Result<(), String> {
    let (mut only, mut scheduler, mut as_json) = (Vec::new(), SCHEDULER, false);
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().copied().ok_or_else(|| format!("{argument} needs a value"));
        match *argument {
            "--only" => only = value()?.split(',').collect(),
            "--scheduler" => scheduler = value()?,
            "--json" => as_json = true,
            option => return Err(format!("bench field has no option `{option}`")),
        }
    }
    if let Some(unknown) = only.iter().find(|name| CASES.iter().all(|case| case.name != **name)) {
        return Err(format!("no case `{unknown}`; there are {}", CASES.map(|case| case.name).join(", ")));
    }
    let (programs, accounting) = (Programs::find()?, CpuAccounting::open());
    let mut rows = Vec::new();
    for case in CASES.iter().filter(|case| only.is_empty() || only.contains(&case.name)) {
        eprintln!("field {}", case.name);
        rows.push(case.measure(&programs, &accounting, scheduler)?);
    }
    match as_json {
        true => shell::print(&format!("{:#}\n", json!({ "scheduler": scheduler, "rows": rows }))),
        false => shell::print(&table(&rows)),
    }
}

/// Intervals of a bulk flow: start and end, s, and the number of bytes that arrived.
struct Bulk(Vec<(f64, f64, f64)>);

impl Bulk {
    fn mbps(&self, from: f64, until: f64) -> f64 {
        let bytes: f64 = self.0.iter().filter(|(start, end, _)| *start >= from && *end <= until).map(|(.., n)| n).sum();
        bytes * 8.0 / 1e6 / (until - from)
    }
}

impl Case {
    fn end(&self) -> f64 {
        if self.criteria.iter().any(|criterion| matches!(criterion, Criterion::P95)) { LONG_END } else { END }
    }

    fn measure(&self, programs: &Programs, accounting: &CpuAccounting, scheduler: &str) -> Result<Value, String> {
        let testbed = Testbed::make(programs, &self.links)?;
        let _running = ropewalk::start_with_class(scheduler, &testbed, programs, accounting)?;
        let start = Instant::now();
        let testbed = &testbed;
        std::thread::scope(|scope| {
            let bulk = [CLIENT, SERVER].map(|sender| scope.spawn(move || transfer(testbed, sender, start, self.end())));
            scope.spawn(move || self.change_links(testbed, start));
            sleep_until(start, CALL_START);
            let time = Duration::from_secs_f64(self.end() - CALL_START);
            let calls = [CLIENT, SERVER].map(|host| Calls::start(testbed, host, INNER_ADDRESSES[1 - host], time));
            let [there, back] = calls.map(|calls| calls.and_then(Calls::finish));
            let bulk = bulk.map(|thread| thread.join().expect("it does not panic"));
            let [bulk_there, bulk_back] = bulk;
            Ok(self.row(&[there?, back?], &[bulk_there?, bulk_back?]))
        })
    }

    /// Changes the links at the times of the case.
    fn change_links(&self, testbed: &Testbed, start: Instant) {
        for (at, link, change) in self.events {
            sleep_until(start, *at);
            testbed.change(*link, change);
        }
        if self.name == "moving" {
            // Rates by a linear congruential generator (Knuth's MMIX), the same in each run.
            let (mut state, [min, max]) = (1_u64, MOVING_MBPS);
            while start.elapsed().as_secs_f64() < self.end() {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                testbed.change(0, &format!("both rate={}mbit", min + (state >> 33) % (max - min + 1)));
                std::thread::sleep(MOVING_INTERVAL);
            }
        }
    }

    fn row(&self, calls: &[Heard; 2], bulk: &[Bulk; 2]) -> Value {
        let of_calls = |value: fn(&Heard) -> f64| [value(&calls[0]), value(&calls[1])];
        let gap = of_calls(|heard| heard.longest_gap_ms);
        let lost = of_calls(|heard| heard.longest_loss);
        let p99 = of_calls(|heard| heard.p99_ms);
        let mut verdicts = Vec::new();
        for criterion in self.criteria {
            for (way, name) in ["there", "back"].into_iter().enumerate() {
                let (says, value, holds) = match *criterion {
                    Criterion::Gap => ("gap below 150 ms".to_owned(), gap[way], gap[way] < 150.0),
                    Criterion::Losses => ("at most 3 lost in a row".to_owned(), lost[way], lost[way] <= 3.0),
                    Criterion::P99 => ("p99 below 150 ms".to_owned(), p99[way], p99[way] < 150.0),
                    Criterion::P95 => ("p95 below 140 ms".to_owned(), calls[way].p95_ms, calls[way].p95_ms < 140.0),
                    Criterion::Bulk(from, until, min) => {
                        let value = bulk[way].mbps(from, until);
                        (format!("{from} to {until} s at least {:.1} Mbit/s", min[way]), value, value >= min[way])
                    }
                };
                if !matches!(criterion, Criterion::Bulk(.., min) if min[way] == 0.0) {
                    verdicts.push(json!({ "criterion": format!("{name}: {says}"), "value": value, "holds": holds }));
                }
            }
        }
        let bulk_mbps = [0, 1].map(|way: usize| bulk[way].mbps(CALL_START, self.end() - 1.0));
        json!({
            "case": self.name, "gap_ms": gap, "lost_in_a_row": lost, "p99_ms": p99, "bulk_mbps": bulk_mbps, "verdicts": verdicts,
        })
    }
}

fn sleep_until(start: Instant, seconds: f64) {
    std::thread::sleep((start + Duration::from_secs_f64(seconds)).saturating_duration_since(Instant::now()));
}

/// A bulk flow from one host to the other, which counts the bytes.
fn transfer(testbed: &Testbed, sender: usize, start: Instant, time: f64) -> Result<Bulk, String> {
    let mut server = testbed.command(sender, "iperf3 --server --one-off");
    let mut server = server.stdout(Stdio::null()).spawn().map_err(|error| format!("iperf3: {error}"))?;
    std::thread::sleep(Duration::from_millis(300));
    let address = INNER_ADDRESSES[sender];
    let line =
        format!("iperf3 --client {address} --reverse --congestion cubic --time {time} --interval {INTERVAL_S} --json");
    let began = start.elapsed().as_secs_f64();
    let printed = testbed.run(1 - sender, &line);
    let _ = server.kill();
    let _ = server.wait();
    let report: Value = serde_json::from_str(&printed?).map_err(|_| "iperf3 printed no report".to_owned())?;
    let number = |value: &Value| value.as_f64().unwrap_or_default();
    let intervals = report["intervals"].as_array().into_iter().flatten().map(|interval| &interval["sum"]);
    let times =
        intervals.map(|sum| (began + number(&sum["start"]), began + number(&sum["end"]), number(&sum["bytes"])));
    Ok(Bulk(times.collect()))
}

/// The rows as text: up / down, then the criteria that are not met.
fn table(rows: &[Value]) -> String {
    let mut text = format!(
        "{:<13} {:>11} {:>9} {:>11} {:>11}  verdicts\n",
        "there / back", "gap ms", "lost", "p99 ms", "bulk Mbit/s"
    );
    let (mut held, mut all) = (0, 0);
    for row in rows {
        let pair = |key: &str, digits: usize| {
            let value = |way: usize| row[key][way].as_f64().unwrap_or(f64::NAN);
            format!("{:.digits$} / {:.digits$}", value(0), value(1))
        };
        let verdicts = row["verdicts"].as_array().map_or(&[][..], Vec::as_slice);
        let failed: Vec<&Value> = verdicts.iter().filter(|verdict| verdict["holds"] == false).collect();
        (held, all) = (held + verdicts.len() - failed.len(), all + verdicts.len());
        let _ = writeln!(
            text,
            "{:<13} {:>11} {:>9} {:>11} {:>11}  {} of {} hold",
            row["case"].as_str().unwrap_or_default(),
            pair("gap_ms", 0),
            pair("lost_in_a_row", 0),
            pair("p99_ms", 0),
            pair("bulk_mbps", 1),
            verdicts.len() - failed.len(),
            verdicts.len()
        );
        for verdict in failed {
            let criterion = verdict["criterion"].as_str().unwrap_or_default();
            let _ =
                writeln!(text, "  does not hold: {criterion}: {:.1}", verdict["value"].as_f64().unwrap_or(f64::NAN));
        }
    }
    let _ = writeln!(text, "{held} of {all} verdicts hold");
    text
}
