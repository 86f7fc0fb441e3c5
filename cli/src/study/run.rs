//! `ropewalk run`: runs a scenario, prints its tables, and writes the report and the results folder, or nothing.

use super::progress::Progress;
use super::{DriverChoice, Run as Arguments, driver, interrupt, list, report};
use crate::{Failure, output};
use clap::ValueEnum;
use clap::builder::PossibleValue;
use record::Run;
use runner::{Folder, Study};
use scenario::{Overrides, Scenario};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use store::{Key, Manifest, Runs, Shard};

/// Suffix of the default folder's name for runs on a kernel.
const KERNEL_SUFFIX: &str = "-kernel";

/// A study whose runs are made.
pub(super) struct Finished {
    scenario: Scenario,
    /// The results folder, if there is one.
    pub(super) dir: Option<PathBuf>,
    pub(super) manifest: Manifest,
    pub(super) runs: Vec<Run>,
}

/// Runs a scenario, and shows it.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let Finished { scenario, dir, manifest, runs } = finish(arguments)?;
    match dir {
        Some(dir) => report::show_shard(&dir, &manifest, &runs, arguments.json),
        None => report::show_in_memory(&scenario, &manifest, &runs, arguments.json),
    }
}

/// Runs every cell with every seed: in memory with `--no-store`, otherwise except the runs that the results folder
/// already holds.
pub(super) fn finish(arguments: &Arguments) -> Result<Finished, Failure> {
    let mut scenario = load(arguments, None)?;
    if arguments.quick && !scenario.is_short && !arguments.quiet {
        output::warn("the scenario has no short form ([quick]): it runs in full");
    }
    let driver = driver::find(arguments)?;
    if !arguments.no_store && arguments.shard.is_none() {
        let study = Study::new(&scenario, driver.as_ref(), arguments.partial, Vec::new())?;
        let more =
            folders(arguments, &study).take_while(|dir| dir.exists()).find_map(|dir| study.with_stored_seeds(&dir));
        if let Some(seeds) = more {
            scenario = load(arguments, Some(&seeds))?;
        }
    }
    let study = Study::new(&scenario, driver.as_ref(), arguments.partial, command(arguments, scenario.is_short))?;
    let study = match arguments.shard {
        Some(shard) if !arguments.no_store => study.shard(shard),
        _ => study,
    };
    let (dir, (manifest, runs)) = match arguments.no_store {
        true => (None, run_in_memory(arguments, &study)?),
        false => run_in_folder(arguments, &study).map(|(dir, made)| (Some(dir), made))?,
    };
    Ok(Finished { scenario, dir, manifest, runs })
}

/// Makes the runs that the results folder lacks.
fn run_in_folder(arguments: &Arguments, study: &Study<'_>) -> Result<(PathBuf, (Manifest, Vec<Run>)), Failure> {
    let folder = open(arguments, study)?;
    let (dir, missing) = (folder.dir().to_owned(), folder.missing().len());
    if folder.found() > 0 && !arguments.quiet {
        let planned = study.plan.keys.len();
        output::warn(&format!("reusing {} of {planned} runs from {}", folder.found(), dir.display()));
    }
    if missing > 0 {
        interrupt::tell(Some(dir.clone()), study.plan.keys.len(), command_line())?;
    }
    let made = with_progress(arguments, study, folder.missing_costs(), |jobs, progress| folder.run(jobs, progress))?;
    Ok((dir, made))
}

/// Makes all runs and writes nothing to disk.
fn run_in_memory(arguments: &Arguments, study: &Study<'_>) -> Result<(Manifest, Vec<Run>), Failure> {
    interrupt::tell(None, study.plan.keys.len(), command_line())?;
    let costs = study.plan.keys.iter().copied().zip(study.plan.costs.iter().copied()).collect();
    with_progress(arguments, study, costs, |jobs, progress| study.run(jobs, progress))
}

/// The result of `make`. Prints the notes of the plan before, and the elapsed time after it.
fn with_progress(
    arguments: &Arguments,
    study: &Study<'_>,
    costs: BTreeMap<Key, u64>,
    make: impl FnOnce(Option<usize>, &mut Progress) -> Result<(Manifest, Runs), runner::Error>,
) -> Result<(Manifest, Vec<Run>), Failure> {
    if !arguments.quiet {
        study.plan.notes.iter().for_each(|note| output::warn(note));
    }
    let (start, count) = (Instant::now(), costs.len());
    if let Some(seed) = study.manifest.order_seed.filter(|_| count > 1 && !arguments.quiet) {
        output::warn(&format!("{count} runs in random order (seed {seed}): each cell runs once before any runs again"));
    }
    let mut progress = Progress::new(costs, arguments.quiet);
    let result = make(arguments.jobs.map(usize::from), &mut progress);
    progress.clear();
    let (manifest, runs) = result?;
    if count > 0 && !arguments.quiet {
        output::warn(&time_taken(count, start.elapsed()));
    }
    Ok((manifest, runs.into_iter().map(|(_, run)| run).collect()))
}

/// The command line of this process, for a shell.
fn command_line() -> String {
    let words: Vec<String> = std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect();
    ::report::shell(&words)
}

/// `48 runs in 5.82 s, 8.2 per second`.
fn time_taken(runs: usize, time: Duration) -> String {
    let seconds = time.as_secs_f64();
    let plural = if runs == 1 { "run" } else { "runs" };
    format!("{runs} {plural} in {seconds:.2} s, {:.1} per second", runs as f64 / seconds.max(1e-3))
}

/// The scenario of the arguments, with other seeds if there are any. `--seed` is a `--set` of the seeds.
fn load(arguments: &Arguments, seeds: Option<&[u64]>) -> Result<Scenario, Failure> {
    let seed = arguments.seed.map(|seed| format!("seeds=[{seed}]"));
    let seed = seeds.map(|seeds| format!("seeds={seeds:?}")).or(seed);
    let sets: Vec<String> = arguments.set.iter().cloned().chain(seed).collect();
    let overrides = Overrides { sets, quick: arguments.quick };
    if arguments.own_files && arguments.file.exists() {
        return Ok(scenario::load_confined(&arguments.file, &overrides)?);
    }
    find(&arguments.file, &overrides, arguments.quiet)
}

/// The scenario of a file, or of a name of `ropewalk list scenarios`.
pub(super) fn find(file: &Path, overrides: &Overrides, quiet: bool) -> Result<Scenario, Failure> {
    let name = file.to_string_lossy();
    let is_name = !file.exists() && !name.ends_with(".toml") && !name.contains('/');
    if let Some((place, scenario)) = is_name.then(|| list::scenario_called(&name, overrides)).flatten() {
        if !quiet {
            output::warn(&format!("running {place}"));
        }
        return Ok(scenario?);
    }
    if is_name {
        return Err(Failure::Usage(list::no_scenario_called(&name)));
    }
    Ok(scenario::load(file, overrides)?)
}

/// The command line that repeats the results: without the options that do not change them, so that machines which divide
/// a study write the same.
fn command(arguments: &Arguments, is_short: bool) -> Vec<String> {
    let mut words = vec!["ropewalk".to_owned(), "run".to_owned(), arguments.file.display().to_string()];
    let value_name = |value: &dyn Fn() -> Option<PossibleValue>| value().map(|value| value.get_name().to_owned());
    let with_value = [
        ("--on", value_name(&|| arguments.on.to_possible_value()).filter(|_| arguments.on != DriverChoice::Sim)),
        ("--traffic", arguments.traffic.and_then(|traffic| value_name(&|| traffic.to_possible_value()))),
        ("--seed", arguments.seed.map(|seed| seed.to_string())),
    ];
    words.extend(arguments.set.iter().flat_map(|set| ["--set".to_owned(), set.clone()]));
    words.extend(with_value.into_iter().filter_map(|(option, value)| Some([option.to_owned(), value?])).flatten());
    let flags = [("--quick", is_short), ("--partial", arguments.partial), ("--capture", arguments.capture)];
    words.extend(flags.iter().filter(|(_, is_set)| *is_set).map(|(flag, _)| (*flag).to_owned()));
    words
}

/// Opens the folder of `--out`; without that option `results/NAME` (on a kernel `results/NAME-kernel`, of a shard
/// `results/NAME-shard-I-of-N`), or `results/NAME-2` and so on if that holds another study: an edited scenario neither
/// overwrites existing results nor needs an option.
fn open<'a>(arguments: &Arguments, study: &'a Study<'_>) -> Result<Folder<'a>, Failure> {
    let mut opened = folders(arguments, study).map(|dir| study.open(&dir));
    let is_free = |folder: &Result<_, _>| !matches!(folder, Err(store::Error::Occupied { .. }));
    let folder = match arguments.out {
        Some(_) => opened.next(),
        None => opened.find(is_free),
    };
    Ok(folder.expect("there is always another name")?)
}

/// The results folders that may hold the study: that of `--out`, or those of its name, with a number for others.
fn folders(arguments: &Arguments, study: &Study<'_>) -> impl Iterator<Item = PathBuf> + use<> {
    let shard = arguments.shard.map(|Shard { index, count }| format!("-shard-{index}-of-{count}")).unwrap_or_default();
    let driver = if arguments.on == DriverChoice::Sim { "" } else { KERNEL_SUFFIX };
    let name = format!("{}{driver}{shard}", study.manifest.scenario);
    let out = arguments.out.clone();
    let numbered = move |number: u32| match (&out, number) {
        (Some(out), 1) => Some(out.clone()),
        (Some(_), _) => None,
        (None, 1) => Some(Path::new("results").join(&name)),
        (None, _) => Some(Path::new("results").join(format!("{name}-{number}"))),
    };
    (1..).map_while(numbered)
}
