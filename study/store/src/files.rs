//! Files and folders that are whole or not there: written under a hidden name, then renamed.

use crate::Error;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// Distinguishes files that threads of one process write at the same time.
static NEXT: AtomicU64 = AtomicU64::new(0);

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
    names.retain(|name| !is_temporary(name));
    Ok(names)
}

/// Creates or replaces the folder `to` by a copy of the files in `from` for whose names `is_copied` is true.
pub(crate) fn copy_folder(from: &Path, to: &Path, is_copied: impl Fn(&str) -> bool) -> Result<(), Error> {
    let [temporary, previous] = [temporary(to), temporary(to)];
    fs::create_dir(&temporary).map_err(Error::io("create", &temporary))?;
    for name in names(from)?.iter().filter(|name| is_copied(name)) {
        fs::copy(from.join(name), temporary.join(name)).map_err(Error::io("copy", &from.join(name)))?;
    }
    if to.exists() {
        fs::rename(to, &previous).map_err(Error::io("replace", to))?;
    }
    fs::rename(&temporary, to).map_err(Error::io("write", to))?;
    if previous.exists() { fs::remove_dir_all(&previous).map_err(Error::io("remove", &previous)) } else { Ok(()) }
}

/// Copies the file or the folder `from`, if there is one, with all that is in it.
pub(crate) fn copy_tree(from: &Path, to: &Path) -> Result<(), Error> {
    if from.is_dir() {
        fs::create_dir_all(to).map_err(Error::io("create", to))?;
        return names(from)?.iter().try_for_each(|name| copy_tree(&from.join(name), &to.join(name)));
    }
    if from.exists() { fs::copy(from, to).map(drop).map_err(Error::io("copy", from)) } else { Ok(()) }
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
