//! `cargo xtask bench tunnel`: compares the tunnel with other systems, on the same testbeds, in one run.
//!
//! Seven benchmarks:
//!
//! - `speed`: one TCP stream over 1, 2 and 4 links without limits. All ends share this machine's cores, so Gbit/s alone
//!   means little: compare CPU seconds per gigabyte, and the ratio to raw TCP just before and after.
//! - `bond`: two links with rates, delays and losses. The share of the sum of their rates that one TCP stream gets, and the
//!   delay of small datagrams at the same time.
//! - `small`: 10 000 round trips per second of small datagrams: the time that the tunnel adds to the median.
//! - `hostile`: the goodput and the round trips of an honest peer while another peer attacks the server, as ratios to those
//!   just before.
//!
//! - `peers`, if it is named: the alternatives for bonding uplinks, over fibre, LTE, satellite and policed links.
//! - `cost`, if it is named: system calls, sleeps and instructions of both daemons for 100 MB.
//! - `clients`, if it is named: the cost of a thousand idle clients for a server, and the time that one more takes.
//!
//! Everything runs in namespaces that the lab's agent makes and removes. A system that is not installed is skipped with
//! the reason. The CPU time of other processes on the machine is shown: if it is high, the results are meaningless.

mod baselines;
mod bonding;
pub(crate) mod calls;
pub(crate) mod clients;
mod cost;
mod cpu_accounting;
pub(crate) mod field;
pub(crate) mod hostile;
mod iperf3;
pub(crate) mod links;
mod options;
mod peers;
pub(crate) mod probe;
mod programs;
mod ropewalk;
mod running;
mod system;
mod table;
mod testbed;

use crate::shell;
use cpu_accounting::CpuAccounting;
use iperf3::BulkTransfer;
use options::{Bench, Options};
use programs::Programs;
use running::RunningSystem;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::time::Duration;
use system::System;
use testbed::Testbed;

/// Two links between the hosts: name, both shapes, and the sum of their rates in Mbit/s.
const BONDS: &[(&str, [&str; 2], f64)] = &[
    ("T100+40", ["rate=100mbit queue=50ms", "rate=40mbit queue=50ms"], 140.0),
    ("D1", ["rate=100mbit delay=10ms queue=100ms", "rate=100mbit delay=10ms queue=100ms"], 200.0),
    ("D2", ["rate=100mbit delay=10ms queue=100ms", "rate=50mbit delay=30ms queue=100ms"], 150.0),
    ("D3", ["rate=100mbit delay=8ms queue=60ms", "rate=30mbit delay=40ms jitter=8ms loss=0.5% queue=200ms"], 130.0),
];
/// Numbers of links in `speed`.
const LINK_COUNTS: [usize; 3] = [1, 2, 4];
/// Seconds of a transfer over shaped links that are not measured.
const WARM_UP: u32 = 2;
/// Time between two probes in `bond`.
const PROBE_INTERVAL: Duration = Duration::from_millis(20);
/// Time between two probes in `small`.
const SMALL_PROBE_INTERVAL: Duration = Duration::from_micros(100);

/// Measures and prints.
pub(crate) fn run(arguments: &[&str]) -> Result<(), String> {
    let options = Options::parse(arguments)?;
    let programs = Programs::find()?;
    let accounting = CpuAccounting::open();
    let mut rows = Vec::new();
    for _ in 0..options.runs {
        for bench in &options.benches {
            match bench {
                Bench::Speed => speed(&options, &programs, &accounting, &mut rows)?,
                Bench::Bond => bond(&options, &programs, &accounting, &mut rows)?,
                Bench::Small => small(&options, &programs, &accounting, &mut rows)?,
                Bench::Peers => peers::run(&options, &programs, &accounting, &mut rows)?,
                Bench::Cost => cost::run(&options, &programs, &accounting, &mut rows)?,
                Bench::Clients => clients::run(&options, &programs, &accounting, &mut rows)?,
                Bench::Hostile => hostile::run(&options, &programs, &accounting, &mut rows)?,
            }
        }
    }
    match options.json {
        true => shell::print(&format!("{:#}\n", json!({ "accounting": accounting.description(), "rows": rows }))),
        false => shell::print(&table::format_tables(&rows, accounting.description())),
    }
}

/// Measures each system between two runs of raw TCP.
fn speed(
    options: &Options,
    programs: &Programs,
    accounting: &CpuAccounting,
    rows: &mut Vec<Value>,
) -> Result<(), String> {
    for links in LINK_COUNTS.into_iter().filter(|links| options.links.contains(links)) {
        let mut latest_raw = None;
        for system in options.systems.iter().filter(|system| system.supports_links(links) && **system != System::Raw) {
            let measure_raw = |rows: &mut Vec<Value>| {
                let row = measure_speed(options, programs, accounting, System::Raw, links)?;
                rows.push(row.clone());
                Ok::<f64, String>(row["gbps"].as_f64().unwrap_or_default())
            };
            let raw_before = latest_raw.map_or_else(|| measure_raw(rows), Ok)?;
            let mut row = measure_speed(options, programs, accounting, *system, links)?;
            if row["skipped"].is_null() {
                let raw_after = measure_raw(rows)?;
                row["ratio"] = json!(row["gbps"].as_f64().unwrap_or_default() / f64::midpoint(raw_before, raw_after));
                latest_raw = Some(raw_after);
            } else {
                latest_raw = Some(raw_before);
            }
            rows.push(row);
        }
    }
    Ok(())
}

fn measure_speed(
    options: &Options,
    programs: &Programs,
    accounting: &CpuAccounting,
    system: System,
    links: usize,
) -> Result<Value, String> {
    let testbed = Testbed::make(programs, &vec![""; links])?;
    let row = json!({ "bench": "speed", "testbed": format!("{links} link{}", if links > 1 { "s" } else { "" }), "system": system.name() });
    fill_row(row, system, &testbed, programs, accounting, |running| {
        let transfer = BulkTransfer::run(&testbed, accounting, running, options.seconds, 0)?;
        Ok(transfer.as_row())
    })
}

fn bond(
    options: &Options,
    programs: &Programs,
    accounting: &CpuAccounting,
    rows: &mut Vec<Value>,
) -> Result<(), String> {
    for (name, shapes, sum_mbps) in BONDS.iter().filter(|(name, ..)| options.includes_bond(name)) {
        for system in options.systems.iter().filter(|system| system.supports_links(2)) {
            let testbed = Testbed::make(programs, shapes)?;
            let row = json!({ "bench": "bond", "testbed": name, "system": system.name() });
            rows.push(fill_row(row, *system, &testbed, programs, accounting, |running| {
                let idle_rtts = probe::measure_rtt(&testbed, running, PROBE_INTERVAL, Duration::from_secs(1))?;
                let time = Duration::from_secs(u64::from(options.seconds + WARM_UP));
                let (transfer, loaded_rtts) = std::thread::scope(|scope| {
                    let pings = scope.spawn(|| probe::measure_rtt(&testbed, running, PROBE_INTERVAL, time));
                    let transfer = BulkTransfer::run(&testbed, accounting, running, options.seconds, WARM_UP);
                    (transfer, pings.join().expect("it does not panic"))
                });
                let (transfer, loaded_rtts) = (transfer?, loaded_rtts?);
                let mut row = transfer.as_row();
                row["share"] = json!(transfer.gbps * 1e3 / sum_mbps);
                row["ping_idle_ms"] = json!(idle_rtts.quantile(0.5).as_secs_f64() * 1e3);
                row["ping_p50_ms"] = json!(loaded_rtts.quantile(0.5).as_secs_f64() * 1e3);
                row["ping_p95_ms"] = json!(loaded_rtts.quantile(0.95).as_secs_f64() * 1e3);
                row["ping_lost"] = json!(loaded_rtts.lost());
                Ok(row)
            })?);
        }
    }
    Ok(())
}

fn small(
    options: &Options,
    programs: &Programs,
    accounting: &CpuAccounting,
    rows: &mut Vec<Value>,
) -> Result<(), String> {
    let mut raw_us = None;
    for system in options.systems.iter().filter(|system| system.supports_links(1) && **system != System::Mptcp) {
        let testbed = Testbed::make(programs, &[""])?;
        let row = json!({ "bench": "small", "testbed": "1 link", "system": system.name() });
        let row = fill_row(row, *system, &testbed, programs, accounting, |running| {
            let measurement = accounting.start();
            let round_trips = probe::measure_rtt(
                &testbed,
                running,
                SMALL_PROBE_INTERVAL,
                Duration::from_secs(u64::from(options.seconds)),
            )?;
            let cost = measurement.stop();
            let median = round_trips.quantile(0.5).as_secs_f64() * 1e6;
            let mut row = json!({
                "rtt_p50_us": median, "rtt_p95_us": round_trips.quantile(0.95).as_secs_f64() * 1e6, "per_second": round_trips.per_second(),
                "ping_lost": round_trips.lost(), "cores": cost.cores(), "other_cores": cost.other_cores(),
            });
            if *system == System::Raw {
                raw_us = Some(median);
            }
            row["added_p50_us"] = json!(raw_us.map(|raw| median - raw));
            Ok(row)
        })?;
        rows.push(row);
    }
    Ok(())
}

/// Starts `system` and fills `row` with the results of `measure`, or with the reason why the system does not run.
fn fill_row(
    mut row: Value,
    system: System,
    testbed: &Testbed,
    programs: &Programs,
    accounting: &CpuAccounting,
    measure: impl FnOnce(&RunningSystem) -> Result<Value, String>,
) -> Result<Value, String> {
    eprintln!("{} {} {}", row["bench"].as_str().unwrap_or(""), row["testbed"].as_str().unwrap_or(""), system.name());
    let measured = system.start(testbed, programs, accounting).and_then(|running| measure(&running));
    let fields = measured.unwrap_or_else(|reason| {
        eprintln!("  skipped: {reason}");
        json!({ "skipped": reason })
    });
    for (key, value) in fields.as_object().into_iter().flatten() {
        row[key] = value.clone();
    }
    Ok(row)
}

/// The folder of keys, configurations, logs and installed programs.
fn scratch_folder() -> PathBuf {
    shell::root().join("target/bench-tunnel")
}
