//! Runs of a scenario on threads, without the interpreter's lock.

use crate::error;
use crate::results::Results;
use crate::scenario::Scenario;
use pyo3::prelude::*;
use record::Run;
use runner::{Observer, Simulator, Study};
use std::path::PathBuf;
use store::Key;

/// Reports the progress of a study to Python, which may stop it.
#[derive(Default)]
pub(crate) struct Callback {
    /// Called with the numbers of runs that are done and planned.
    progress: Option<Py<PyAny>>,
    done: usize,
    planned: usize,
    /// The exception that Python raised: an interrupt, or an error of `progress`.
    pub(crate) raised: Option<PyErr>,
}

impl Callback {
    fn tell(&mut self) {
        let Some(progress) = self.progress.as_ref().filter(|_| self.raised.is_none()) else { return };
        self.raised = Python::attach(|py| progress.call1(py, (self.done, self.planned)).err());
    }
}

impl Observer for Callback {
    fn finished(&mut self, _: Key, _: &Run) {
        self.done += 1;
        self.tell();
    }

    fn is_cancelled(&mut self) -> bool {
        if self.raised.is_none() {
            self.raised = Python::attach(|py| py.check_signals().err());
        }
        self.raised.is_some()
    }
}

/// Makes all runs of a scenario that the folder `out` does not hold, or all of them in memory. Returns the results, and the
/// exception if Python raised one: in that case the results are incomplete.
#[pyfunction]
fn run(
    py: Python<'_>,
    scenario: &Scenario,
    jobs: Option<usize>,
    out: Option<PathBuf>,
    progress: Option<Py<PyAny>>,
    command: Vec<String>,
) -> PyResult<(Results, Option<Py<PyAny>>)> {
    let mut callback = Callback { progress, done: 0, planned: 0, raised: None };
    let made = py.detach(|| {
        let study = Study::new(&scenario.0, &Simulator, false, command)?;
        callback.planned = study.plan.keys.len();
        match &out {
            None => {
                callback.tell();
                study.run(jobs, &mut callback)
            }
            Some(dir) => {
                let folder = study.open(dir)?;
                callback.done = folder.found();
                callback.tell();
                folder.run(jobs, &mut callback)
            }
        }
    });
    let (manifest, runs) = made.map_err(|error| error::runner(py, &error))?;
    let baseline = scenario.0.baseline.clone().filter(|_| manifest.baseline.is_some());
    let raised = callback.raised.map(|raised| raised.into_value(py).into_any());
    Ok((Results::new(py, manifest, runs, baseline)?, raised))
}

/// The seeds of a scenario with those of the runs that the folder `out` holds of the same study; None if these are not more.
#[pyfunction]
fn with_stored_seeds(py: Python<'_>, scenario: &Scenario, out: PathBuf) -> PyResult<Option<Vec<u64>>> {
    let seeds = py.detach(|| Ok(Study::new(&scenario.0, &Simulator, false, Vec::new())?.with_stored_seeds(&out)));
    seeds.map_err(|error| error::runner(py, &error))
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(with_stored_seeds, module)?)?;
    module.add_function(wrap_pyfunction!(run, module)?)
}
