//! Gathering: a results folder that is filled with finished shards as they arrive.

use crate::{Error, Plan, Study};
use record::Run;
use std::collections::BTreeMap;
use std::path::Path;
use store::{Key, Manifest, Results, Runs, Shard};

/// A results folder that gets its runs from shards made elsewhere.
#[derive(Debug)]
pub struct Gather {
    plan: Plan,
    manifest: Manifest,
    results: Results,
    runs: BTreeMap<Key, Run>,
}

impl Gather {
    /// Creates or resumes the results folder `dir` of a study.
    ///
    /// # Errors
    /// The folder holds something else, is damaged, or cannot be written.
    pub fn open(study: &Study<'_>, dir: &Path) -> Result<Self, store::Error> {
        let (plan, manifest) = (study.plan.clone(), study.manifest.clone());
        let (results, found) = study.create_or_resume(dir)?;
        Ok(Self { plan, manifest, results, runs: found.into_iter().collect() })
    }

    /// The planned runs that are missing, divided into `count` shards by their estimated cost; none is empty.
    #[must_use]
    pub fn divide(&self, count: usize) -> Vec<Vec<Key>> {
        let missing = self.plan.only(|key| !self.runs.contains_key(key));
        let count = count.min(missing.keys.len());
        (1..=count).map(|index| missing.shard(Shard { index, count }).keys).collect()
    }

    /// Adds the finished shard in the folder `dir`, and returns its number of runs. A run that the folder already has is not
    /// added again.
    ///
    /// # Errors
    /// The folder is not a finished shard of this study, is damaged, holds runs that are not planned, or differs in a run
    /// that already exists; or a run cannot be stored.
    pub fn add(&mut self, dir: &Path) -> Result<usize, Error> {
        let (manifest, _, runs) = Results::open_shard(dir)?;
        if let Some([here, there]) = self.manifest.difference(&manifest) {
            let message = format!("the shard in {} has {there}, the study has {here}", dir.display());
            return Err(Error::Environment(message));
        }
        for ((cell, seed), run) in &runs {
            let is_other = self.runs.get(&(*cell, *seed)).is_some_and(|earlier| earlier.digest != run.digest);
            if is_other || self.plan.keys.binary_search(&(*cell, *seed)).is_err() {
                let reason = if is_other { "had another digest before" } else { "is not part of the study" };
                let dir = dir.display();
                let message = format!("the run of cell {cell} with seed {seed} in {dir} {reason}");
                return Err(Error::Environment(message));
            }
        }
        let count = runs.len();
        for (key, run) in runs {
            if !self.runs.contains_key(&key) {
                self.results.add(key.0, key.1, &run)?;
                self.runs.insert(key, run);
            }
        }
        Ok(count)
    }

    /// The number of runs that the folder has.
    #[must_use]
    pub fn found(&self) -> usize {
        self.runs.len()
    }

    /// The number of runs of the study.
    #[must_use]
    pub fn planned(&self) -> usize {
        self.plan.keys.len()
    }

    /// Finishes the folder if it has all runs. Returns its manifest, which is incomplete otherwise, and the runs by cell and
    /// seed.
    ///
    /// # Errors
    /// The folder cannot be written.
    pub fn finish(self) -> Result<(Manifest, Runs), Error> {
        let is_complete = self.plan.keys.iter().all(|key| self.runs.contains_key(key));
        let runs: Runs = self.runs.into_iter().collect();
        let manifest = if is_complete { self.results.finish(&runs)? } else { self.manifest };
        Ok((manifest, runs))
    }
}
