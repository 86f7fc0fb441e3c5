//! Cells times seeds on several threads. A run knows nothing of the others, so their number changes no digit.

use crate::driver::Driver;
use crate::{Failure, progress};
use rayon::prelude::*;
use record::Run;
use scenario::Scenario;
use std::path::Path;
use store::{Key, Results};

/// Runs `jobs`, keeps each in the results folder as soon as it is done, and hands them back in the order of `jobs`.
/// What a kernel leaves beside its record goes below `raw_folder`.
pub(crate) fn run(
    driver: &dyn Driver,
    scenario: &Scenario,
    jobs: &[Key],
    (threads, quiet): (Option<u16>, bool),
    (results, raw_folder): (&Results, &Path),
) -> Result<Vec<(Key, Run)>, Failure> {
    let threads = threads.map_or_else(|| driver.jobs(scenario), usize::from);
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
    let pool = pool.map_err(|error| Failure::Environment(format!("cannot start {threads} threads: {error}")))?;
    let bar = progress::bar(jobs.len(), quiet);
    let job = |key: &Key| {
        let run = run_one(driver, scenario, *key, raw_folder)?;
        results.add(key.0, key.1, &run)?;
        bar.inc(1);
        Ok((*key, run))
    };
    // One job at a time to a thread: some cells take much longer than others.
    let runs = pool.install(|| jobs.par_iter().with_max_len(1).map(job).collect());
    bar.finish_and_clear();
    runs
}

fn run_one(driver: &dyn Driver, scenario: &Scenario, (index, seed): Key, raw_folder: &Path) -> Result<Run, Failure> {
    let cell = &scenario.cells[index];
    let mut run = driver.run(&cell.experiment, seed, &raw_folder.join(format!("{index}-{seed}"))).map_err(|error| {
        let assignments: Vec<_> = cell.parameters.iter().map(|(key, value)| format!("{key} = {value}")).collect();
        Failure::Run(format!("the run [{}] with seed {seed} failed: {error}", assignments.join(", ")))
    })?;
    run.parameters = cell.parameters.iter().cloned().collect();
    Ok(run)
}
