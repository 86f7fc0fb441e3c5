//! The network namespaces of this machine.

use nix::sched::{CloneFlags, setns};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::thread;

/// The namespace of this process.
const OWN: &str = "/proc/self/ns/net";
/// Where `ip netns` keeps namespaces, also those without a process.
const NAMED: &str = "/run/netns";

/// What a function returned in each namespace.
#[derive(Debug)]
pub(super) struct Visit<T> {
    /// By the namespace's number, its inode.
    pub(super) results: BTreeMap<u64, T>,
    /// Namespaces that this process may not enter.
    pub(super) refused: usize,
}

/// Calls a function in each network namespace that has a process or a name. Only the own one can be entered without
/// CAP_SYS_ADMIN. One that ends meanwhile is left out.
///
/// # Errors
/// Those of the function.
pub(super) fn visit<T: Send>(call: impl Fn() -> io::Result<T> + Sync) -> io::Result<Visit<T>> {
    let own = fs::metadata(OWN)?;
    let mut visit = Visit { results: BTreeMap::from([(own.ino(), call()?)]), refused: 0 };
    for (number, path) in all(own.dev()).into_iter().filter(|(number, _)| *number != own.ino()) {
        match within(&path, &call) {
            Ok(result) => drop(visit.results.insert(number, result?)),
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(_) => visit.refused += 1,
        }
    }
    Ok(visit)
}

/// Calls a function in a thread that enters a namespace and ends there. The outer error says that it cannot be entered.
fn within<T: Send>(path: &Path, call: &(impl Fn() -> io::Result<T> + Sync)) -> io::Result<io::Result<T>> {
    let enter = || {
        setns(File::open(path)?, CloneFlags::CLONE_NEWNET)?;
        Ok(call())
    };
    thread::scope(|scope| scope.spawn(enter).join()).unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// A path to each namespace, by its number. `device` is the file system of namespaces: a name whose namespace is gone is a
/// file of another one.
fn all(device: u64) -> BTreeMap<u64, PathBuf> {
    let of_process = |entry: PathBuf| {
        let is_process = entry.file_name().is_some_and(|name| name.to_string_lossy().parse::<u32>().is_ok());
        is_process.then(|| entry.join("ns/net"))
    };
    let paths = entries("/proc").filter_map(of_process).chain(entries(NAMED));
    let mut all = BTreeMap::new();
    for path in paths {
        match fs::metadata(&path) {
            Ok(file) if file.dev() == device => drop(all.entry(file.ino()).or_insert(path)),
            _ => {}
        }
    }
    all
}

fn entries(folder: &str) -> impl Iterator<Item = PathBuf> {
    fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path())
}
