//! What a change of a key gives: the runs of the scenario with it, their figures and numbers, or the reader's message.

use super::controls::controls;
use super::source::Sources;
use record::Run;
use report::{Baseline, Layout, Provenance, Scope, Study};
use runner::{Driver, Observer};
use scenario::{Overrides, Scenario};
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The number of samples of a time series that is recorded for the page.
const SAMPLES: u64 = 200;
/// The number of answers whose runs are kept in memory, for what is pinned and for undo.
const KEPT: usize = 4;
/// The name of the pinned runs in figures.
const PINNED: &str = "pinned";

/// The values in the table above the figures.
const VALUES: [&str; 2] = ["goodput_mbps", "rtt_ms.p95"];

/// What the page asks for.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Question {
    /// A name of the start page.
    scenario: String,
    /// `KEY=VALUE` each.
    sets: Vec<String>,
    /// Whether all seeds are run, not only the first.
    #[serde(default)]
    all_seeds: bool,
    /// The sets of the pinned runs of the same scenario.
    #[serde(default)]
    pinned: Option<Vec<String>>,
}

/// Why there is no answer.
#[derive(Debug)]
pub(super) enum Refusal {
    /// The page may not open this scenario.
    Unknown,
    /// The reader refused the scenario: its message at a key, as JSON.
    Scenario(Value),
    /// The result is no longer wanted.
    Cancelled,
    /// The run failed.
    Failed(String),
}

impl From<scenario::Error> for Refusal {
    fn from(error: scenario::Error) -> Self {
        Self::Scenario(json!({ "key": error.key(), "message": error.message(), "help": error.help() }))
    }
}

impl From<runner::Error> for Refusal {
    fn from(error: runner::Error) -> Self {
        match error {
            runner::Error::Scenario(error) => error.into(),
            other => Self::Failed(other.to_string()),
        }
    }
}

/// The runs of the latest answers, by the name and the hash of their scenario and the number of seeds.
type Kept = VecDeque<((String, String, usize), Arc<Vec<Run>>)>;

/// What answers questions.
pub(super) struct Answers {
    pub(super) sources: Sources,
    driver: Box<dyn Driver + Send>,
    kept: Mutex<Kept>,
}

/// An observer that stops a study whose result is no longer wanted.
struct Until<'a>(&'a AtomicBool);

impl Observer for Until<'_> {
    fn is_cancelled(&mut self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

impl Answers {
    pub(super) fn new(sources: Sources, driver: Box<dyn Driver + Send>) -> Self {
        Self { sources, driver, kept: Mutex::default() }
    }

    /// The scenario's keys. The first cell of a sweep is chosen by sets, and time series are recorded.
    pub(super) fn describe(&self, question: &Question) -> Result<Value, Refusal> {
        let all = self.load(&question.scenario, &[])?;
        let first = all.cells.first().map_or(&[][..], |cell| &cell.parameters);
        let mut sets: Vec<String> = first.iter().map(|(key, value)| format!("{key}={value}")).collect();
        let experiment = all.cells.first().map(|cell| &cell.experiment);
        if let Some(experiment) = experiment.filter(|experiment| experiment.sample.is_none()) {
            sets.push(format!("sample={}ms", (experiment.duration.0 / 1_000_000).div_ceil(SAMPLES).max(1)));
        }
        let sets_of_page: Vec<String> = sets.iter().chain(&question.sets).cloned().collect();
        let scenario = self.load(&question.scenario, &sets_of_page)?;
        Ok(json!({
            "name": all.name, "title": all.title, "about": all.about, "seeds": all.seeds.len(), "sets": sets,
            "swept": swept(&all), "controls": controls(&scenario),
        }))
    }

    /// Runs the scenario and draws it.
    pub(super) fn answer(&self, question: &Question, cancelled: &AtomicBool) -> Result<Value, Refusal> {
        let scenario = self.load(&question.scenario, &question.sets)?;
        let runs = self.runs(&scenario, question.all_seeds, cancelled)?;
        let pinned = match &question.pinned {
            Some(sets) => Some(self.runs(&self.load(&question.scenario, sets)?, question.all_seeds, cancelled)?),
            None => None,
        };
        let baseline = pinned.as_ref().map(|runs| Baseline { name: PINNED, runs });
        let study = study(&scenario, &runs, baseline);
        let command = |verb: &str, more: &[&str]| {
            let sets = question.sets.iter().flat_map(|set| ["--set", set]);
            let words = ["ropewalk", verb, &question.scenario].into_iter().chain(sets).chain(more.iter().copied());
            report::shell(&words.map(str::to_owned).collect::<Vec<_>>())
        };
        let seed = runs[0].seed.to_string();
        Ok(json!({
            "digest": runs[0].digest, "seed": runs[0].seed, "runs": runs.len(),
            "figures": report::live(&study),
            "values": VALUES.map(report::value_label),
            "rows": rows(&study, pinned.as_ref().map(|runs| self::study(&scenario, runs, None)).as_ref()),
            "command": command("run", &[]),
            "trace": command("trace", &["--seed", &seed, "--pcap", "run.pcapng", "--events", "run.parquet"]),
            "text": scenario.effective_text.as_ref().unwrap_or(&scenario.text),
        }))
    }

    fn load(&self, name: &str, sets: &[String]) -> Result<Scenario, Refusal> {
        let overrides = Overrides { sets: sets.to_vec(), quick: false };
        let scenario = self.sources.load(name, &overrides).ok_or(Refusal::Unknown)??;
        runner::check(&scenario)?;
        Ok(scenario)
    }

    /// The runs of the first cell: of the first seed, or of all.
    fn runs(&self, scenario: &Scenario, all: bool, cancelled: &AtomicBool) -> Result<Arc<Vec<Run>>, Refusal> {
        let seeds = &scenario.seeds[..if all { scenario.seeds.len() } else { 1 }];
        let name = (scenario.name.clone(), scenario.hash.clone(), seeds.len());
        let found = self.kept().iter().find(|(kept, _)| *kept == name).map(|(_, runs)| Arc::clone(runs));
        if let Some(runs) = found {
            return Ok(runs);
        }
        let keys: Vec<_> = seeds.iter().map(|seed| (0, *seed)).collect();
        // One thread: the number of questions that run at once is what bounds the load.
        let runs = runner::run(self.driver.as_ref(), scenario, &keys, Some(1), &mut Until(cancelled))?;
        if runs.len() < keys.len() {
            return Err(Refusal::Cancelled);
        }
        // One cell has nothing that tells it apart: pinned runs are matched by their parameters.
        let bare = |(_, run): (_, Run)| Run { parameters: BTreeMap::new(), ..run };
        let runs: Arc<Vec<Run>> = Arc::new(runs.into_iter().map(bare).collect());
        let mut kept = self.kept();
        kept.truncate(KEPT - 1);
        kept.push_front((name, Arc::clone(&runs)));
        Ok(runs)
    }

    /// The kept runs; poisoned only if this code panicked.
    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The swept keys with their values as they are shown.
fn swept(scenario: &Scenario) -> Vec<Value> {
    let mut keys: Vec<(&str, Vec<&str>)> = Vec::new();
    for (key, value) in scenario.cells.iter().flat_map(|cell| &cell.parameters) {
        match keys.iter_mut().find(|(known, _)| known == key) {
            Some((_, values)) if values.contains(&value.as_str()) => {}
            Some((_, values)) => values.push(value),
            None => keys.push((key, vec![value])),
        }
    }
    keys.iter().map(|(key, values)| json!({ "key": key, "values": values })).collect()
}

fn study<'a>(scenario: &'a Scenario, runs: &'a [Run], baseline: Option<Baseline<'a>>) -> Study<'a> {
    Study {
        title: &scenario.title,
        about: &scenario.about,
        source: &scenario.source,
        scenario: &scenario.name,
        provenance: Provenance { command: &[], file: &scenario.text, effective: None },
        digest: "",
        version: runner::VERSION,
        commit: runner::COMMIT,
        driver: "",
        layout: Layout::default(),
        runs,
        baseline,
    }
}

/// A row of the table for each flow: the mean and half its confidence interval of each value, here and pinned.
fn rows(study: &Study<'_>, pinned: Option<&Study<'_>>) -> Vec<Value> {
    let of =
        |study: &Study<'_>, value: &str| report::estimates(study, value, &Scope::default(), true).unwrap_or_default();
    let columns = VALUES.map(|value| (of(study, value), pinned.map(|pinned| of(pinned, value)).unwrap_or_default()));
    let flows: Vec<&str> = study.runs[0].flows.iter().map(|flow| flow.name.as_str()).collect();
    let number = |estimates: &[report::CellEstimate], flow: &str| {
        let estimate =
            estimates.iter().find(|estimate| estimate.parameters.get("flow").is_some_and(|name| name == flow))?;
        Some(json!({ "mean": estimate.mean, "half": estimate.half_width }))
    };
    let row = |flow: &&str| {
        let cells = columns.iter().map(|(here, pinned)| json!([number(here, flow), number(pinned, flow)]));
        json!({ "flow": flow, "cells": cells.collect::<Vec<_>>() })
    };
    flows.iter().map(row).collect()
}
