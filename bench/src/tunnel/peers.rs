//! `bench tunnel peers`: the alternatives for bonding uplinks, over the same links, one after another.
//!
//! Each system gets three runs over each pair of links: bulk down (from the server to the client), bulk up, and a failover,
//! in which the first link goes down. A call runs next to the bulk flow: 50 datagrams per second that the server echoes.

use super::cpu_accounting::CpuAccounting;
use super::iperf3::{BulkTransfer, Direction};
use super::options::Options;
use super::probe;
use super::programs::Programs;
use super::running::RunningSystem;
use super::system::System;
use super::testbed::Testbed;
use serde_json::{Value, json};
use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Time between two datagrams of the call.
pub(super) const CALL_INTERVAL: Duration = Duration::from_millis(20);
/// Seconds before a transfer is measured.
pub(super) const WARM_UP: u32 = 3;
/// Time from the start of the failover's transfer until the first link goes down, and until it is up again.
const DARK: [Duration; 2] = [Duration::from_secs(6), Duration::from_secs(10)];
/// The interval of a recorded trace in which its rate is taken as constant.
const TRACE_INTERVAL: Duration = Duration::from_millis(200);
/// Bytes of one delivery opportunity of a trace (mahimahi's format).
const OPPORTUNITY_BYTES: f64 = 1504.0;

/// How a link changes while it carries packets.
#[derive(Clone, Copy, Debug)]
enum Change {
    /// The link does not change.
    None,
    /// The rate, in both directions, follows a trace of delivery opportunities.
    Trace(&'static str),
    /// A handover every 15 seconds: down for 100 ms, then another rate (Mbit/s) and delay (ms), in turn.
    HandOver([(u32, u32); 3]),
}

/// Two links.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pair {
    pub(super) name: &'static str,
    /// From the client to the server / from the server to the client.
    pub(super) shapes: [&'static str; 2],
    changes: [Change; 2],
}

pub(super) const PAIRS: [Pair; 4] = [
    Pair {
        name: "fibre+LTE",
        shapes: [
            "rate=40mbit delay=5ms queue=60ms / rate=100mbit delay=5ms queue=60ms",
            "rate=15mbit delay=25ms jitter=8ms queue=250ms / rate=40mbit delay=25ms jitter=8ms queue=250ms",
        ],
        changes: [Change::None, Change::None],
    },
    Pair {
        name: "LTE+LTE",
        shapes: ["rate=20mbit delay=25ms jitter=5ms queue=250ms", "rate=20mbit delay=35ms jitter=5ms queue=250ms"],
        changes: [Change::Trace("lte-a-made.trace"), Change::Trace("lte-b-made.trace")],
    },
    Pair {
        name: "Starlink+LTE",
        shapes: [
            "rate=15mbit delay=20ms jitter=5ms queue=80ms / rate=100mbit delay=20ms jitter=5ms queue=80ms",
            "rate=15mbit delay=30ms jitter=8ms queue=250ms / rate=40mbit delay=30ms jitter=8ms queue=250ms",
        ],
        changes: [Change::HandOver([(100, 20), (60, 35), (140, 15)]), Change::None],
    },
    Pair {
        name: "fibre+policed",
        shapes: [
            "rate=40mbit delay=5ms queue=60ms / rate=100mbit delay=5ms queue=60ms",
            "police=10mbit:30kB delay=30ms queue=250ms",
        ],
        changes: [Change::None, Change::None],
    },
];

/// Measures each system over each pair of links.
pub(super) fn run(
    options: &Options,
    programs: &Programs,
    accounting: &CpuAccounting,
    rows: &mut Vec<Value>,
) -> Result<(), String> {
    for pair in PAIRS.iter().filter(|pair| options.includes_bond(pair.name)) {
        for system in &options.systems {
            let mut row = json!({ "bench": "peers", "testbed": pair.name, "system": system.name() });
            for (name, measure) in [("down", Run::Down), ("up", Run::Up), ("failover", Run::Failover)] {
                let testbed = Testbed::make(programs, &pair.shapes)?;
                row = super::fill_row(row, *system, &testbed, programs, accounting, |running| {
                    eprintln!("  {name}");
                    measure.measure(pair, options, &testbed, accounting, running)
                })?;
                if !row["skipped"].is_null() || (*system == System::Raw && measure == Run::Up) {
                    break;
                }
            }
            rows.push(row);
        }
    }
    Ok(())
}

/// A run of a system over a pair of links.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Run {
    Down,
    Up,
    Failover,
}

impl Run {
    fn measure(
        self,
        pair: &Pair,
        options: &Options,
        testbed: &Testbed,
        accounting: &CpuAccounting,
        running: &RunningSystem,
    ) -> Result<Value, String> {
        let direction = if self == Self::Up { Direction::Up } else { Direction::Down };
        let seconds = if self == Self::Failover { (DARK[1].as_secs() + 5) as u32 } else { options.seconds };
        let warm_up = if self == Self::Failover { 0 } else { WARM_UP };
        let time = Duration::from_secs(u64::from(seconds + warm_up));
        let is_over = AtomicBool::new(false);
        let (transfer, call) = std::thread::scope(|scope| {
            let call = scope.spawn(|| probe::measure_rtt(testbed, running, CALL_INTERVAL, time));
            let start = Instant::now();
            let is_over = &is_over;
            match self {
                Self::Failover => drop(scope.spawn(move || go_dark(testbed, start))),
                _ => {
                    for (link, change) in pair.changes.into_iter().enumerate() {
                        scope.spawn(move || change.apply(testbed, link, start, is_over));
                    }
                }
            }
            let transfer = BulkTransfer::run_in(direction, testbed, accounting, running, seconds, warm_up);
            let call = call.join().expect("it does not panic");
            is_over.store(true, Ordering::Relaxed);
            (transfer, call)
        });
        let (transfer, call) = (transfer?, call?);
        Ok(match self {
            Self::Down => json!({
                "down_mbps": transfer.gbps * 1e3,
                "call_p50_ms": call.quantile(0.5).as_secs_f64() * 1e3,
                "call_p99_ms": call.quantile(0.99).as_secs_f64() * 1e3,
                "call_lost": call.lost(),
                "cpu_s_per_gb": transfer.cpu_s_per_gb(),
                "other_cores": transfer.other_cores(),
            }),
            Self::Up => json!({
                "up_mbps": transfer.gbps * 1e3,
                "call_up_p99_ms": call.quantile(0.99).as_secs_f64() * 1e3,
            }),
            Self::Failover => json!({
                "call_gap_ms": call.longest_gap().as_secs_f64() * 1e3,
                "bulk_gap_ms": transfer.longest_gap_ms,
            }),
        })
    }
}

/// Takes the first link down and up again.
fn go_dark(testbed: &Testbed, start: Instant) {
    for (at, state) in DARK.into_iter().zip(["down", "up"]) {
        sleep_until(start + at);
        testbed.change(0, &format!("both {state}"));
    }
}

impl Change {
    /// Changes a link until the run is over.
    fn apply(self, testbed: &Testbed, link: usize, start: Instant, is_over: &AtomicBool) {
        match self {
            Self::None => {}
            Self::Trace(file) => {
                for (index, mbps) in rates(file).iter().cycle().enumerate() {
                    sleep_until(start + TRACE_INTERVAL * index as u32);
                    if is_over.load(Ordering::Relaxed) {
                        return;
                    }
                    testbed.change(link, &format!("both rate={mbps:.3}mbit"));
                }
            }
            Self::HandOver(states) => {
                for (index, (mbps, delay)) in states.into_iter().cycle().enumerate() {
                    // The first handover is in the middle of the first third of the measured time.
                    let at = start + Duration::from_secs(u64::from(WARM_UP) + 4 + 15 * index as u64);
                    while Instant::now() < at {
                        if is_over.load(Ordering::Relaxed) {
                            return;
                        }
                        std::thread::sleep(Duration::from_millis(50));
                    }
                    testbed.change(link, "both down");
                    std::thread::sleep(Duration::from_millis(100));
                    testbed.change(link, &format!("both delay={delay}ms"));
                    testbed.change(link, &format!("reverse rate={mbps}mbit"));
                    testbed.change(link, "both up");
                }
            }
        }
    }
}

/// The rates of a trace below `scenarios/traces`, Mbit/s, one per [`TRACE_INTERVAL`]; at least 0.1.
fn rates(file: &str) -> Vec<f64> {
    let file = crate::shell::root().join("scenarios/traces").join(file);
    let text = fs::read_to_string(&file).unwrap_or_default();
    let times: Vec<u64> = text.lines().filter_map(|line| line.trim().parse().ok()).collect();
    let interval_ms = TRACE_INTERVAL.as_millis() as u64;
    let intervals = times.last().map_or(1, |last| last.div_ceil(interval_ms).max(1));
    let mut counts = vec![0_u32; intervals as usize];
    for time in times {
        let index = (time / interval_ms).min(intervals - 1);
        counts[index as usize] += 1;
    }
    let mbps = |count: u32| f64::from(count) * OPPORTUNITY_BYTES * 8.0 / 1e6 / TRACE_INTERVAL.as_secs_f64();
    counts.into_iter().map(|count| mbps(count).max(0.1)).collect()
}

fn sleep_until(time: Instant) {
    std::thread::sleep(time.saturating_duration_since(Instant::now()));
}
