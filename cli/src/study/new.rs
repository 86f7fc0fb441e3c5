//! `ropewalk new`: writes a scenario with comments, as a starting point.

use crate::{Failure, output};
use std::fs::File;
use std::io::Write;

/// The scenario.
const TEMPLATE: &str = include_str!("../../assets/new.toml");
/// Its name in the template.
const NAME: &str = "my-scenario";

/// Writes `NAME.toml` into the current folder, unless there is one.
pub(crate) fn new(name: &str) -> Result<(), Failure> {
    let name = name.strip_suffix(".toml").unwrap_or(name);
    if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_') {
        return Err(Failure::Usage(format!("`{name}` is not a name: use letters, digits, `-` and `_`")));
    }
    let file = format!("{name}.toml");
    let text = TEMPLATE.replace(NAME, name);
    let written = File::create_new(&file).and_then(|mut target| target.write_all(text.as_bytes()));
    written.map_err(|error| Failure::Environment(format!("cannot write {file}: {error}")))?;
    output::print(&format!("{file}\nrun it with: ropewalk run {file}\n"))
}
