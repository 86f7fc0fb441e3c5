//! What a candidate achieves over given links.

use super::candidate::{Candidate, Mode, START_S};
use super::choice::Goal;
use crate::probe::toml_text;
use crate::{Error, Links, links, parallel};
use record::{Flow, Run};
use runner::Driver;
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
    /// 95th percentile of the RTT, ms: over MPTCP of all subflows, over a relay of the connection to it.
    #[serde(default)]
    pub rtt_p95_ms: f64,
    /// Mean time of an answer of 200 kB, ms; 0 for goals other than the web.
    pub response_ms: f64,
    /// Mean goodput of CUBIC downloads that compete on each path, Mbit/s; 0 for goals other than fairness.
    pub rival_mbps: f64,
}

/// How candidates are tried.
#[derive(Clone, Copy, Debug)]
pub struct Trial<'a> {
    /// The paths that they use.
    pub paths: &'a [String],
    /// What they are for.
    pub goal: Goal,
    /// Length of a run, seconds.
    pub seconds: f64,
    /// The seeds over which an outcome is a mean.
    pub seeds: &'a [u64],
    /// What makes the runs.
    pub driver: &'a dyn Driver,
    /// Threads; outcomes do not depend on their number.
    pub threads: usize,
}

/// The outcome of each candidate over each of `links`: by candidate, then by links.
///
/// # Errors
/// The links are no scenario, lack a path, or a run fails.
pub fn outcomes(links: &[&Links], candidates: &[Candidate], trial: &Trial<'_>) -> Result<Vec<Vec<Outcome>>, Error> {
    let jobs: Vec<(&Candidate, &Links)> =
        candidates.iter().flat_map(|candidate| links.iter().map(move |links| (candidate, *links))).collect();
    let done = parallel::map(trial.threads, &jobs, |(candidate, links)| one(links, candidate, trial));
    let done: Vec<Outcome> = done.into_iter().collect::<Result<_, _>>()?;
    Ok(done.chunks(links.len().max(1)).map(<[Outcome]>::to_vec).collect())
}

fn one(links: &Links, candidate: &Candidate, trial: &Trial<'_>) -> Result<Outcome, Error> {
    let cell = cell(links, candidate, trial)?;
    let mut sum = Outcome::default();
    for seed in trial.seeds {
        let outcome = Outcome::of(&links::run(trial.driver, &cell, *seed)?, candidate);
        sum.goodput_mbps += outcome.goodput_mbps;
        sum.delay_p95_ms += outcome.delay_p95_ms;
        sum.rtt_p95_ms += outcome.rtt_p95_ms;
        sum.response_ms += outcome.response_ms;
        sum.rival_mbps += outcome.rival_mbps;
    }
    let count = trial.seeds.len().max(1) as f64;
    Ok(Outcome {
        goodput_mbps: sum.goodput_mbps / count,
        delay_p95_ms: sum.delay_p95_ms / count,
        rtt_p95_ms: sum.rtt_p95_ms / count,
        response_ms: sum.response_ms / count,
        rival_mbps: sum.rival_mbps / count,
    })
}

/// The experiment of a candidate. A flow `stream` of the links' own scenario is replaced; its other flows stay.
fn cell(links: &Links, candidate: &Candidate, trial: &Trial<'_>) -> Result<Cell, Error> {
    let Trial { paths, goal, seconds, .. } = *trial;
    let (keys, tunnel) = candidate.keys(paths, goal);
    let mut sets = vec![format!("duration={}ms", (seconds * 1e3).round() as u64 + 1000 * START_S)];
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
            format!(
                "[[flow]]\nname = \"{RIVAL}{index}\"\npath = {}\ncongestion = \"cubic\"\nstart = \"{START_S}s\"\n",
                toml_text(path)
            )
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
            rtt_p95_ms: flow.rtt_ms.p95,
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
