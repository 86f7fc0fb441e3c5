//! Links as the text of a scenario without its traffic of interest, and runs of flows over them.

use crate::Error;
use crate::model::ANY_FLOW;
use record::Run;
use runner::{Driver, Job};
use scenario::{Cell, Overrides, Scenario};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64};

/// Links with the traffic that they carry anyway.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Links {
    /// The text of a scenario.
    pub text: String,
    /// Keys that are set on top of it, as `--set` does.
    pub sets: Vec<String>,
    /// The folder of the files that it names.
    pub folder: PathBuf,
    /// The name of the text in errors.
    pub origin: String,
}

impl Links {
    /// The links of a scenario's file.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn of_file(file: &Path) -> Result<Self, Error> {
        let text = scenario::read_text(file)?;
        let folder = file.parent().map_or(PathBuf::new(), Path::to_owned);
        Ok(Self { text, sets: Vec::new(), folder, origin: file.display().to_string() })
    }

    /// The names of the paths.
    ///
    /// # Errors
    /// The text is no scenario, or sweeps.
    pub fn path_names(&self) -> Result<Vec<String>, Error> {
        let scenario = self.scenario(ANY_FLOW, &[])?;
        Ok(scenario.cells[0].experiment.paths.iter().map(|path| path.name.clone()).collect())
    }

    /// The scenario of these links with more tables at its end and more sets.
    ///
    /// # Errors
    /// The text is no scenario, or sweeps.
    pub fn scenario(&self, tables: &str, sets: &[String]) -> Result<Scenario, Error> {
        let overrides = Overrides { sets: self.sets.iter().chain(sets).cloned().collect(), quick: false };
        let scenario = scenario::parse(&self.origin, &format!("{}\n{tables}", self.text), &self.folder, &overrides)?;
        if scenario.cells.len() > 1 {
            let help = "fix its keys: one scenario has one set of links";
            return Err(scenario.error_at("sweep", "the scenario of links sweeps keys", help).into());
        }
        Ok(scenario)
    }
}

/// Runs a cell with a seed.
pub(crate) fn run(driver: &dyn Driver, cell: &Cell, seed: u64) -> Result<Run, Error> {
    let (cancelled, reached) = (AtomicBool::new(false), AtomicU64::new(0));
    let job = Job { experiment: &cell.experiment, seed, raw_folder: None, cancelled: &cancelled, reached: &reached };
    let failed = |error: String| Error::Run(runner::Error::Run(error));
    driver.run(&job).map_err(failed)?.ok_or_else(|| failed("a run was cancelled".to_owned()))
}
