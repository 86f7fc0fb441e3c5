//! Results of a study: in memory, or of a results folder.

use crate::error;
use crate::table::Table;
use pyo3::prelude::*;
use record::Run;
use report::{Scope, Study};
use runner::LoadedBaseline;
use std::collections::BTreeMap;
use std::path::PathBuf;
use store::{Key, Manifest, frame};

/// The runs of a study with its manifest.
#[pyclass(frozen, module = "ropewalk._native")]
pub(crate) struct Results {
    manifest: Manifest,
    runs: Vec<(Key, Run)>,
    baseline: Option<(PathBuf, LoadedBaseline)>,
}

impl Results {
    /// The results of `runs`, by cell and seed, with the baseline of the folder `baseline`.
    pub(crate) fn new(
        py: Python<'_>,
        manifest: Manifest,
        runs: Vec<(Key, Run)>,
        baseline: Option<PathBuf>,
    ) -> PyResult<Self> {
        let name = manifest.baseline.clone().unwrap_or_default();
        let load = |folder: PathBuf| LoadedBaseline::load(&folder, name).map(|loaded| (folder, loaded));
        let baseline = baseline.map(load).transpose().map_err(|error| error::runner(py, &error))?;
        Ok(Self { manifest, runs, baseline })
    }

    /// The study as the argument of the report; `show` uses it without the interpreter's lock.
    fn with_study<R: Send>(&self, py: Python<'_>, show: impl FnOnce(&Study<'_>) -> R + Send) -> PyResult<R> {
        let layout = runner::layout(&self.manifest).map_err(|error| error::runner(py, &error))?;
        Ok(py.detach(|| {
            let runs: Vec<Run> = self.runs.iter().map(|(_, run)| run.clone()).collect();
            let baseline = self.baseline.as_ref().map(|(_, baseline)| baseline.to_report());
            show(&Study { baseline, ..runner::to_report(&self.manifest, layout, &runs) })
        }))
    }
}

/// Parameters, mean, half the width of the confidence interval, and number of runs of a cell.
type Estimate = (BTreeMap<String, String>, f64, Option<f64>, usize);

#[pymethods]
impl Results {
    /// Reads the finished results folder `dir`.
    #[staticmethod]
    fn open(py: Python<'_>, dir: PathBuf) -> PyResult<Self> {
        let opened = py.detach(|| store::Results::open_by_key(&dir));
        let (manifest, runs) = opened.map_err(|error| error::results(py, &error.to_string()))?;
        let baseline = manifest.baseline.as_ref().map(|_| store::Results::baseline_folder(&dir));
        Self::new(py, manifest, runs, baseline)
    }

    /// The manifest as JSON.
    #[getter]
    fn manifest(&self) -> String {
        serde_json::to_string(&self.manifest).expect("text, numbers and lists")
    }

    /// The number of runs.
    fn __len__(&self) -> usize {
        self.runs.len()
    }

    /// One of the tables: runs, flows, subflows, paths, tunnels, cpu, histograms, series.
    fn table(&self, py: Python<'_>, name: &str) -> PyResult<Table> {
        let make = match name {
            "runs" => frame::runs,
            "flows" => frame::flows,
            "subflows" => frame::subflows,
            "paths" => frame::paths,
            "tunnels" => frame::tunnels,
            "cpu" => frame::cpu,
            "histograms" => frame::histograms,
            "series" => frame::series,
            _ => return Err(error::results(py, &format!("no table `{name}`"))),
        };
        Table::new(py.detach(|| make(&self.runs)))
    }

    /// The page of the report.
    fn page(&self, py: Python<'_>) -> PyResult<String> {
        self.with_study(py, report::html)
    }

    /// The tables of the report as a fragment of HTML.
    fn html_tables(&self, py: Python<'_>) -> PyResult<String> {
        self.with_study(py, report::html_tables)
    }

    /// The tables as text of at most `width` columns.
    fn text(&self, py: Python<'_>, width: usize) -> PyResult<String> {
        self.with_study(py, |study| report::terminal(study, width, false))
    }

    /// A value in each cell, as in the tables of the report.
    fn estimates(
        &self,
        py: Python<'_>,
        value: &str,
        flow: Option<String>,
        only: BTreeMap<String, Vec<String>>,
        by_flow: bool,
    ) -> PyResult<Vec<Estimate>> {
        let scope = Scope { only, flow, ..Scope::default() };
        let estimates = self.with_study(py, |study| report::estimates(study, value, &scope, by_flow))?;
        let estimates = estimates.map_err(|message| error::results(py, &message))?;
        let row = |cell: report::CellEstimate| (cell.parameters, cell.mean, cell.half_width, cell.runs);
        Ok(estimates.into_iter().map(row).collect())
    }

    /// Writes a results folder with its page.
    fn save(&self, py: Python<'_>, dir: PathBuf) -> PyResult<()> {
        let baseline = self.baseline.as_ref().map(|(folder, _)| folder.as_path());
        let saved = py.detach(|| runner::save(&dir, &self.manifest, &self.runs, baseline));
        saved.map_err(|error| error::runner(py, &error))
    }
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Results>()
}
