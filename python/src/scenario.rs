//! Scenarios: read, checked, resolved.

use crate::error;
use ::scenario::Overrides;
use pyo3::prelude::*;
use std::path::PathBuf;

/// A scenario that was read. It does not change; `ropewalk.Scenario` reads it again after a `set`.
#[pyclass(frozen, module = "ropewalk._native")]
pub(crate) struct Scenario(pub(crate) ::scenario::Scenario);

#[pymethods]
impl Scenario {
    /// Reads `text`, which errors call `origin`; files that it names are looked for in `base`.
    #[staticmethod]
    fn parse(
        py: Python<'_>,
        origin: &str,
        text: &str,
        base: PathBuf,
        sets: Vec<String>,
        quick: bool,
    ) -> PyResult<Self> {
        let overrides = Overrides { sets, quick };
        let scenario = py.detach(|| ::scenario::parse(origin, text, &base, &overrides));
        scenario.map(Self).map_err(|error| error::scenario(py, &error))
    }

    #[getter]
    fn name(&self) -> &str {
        &self.0.name
    }

    #[getter]
    fn title(&self) -> &str {
        &self.0.title
    }

    #[getter]
    fn seeds(&self) -> Vec<u64> {
        self.0.seeds.clone()
    }

    /// The swept keys and their shown values of each cell, in sweep order.
    #[getter]
    fn cells(&self) -> Vec<Vec<(String, String)>> {
        self.0.cells.iter().map(|cell| cell.parameters.clone()).collect()
    }

    /// The text that makes the same cells without sets and `quick`; None if they change nothing, or if there is none.
    #[getter]
    fn effective_text(&self) -> Option<&str> {
        self.0.effective_text.as_deref()
    }

    /// Whether it is the short form.
    #[getter]
    fn is_short(&self) -> bool {
        self.0.is_short
    }

    #[getter]
    fn hash(&self) -> &str {
        &self.0.hash
    }
}

/// The name, the path below `scenarios` and the text of each built-in scenario.
#[pyfunction]
fn built_in() -> Vec<(&'static str, &'static str, &'static str)> {
    ::scenario::built_in().map(|it| (it.name(), it.path, it.text)).collect()
}

/// The text of the scenario file at `path`.
#[pyfunction]
fn read_scenario(py: Python<'_>, path: PathBuf) -> PyResult<String> {
    ::scenario::read_text(&path).map_err(|error| error::scenario(py, &error))
}

/// The JSON Schema of a scenario file.
#[pyfunction]
fn schema() -> String {
    report::schema().to_string()
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(built_in, module)?)?;
    module.add_function(wrap_pyfunction!(read_scenario, module)?)?;
    module.add_function(wrap_pyfunction!(schema, module)?)?;
    module.add_class::<Scenario>()
}
