//! The file of `load --state`: what was loaded, for `unload --state`. One line per program: its name in the kernel and the
//! id of its registration.

use crate::Failure;
use filesystem::{Folder, Links, read_text};
use kernel::Program;
use std::io::{ErrorKind, Write};
use std::path::Path;

/// The maximum size of such a file, bytes.
const MAX_LEN: u64 = 4096;

/// A program, with the id under which it was loaded.
pub(super) type Entry = (&'static Program, u32);

/// The contents of the file; empty if there is none.
pub(super) fn read(file: &Path) -> Result<Vec<Entry>, Failure> {
    let text = match read_text(file, Links::Follow, MAX_LEN) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        result => result.map_err(|error| failure(file, &error))?,
    };
    let entry = |(index, line): (usize, &str)| {
        let wrong = || {
            let place = format!("{}:{}", file.display(), index + 1);
            Failure::Environment(format!("{place}: not a program with its id: `{line}`\n  help: a line is `rw_lia 12`"))
        };
        let (name, id) = line.split_once(' ').ok_or_else(wrong)?;
        Ok((kernel::program(name).ok_or_else(wrong)?, id.parse().map_err(|_| wrong())?))
    };
    text.lines().enumerate().map(entry).collect()
}

/// Replaces the file atomically.
pub(super) fn write(file: &Path, entries: &[Entry]) -> Result<(), Failure> {
    let text: String = entries.iter().map(|(program, id)| format!("{} {id}\n", program.kernel_name)).collect();
    let replace = || {
        let (folder, name) = Folder::of_file(file)?;
        let mut new_name = name.clone();
        new_name.push(".new");
        folder.remove(&new_name)?;
        folder.create_new(&new_name, 0o644)?.write_all(text.as_bytes())?;
        folder.rename(&new_name, &name)
    };
    replace().map_err(|error| failure(file, &error))
}

/// Removes it.
pub(super) fn remove(file: &Path) -> Result<(), Failure> {
    let remove = || {
        let (folder, name) = Folder::of_file(file)?;
        folder.remove(name)
    };
    remove().map_err(|error| failure(file, &error))
}

fn failure(file: &Path, error: &std::io::Error) -> Failure {
    Failure::Environment(format!("{}: {error}", file.display()))
}
