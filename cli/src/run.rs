//! `ropewalk run`: runs a scenario, prints its tables, and writes the report and the results folder.

use crate::arguments::{DriverChoice, Run as Arguments};
use crate::driver::{self, Driver};
use crate::{Failure, baseline, checks, output, study, sweep};
use report::Layout;
use scenario::{Overrides, Scenario};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use store::{Key, Manifest, Results};

/// Folder below the results folder with the files of runs on a kernel: logs, captures.
const RAW_FOLDER: &str = "raw";
/// Suffix of the default folder's name for runs on a kernel.
const KERNEL_SUFFIX: &str = "-kernel";

/// Runs every cell with every seed, except the runs that the results folder already holds.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let scenario = load(arguments)?;
    checks::check(&scenario)?;
    let layout = report::layout(&scenario)?;
    let driver = driver::find(arguments)?;
    let checked = driver.check(&scenario, arguments.partial)?;
    let (folder, name) = baseline::check(&scenario)?.unzip();
    let (dir, results, mut runs) = open(arguments, &manifest(&scenario, &layout, driver.as_ref(), name))?;
    folder.map_or(Ok(()), |folder| results.keep_baseline(&folder))?;
    let planned_runs: Vec<Key> =
        checked.cells.iter().flat_map(|cell| scenario.seeds.iter().map(move |seed| (*cell, *seed))).collect();
    if !runs.is_empty() && !arguments.quiet {
        output::warn(&format!("reusing {} of {} runs from {}", runs.len(), planned_runs.len(), dir.display()));
    }
    if !arguments.quiet {
        checked.notes.iter().for_each(|note| output::warn(note));
    }
    let stored: BTreeSet<Key> = runs.iter().map(|(key, _)| *key).collect();
    let jobs: Vec<Key> = planned_runs.into_iter().filter(|key| !stored.contains(key)).collect();
    let start = Instant::now();
    let raw_folder = dir.join(RAW_FOLDER);
    runs.extend(sweep::run(
        driver.as_ref(),
        &scenario,
        &jobs,
        (arguments.jobs, arguments.quiet),
        (&results, &raw_folder),
    )?);
    if !jobs.is_empty() && !arguments.quiet {
        output::warn(&time_taken(jobs.len(), start.elapsed()));
    }
    runs.sort_by_key(|(key, _)| *key);
    let runs: Vec<_> = runs.into_iter().map(|((cell, _), run)| (cell, run)).collect();
    let manifest = results.finish(&runs)?;
    if let Some(text) = driver.setup(&scenario) {
        Results::write_text(&dir, "setup.txt", &text)?;
    }
    let runs = runs.into_iter().map(|(_, run)| run).collect();
    study::show(&dir, &manifest, runs, arguments.json)
}

/// `48 runs in 5.82 s, 8.2 a second`.
fn time_taken(runs: usize, time: Duration) -> String {
    let seconds = time.as_secs_f64();
    let plural = if runs == 1 { "run" } else { "runs" };
    format!("{runs} {plural} in {seconds:.2} s, {:.1} a second", runs as f64 / seconds.max(1e-3))
}

/// `--seed` is a `--set` of the seeds, so that the scenario's hash and with it the results folder know of it.
fn load(arguments: &Arguments) -> Result<Scenario, Failure> {
    let seed = arguments.seed.map(|seed| format!("seeds=[{seed}]"));
    let sets: Vec<String> = arguments.set.iter().cloned().chain(seed).collect();
    Ok(scenario::load(&arguments.file, &Overrides { sets, quick: arguments.quick })?)
}

fn manifest(scenario: &Scenario, layout: &Layout, driver: &dyn Driver, baseline: Option<String>) -> Manifest {
    Manifest {
        driver: driver.describe(scenario),
        ropewalk_version: env!("CARGO_PKG_VERSION").to_owned(),
        commit: env!("ROPEWALK_COMMIT").to_owned(),
        scenario: scenario.name.clone(),
        scenario_hash: scenario.hash.clone(),
        scenario_text: scenario.text.clone(),
        command: std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect(),
        title: scenario.title.clone(),
        about: scenario.about.clone(),
        source: scenario.source.clone(),
        layout: study::to_json(layout),
        baseline,
        seeds: scenario.seeds.clone(),
        cells: scenario.cells.len(),
        ..Manifest::default()
    }
}

type Opened = (PathBuf, Results, Vec<(Key, record::Run)>);

/// Opens the folder of `--out`; without that option `results/NAME` (on a kernel `results/NAME-kernel`), or
/// `results/NAME-2` and so on where that holds another study: an edited scenario neither overwrites existing results
/// nor needs an option.
fn open(arguments: &Arguments, manifest: &Manifest) -> Result<Opened, Failure> {
    if let Some(dir) = &arguments.out {
        return Ok(open_at(dir, manifest)?);
    }
    let mut suffix_number = 1;
    let driver = if arguments.on == DriverChoice::Sim { "" } else { KERNEL_SUFFIX };
    loop {
        let suffix = if suffix_number == 1 { String::new() } else { format!("-{suffix_number}") };
        let dir = Path::new("results").join(format!("{}{driver}{suffix}", manifest.scenario));
        match open_at(&dir, manifest) {
            Err(store::Error::Occupied { .. }) => suffix_number += 1,
            other => return Ok(other?),
        }
    }
}

fn open_at(dir: &Path, manifest: &Manifest) -> Result<Opened, store::Error> {
    let (results, runs) = Results::create_or_resume(dir, manifest.clone())?;
    Ok((dir.to_owned(), results, runs))
}
