//! Shards of a study: made by workers, gathered where the study was started.

use crate::error;
use crate::results::Results;
use crate::run::Callback;
use crate::scenario::Scenario;
use pyo3::prelude::*;
use runner::{Simulator, Study};
use std::path::PathBuf;
use store::{Key, Results as Folder, Shard};

/// A results folder that gets its runs from shards made by workers.
#[pyclass(module = "ropewalk._native")]
struct Gather {
    /// `None` once it is finished.
    gather: Option<runner::Gather>,
    dir: PathBuf,
}

impl Gather {
    fn open_gather(&mut self) -> PyResult<&mut runner::Gather> {
        self.gather.as_mut().ok_or_else(|| pyo3::exceptions::PyValueError::new_err("it is finished"))
    }
}

#[pymethods]
impl Gather {
    /// Creates or resumes the results folder `dir`.
    #[new]
    fn new(py: Python<'_>, scenario: &Scenario, dir: PathBuf, command: Vec<String>) -> PyResult<Self> {
        let opened = py.detach(|| {
            let study = Study::new(&scenario.0, &Simulator, false, command)?;
            Ok(runner::Gather::open(&study, &dir)?)
        });
        let gather = opened.map_err(|error| error::runner(py, &error))?;
        Ok(Self { gather: Some(gather), dir })
    }

    /// The missing runs, as cell and seed, divided into at most `count` shards.
    fn divide(&mut self, count: usize) -> PyResult<Vec<Vec<Key>>> {
        Ok(self.open_gather()?.divide(count))
    }

    /// Adds the finished shard in `dir`.
    fn add(&mut self, py: Python<'_>, dir: PathBuf) -> PyResult<usize> {
        let gather = self.open_gather()?;
        py.detach(|| gather.add(&dir)).map_err(|error| error::runner(py, &error))
    }

    /// The numbers of runs that the folder has and that are planned.
    fn progress(&mut self) -> PyResult<(usize, usize)> {
        let gather = self.open_gather()?;
        Ok((gather.found(), gather.planned()))
    }

    /// The results. If no run is missing, they are complete and the folder is finished.
    fn finish(&mut self, py: Python<'_>) -> PyResult<Results> {
        self.open_gather()?;
        let gather = self.gather.take().expect("it is open");
        let (manifest, runs) = py.detach(|| gather.finish()).map_err(|error| error::runner(py, &error))?;
        let baseline = manifest.baseline.as_ref().map(|_| Folder::baseline_folder(&self.dir));
        Results::new(py, manifest, runs, baseline)
    }
}

/// Makes the runs `keys` in the folder `dir`, which becomes the shard with this number, of this many. The `baseline` is left
/// out: the worker does not use it, and may not have its files. Returns the exception if Python raised one: in that case the
/// folder can be resumed.
#[pyfunction]
fn run_shard(
    py: Python<'_>,
    scenario: &Scenario,
    shard: (usize, usize),
    keys: Vec<Key>,
    jobs: usize,
    dir: PathBuf,
    command: Vec<String>,
) -> PyResult<Option<Py<PyAny>>> {
    let mut callback = Callback::default();
    let mut scenario = scenario.0.clone();
    scenario.baseline = None;
    let made = py.detach(|| {
        let study =
            Study::new(&scenario, &Simulator, false, command)?.only(Shard { index: shard.0, count: shard.1 }, &keys);
        study.open(&dir)?.run(Some(jobs), &mut callback)
    });
    made.map_err(|error| error::runner(py, &error))?;
    Ok(callback.raised.map(|raised| raised.into_value(py).into_any()))
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Gather>()?;
    module.add_function(wrap_pyfunction!(run_shard, module)?)
}
