//! A test as a document of measurements, which `ropewalk fit` and `advise` read.

use super::result::TestResult;
use crate::Failure;
use std::path::Path;

/// Writes the document.
pub(super) fn write(result: &TestResult, file: &Path) -> Result<(), Failure> {
    let report = serde_json::to_string(result).expect("text, numbers and lists");
    let measured = measured::parse(&report, "the test").map_err(|error| Failure::Run(error.to_string()))?;
    let text = serde_json::to_string_pretty(&measured).expect("maps with text keys, numbers and lists") + "\n";
    crate::tunnel::import::replace_file(file, &text)
        .map_err(|error| Failure::Environment(format!("cannot write {}: {error}", file.display())))
}

/// The command that gives advice by the document.
pub(super) fn next(result: &TestResult, file: &Path) -> String {
    format!("advice by it: ropewalk advise {} --tunnel {}", file.display(), result.interface)
}
