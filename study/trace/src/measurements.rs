//! Measurements of links in files of any program.

use crate::{is_capture, measure_capture};
use measured::Measured;
use std::path::{Path, PathBuf};

/// Reads measurements for every command that takes them, and puts them together. Each argument is `FILE`, or `NAME=FILE` of one
/// path, which then has that name. A file is a document of `ropewalk probe`, a capture, or what another program wrote.
///
/// # Errors
/// A file cannot be read or is of no program that is known, or a name is given to more than one path; the error names the file.
pub fn measurements(arguments: &[PathBuf]) -> Result<Measured, String> {
    let mut all = Measured::default();
    for argument in arguments {
        all.merge(read(argument)?);
    }
    Ok(all)
}

/// The name of a path and its file, of an argument `FILE` or `NAME=FILE`.
#[must_use]
pub fn named_file(argument: &Path) -> (Option<String>, PathBuf) {
    match argument.to_string_lossy().split_once('=') {
        Some((name, file)) if !argument.exists() => (Some(name.to_owned()), PathBuf::from(file)),
        _ => (None, argument.to_owned()),
    }
}

fn read(argument: &Path) -> Result<Measured, String> {
    let (name, file) = named_file(argument);
    let mut measured = match is_capture(&file) {
        true => measure_capture(&file)?,
        false => measured::read(&file).map_err(|error| error.to_string())?,
    };
    match (name, &mut measured.paths[..]) {
        (None, _) => {}
        (Some(name), [path]) => {
            let before = format!("{}: ", std::mem::replace(&mut path.name, name.clone()));
            for line in &mut measured.not_measured {
                *line = line.strip_prefix(&before).map_or_else(|| line.clone(), |rest| format!("{name}: {rest}"));
            }
        }
        (Some(_), paths) => {
            return Err(format!("{} has {} paths, and names them itself", file.display(), paths.len()));
        }
    }
    Ok(measured)
}
