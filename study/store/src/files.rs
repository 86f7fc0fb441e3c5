//! Files and folders that are whole or not there: written under a hidden name, then renamed.

use crate::Error;
use filesystem::Links;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// Distinguishes files that threads of one process write at the same time.
static NEXT: AtomicU64 = AtomicU64::new(0);

/// The file that is locked while a results folder is filled; it goes with the lock.
pub(crate) const LOCK: &str = ".ropewalk.lock";
/// The longest file that is read whole, bytes: a manifest, a run.
const MAX_LEN: u64 = 1 << 30;
/// The longest file that is copied or read in parts, bytes: a table, a capture.
const MAX_PARTS_LEN: u64 = 1 << 40;

/// Reads a file of a results folder, which somebody may have sent: a regular one, no link.
///
/// # Errors
/// As [`filesystem::read`].
pub(crate) fn read(path: &Path) -> std::io::Result<Vec<u8>> {
    filesystem::read(path, Links::Refuse, MAX_LEN)
}

/// As [`read`], for a file that is read in parts.
///
/// # Errors
/// As [`filesystem::open`].
pub(crate) fn open(path: &Path) -> std::io::Result<File> {
    filesystem::open(path, Links::Refuse, MAX_PARTS_LEN)
}

/// Whether a name is one of our hidden ones.
fn is_temporary(name: &str) -> bool {
    name.starts_with('.') && name.ends_with(".tmp")
}

/// Creates or replaces `path` by what `fill` writes.
pub(crate) fn replace(path: &Path, fill: impl FnOnce(&mut File) -> Result<(), Error>) -> Result<(), Error> {
    let temporary = temporary(path);
    let filled = File::create(&temporary).map_err(Error::io("write", path)).and_then(|mut file| fill(&mut file));
    let replaced = filled.and_then(|()| fs::rename(&temporary, path).map_err(Error::io("write", path)));
    if replaced.is_err() {
        let _ = fs::remove_file(&temporary); // the first error is the one to report
    }
    replaced
}

/// Creates or replaces `path`.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    use std::io::Write;
    replace(path, |file| file.write_all(bytes).map_err(Error::io("write", path)))
}

/// Names of the files in a folder that are meant to be seen, in order.
pub(crate) fn names(dir: &Path) -> Result<Vec<String>, Error> {
    let mut names = every_name(dir)?;
    names.retain(|name| !is_temporary(name) && name != LOCK);
    Ok(names)
}

/// Creates or replaces the folder `to` by a copy of the files in `from` for whose names `is_copied` is true.
pub(crate) fn copy_folder(from: &Path, to: &Path, is_copied: impl Fn(&str) -> bool) -> Result<(), Error> {
    let [temporary, previous] = [temporary(to), temporary(to)];
    fs::create_dir(&temporary).map_err(Error::io("create", &temporary))?;
    for name in names(from)?.iter().filter(|name| is_copied(name)) {
        copy(&from.join(name), &temporary.join(name))?;
    }
    if to.exists() {
        fs::rename(to, &previous).map_err(Error::io("replace", to))?;
    }
    fs::rename(&temporary, to).map_err(Error::io("write", to))?;
    if previous.exists() { fs::remove_dir_all(&previous).map_err(Error::io("remove", &previous)) } else { Ok(()) }
}

/// Copies the file or the folder `from`, if there is one, with all that is in it.
pub(crate) fn copy_tree(from: &Path, to: &Path) -> Result<(), Error> {
    match kind(from)? {
        None => Ok(()),
        Some(kind) if kind.is_dir() => {
            fs::create_dir_all(to).map_err(Error::io("create", to))?;
            names(from)?.iter().try_for_each(|name| copy_tree(&from.join(name), &to.join(name)))
        }
        Some(_) => {
            let temporary = temporary(to);
            copy(from, &temporary)?;
            fs::rename(&temporary, to).map_err(Error::io("write", to))
        }
    }
}

fn copy(from: &Path, to: &Path) -> Result<(), Error> {
    filesystem::copy(from, to, MAX_PARTS_LEN).map_err(Error::io("copy", from))
}

/// What a name is, not what it may link to; `None` if it is missing.
fn kind(path: &Path) -> Result<Option<fs::FileType>, Error> {
    match fs::symlink_metadata(path) {
        Ok(metadata) => Ok(Some(metadata.file_type())),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Error::io("read", path)(error)),
    }
}

/// Checks that a folder which somebody sent holds folders and regular files alone, whatever is read of them.
///
/// # Errors
/// The first file that is something else, by its name.
pub(crate) fn check_all_regular(folder: &Path) -> Result<(), Error> {
    for name in every_name(folder)? {
        let path = folder.join(name);
        match kind(&path)? {
            Some(kind) if kind.is_dir() => check_all_regular(&path)?,
            Some(_) => drop(open(&path).map_err(Error::io("read", &path))?),
            None => {}
        }
    }
    Ok(())
}

/// A hidden name beside `path`, another one at each call.
fn temporary(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let count = NEXT.fetch_add(1, Ordering::Relaxed);
    path.with_file_name(format!(".{name}.{}.{count}.tmp", std::process::id()))
}

/// Removes what a killed process left half-written.
pub(crate) fn remove_temporary(dir: &Path) -> Result<(), Error> {
    for name in every_name(dir)?.iter().filter(|name| is_temporary(name)) {
        let path = dir.join(name);
        let removed = if path.is_dir() { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
        removed.map_err(Error::io("remove", &path))?;
    }
    Ok(())
}

fn every_name(dir: &Path) -> Result<Vec<String>, Error> {
    let entries = fs::read_dir(dir).map_err(Error::io("read", dir))?;
    let mut names = entries
        .map(|entry| entry.map(|entry| entry.file_name().to_string_lossy().into_owned()))
        .collect::<Result<Vec<_>, _>>()
        .map_err(Error::io("read", dir))?;
    names.sort();
    Ok(names)
}
