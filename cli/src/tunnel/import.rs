//! `tunnel import-mpt DIR`.

#[cfg(feature = "mpt")]
use crate::{Failure, output};
use std::io;
use std::path::Path;

#[cfg(feature = "mpt")]
pub(super) fn import_mpt(dir: &Path, connection: Option<&str>, out: Option<&Path>) -> Result<(), Failure> {
    let import = mpt::import::import(dir, connection).map_err(|error| Failure::Configuration(error.into()))?;
    for note in &import.notes {
        output::warn(&format!("note: {note}"));
    }
    match out {
        None => output::print(&import.toml),
        Some(file) => replace_file(file, &import.toml)
            .map_err(|error| Failure::Environment(format!("cannot write {}: {error}", file.display()))),
    }
}

/// Writes the file atomically: a temporary file, renamed.
pub(super) fn replace_file(file: &Path, text: &str) -> io::Result<()> {
    let mut name = file.file_name().unwrap_or_default().to_owned();
    name.push(".new");
    let temporary = file.with_file_name(name);
    std::fs::write(&temporary, text)?;
    std::fs::rename(temporary, file)
}
