//! Writes results that were made in memory into a results folder.

use crate::{Error, write_page};
use record::Run;
use std::path::Path;
use store::{Key, Manifest, Results};

/// Writes the runs of a study into the folder `dir`, with its page and a copy of the finished folder `baseline`. Runs of an
/// incomplete study are stored so that a study that opens the folder continues there.
///
/// # Errors
/// The folder holds something else, or cannot be written.
pub fn save(dir: &Path, manifest: &Manifest, runs: &[(Key, Run)], baseline: Option<&Path>) -> Result<(), Error> {
    let (results, _) = Results::create_or_resume(dir, manifest.clone())?;
    baseline.map_or(Ok(()), |folder| results.keep_baseline(folder))?;
    if !manifest.complete {
        return Ok(runs.iter().try_for_each(|((cell, seed), run)| results.add(*cell, *seed, run))?);
    }
    let manifest = results.finish(runs)?;
    let runs: Vec<Run> = runs.iter().map(|(_, run)| run.clone()).collect();
    write_page(dir, &manifest, &runs, |_| ()).map(drop)
}
