//! Cells times seeds on several threads. A run knows nothing of the others, so their number changes no digit.

use crate::{Failure, progress};
use rayon::prelude::*;
use record::Run;
use scenario::Scenario;
use std::thread::available_parallelism;
use store::{Key, Results};

/// Runs `jobs`, keeps each in the results folder as soon as it is done, and hands them back in the order of `jobs`.
pub(crate) fn simulate(
    scenario: &Scenario,
    jobs: &[Key],
    threads: Option<u16>,
    quiet: bool,
    results: &Results,
) -> Result<Vec<(Key, Run)>, Failure> {
    let threads = threads.map_or_else(|| available_parallelism().map_or(1, usize::from), usize::from);
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
    let pool = pool.map_err(|error| Failure::Environment(format!("cannot start {threads} threads: {error}")))?;
    let bar = progress::bar(jobs.len(), quiet);
    let one = |key: &Key| {
        let run = run(scenario, *key)?;
        results.add(key.0, key.1, &run)?;
        bar.inc(1);
        Ok((*key, run))
    };
    // One job at a time to a thread: some cells take much longer than others.
    let runs = pool.install(|| jobs.par_iter().with_max_len(1).map(one).collect());
    bar.finish_and_clear();
    runs
}

fn run(scenario: &Scenario, (index, seed): Key) -> Result<Run, Failure> {
    let cell = &scenario.cells[index];
    let mut run = sim::run(&cell.experiment, seed).map_err(|error| {
        let place: Vec<_> = cell.parameters.iter().map(|(key, value)| format!("{key} = {value}")).collect();
        Failure::Run(format!("the run [{}] with seed {seed} failed: {error}", place.join(", ")))
    })?;
    run.parameters = cell.parameters.iter().cloned().collect();
    Ok(run)
}
