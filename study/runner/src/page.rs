//! From stored results to a report.

use crate::{Error, LoadedBaseline};
use record::Run;
use report::{Layout, Provenance, Study};
use serde::Deserialize;
use std::path::{Path, PathBuf};
use store::{Manifest, Results};

/// The study as the argument of the report, without a baseline.
#[must_use]
pub fn to_report<'a>(manifest: &'a Manifest, layout: Layout, runs: &'a [Run]) -> Study<'a> {
    Study {
        title: &manifest.title,
        about: &manifest.about,
        source: &manifest.source,
        scenario: &manifest.scenario,
        provenance: Provenance {
            command: &manifest.command,
            file: &manifest.scenario_text,
            effective: manifest.effective_text.as_deref(),
        },
        digest: manifest.digest.as_deref().unwrap_or_default(),
        version: &manifest.ropewalk_version,
        commit: &manifest.commit,
        driver: &manifest.driver,
        layout,
        runs,
        baseline: None,
    }
}

/// The report's layout in the manifest.
///
/// # Errors
/// The manifest is damaged.
pub fn layout(manifest: &Manifest) -> Result<Layout, Error> {
    let damaged = |error| Error::Environment(format!("manifest.json is damaged: {error}"));
    Layout::deserialize(&manifest.layout).map_err(damaged)
}

/// Writes the page `report.html` and the scenario as it was run, `scenario.toml`, into the finished folder `dir`. Returns
/// the path of the page and the result of `show` for the study.
///
/// # Errors
/// The manifest or the baseline's copy is damaged, or the page cannot be written.
pub fn write_page<R>(
    dir: &Path,
    manifest: &Manifest,
    runs: &[Run],
    show: impl FnOnce(&Study<'_>) -> R,
) -> Result<(PathBuf, R), Error> {
    with_study(dir, manifest, runs, |study| {
        Results::write_text(dir, "scenario.toml", study.provenance.text())?;
        let page = Results::write_text(dir, "report.html", &report::html(study))?;
        Ok((page, show(study)))
    })?
}

/// The result of `show` for the study in the finished folder `dir`, with its baseline.
///
/// # Errors
/// The manifest or the baseline's copy is damaged.
pub fn with_study<R>(
    dir: &Path,
    manifest: &Manifest,
    runs: &[Run],
    show: impl FnOnce(&Study<'_>) -> R,
) -> Result<R, Error> {
    let baseline = LoadedBaseline::of_study(dir, manifest)?;
    let baseline = baseline.as_ref().map(LoadedBaseline::to_report);
    Ok(show(&Study { baseline, ..to_report(manifest, layout(manifest)?, runs) }))
}
