//! Cells times seeds on several threads. A run knows nothing of the others, so their number changes no digit.

use crate::Failure;
use crate::driver::Driver;
use crate::progress::Progress;
use record::Run;
use scenario::Scenario;
use std::panic::resume_unwind;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use store::{Key, Results};

/// Runs `jobs`, keeps each in the results folder as soon as it is done, and hands them back in the order of `jobs`. What a
/// kernel leaves beside its record goes below `kept`.
pub(crate) fn simulate(
    driver: &Driver,
    scenario: &Scenario,
    jobs: &[Key],
    (threads, quiet): (Option<u16>, bool),
    (results, kept): (&Results, &Path),
) -> Result<Vec<(Key, Run)>, Failure> {
    let threads = threads.map_or_else(|| driver.jobs(scenario), usize::from);
    let progress = Progress::new(jobs.len(), quiet);
    let next = AtomicUsize::new(0);
    // One job at a time to a thread: some cells take much longer than others. After a failure no thread takes another.
    let work = || {
        let mut runs = Vec::new();
        loop {
            let place = next.fetch_add(1, Ordering::Relaxed);
            let Some(key) = jobs.get(place) else { return Ok(runs) };
            match run(driver, scenario, *key, kept).and_then(|run| Ok((results.add(key.0, key.1, &run)?, run))) {
                Ok(((), run)) => runs.push((place, (*key, run))),
                Err(failure) => {
                    next.store(jobs.len(), Ordering::Relaxed);
                    return Err(failure);
                }
            }
            progress.advance();
        }
    };
    let done: Result<Vec<_>, Failure> = thread::scope(|scope| {
        let threads: Vec<_> = (0..threads.clamp(1, jobs.len().max(1))).map(|_| scope.spawn(work)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap_or_else(|panic| resume_unwind(panic))).collect()
    });
    let mut runs: Vec<_> = done?.into_iter().flatten().collect();
    runs.sort_by_key(|(place, _)| *place);
    Ok(runs.into_iter().map(|(_, run)| run).collect())
}

fn run(driver: &Driver, scenario: &Scenario, (index, seed): Key, kept: &Path) -> Result<Run, Failure> {
    let cell = &scenario.cells[index];
    let mut run = driver.run(&cell.experiment, seed, &kept.join(format!("{index}-{seed}"))).map_err(|error| {
        let place: Vec<_> = cell.parameters.iter().map(|(key, value)| format!("{key} = {value}")).collect();
        Failure::Run(format!("the run [{}] with seed {seed} failed: {error}", place.join(", ")))
    })?;
    run.parameters = cell.parameters.iter().cloned().collect();
    Ok(run)
}
