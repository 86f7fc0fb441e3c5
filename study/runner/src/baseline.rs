//! The baseline: a results folder of the same cells, made by another driver, that a study is compared with.

use crate::Error;
use record::Run;
use report::Baseline;
use scenario::Scenario;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use store::{Manifest, Results};

/// A baseline's name and its runs.
#[derive(Debug)]
pub struct LoadedBaseline {
    /// The name of its folder.
    pub name: String,
    runs: Vec<Run>,
}

impl LoadedBaseline {
    /// The copy of the baseline in the finished folder `dir`, if its manifest names one.
    ///
    /// # Errors
    /// The copy is missing or damaged.
    pub fn of_study(dir: &std::path::Path, manifest: &Manifest) -> Result<Option<Self>, Error> {
        let Some(name) = manifest.baseline.clone() else { return Ok(None) };
        Ok(Some(Self { name, runs: Results::open_baseline(dir)?.1 }))
    }

    /// The baseline in the finished folder `dir`, called `name`.
    ///
    /// # Errors
    /// The folder is missing, unfinished or damaged.
    pub fn load(dir: &std::path::Path, name: String) -> Result<Self, Error> {
        Ok(Self { name, runs: Results::open(dir)?.1 })
    }

    /// The baseline as an argument of the report.
    #[must_use]
    pub fn to_report(&self) -> Baseline<'_> {
        Baseline { name: &self.name, runs: &self.runs }
    }
}

/// The baseline's folder and its name, if the scenario has one. Reads the folder before anything runs; an error if it
/// is not complete or has no cell of the scenario.
pub(crate) fn check(scenario: &Scenario) -> Result<Option<(PathBuf, String)>, Error> {
    let Some(folder) = &scenario.baseline else { return Ok(None) };
    let baseline_error = |message: &str, help: &str| Error::from(scenario.error_at("baseline", message, help));
    let (_, runs) = Results::open(folder).map_err(|error| {
        baseline_error(
            &format!("cannot use the baseline: {error}"),
            "a finished results folder, next to the scenario file",
        )
    })?;
    let baseline_cells: BTreeSet<&BTreeMap<String, String>> = runs.iter().map(|run| &run.parameters).collect();
    let mut scenario_cells =
        scenario.cells.iter().map(|cell| cell.parameters.iter().cloned().collect::<BTreeMap<_, _>>());
    if !scenario_cells.any(|parameters| baseline_cells.contains(&parameters)) {
        let baseline_cell = runs.first().map_or(String::new(), |run| cell(run.parameters.iter()));
        let scenario_cell =
            scenario.cells.first().map_or(String::new(), |first| cell(first.parameters.iter().map(|(k, v)| (k, v))));
        let help = format!("its first cell has {baseline_cell}; the scenario's has {scenario_cell}");
        return Err(baseline_error("the baseline has none of the scenario's cells", &help));
    }
    let name = folder.file_name().map_or_else(|| "baseline".to_owned(), |name| name.to_string_lossy().into_owned());
    Ok(Some((folder.clone(), name)))
}

/// A cell's parameters in words.
fn cell<'p>(parameters: impl Iterator<Item = (&'p String, &'p String)>) -> String {
    let assignments: Vec<String> = parameters.map(|(key, value)| format!("{key} = {value}")).collect();
    if assignments.is_empty() { "no swept keys".to_owned() } else { assignments.join(", ") }
}
