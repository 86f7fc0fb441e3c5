//! `bench tunnel cost`: what a download of bulk data costs the daemons of both ends, in system calls, sleeps and
//! instructions for 100 MB. Unlike CPU seconds, these counts are about the same on a machine that does other things too.
//!
//! `--build NAME=FILE` measures another program in the same rounds, one after the other. Daemons and links run with the
//! lowest real-time priority, so that other programs do not delay them. A second download has a call next to it.

use super::cpu_accounting::CpuAccounting;
use super::iperf3::{BulkTransfer, Direction};
use super::options::Options;
use super::peers::{CALL_INTERVAL, PAIRS, WARM_UP};
use super::probe;
use super::programs::Programs;
use super::running::RunningSystem;
use super::system::System;
use super::testbed::Testbed;
use crate::shell;
use serde_json::{Value, json};
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use std::{fs, iter, thread};

/// The systems that are measured.
const SYSTEMS: [System; 2] = [System::Ropewalk, System::RopewalkRelay];

/// What `perf` counts.
const EVENTS: [(&str, &str); 2] = [("raw_syscalls:sys_enter", "calls"), ("instructions", "minstructions")];
/// The kernel's clock tick in `/proc`: 100 per second on every common Linux.
const TICKS_PER_SECOND: f64 = 100.0;

/// Measures each build over each pair of links, or over the first of them.
pub(super) fn run(
    options: &Options,
    programs: &Programs,
    accounting: &CpuAccounting,
    rows: &mut Vec<Value>,
) -> Result<(), String> {
    let own = programs.real_time();
    let others = options.builds.iter().map(|(name, file)| (format!(" {name}"), own.with_ropewalk(file)));
    let builds: Vec<(String, Programs)> = iter::once((String::new(), own.clone())).chain(others).collect();
    let pairs = PAIRS.iter().filter(|pair| options.includes_bond(pair.name));
    for (pair, links) in pairs.flat_map(|pair| options.links.iter().map(move |links| (pair, *links))) {
        let Some(shapes) = pair.shapes.get(..links) else { continue };
        let testbed_name = if links == 1 { format!("{} alone", pair.name) } else { pair.name.to_owned() };
        let systems = options.systems.iter().filter(|system| SYSTEMS.contains(system));
        for (system, (build, programs)) in systems.flat_map(|system| builds.iter().map(move |build| (*system, build))) {
            let testbed = Testbed::make(programs, shapes)?;
            let name = format!("{}{build}", system.name());
            let row = json!({ "bench": "cost", "testbed": testbed_name, "system": name });
            rows.push(super::fill_row(row, system, &testbed, programs, accounting, |running| {
                measure(options.seconds, &testbed, accounting, running)
            })?);
        }
    }
    Ok(())
}

/// The counts of a download, and the round trips of a call next to another one.
fn measure(
    seconds: u32,
    testbed: &Testbed,
    accounting: &CpuAccounting,
    running: &RunningSystem,
) -> Result<Value, String> {
    let download = || BulkTransfer::run_in(Direction::Down, testbed, accounting, running, seconds, WARM_UP);
    let ends = ["server", "client"].iter().zip(&running.processes.0);
    let counts: Vec<Count> = ends.map(|(end, child)| Count::start(end, child.id())).collect();
    let transfer = download()?;
    let mut row = json!({ "down_mbps": transfer.gbps * 1e3, "other_cores": transfer.other_cores() });
    counts.into_iter().for_each(|count| count.stop(transfer.gigabytes, &mut row));
    let time = Duration::from_secs(u64::from(seconds + WARM_UP));
    let (transfer, call) = thread::scope(|scope| {
        let call = scope.spawn(|| probe::measure_rtt(testbed, running, CALL_INTERVAL, time));
        (download(), call.join().expect("it does not panic"))
    });
    let (_, call) = (transfer?, call?);
    row["call_p50_ms"] = json!(call.quantile(0.5).as_secs_f64() * 1e3);
    row["call_p99_ms"] = json!(call.quantile(0.99).as_secs_f64() * 1e3);
    Ok(row)
}

/// The counts of one daemon, which have begun.
struct Count {
    end: &'static str,
    pid: u32,
    perf: Option<Child>,
    cpu_s: f64,
    sleeps: f64,
}

impl Count {
    fn start(end: &'static str, pid: u32) -> Self {
        let events = EVENTS.map(|(event, _)| event).join(",");
        let mut perf = Command::new("perf");
        perf.args(["stat", "--field-separator", ";", "--event", &events, "--pid", &pid.to_string()]);
        let perf = perf.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().ok();
        Self { end, pid, perf, cpu_s: cpu_s(pid), sleeps: sleeps(pid) }
    }

    /// Adds the counts for 100 MB, and the CPU seconds for a gigabyte, of which there were so many.
    fn stop(self, gigabytes: f64, row: &mut Value) {
        let Self { end, pid, perf, cpu_s: prior_cpu_s, sleeps: prior_sleeps } = self;
        let mut add = |name: &str, value: f64| row[format!("{end}_{name}")] = json!(value);
        add("cpu_s_per_gb", (cpu_s(pid) - prior_cpu_s) / gigabytes);
        add("sleeps", (sleeps(pid) - prior_sleeps) / gigabytes / 10.0);
        let Some(perf) = perf else { return };
        shell::succeeds(&format!("kill -INT {}", perf.id()));
        let Ok(output) = perf.wait_with_output() else { return };
        for line in String::from_utf8_lossy(&output.stderr).lines() {
            let mut fields = line.split(';');
            // A counter that this machine does not have is no number.
            let Some(count) = fields.next().and_then(|field| field.parse::<f64>().ok()) else { continue };
            let event = fields.nth(1).unwrap_or_default();
            if let Some((_, name)) = EVENTS.iter().find(|(known, _)| *known == event) {
                let unit = if *name == "calls" { 1.0 } else { 1e6 };
                add(name, count / gigabytes / 10.0 / unit);
            }
        }
    }
}

/// User and system time of a process so far.
fn cpu_s(pid: u32) -> f64 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // The name may contain blanks: the fields after it are counted, of which the twelfth is `utime`.
    let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace().skip(11).take(2);
    fields.filter_map(|field| field.parse::<f64>().ok()).sum::<f64>() / TICKS_PER_SECOND
}

/// How often the threads of a process have waited.
fn sleeps(pid: u32) -> f64 {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let status = threads.filter_map(|thread| fs::read_to_string(thread.path().join("status")).ok());
    let of_thread = |status: String| {
        let line = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"))?;
        line.trim().parse::<f64>().ok()
    };
    status.filter_map(of_thread).sum()
}
