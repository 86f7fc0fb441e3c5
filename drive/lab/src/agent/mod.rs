//! The agent inside the guest: makes the traffic, runs the events' commands at their instants, samples, answers.
//!
//! One process. A socket belongs to the namespace in which it was made, so the threads make theirs in the flow's hosts.

mod counters;
mod cpu;
mod pulse;
mod tcp_info;
mod timetable;
mod traffic;

use crate::namespace::{enter, within};
use crate::plan::{Multipath, Observation, Observed, Plan, Sample, Traffic};
use crate::{bed, emulate};
use pulse::Pulse;
use std::error::Error;
use std::fs;
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};
use tcp_info::{Connection, Questioner};
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
    let zero = Instant::now() + PREPARATION;
    let flows = plan.flows.iter().map(|it| Flow::begin(it, zero + duration(it.start)));
    let flows: Vec<Flow> = flows.collect::<Outcome<_>>()?;
    let mut watchers = plan.flows.iter().map(Watcher::new).collect::<Outcome<Vec<_>>>()?;
    let (pulse, meter) = (Pulse::begin(), cpu::Meter::begin(&plan.processes)?);
    let mut length = duration(plan.duration);
    for (at, task) in timetable::of(plan) {
        if watchers.iter().all(Watcher::has_seen_all) {
            length = zero.elapsed();
            break;
        }
        let due = zero + duration(at);
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
        match task {
            Task::Sample => watchers.iter_mut().zip(&flows).try_for_each(|(watcher, flow)| watcher.sample(flow))?,
            Task::Tally => watchers.iter_mut().zip(&flows).for_each(|(watcher, flow)| watcher.tally(flow)),
            Task::Stop(flow) => flows[flow].stop(),
            Task::Run(line) => drop(printed(line)?),
        }
    }
    let all = |lines: &[String]| lines.iter().map(|line| printed(line)).collect::<Outcome<Vec<_>>>();
    let (stolen, cpu) = (pulse.stolen(), meter.read()?);
    let (counters, statuses) = (all(&plan.counters)?, all(&plan.statuses)?);
    let flows = watchers.into_iter().zip(&flows).map(|(watcher, flow)| watcher.finish(flow));
    let flows = flows.collect::<Outcome<_>>()?;
    all(&plan.silence)?;
    std::thread::sleep(duration(plan.drain));
    let totals = all(&plan.totals)?;
    all(&plan.last)?;
    Ok(Observed { length: span(length), stolen, flows, counters, statuses, totals, cpu })
}

/// Samples one flow.
struct Watcher<'a> {
    traffic: &'a Traffic,
    /// Of the source's host, of the sink's.
    hosts: [Questioner; 2],
    seen: Observation,
    /// A sample has been taken after the flow's end.
    ended: bool,
}

impl<'a> Watcher<'a> {
    fn new(traffic: &'a Traffic) -> Outcome<Self> {
        let [source, sink] = &traffic.sides;
        let hosts = [within(&source.space, Questioner::new)?, within(&sink.space, Questioner::new)?];
        let subflows = vec![Vec::new(); traffic.subflows.as_ref().map_or(0, Vec::len)];
        Ok(Self { traffic, hosts, seen: Observation { subflows, ..Observation::default() }, ended: false })
    }

    /// The flow has a size, and nothing will happen to it any more.
    fn has_seen_all(&self) -> bool {
        self.traffic.size.is_some() && self.ended
    }

    /// Of a flow that has ended, the connection is still there, with nothing new to tell.
    fn sample(&mut self, flow: &Flow) -> Outcome<()> {
        let had_ended = std::mem::replace(&mut self.ended, flow.has_ended());
        let mut sample = Sample { delivered: flow.delivered(), ..Sample::default() };
        let mut subflows = vec![Sample::default(); self.seen.subflows.len()];
        if let Some([source, sink]) = flow.ends().filter(|_| !had_ended) {
            let [sources, sinks] = self.ask(sink.is_ipv6())?;
            match &self.traffic.subflows {
                None => take(&mut sample, &sources, &sinks, |it| it.here == source && it.there == sink),
                Some(addresses) => {
                    for (address, own) in addresses.iter().zip(&mut subflows) {
                        let is_it = |it: &Connection| it.here.ip() == *address && it.there.port() == sink.port();
                        take(own, &sources, &sinks, is_it);
                    }
                }
            }
        }
        self.seen.samples.push(sample);
        self.seen.subflows.iter_mut().zip(subflows).for_each(|(all, own)| all.push(own));
        Ok(())
    }

    /// A second has gone by.
    fn tally(&mut self, flow: &Flow) {
        self.seen.seconds.push(flow.delivered());
    }

    fn ask(&self, is_v6: bool) -> Outcome<[Vec<Connection>; 2]> {
        let [source, sink] = &self.hosts;
        Ok([source.ask(is_v6)?, sink.ask(is_v6)?])
    }

    fn finish(mut self, flow: &Flow) -> Outcome<Observation> {
        self.seen.episodes = within(&self.traffic.sides[0].space, counters::episodes)?;
        if self.traffic.subflows.is_some() {
            let [source, sink] = self.traffic.sides.each_ref().map(|side| within(&side.space, counters::multipath));
            self.seen.multipath = Some(Multipath { duplicates: sink?.duplicates, ..source? });
        }
        self.seen.completion = flow.completion().map(span);
        Ok(self.seen)
    }
}

/// What is known of the source's connection that `is_it`, and of its other end.
fn take(sample: &mut Sample, sources: &[Connection], sinks: &[Connection], is_it: impl Fn(&Connection) -> bool) {
    let Some(source) = sources.iter().find(|it| is_it(it)) else { return };
    sample.tcp = Some(tcp_info::read(&source.info));
    let other = sinks.iter().find(|it| it.here == source.there && it.there == source.here);
    sample.arrived = other.map_or(0, |it| it.info.data_segs_in);
    sample.received = other.map_or(0, |it| it.info.bytes_received);
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

fn duration(span: Span) -> Duration {
    Duration::from_nanos(span.as_nanos())
}

fn span(duration: Duration) -> Span {
    Span::from_nanos(duration.as_nanos() as u64)
}
