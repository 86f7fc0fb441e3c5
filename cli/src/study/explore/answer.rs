//! What a change of a key gives: the runs of the scenario with it, their figures and numbers, or the reader's message.

use super::controls::controls;
use super::source::Sources;
use record::{Flow, Run};
use report::{BY_FLOW, Baseline, CellEstimate, Layout, Provenance, Scope, Study};
use runner::{Driver, Observer};
use scenario::{Overrides, Scenario};
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The number of samples of a time series that is recorded for the page.
const SAMPLES: u64 = 200;
/// The number of answers whose runs are kept in memory, for what is pinned, and for undo: each of a first seed or of all.
const KEPT: usize = 24;
/// The name of the runs pinned last in figures.
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
    /// The sets of each pinned run of the same scenario. Figures show the last one under the present one.
    #[serde(default)]
    pinned: Vec<Vec<String>>,
    /// What [`Answers::sweep`] sweeps.
    #[serde(default)]
    sweep: Option<SweptKey>,
}

/// A key and its values, as a `--set` writes one.
#[derive(Clone, Debug, Deserialize)]
struct SweptKey {
    key: String,
    values: Vec<String>,
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
        let pinned = question
            .pinned
            .iter()
            .map(|sets| self.runs(&self.load(&question.scenario, sets)?, question.all_seeds, cancelled));
        let pinned = pinned.collect::<Result<Vec<_>, Refusal>>()?;
        let baseline = pinned.last().map(|runs| Baseline { name: PINNED, runs });
        let study = study(&scenario, &runs, baseline);
        let compared: Vec<Study<'_>> = pinned.iter().map(|runs| self::study(&scenario, runs, None)).collect();
        let studies: Vec<&Study<'_>> = std::iter::once(&study).chain(&compared).collect();
        let seed = runs[0].seed.to_string();
        Ok(json!({
            "digest": runs[0].digest, "seed": runs[0].seed, "runs": runs.len(),
            "figures": report::live(&study),
            "values": VALUES.map(report::value_label),
            "rows": rows(&studies),
            "command": question.command("run", &[]),
            "trace": question.command("trace", &["--seed", &seed, "--pcap", "run.pcapng", "--events", "run.parquet"]),
            "text": scenario.effective_text.as_ref().unwrap_or(&scenario.text),
        }))
    }

    /// Runs all seeds of the scenario at each value of a key, and draws the goodput across them.
    pub(super) fn sweep(&self, question: &Question, cancelled: &AtomicBool) -> Result<Value, Refusal> {
        let SweptKey { key, values } = question.sweep.as_ref().ok_or(Refusal::Unknown)?;
        let values: Vec<String> = values.iter().map(|value| literal(value)).collect();
        let set = format!("sweep.{key}=[{}]", values.join(", "));
        let question = Question { sets: question.sets.iter().cloned().chain([set]).collect(), ..question.clone() };
        let scenario = self.load(&question.scenario, &question.sets)?;
        let cells = (0..scenario.cells.len()).flat_map(|cell| scenario.seeds.iter().map(move |seed| (cell, *seed)));
        let runs = self.run(&scenario, &cells.collect::<Vec<_>>(), cancelled)?;
        let study = study(&scenario, &runs, None);
        Ok(json!({
            "key": key, "seeds": scenario.seeds.len(), "figure": report::live_sweep(&study, key),
            "values": VALUES.map(report::value_label), "rows": rows_across(&study, key),
            "command": question.command("run", &[]),
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
        if let Some(runs) = self.found(&name) {
            return Ok(runs);
        }
        let keys: Vec<_> = seeds.iter().map(|seed| (0, *seed)).collect();
        let runs = self.run(scenario, &keys, cancelled)?;
        // One cell has nothing that tells it apart: pinned runs are matched by their parameters.
        let bare = |run: Run| Run { parameters: BTreeMap::new(), ..run };
        let runs: Arc<Vec<Run>> = Arc::new(runs.into_iter().map(bare).collect());
        let mut kept = self.kept();
        kept.truncate(KEPT - 1);
        kept.push_front((name, Arc::clone(&runs)));
        Ok(runs)
    }

    /// Kept runs, which become the latest.
    fn found(&self, name: &(String, String, usize)) -> Option<Arc<Vec<Run>>> {
        let mut kept = self.kept();
        let place = kept.iter().position(|(kept, _)| kept == name)?;
        let latest = kept.remove(place)?;
        let runs = Arc::clone(&latest.1);
        kept.push_front(latest);
        Some(runs)
    }

    /// The runs of these cells and seeds.
    fn run(&self, scenario: &Scenario, keys: &[(usize, u64)], cancelled: &AtomicBool) -> Result<Vec<Run>, Refusal> {
        // One thread: the number of questions that run at once is what bounds the load.
        let runs = runner::run(self.driver.as_ref(), scenario, keys, Some(1), &mut Until(cancelled))?;
        if runs.len() < keys.len() {
            return Err(Refusal::Cancelled);
        }
        Ok(runs.into_iter().map(|(_, run)| run).collect())
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

impl Question {
    /// The command line that runs it.
    fn command(&self, verb: &str, more: &[&str]) -> String {
        let sets = self.sets.iter().flat_map(|set| ["--set", set]);
        let words = ["ropewalk", verb, &self.scenario].into_iter().chain(sets).chain(more.iter().copied());
        report::shell(&words.map(str::to_owned).collect::<Vec<_>>())
    }
}

/// A value in the list of a sweep: a number or a truth value as it is, anything else as text.
fn literal(value: &str) -> String {
    let is_number = value.parse::<f64>().is_ok() && value.ends_with(|last: char| last.is_ascii_digit());
    let is_bare = value == "true" || value == "false" || is_number && !value.starts_with('.');
    if is_bare { value.to_owned() } else { Value::from(value).to_string() }
}

/// The estimates of each of [`VALUES`] for each flow.
fn estimates(study: &Study<'_>) -> [Vec<CellEstimate>; 2] {
    VALUES.map(|value| report::estimates(study, value, &Scope::default(), true).unwrap_or_default())
}

/// The mean and half its confidence interval of a flow, in the cell in which `key` has a value if one is given, and both as text.
fn number(estimates: &[CellEstimate], flow: &str, cell: Option<(&str, &str)>) -> Option<Value> {
    let has = |estimate: &CellEstimate, key: &str, value: &str| {
        estimate.parameters.get(key).is_some_and(|parameter| parameter == value)
    };
    let is_it = |estimate: &&CellEstimate| {
        has(estimate, BY_FLOW, flow) && cell.is_none_or(|(key, value)| has(estimate, key, value))
    };
    let estimate = estimates.iter().find(is_it)?;
    Some(json!({ "mean": estimate.mean, "half": estimate.half_width, "text": estimate.text() }))
}

/// A row of the table for each flow: each value of the present runs, and of the pinned ones after it.
fn rows(studies: &[&Study<'_>]) -> Vec<Value> {
    let estimates: Vec<_> = studies.iter().map(|study| estimates(study)).collect();
    let row = |flow: &Flow| {
        let cells = [0, 1]
            .map(|value| estimates.iter().map(|columns| number(&columns[value], &flow.name, None)).collect::<Vec<_>>());
        json!({ "flow": flow.name, "cells": cells })
    };
    studies[0].runs[0].flows.iter().map(row).collect()
}

/// A row for each value of the swept key and each flow.
fn rows_across(study: &Study<'_>, key: &str) -> Vec<Value> {
    let columns = estimates(study);
    let mut rows: Vec<(&str, &str)> = Vec::new();
    for estimate in columns.iter().flatten() {
        let [value, flow] = [key, BY_FLOW].map(|key| estimate.parameters.get(key).map_or("", String::as_str));
        if !rows.contains(&(value, flow)) {
            rows.push((value, flow));
        }
    }
    let row = |(value, flow): (&str, &str)| {
        let cells = columns.each_ref().map(|column| number(column, flow, Some((key, value))));
        json!({ "value": value, "flow": flow, "cells": cells })
    };
    rows.into_iter().map(row).collect()
}
