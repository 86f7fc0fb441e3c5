//! The scenarios that the program carries, and the traces and models that they name.

use crate::files::Base;
use crate::{Overrides, Scenario, parse, scenario};
use ::parse::Error;
use std::path::{Component, Path};

/// Paths below the folder of the shipped scenarios, and contents.
static FILES: &[(&str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/built_in.rs"));

/// The folder of a scenario that may read no file.
const NOWHERE: &str = "(built in)";

/// A built-in scenario.
#[derive(Clone, Copy, Debug)]
pub struct BuiltIn {
    /// Its path below the folder of the shipped scenarios.
    pub path: &'static str,
    /// The file.
    pub text: &'static str,
}

impl BuiltIn {
    /// Its name.
    #[must_use]
    pub fn name(&self) -> &'static str {
        Path::new(self.path).file_stem().and_then(|stem| stem.to_str()).unwrap_or(self.path)
    }

    /// Reads it without any file of the file system: traces and models are the program's own.
    ///
    /// # Errors
    /// As [`crate::load_confined`].
    pub fn load_confined(&self, overrides: &Overrides) -> Result<Scenario, Error> {
        let file = Path::new(NOWHERE).join(self.path);
        let base = Base { folder: file.parent().unwrap_or(Path::new(NOWHERE)), is_confined: true };
        scenario::parse_in(&format!("{} (built in)", self.path), self.text, base, overrides)
    }

    /// Reads it. Files that it names are looked for below `./scenarios` first.
    ///
    /// # Errors
    /// As [`crate::load`].
    pub fn load(&self, overrides: &Overrides) -> Result<Scenario, Error> {
        let file = Path::new("scenarios").join(self.path);
        parse(&format!("{} (built in)", self.path), self.text, file.parent().unwrap_or(Path::new("")), overrides)
    }
}

/// The built-in scenarios, by path.
pub fn built_in() -> impl Iterator<Item = BuiltIn> {
    let scenarios = FILES.iter().filter(|(path, _)| path.ends_with(".toml"));
    scenarios.filter_map(|(path, bytes)| Some(BuiltIn { path, text: str::from_utf8(bytes).ok()? }))
}

/// The contents of the built-in trace or model that replaces a missing file: the one with the same name in a folder of the
/// same name, such as `traces/lte-synthetic.trace`.
pub(crate) fn file(path: &Path) -> Option<&'static [u8]> {
    let parts: Vec<&str> = path
        .components()
        .filter_map(|part| if let Component::Normal(part) = part { part.to_str() } else { None })
        .collect();
    let [.., folder, name] = parts.as_slice() else { return None };
    let wanted = format!("{folder}/{name}");
    FILES.iter().find(|(known, _)| *known == wanted && !known.ends_with(".toml")).map(|(_, bytes)| *bytes)
}
