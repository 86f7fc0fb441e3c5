//! The agent inside the guest: makes the traffic, runs the events' commands at their instants, samples, answers.
//!
//! One process. A socket belongs to the namespace in which it was made, so the threads make theirs in the flow's hosts.

mod counters;
mod cpu;
mod datagrams;
mod pulse;
mod requests;
mod stream;
mod tally;
mod tcp_info;
mod timetable;
mod tool;
mod traffic;
mod watcher;

use crate::namespace::{enter, within};
use crate::plan::{Observation, Observed, Plan};
use crate::{bed, emulate};
use pulse::Pulse;
use std::error::Error;
use std::fs;
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};
use timetable::Task;
use units::Span;
use watcher::Watcher;

/// From the agent's start to the beginning of the run: time for its threads to get ready.
const PREPARATION: Duration = Duration::from_millis(200);

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

/// `agent PLAN ANSWER` carries out a plan; `agent off` switches the guest off. Outside of guests `agent link ...`,
/// `agent keep BED` and `agent bed LINK ...` are the processes of test beds.
#[must_use]
pub fn main(words: &[String]) -> ExitCode {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let done = match words[..] {
        ["off"] => switch_off(),
        ["link", ref link @ ..] => emulate::main(link),
        ["keep", bed] => bed::keep(bed, None),
        ["keep", bed, folder] => bed::keep(bed, Some(folder)),
        ["bed", ref links @ ..] => bed::hold(links),
        [plan, answer] => carry_out(plan, answer),
        _ => Err("the lab's agent is a helper: it runs inside the lab's guests and beside its test beds".into()),
    };
    done.map_or_else(
        |why| {
            eprintln!("agent: {why}");
            ExitCode::FAILURE
        },
        |()| ExitCode::SUCCESS,
    )
}

/// Only the guest's first process may be our parent: elsewhere this would switch off the machine.
fn switch_off() -> Outcome<()> {
    if !fs::read_to_string("/proc/cpuinfo")?.contains("User Mode Linux") {
        return Err("this is no guest of the lab".into());
    }
    nix::sys::reboot::reboot(nix::sys::reboot::RebootMode::RB_POWER_OFF)?;
    Ok(())
}

fn carry_out(plan: &str, answer: &str) -> Outcome<()> {
    let plan: Plan = serde_json::from_slice(&fs::read(plan)?)?;
    let observed = run(&plan)?;
    Ok(fs::write(answer, serde_json::to_vec(&observed)?)?)
}

fn run(plan: &Plan) -> Outcome<Observed> {
    let flows = plan.flows.iter().map(traffic::open).collect::<Outcome<Vec<_>>>()?;
    let zero = Instant::now() + PREPARATION;
    for (flow, it) in flows.iter().zip(&plan.flows) {
        let end = it.stop.map_or(plan.duration, |stop| stop.min(plan.duration));
        flow.begin([it.start, end].map(|at| zero + duration(at)))?;
    }
    let mut watchers = plan.flows.iter().map(Watcher::new).collect::<Outcome<Vec<_>>>()?;
    let (pulse, meter) = (Pulse::begin(), cpu::Meter::begin(&plan.processes)?);
    let mut length = duration(plan.duration);
    for (at, task) in timetable::of(plan) {
        if watchers.iter().all(Watcher::has_seen_all) {
            length = zero.elapsed();
            break;
        }
        let due = zero + duration(at);
        until(due);
        match task {
            Task::Sample => {
                watchers.iter_mut().zip(&flows).try_for_each(|(watcher, flow)| watcher.sample(flow.tally()))?;
            }
            Task::Tally => {
                watchers.iter_mut().zip(&flows).try_for_each(|(watcher, flow)| watcher.tally(flow.tally()))?;
            }
            Task::Stop(flow) => flows[flow].stop(),
            Task::Run(line) => drop(printed(line)?),
        }
    }
    let all = |lines: &[String]| lines.iter().map(|line| printed(line)).collect::<Outcome<Vec<_>>>();
    let (stolen, cpu) = (pulse.stolen(), meter.read()?);
    let (counters, statuses) = (all(&plan.counters)?, all(&plan.statuses)?);
    let seen = watchers.into_iter().zip(&flows).map(|(watcher, flow)| watcher.finish(flow.tally()));
    let mut seen = seen.collect::<Outcome<Vec<Observation>>>()?;
    flows.iter().try_for_each(|flow| flow.finish())?;
    all(&plan.silence)?;
    std::thread::sleep(duration(plan.drain));
    for (seen, flow) in seen.iter_mut().zip(&flows) {
        seen.lost = flow.tally().sent().saturating_sub(flow.tally().count());
    }
    let (late_counters, totals) = (all(&plan.counters)?, all(&plan.totals)?);
    all(&plan.last)?;
    Ok(Observed { length: span(length), stolen, flows: seen, counters, late_counters, statuses, totals, cpu })
}

/// What a command prints. One that needs no shell gets none: its start takes a guest in real time a tenth of a second.
fn printed(line: &str) -> Outcome<String> {
    let needs_shell = line.contains(['=', '\'', '"', '$', '>', '|']);
    let words: Vec<&str> = if needs_shell { vec!["sh", "-c", line] } else { line.split_whitespace().collect() };
    let output = Command::new(words[0]).args(&words[1..]).output()?;
    if !output.status.success() {
        return Err(format!("`{line}` failed: {}", String::from_utf8_lossy(&output.stderr)).into());
    }
    Ok(String::from_utf8(output.stdout)?)
}

/// Sleeps until then; not at all if that is over.
fn until(due: Instant) {
    std::thread::sleep(due.saturating_duration_since(Instant::now()));
}

fn duration(span: Span) -> Duration {
    Duration::from_nanos(span.as_nanos())
}

fn span(duration: Duration) -> Span {
    Span::from_nanos(duration.as_nanos() as u64)
}
