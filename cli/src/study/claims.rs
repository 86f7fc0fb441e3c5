//! `ropewalk claims`: the verdicts of several results folders of one scenario, each and with all runs together.

use crate::{Failure, output};
use record::Run;
use report::ClaimColumn;
use std::collections::BTreeSet;
use std::path::PathBuf;
use store::{Manifest, Results};

/// The heading of the column for all runs together.
const ALL: &str = "all";

/// Prints the table.
pub(crate) fn claims(dirs: &[PathBuf]) -> Result<(), Failure> {
    let studies: Vec<(Manifest, Vec<Run>)> = dirs.iter().map(|dir| Results::open(dir)).collect::<Result<_, _>>()?;
    check(dirs, &studies)?;
    let (first, _) = &studies[0];
    let layout = runner::layout(first)?;
    let column =
        |heading: &str, runs: &[Run]| ClaimColumn::of(heading, &runner::to_report(first, layout.clone(), runs));
    let names = dirs.iter().map(|dir| dir.file_name().unwrap_or(dir.as_os_str()).to_string_lossy());
    let columns: Vec<ClaimColumn> = names.zip(&studies).map(|(name, (_, runs))| column(&name, runs)).collect();
    let runs: Vec<Run> = studies.iter().flat_map(|(_, runs)| runs.iter().cloned()).collect();
    output::print(&report::claims_table(&columns, &column(ALL, &runs)))
}

/// Refuses folders that cannot be combined: with other claims, or with a run that another folder has.
fn check(dirs: &[PathBuf], studies: &[(Manifest, Vec<Run>)]) -> Result<(), Failure> {
    let refuse = |dir: &PathBuf, why: &str, help: &str| {
        Err(Failure::Environment(format!("{} {why}\n  help: {help}", dir.display())))
    };
    let mut seen = BTreeSet::new();
    for (dir, (manifest, runs)) in dirs.iter().zip(studies) {
        if manifest.layout["claims"].as_array().is_none_or(Vec::is_empty) {
            return refuse(dir, "has no claims", "a folder of a scenario with [[claim]]");
        }
        if manifest.layout != studies[0].0.layout {
            return refuse(dir, "has other tables and claims than the first folder", "folders of one scenario file");
        }
        if !runs.iter().all(|run| seen.insert((&run.parameters, run.seed))) {
            let help = "run each folder with seeds of its own: --set \"seeds=[31, 32, 33]\"";
            return refuse(dir, "has a run that an earlier folder has too", help);
        }
    }
    Ok(())
}
