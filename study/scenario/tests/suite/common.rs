//! Reading of scenarios in tests.

use ropewalk_scenario::{Error, Overrides, Scenario, parse};
use std::path::Path;

/// Reads a scenario, which errors call `test.toml`; its traces are in `tests/traces`.
pub(crate) fn try_read(text: &str, sets: &[&str], quick: bool) -> Result<Scenario, Error> {
    let sets = sets.iter().map(ToString::to_string).collect();
    let traces = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/traces");
    let scenario = parse("test.toml", text, &traces, &Overrides { sets, quick })?;
    check_effective_text(&scenario, &traces, text);
    Ok(scenario)
}

/// Where there are overrides, the effective text makes the same runs without them.
pub(crate) fn check_effective_text(scenario: &Scenario, base: &Path, text: &str) {
    let Some(effective) = &scenario.effective_text else { return };
    let again = parse("effective.toml", effective, base, &Overrides::default());
    let again = again.unwrap_or_else(|error| panic!("{error}\n{text}\n{effective}"));
    assert_eq!((again.cells, again.seeds), (scenario.cells.clone(), scenario.seeds.clone()), "{text}\n{effective}");
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
