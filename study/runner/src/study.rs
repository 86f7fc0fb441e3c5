//! A study: a scenario, its driver, the planned runs, and the destination of the results.

use crate::execute::run_into;
use crate::{COMMIT, Driver, Error, Observer, Plan, VERSION, baseline, check, code, order, plan};
use record::Run;
use scenario::Scenario;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use store::{Key, Manifest, Results, Runs, Shard, ShardManifest};

/// A scenario that is checked and planned.
#[derive(Debug)]
pub struct Study<'a> {
    scenario: &'a Scenario,
    driver: &'a dyn Driver,
    /// The runs.
    pub plan: Plan,
    /// The manifest of the results, before there are any.
    pub manifest: Manifest,
    /// The folder of the baseline.
    baseline: Option<PathBuf>,
}

impl<'a> Study<'a> {
    /// Checks the scenario, the layout of its report and its baseline, and plans its runs. `command` is the command line
    /// in the manifest. With `partial`, cells that the driver cannot run are left out.
    ///
    /// # Errors
    /// The scenario is wrong, the driver cannot run it, or its baseline cannot be read.
    pub fn new(
        scenario: &'a Scenario,
        driver: &'a dyn Driver,
        partial: bool,
        command: Vec<String>,
    ) -> Result<Self, Error> {
        check(scenario)?;
        let layout = report::layout(scenario)?;
        let plan = plan(scenario, driver, partial)?;
        let (baseline, baseline_name) = baseline::check(scenario)?.unzip();
        let manifest = Manifest {
            driver: driver.describe(scenario),
            ropewalk_version: VERSION.to_owned(),
            commit: COMMIT.to_owned(),
            scenario: scenario.name.clone(),
            scenario_hash: scenario.hash.clone(),
            code_versions: code::versions(scenario),
            scenario_text: scenario.text.clone(),
            effective_text: scenario.effective_text.clone(),
            command,
            title: scenario.title.clone(),
            about: scenario.about.clone(),
            source: scenario.source.clone(),
            layout: serde_json::to_value(layout).expect("text, numbers and lists"),
            baseline: baseline_name,
            order_seed: driver.is_in_random_order(scenario).then(|| order_seed(scenario)),
            seeds: scenario.seeds.clone(),
            cells: scenario.cells.len(),
            ..Manifest::default()
        };
        Ok(Self { scenario, driver, plan, manifest, baseline })
    }

    /// The seeds of the study with those of the runs in the folder `dir`, ascending, if that has others.
    ///
    /// A caller reads the scenario again with them: seeds are added to a study, and none of its runs is lost.
    #[must_use]
    pub fn with_stored_seeds(&self, dir: &Path) -> Option<Vec<u64>> {
        let own = &self.scenario.seeds;
        let stored = Results::seeds_of(dir, &self.manifest)?;
        let has_others = stored.iter().any(|seed| !own.contains(seed));
        has_others.then(|| BTreeSet::from_iter(stored.iter().chain(own).copied()).into_iter().collect())
    }

    /// One part of the study: its runs, and the manifest of their folder.
    #[must_use]
    pub fn shard(self, shard: Shard) -> Self {
        let plan = self.plan.shard(shard);
        let shard = Some(ShardManifest::new(shard, plan.keys.len(), self.plan.keys.len()));
        Self { plan, manifest: Manifest { shard, ..self.manifest }, ..self }
    }

    /// As [`Study::shard`], with the runs `keys` instead of those that a division of the plan would give the shard.
    #[must_use]
    pub fn only(self, shard: Shard, keys: &[Key]) -> Self {
        let keys: BTreeSet<&Key> = keys.iter().collect();
        let plan = self.plan.only(|key| keys.contains(key));
        let shard = Some(ShardManifest::new(shard, plan.keys.len(), self.plan.keys.len()));
        Self { plan, manifest: Manifest { shard, ..self.manifest }, ..self }
    }

    /// Makes all runs in memory. Returns the manifest, which is complete unless the observer cancelled, and the runs by
    /// cell and seed.
    ///
    /// # Errors
    /// As [`crate::run`].
    pub fn run(
        &self,
        threads: Option<usize>,
        observer: &mut dyn Observer,
    ) -> Result<(Manifest, Vec<(Key, Run)>), Error> {
        let runs = crate::run(self.driver, self.scenario, &self.in_order(&self.plan.keys), threads, observer)?;
        let complete = runs.len() == self.plan.keys.len();
        let digest = complete.then(|| store::digest(runs.iter().map(|(_, run)| run)));
        Ok((Manifest { digest, complete, ..self.manifest.clone() }, runs))
    }

    /// The results of a study of one run that was made elsewhere: an episode of a learning environment.
    #[must_use]
    pub fn with_run(&self, mut run: Run) -> (Manifest, Vec<(Key, Run)>) {
        run.parameters = self.scenario.cells[0].parameters.iter().cloned().collect();
        let runs = vec![((0, run.seed), run)];
        let digest = Some(store::digest(runs.iter().map(|(_, run)| run)));
        let title = format!("{} (an episode of a learning environment)", self.manifest.title);
        (Manifest { digest, title, complete: true, ..self.manifest.clone() }, runs)
    }

    /// Creates or resumes the results folder `dir`.
    ///
    /// # Errors
    /// The folder holds something else, is damaged, or cannot be written.
    pub fn open(&self, dir: &Path) -> Result<Folder<'_>, store::Error> {
        let (results, found) = self.create_or_resume(dir)?;
        Ok(Folder { study: self, dir: dir.to_owned(), results, found })
    }

    /// The runs `keys` in the order in which they are made.
    fn in_order(&self, keys: &[Key]) -> Vec<Key> {
        let cells = self.scenario.cells.len();
        self.manifest.order_seed.map_or_else(|| keys.to_vec(), |seed| order::in_blocks(seed, cells, keys))
    }

    pub(crate) fn create_or_resume(&self, dir: &Path) -> Result<(Results, Runs), store::Error> {
        let (results, found) = Results::create_or_resume(dir, self.manifest.clone())?;
        if let Some(baseline) = &self.baseline {
            results.keep_baseline(baseline)?;
        }
        Ok((results, found))
    }
}

/// The seed of the order of a scenario's runs: its hash, so that the same study has the same order.
fn order_seed(scenario: &Scenario) -> u64 {
    u64::from_str_radix(&scenario.hash, 16).expect("16 hexadecimal digits")
}

/// A results folder that a study fills.
#[derive(Debug)]
pub struct Folder<'a> {
    study: &'a Study<'a>,
    dir: PathBuf,
    results: Results,
    /// The runs that the folder held when it was opened.
    found: Vec<(Key, Run)>,
}

impl Folder<'_> {
    /// The folder.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The estimated costs of the planned runs that the folder does not hold, by cell and seed.
    #[must_use]
    pub fn missing_costs(&self) -> BTreeMap<Key, u64> {
        let missing: BTreeSet<Key> = self.missing().into_iter().collect();
        let costs = self.study.plan.keys.iter().zip(&self.study.plan.costs);
        costs.filter(|(key, _)| missing.contains(key)).map(|(key, cost)| (*key, *cost)).collect()
    }

    /// The number of runs that the folder held when it was opened.
    #[must_use]
    pub fn found(&self) -> usize {
        self.found.len()
    }

    /// The planned runs that the folder does not hold.
    #[must_use]
    pub fn missing(&self) -> Vec<Key> {
        let found: BTreeSet<Key> = self.found.iter().map(|(key, _)| *key).collect();
        self.study.plan.keys.iter().copied().filter(|key| !found.contains(key)).collect()
    }

    /// Makes the missing runs, each stored as soon as it is done, and finishes the folder. Returns its manifest and all
    /// its runs by cell and seed. If the observer cancels, the folder and the manifest stay incomplete, and a study that
    /// opens the folder again continues there.
    ///
    /// # Errors
    /// As [`crate::run`], or the folder cannot be written.
    pub fn run(
        self,
        threads: Option<usize>,
        observer: &mut dyn Observer,
    ) -> Result<(Manifest, Vec<(Key, Run)>), Error> {
        let Study { scenario, driver, .. } = self.study;
        let missing = self.study.in_order(&self.missing());
        let made = run_into(*driver, scenario, &missing, threads, observer, Some(&self.results))?;
        let complete = made.len() == missing.len();
        let mut runs: Vec<(Key, Run)> = self.found.into_iter().chain(made).collect();
        runs.sort_by_key(|(key, _)| *key);
        if !complete {
            return Ok((self.study.manifest.clone(), runs));
        }
        let manifest = self.results.finish(&runs)?;
        if let Some(text) = driver.setup(scenario) {
            Results::write_text(&self.dir, "setup.txt", &text)?;
        }
        Ok((manifest, runs))
    }
}
