//! The network namespaces of the machine: programs belong to the kernel, their sockets and defaults to a namespace.

use nix::sched::{CloneFlags, setns};
use std::collections::{BTreeMap, HashSet};
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// A network namespace.
#[derive(Debug)]
pub(super) struct Namespace {
    /// The paths that lead to it: `/run/netns/NAME` and `/proc/PID/ns/net`, or none for the caller's own.
    pub(super) name: Option<String>,
    /// Its number, an inode.
    number: u64,
    file: File,
}

/// The results of a function in each namespace.
#[derive(Debug)]
pub(super) struct Visit<T> {
    /// By the namespace's number, its inode.
    pub(super) results: BTreeMap<u64, T>,
    /// Namespaces that this process may not enter.
    pub(super) refused: usize,
}

/// Calls a function in each network namespace that has a process or a name. Without CAP_SYS_ADMIN only the caller's can be
/// entered.
///
/// # Errors
/// Those of the function.
pub(super) fn visit<T: Send>(call: impl Fn() -> io::Result<T> + Sync) -> io::Result<Visit<T>> {
    let mut visit = Visit { results: BTreeMap::new(), refused: 0 };
    for namespace in found() {
        match namespace.within(&call) {
            Ok(result) => drop(visit.results.insert(namespace.number, result?)),
            Err(_) => visit.refused += 1,
        }
    }
    Ok(visit)
}

/// The caller's own namespace first, then every other that `ip netns` has named or a process is in, each once, if this
/// process may enter it. A process without root sees only its own.
pub(super) fn all() -> Vec<Namespace> {
    let mut found = found();
    found.retain(|namespace| namespace.name.is_none() || namespace.within(|| ()).is_ok());
    found
}

/// As [`all`], including those that this process may not enter. The name of a removed namespace is a file of another file
/// system.
fn found() -> Vec<Namespace> {
    let (mut seen, mut device) = (HashSet::new(), None);
    let own = Path::new("/proc/thread-self/ns/net").to_owned();
    let others = files("/run/netns", "").into_iter().chain(files("/proc", "ns/net"));
    let open = |path: PathBuf| {
        let file = File::open(&path).ok()?;
        let metadata = file.metadata().ok()?;
        let number = metadata.ino();
        let is_new = *device.get_or_insert(metadata.dev()) == metadata.dev() && seen.insert(number);
        let name = (path != own).then(|| path.display().to_string());
        is_new.then_some(Namespace { name, number, file })
    };
    std::iter::once(own.clone()).chain(others).filter_map(open).collect()
}

/// `FOLDER/ENTRY/REST` for each entry of a folder; for `/proc` only the processes.
fn files(folder: &str, rest: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let is_wanted = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().as_encoded_bytes();
        rest.is_empty() || name.iter().all(u8::is_ascii_digit)
    };
    let mut paths: Vec<PathBuf> = entries.filter(is_wanted).collect();
    paths.sort();
    paths.into_iter().map(|path| if rest.is_empty() { path } else { path.join(rest) }).collect()
}

impl Namespace {
    /// Does something in the namespace, in a thread of its own.
    ///
    /// # Errors
    /// Only a process with CAP_SYS_ADMIN may enter another namespace than its own.
    pub(super) fn within<T: Send>(&self, work: impl FnOnce() -> T + Send) -> io::Result<T> {
        let enter_and_work = || {
            if self.name.is_some() {
                setns(&self.file, CloneFlags::CLONE_NEWNET)?;
            }
            Ok(work())
        };
        std::thread::scope(|scope| scope.spawn(enter_and_work).join().expect("nothing panics in a namespace"))
    }
}
