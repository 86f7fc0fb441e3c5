//! Reading of scenarios in tests.

use ropewalk_scenario::{Error, Overrides, Scenario, parse};
use std::path::Path;

/// Reads a scenario, which errors call `test.toml`; its traces are in `tests/traces`.
pub(crate) fn try_read(text: &str, sets: &[&str], quick: bool) -> Result<Scenario, Error> {
    let sets = sets.iter().map(ToString::to_string).collect();
    let traces = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/traces");
    parse("test.toml", text, &traces, &Overrides { sets, quick })
}

/// Reads a scenario without faults.
pub(crate) fn read(text: &str, sets: &[&str]) -> Scenario {
    try_read(text, sets, false).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// Reads the short form of a scenario without faults.
pub(crate) fn read_quick(text: &str) -> Scenario {
    try_read(text, &[], true).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// The error of a scenario with a fault.
pub(crate) fn error(text: &str, sets: &[&str]) -> Error {
    try_read(text, sets, false).map(|_| ()).expect_err(text)
}
