//! Links fitted to measurements.

use crate::error;
use ::fit::{Fit, Model, Options};
use measured::Measured;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use scenario::Free;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// What Python chooses of a fit.
#[derive(FromPyObject)]
struct Choices {
    #[pyo3(item)]
    scenario: Option<PathBuf>,
    #[pyo3(item)]
    free: Vec<(String, String)>,
    #[pyo3(item)]
    hold: Vec<String>,
    #[pyo3(item)]
    members: usize,
    #[pyo3(item)]
    evaluations: Option<usize>,
    #[pyo3(item)]
    seconds: f64,
    #[pyo3(item)]
    seed: u64,
    #[pyo3(item)]
    jobs: Option<usize>,
}

/// Fits links to the measurements in files (`FILE` or `NAME=FILE`), and returns the document of the fit as JSON.
#[pyfunction(name = "fit")]
fn fit_links(py: Python<'_>, to: Vec<PathBuf>, choices: Choices) -> PyResult<String> {
    let measured = trace::measurements(&to).map_err(PyValueError::new_err)?;
    let free = choices.free.iter().map(|(key, range)| Free::new(key, range)).collect::<Result<Vec<_>, _>>();
    let free = free.map_err(PyValueError::new_err)?;
    let fit = py.detach(|| run(&measured, &free, choices));
    Ok(fit.map_err(|error| exception(py, error))?.json())
}

fn run(measured: &Measured, free: &[Free], choices: Choices) -> Result<Fit, ::fit::Error> {
    let Choices { scenario, hold, members, evaluations, seconds, seed, jobs, .. } = choices;
    let model = match scenario {
        Some(file) => Model::of_scenario(&file, measured, free)?,
        None => Model::of_measurement(measured, free)?,
    };
    let options = Options { members, hold, threads: jobs.unwrap_or_else(runner::available_cores), seed };
    let (start, time) = (Instant::now(), Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX));
    ::fit::fit(&model, measured, &options, &mut |progress| match evaluations {
        Some(count) => 1.0 - progress.evaluations as f64 / count as f64,
        None => 1.0 - start.elapsed().as_secs_f64() / time.as_secs_f64(),
    })
}

/// Writes the folder of a fit, from its document, and returns the path of its page.
#[pyfunction]
fn write_fit(py: Python<'_>, document: &str, folder: PathBuf) -> PyResult<PathBuf> {
    let fit: Fit = serde_json::from_str(document).map_err(|error| PyValueError::new_err(error.to_string()))?;
    fit.write(&folder).map_err(|error| exception(py, error))
}

/// The tables of a fit, from its document.
#[pyfunction]
fn fit_text(document: &str) -> PyResult<String> {
    let fit: Fit = serde_json::from_str(document).map_err(|error| PyValueError::new_err(error.to_string()))?;
    Ok(fit.text())
}

fn exception(py: Python<'_>, error: ::fit::Error) -> PyErr {
    match error {
        ::fit::Error::Run(error) => error::runner(py, &error),
        ::fit::Error::Input(message) => PyValueError::new_err(message),
        ::fit::Error::Output(message) => error::results(py, &message),
    }
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(fit_links, module)?)?;
    module.add_function(wrap_pyfunction!(write_fit, module)?)?;
    module.add_function(wrap_pyfunction!(fit_text, module)?)
}
