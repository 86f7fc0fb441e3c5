//! What a candidate achieves over given links.

use super::candidate::{Candidate, Mode};
use super::choice::Goal;
use crate::probe::toml_text;
use crate::{Error, Links, links, parallel};
use record::{Flow, Run};
use scenario::Cell;
use serde::{Deserialize, Serialize};

/// The name of the flow that a candidate carries.
const STREAM: &str = "stream";
/// The beginning of the names of the flows that compete with it.
const RIVAL: &str = "ropewalk-rival-";

/// What a candidate achieves over given links, as a mean over seeds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// Goodput, Mbit/s.
    pub goodput_mbps: f64,
    /// 95th percentile of the delay of its data, ms: over MPTCP from the send buffer to the acknowledgement, over a relay one
    /// way, otherwise the RTT.
    pub delay_p95_ms: f64,
    /// Mean time of an answer of 200 kB, ms; 0 for goals other than the web.
    pub response_ms: f64,
    /// Mean goodput of CUBIC downloads that compete on each path, Mbit/s; 0 for goals other than fairness.
    pub rival_mbps: f64,
}

/// The outcome of each candidate over each of `links`, with each of `seeds`: by candidate, then by links. The result does not
/// depend on the number of threads.
///
/// # Errors
/// The links are no scenario, lack a path, or a run fails.
pub fn outcomes(
    links: &[&Links],
    paths: &[String],
    candidates: &[Candidate],
    goal: Goal,
    seconds: f64,
    seeds: &[u64],
    threads: usize,
) -> Result<Vec<Vec<Outcome>>, Error> {
    let jobs: Vec<(&Candidate, &Links)> =
        candidates.iter().flat_map(|candidate| links.iter().map(move |links| (candidate, *links))).collect();
    let done = parallel::map(threads, &jobs, |(candidate, links)| one(links, paths, candidate, goal, seconds, seeds));
    let done: Vec<Outcome> = done.into_iter().collect::<Result<_, _>>()?;
    Ok(done.chunks(links.len().max(1)).map(<[Outcome]>::to_vec).collect())
}

fn one(
    links: &Links,
    paths: &[String],
    candidate: &Candidate,
    goal: Goal,
    seconds: f64,
    seeds: &[u64],
) -> Result<Outcome, Error> {
    let cell = cell(links, paths, candidate, goal, seconds)?;
    let mut sum = Outcome::default();
    for seed in seeds {
        let outcome = Outcome::of(&links::run(&cell, *seed)?, candidate);
        sum.goodput_mbps += outcome.goodput_mbps;
        sum.delay_p95_ms += outcome.delay_p95_ms;
        sum.response_ms += outcome.response_ms;
        sum.rival_mbps += outcome.rival_mbps;
    }
    let count = seeds.len().max(1) as f64;
    Ok(Outcome {
        goodput_mbps: sum.goodput_mbps / count,
        delay_p95_ms: sum.delay_p95_ms / count,
        response_ms: sum.response_ms / count,
        rival_mbps: sum.rival_mbps / count,
    })
}

/// The experiment of a candidate. A flow `stream` of the links' own scenario is replaced; its other flows stay.
fn cell(links: &Links, paths: &[String], candidate: &Candidate, goal: Goal, seconds: f64) -> Result<Cell, Error> {
    let (keys, tunnel) = candidate.keys(paths, goal);
    let mut sets = vec![format!("duration={}ms", (seconds * 1e3).round() as u64)];
    sets.extend(tunnel.map(|tunnel| format!("tunnel={tunnel}")));
    let mut tables = String::new();
    let has_stream = links.text.contains(&format!("name = \"{STREAM}\""));
    if has_stream {
        let keys: Vec<String> = keys.iter().map(|(key, value)| format!("{key} = {value}")).collect();
        sets.push(format!("flow.{STREAM}={{ {} }}", keys.join(", ")));
    } else {
        let keys: String = keys.iter().map(|(key, value)| format!("{key} = {value}\n")).collect();
        tables += &format!("[[flow]]\n{keys}");
    }
    if goal == Goal::Fair {
        let rival = |(index, path): (usize, &String)| {
            format!("[[flow]]\nname = \"{RIVAL}{index}\"\npath = {}\ncongestion = \"cubic\"\n", toml_text(path))
        };
        tables.extend(paths.iter().enumerate().map(rival));
    }
    Ok(links.scenario(&tables, &sets)?.cells.remove(0))
}

impl Outcome {
    fn of(run: &Run, candidate: &Candidate) -> Self {
        let Some(flow) = run.flows.iter().find(|flow| flow.name == STREAM) else { return Self::default() };
        let rivals: Vec<f64> =
            run.flows.iter().filter(|flow| flow.name.starts_with(RIVAL)).map(|flow| flow.goodput_mbps).collect();
        Self {
            goodput_mbps: flow.goodput_mbps,
            delay_p95_ms: delay(flow, &candidate.mode),
            response_ms: flow.requests.map_or(0.0, |requests| requests.response_time_ms.mean),
            rival_mbps: rivals.iter().sum::<f64>() / rivals.len().max(1) as f64,
        }
    }
}

fn delay(flow: &Flow, mode: &Mode) -> f64 {
    match mode {
        Mode::Mptcp => flow.multipath.map_or(flow.rtt_ms.p95, |multipath| multipath.protocol_delay_ms.p95),
        Mode::Relay => flow.one_way_delay_ms.map_or(flow.rtt_ms.p95, |delay| delay.p95),
        Mode::Single(_) | Mode::Tunnel => flow.rtt_ms.p95,
    }
}
