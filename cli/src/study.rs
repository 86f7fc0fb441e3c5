//! Showing a study: the table, the page, the JSON document. `ropewalk report`.

use crate::document::Document;
use crate::{Failure, output};
use record::Run;
use std::path::Path;
use store::{Manifest, Results};

/// Prints the tables of a stored study, and writes its page anew.
pub(crate) fn report(dir: &Path, json: bool) -> Result<(), Failure> {
    let (manifest, runs) = Results::open(dir)?;
    show(dir, &manifest, runs, json)
}

/// Writes the page; prints the tables and where the page is, or the document.
pub(crate) fn show(dir: &Path, manifest: &Manifest, runs: Vec<Run>, json: bool) -> Result<(), Failure> {
    let (width, color) = (output::width(), output::color());
    let (page, table) = runner::write_page(dir, manifest, &runs, |study| report::terminal(study, width, color))?;
    if json {
        return output::json(&Document::new(manifest, runs));
    }
    let digest = manifest.digest.as_deref().unwrap_or_default();
    output::print(&format!("{table}\nreport  {}\ndigest  {digest}\n", page.display()))
}
