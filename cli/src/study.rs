//! Showing a study: the table, the page, the JSON document. `ropewalk report`.

use crate::baseline::LoadedBaseline;
use crate::document::Document;
use crate::{Failure, output};
use record::Run;
use report::{Layout, Study};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::path::Path;
use store::{Manifest, Results};

/// Prints the tables of a stored study, and writes its page anew.
pub(crate) fn report(dir: &Path, json: bool) -> Result<(), Failure> {
    let (manifest, runs) = Results::open(dir)?;
    show(dir, &manifest, runs, json)
}

/// Writes the page; prints the tables and where the page is, or the document.
pub(crate) fn show(dir: &Path, manifest: &Manifest, runs: Vec<Run>, json: bool) -> Result<(), Failure> {
    let baseline = LoadedBaseline::of_study(dir, manifest)?;
    let baseline = baseline.as_ref().map(LoadedBaseline::to_report);
    let study = Study { baseline, ..study(manifest, layout(manifest)?, &runs) };
    let page = Results::write_text(dir, "report.html", &report::html(&study))?;
    if json {
        return output::json(&Document::new(manifest, runs));
    }
    let table = report::terminal(&study, output::width(), output::color());
    output::print(&format!("{table}\nreport  {}\ndigest  {}\n", page.display(), study.digest))
}

/// The study as the argument of the report, without a baseline.
pub(crate) fn study<'a>(manifest: &'a Manifest, layout: Layout, runs: &'a [Run]) -> Study<'a> {
    Study {
        title: &manifest.title,
        about: &manifest.about,
        source: &manifest.source,
        scenario: &manifest.scenario,
        scenario_text: &manifest.scenario_text,
        digest: manifest.digest.as_deref().unwrap_or_default(),
        version: &manifest.ropewalk_version,
        commit: &manifest.commit,
        driver: &manifest.driver,
        layout,
        runs,
        baseline: None,
    }
}

/// A layout as JSON, as it is in the manifest, because `store` does not depend on `report`.
pub(crate) fn to_json(item: &impl Serialize) -> Value {
    serde_json::to_value(item).expect("text, numbers and lists")
}

/// The report's layout in the manifest.
pub(crate) fn layout(manifest: &Manifest) -> Result<Layout, Failure> {
    let damaged = |error| Failure::Environment(format!("manifest.json is damaged: {error}"));
    Layout::deserialize(&manifest.layout).map_err(damaged)
}
