//! One run of a scenario again, with all of its packets in view.

use crate::error;
use crate::scenario::Scenario;
use crate::table::Table;
use ::trace::{CaptureEnd, Heading, Outputs, Place, QlogVersion};
use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;
use std::path::PathBuf;

/// The files that a trace may write; a page needs what it says of the run.
#[derive(FromPyObject)]
struct Files {
    #[pyo3(item)]
    pcap: Option<PathBuf>,
    #[pyo3(item)]
    at: String,
    #[pyo3(item)]
    has_payload: bool,
    #[pyo3(item)]
    events: Option<PathBuf>,
    #[pyo3(item)]
    qlog: Option<PathBuf>,
    #[pyo3(item)]
    is_qlog_03: bool,
    #[pyo3(item)]
    page: Option<PathBuf>,
}

/// Repeats the run of the one cell with these `KEY=VALUE`, and writes files. Returns the swept keys of the cell with their
/// values, and the digest.
#[pyfunction]
fn trace_run(
    py: Python<'_>,
    scenario: &Scenario,
    cell: Vec<String>,
    seed: u64,
    files: Files,
) -> PyResult<(Vec<(String, String)>, String)> {
    runner::check(&scenario.0).map_err(|error| error::runner(py, &error))?;
    let cell = ::trace::find_cell(&scenario.0, &cell).map_err(PyValueError::new_err)?;
    let heading = Heading::of(&scenario.0, cell, seed, env!("CARGO_PKG_VERSION"));
    let outputs = Outputs {
        pcap: files.pcap.as_deref(),
        place: Place::parse(&files.at, &cell.experiment).map_err(PyValueError::new_err)?,
        has_payload: files.has_payload,
        events: files.events.as_deref(),
        qlog: files
            .qlog
            .as_deref()
            .map(|path| (path, if files.is_qlog_03 { QlogVersion::V03 } else { QlogVersion::Draft12 })),
        page: files.page.as_deref().map(|path| (path, &heading)),
    };
    let run = py.detach(|| ::trace::trace(&cell.experiment, seed, &outputs));
    let run = run.map_err(|error| match error {
        ::trace::Error::Simulation(error) => PyValueError::new_err(error.to_string()),
        ::trace::Error::Store(error) => PyOSError::new_err(error.to_string()),
        ::trace::Error::Capture(error) => PyOSError::new_err(error),
    })?;
    Ok((cell.parameters.clone(), run.digest))
}

/// The events of that run.
#[pyfunction]
fn trace_events(py: Python<'_>, scenario: &Scenario, cell: Vec<String>, seed: u64) -> PyResult<Table> {
    let cell = ::trace::find_cell(&scenario.0, &cell).map_err(PyValueError::new_err)?;
    let rows = py.detach(|| ::trace::events(&cell.experiment, seed));
    let (_, rows) = rows.map_err(|error| PyValueError::new_err(error.to_string()))?;
    Table::new(store::events_frame(&rows))
}

/// The events of a capture that was made `near` or `far`, or where its first handshake tells.
#[pyfunction]
fn capture_events(py: Python<'_>, path: PathBuf, at: Option<&str>) -> PyResult<Table> {
    let end = at.map(CaptureEnd::parse).transpose().map_err(PyValueError::new_err)?;
    let rows = py.detach(|| ::trace::capture_events(&path, end)).map_err(PyOSError::new_err)?;
    Table::new(store::events_frame(&rows))
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(trace_run, module)?)?;
    module.add_function(wrap_pyfunction!(trace_events, module)?)?;
    module.add_function(wrap_pyfunction!(capture_events, module)?)
}
