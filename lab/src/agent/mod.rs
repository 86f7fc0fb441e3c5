//! The agent, which carries out a run where its kernel is: makes the traffic, runs the events' commands, samples the
//! flows, and writes the results.
//!
//! The agent is one process. A socket belongs to the namespace in which it was made, so each thread enters its flow's
//! host.

mod cpu;
mod flow;
mod flow_counters;
mod flow_sockets;
mod netstat;
mod programs;
mod requests;
mod sampler;
mod schedule;
mod socket;
mod steal;
mod stream;
mod traffic;
mod udp;

use crate::namespace::{enter, within};
use crate::protocol::{FlowResults, Plan, RunResults};
use crate::{emulator, kernel_image, replay, testbed};
use sampler::FlowSampler;
use schedule::Task;
use std::collections::BTreeSet;
use std::error::Error;
use std::fs;
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};
use steal::StealMeter;
use units::Span;

/// The time from the agent's start to the beginning of the run, in which its threads start.
const PREPARATION: Duration = Duration::from_millis(200);

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

/// `agent PLAN RESULTS` carries out a plan; `agent replay SIDE SCRIPTS RECORDINGS [NAMESPACE]` plays scripts; `agent off` powers
/// the guest off, `agent preload` reads the program into the guest's memory. Outside of guests `agent link ...` is an
/// emulated link, `agent reap TESTBED` a reaper, `agent testbed LINK ...` a testbed, and `agent kernel-drill ...` a
/// campaign.
#[must_use]
pub fn main(arguments: &[String]) -> ExitCode {
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let outcome = match arguments[..] {
        ["off"] => power_off(),
        ["preload"] => preload(),
        ["link", ref link @ ..] => emulator::main(link),
        ["reap", testbed, ref run @ ..] => testbed::reap(testbed, run),
        ["testbed", ref links @ ..] => testbed::interactive_main(links),
        ["replay", side, scripts, recordings] => replay::play(side, scripts, recordings, None),
        ["replay", side, scripts, recordings, namespace] => replay::play(side, scripts, recordings, Some(namespace)),
        ["kernel-drill", ref options @ ..] => replay::campaign(options),
        [plan, answer] => carry_out(plan, answer),
        _ => Err("only the lab starts the lab's agent, inside its guests and for its testbeds".into()),
    };
    outcome.map_or_else(
        |error| {
            eprintln!("agent: {error}");
            ExitCode::FAILURE
        },
        |()| ExitCode::SUCCESS,
    )
}

/// Powers a guest off. Refused anywhere else, where it would power the machine off.
fn power_off() -> Outcome<()> {
    let is_uml = fs::read_to_string("/proc/cpuinfo")?.contains("User Mode Linux");
    if !is_uml && !fs::read_to_string("/proc/cmdline")?.contains(kernel_image::GUEST) {
        return Err("this is not a guest of the lab".into());
    }
    nix::sys::reboot::reboot(nix::sys::reboot::RebootMode::RB_POWER_OFF)?;
    Ok(())
}

/// Reads the files of this program, so that all their pages are in the guest's memory from now on. While a virtual machine
/// waits for a page, its clock advances to the next timer.
fn preload() -> Outcome<()> {
    let maps = fs::read_to_string("/proc/self/maps")?;
    let files: BTreeSet<&str> = maps.lines().filter_map(|line| Some(&line[line.find('/')?..])).collect();
    files.into_iter().try_for_each(|file| fs::read(file).map(drop))?;
    Ok(())
}

fn carry_out(plan: &str, results_file: &str) -> Outcome<()> {
    let plan: Plan = serde_json::from_slice(&fs::read(plan)?)?;
    let results = run(&plan)?;
    Ok(fs::write(results_file, serde_json::to_vec(&results)?)?)
}

fn run(plan: &Plan) -> Outcome<RunResults> {
    let flows = plan.flows.iter().map(traffic::open).collect::<Outcome<Vec<_>>>()?;
    let start = Instant::now() + PREPARATION;
    for (flow, spec) in flows.iter().zip(&plan.flows) {
        let end = spec.stop.map_or(plan.duration, |stop| stop.min(plan.duration));
        flow.begin([spec.start, end].map(|time| start + duration(time)))?;
    }
    let mut samplers = plan.flows.iter().map(FlowSampler::new).collect::<Outcome<Vec<_>>>()?;
    let (steal, meter) = (StealMeter::begin(), cpu::CpuMeter::begin(&plan.processes)?);
    let mut actual = duration(plan.duration);
    for (time, task) in schedule::tasks(plan) {
        if samplers.iter().all(FlowSampler::is_complete) {
            actual = start.elapsed();
            break;
        }
        let due = start + duration(time);
        sleep_until(due);
        match task {
            Task::Sample => {
                samplers.iter_mut().zip(&flows).try_for_each(|(sampler, flow)| sampler.sample(flow.counters()))?;
            }
            Task::Delivered => {
                samplers.iter_mut().zip(&flows).try_for_each(|(sampler, flow)| sampler.counters(flow.counters()))?;
            }
            Task::Stop(flow) => flows[flow].stop(),
            Task::Run(line) => drop(output_of(line)?),
        }
    }
    let run_all = |lines: &[String]| lines.iter().map(|line| output_of(line)).collect::<Outcome<Vec<_>>>();
    let (steal, cpu) = (steal.total(), meter.read()?);
    let (link_counters, tunnel_statuses) = (run_all(&plan.link_counters)?, run_all(&plan.tunnel_statuses)?);
    let flow_results = samplers.into_iter().zip(&flows).map(|(sampler, flow)| sampler.finish(flow.counters()));
    let mut flow_results = flow_results.collect::<Outcome<Vec<FlowResults>>>()?;
    flows.iter().try_for_each(|flow| flow.finish())?;
    run_all(&plan.stop_senders)?;
    std::thread::sleep(duration(plan.drain));
    for (results, flow) in flow_results.iter_mut().zip(&flows) {
        results.lost = flow.counters().sent().saturating_sub(flow.counters().count());
    }
    let (final_link_counters, device_counters) = (run_all(&plan.link_counters)?, run_all(&plan.device_counters)?);
    run_all(&plan.cleanup)?;
    Ok(RunResults {
        duration: span(actual),
        steal,
        flows: flow_results,
        link_counters,
        final_link_counters,
        tunnel_statuses,
        device_counters,
        cpu,
    })
}

/// Runs a command and returns its output. It gets a shell only if it needs one: in a guest in real time a process takes
/// a tenth of a second to start.
fn output_of(line: &str) -> Outcome<String> {
    let needs_shell = line.contains(['=', '\'', '"', '$', '>', '|']);
    let arguments: Vec<&str> = if needs_shell { vec!["sh", "-c", line] } else { line.split_whitespace().collect() };
    let output = Command::new(arguments[0]).args(&arguments[1..]).output()?;
    if !output.status.success() {
        return Err(format!("`{line}` failed: {}", String::from_utf8_lossy(&output.stderr)).into());
    }
    Ok(String::from_utf8(output.stdout)?)
}

/// Sleeps until this instant; not at all if it is in the past.
fn sleep_until(due: Instant) {
    std::thread::sleep(due.saturating_duration_since(Instant::now()));
}

fn duration(span: Span) -> Duration {
    Duration::from_nanos(span.as_nanos())
}

fn span(duration: Duration) -> Span {
    Span::from_nanos(duration.as_nanos() as u64)
}
