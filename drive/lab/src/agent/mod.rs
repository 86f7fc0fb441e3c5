//! The agent inside the guest: makes the traffic, runs the events' commands at their instants, samples, answers.
//!
//! One process. A socket belongs to the namespace in which it was made, so the threads make theirs in the flow's hosts.

mod counters;
mod pulse;
mod tcp_info;
mod timetable;
mod traffic;

use crate::namespace::{enter, within};
use crate::plan::{Observation, Observed, Plan, Sample};
use crate::{bed, emulate};
use pulse::Pulse;
use std::error::Error;
use std::fs;
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};
use tcp_info::Questioner;
use timetable::Task;
use traffic::Flow;
use units::Span;

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
        ["keep", bed] => bed::keep(bed),
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
    let zero = Instant::now() + PREPARATION;
    let flows = plan.flows.iter().enumerate().map(|(k, it)| Flow::begin(k, zero + duration(it.start)));
    let flows: Vec<Flow> = flows.collect::<Outcome<_>>()?;
    let mut watchers = (0..flows.len()).map(Watcher::new).collect::<Outcome<Vec<_>>>()?;
    let pulse = Pulse::begin();
    for (at, task) in timetable::of(plan) {
        let due = zero + duration(at);
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
        match task {
            Task::Sample => watchers.iter_mut().zip(&flows).try_for_each(|(watcher, flow)| watcher.sample(flow))?,
            Task::Stop(flow) => flows[flow].stop(),
            Task::Run(line) => drop(printed(line)?),
        }
    }
    let all = |lines: &[String]| lines.iter().map(|line| printed(line)).collect::<Outcome<Vec<_>>>();
    let (stolen, counters) = (pulse.stolen(), all(&plan.counters)?);
    let observations = watchers.into_iter().enumerate().map(|(k, watcher)| watcher.finish(k));
    let flows = observations.collect::<Outcome<_>>()?;
    all(&plan.silence)?;
    std::thread::sleep(duration(plan.drain));
    let totals = all(&plan.totals)?;
    Ok(Observed { stolen, flows, counters, totals })
}

/// Samples one flow.
struct Watcher {
    source: Questioner,
    sink: Questioner,
    seen: Observation,
}

impl Watcher {
    fn new(k: usize) -> Outcome<Self> {
        let source = within(&format!("s{k}"), Questioner::new)?;
        let sink = within(&format!("d{k}"), Questioner::new)?;
        Ok(Self { source, sink, seen: Observation::default() })
    }

    fn sample(&mut self, flow: &Flow) -> Outcome<()> {
        let mut sample = Sample { delivered: flow.delivered(), ..Sample::default() };
        if let Some([source, sink]) = flow.ends() {
            sample.tcp = self.source.ask(source, sink)?.as_ref().map(tcp_info::read);
            sample.arrived = self.sink.ask(sink, source)?.map_or(0, |info| info.data_segs_in);
        }
        self.seen.samples.push(sample);
        Ok(())
    }

    fn finish(mut self, k: usize) -> Outcome<Observation> {
        self.seen.episodes = within(&format!("s{k}"), counters::episodes)?;
        Ok(self.seen)
    }
}

/// What a command prints. It is split at blanks.
fn printed(line: &str) -> Outcome<String> {
    let mut words = line.split_whitespace();
    let output = Command::new(words.next().unwrap_or_default()).args(words).output()?;
    if !output.status.success() {
        return Err(format!("`{line}` failed: {}", String::from_utf8_lossy(&output.stderr)).into());
    }
    Ok(String::from_utf8(output.stdout)?)
}

fn duration(span: Span) -> Duration {
    Duration::from_nanos(span.as_nanos())
}
