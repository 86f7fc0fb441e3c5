//! Showing a study: the table, the page, the JSON document. `ropewalk report`.

use super::document::document;
use super::figures;
use crate::{Failure, output};
use record::Run;
use runner::LoadedBaseline;
use scenario::Scenario;
use serde_json::Value;
use std::path::{Path, PathBuf};
use store::{Manifest, Results, ShardManifest};

/// Prints the tables of a stored study, and writes its page again, and its figures into the folder `out`.
pub(crate) fn report(dir: &Path, out: Option<&Path>, json: bool) -> Result<(), Failure> {
    let (manifest, runs) = Results::open(dir)?;
    if let Some(out) = out {
        let (_, files) = runner::write_page(dir, &manifest, &runs, ::report::figure_files)?;
        let count = figures::write(out, &files)?;
        output::warn(&format!("{count} figures and tables in {}", out.display()));
    }
    show(dir, &manifest, &runs, json)
}

/// Merges shards, and shows the study.
pub(crate) fn merge(dirs: &[PathBuf], out: &Path, json: bool) -> Result<(), Failure> {
    let (manifest, runs) = runner::merge(dirs, out)?;
    let runs: Vec<Run> = runs.into_iter().map(|(_, run)| run).collect();
    show(out, &manifest, &runs, json)
}

/// Prints the shard that the folder holds, or the document.
pub(crate) fn show_shard(dir: &Path, manifest: &Manifest, runs: &[Run], json: bool) -> Result<(), Failure> {
    let Some(ShardManifest { shard, runs: count, study_runs, .. }) = &manifest.shard else {
        return show(dir, manifest, runs, json);
    };
    if json {
        return output::print(&(document(manifest, runs, &Value::Null) + "\n"));
    }
    let digest = manifest.digest.as_deref().unwrap_or_default();
    let dir = dir.display();
    output::print(&format!("shard   {shard}, {count} of {study_runs} runs\nfolder  {dir}\ndigest  {digest}\n"))
}

/// Prints the tables of runs that are not stored, or the document.
pub(crate) fn show_in_memory(
    scenario: &Scenario,
    manifest: &Manifest,
    runs: &[Run],
    json: bool,
) -> Result<(), Failure> {
    let baseline = scenario.baseline.as_deref().zip(manifest.baseline.clone());
    let baseline = baseline.map(|(dir, name)| LoadedBaseline::load(dir, name)).transpose()?;
    let baseline = baseline.as_ref().map(LoadedBaseline::to_report);
    let study = ::report::Study { baseline, ..runner::to_report(manifest, runner::layout(manifest)?, runs) };
    if json {
        return output::print(&(document(manifest, runs, &::report::claims_document(&study)) + "\n"));
    }
    let table = ::report::terminal(&study, output::width(), output::color());
    output::print(&format!("{table}\ndigest  {}\n", manifest.digest.as_deref().unwrap_or_default()))
}

/// Writes the page; prints the tables and the path of the page, or the document.
pub(crate) fn show(dir: &Path, manifest: &Manifest, runs: &[Run], json: bool) -> Result<(), Failure> {
    if json {
        let (_, claims) = runner::write_page(dir, manifest, runs, ::report::claims_document)?;
        return output::print(&(document(manifest, runs, &claims) + "\n"));
    }
    let (width, color) = (output::width(), output::color());
    let (page, table) = runner::write_page(dir, manifest, runs, |study| ::report::terminal(study, width, color))?;
    let digest = manifest.digest.as_deref().unwrap_or_default();
    output::print(&format!("{table}\nreport  {}\ndigest  {digest}\n", page.display()))
}
