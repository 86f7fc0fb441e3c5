//! `/run/ropewalk/NAME.state`: the process of a tunnel and the routes it added, so that the next start can clean up
//! after `kill -9`.
//!
//! Addresses and routes are removed with the device, and the device with the process. The socket and this file are left
//! behind, and everything if the device is persistent. A process that ends by itself removes both. If it has changed to
//! a user without that permission, it leaves the file empty.

use super::run_folder::RunFolder;
use nix::fcntl::OFlag;
use serde::{Deserialize, Serialize};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// The longest state file that is read, bytes.
const MAX_LEN: u64 = 1 << 20;

/// The contents of a state file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StateFile {
    /// The daemon's process id.
    pub pid: u32,
    /// Start of that process, clock ticks since boot. The process id alone may have been reused.
    pub started: u64,
    /// The configuration file.
    pub config: PathBuf,
    /// The device's name.
    pub interface: String,
    /// The routes that were added.
    pub routes: Vec<String>,
}

impl StateFile {
    /// A state of this process.
    #[must_use]
    pub fn of_this_process(config: &Path, interface: &str) -> Self {
        let pid = std::process::id();
        let started = start_time(pid).unwrap_or(0);
        Self { pid, started, config: config.to_owned(), interface: interface.to_owned(), routes: Vec::new() }
    }

    /// Reads the file of `interface`; `None` if there is none, if it is malformed or empty, or a symbolic link.
    #[must_use]
    pub fn read(directory: &Path, interface: &str) -> Option<Self> {
        let flags = (OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK).bits();
        let path = directory.join(state_name(interface));
        let file = OpenOptions::new().read(true).custom_flags(flags).open(path).ok()?;
        file.metadata().ok()?.is_file().then_some(())?;
        let mut text = String::new();
        file.take(MAX_LEN).read_to_string(&mut text).ok()?;
        // The rest of an earlier, longer text may follow until the file is truncated.
        serde_json::Deserializer::from_str(&text).into_iter().next()?.ok()
    }

    /// Writes a new file, through which the state can be written again.
    ///
    /// # Errors
    /// The directory cannot be written.
    pub fn create(&self, folder: &RunFolder) -> io::Result<OpenStateFile> {
        let file = OpenStateFile(folder.create(&state_name(&self.interface))?);
        file.write(self)?;
        Ok(file)
    }

    /// Whether its process is alive.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        start_time(self.pid).is_some_and(|start_ticks| start_ticks == self.started)
    }

    /// Removes the file and the socket of `interface`.
    ///
    /// # Errors
    /// The directory cannot be written.
    pub fn remove(folder: &RunFolder, interface: &str) -> io::Result<()> {
        [state_name(interface), socket_name(interface)].iter().try_for_each(|name| folder.remove(name))
    }
}

/// A state file that is open for writing.
#[derive(Debug)]
pub struct OpenStateFile(File);

impl OpenStateFile {
    /// Writes the state in place of the earlier one.
    ///
    /// # Errors
    /// The file system is full.
    pub fn write(&self, state: &StateFile) -> io::Result<()> {
        let mut text = serde_json::to_string_pretty(state).map_err(io::Error::other)?;
        text.push('\n');
        self.0.write_all_at(text.as_bytes(), 0)?;
        self.0.set_len(text.len() as u64)
    }

    /// Empties the file: the tunnel has ended, and its files may remain.
    ///
    /// # Errors
    /// The file system's.
    pub fn clear(&self) -> io::Result<()> {
        self.0.set_len(0)
    }
}

/// The state of a running tunnel; `None` if it is not running.
#[must_use]
pub fn running_tunnel(directory: &Path, interface: &str) -> Option<StateFile> {
    StateFile::read(directory, interface).filter(StateFile::is_alive)
}

/// The path of a tunnel's socket.
#[must_use]
pub fn socket_path(directory: &Path, interface: &str) -> PathBuf {
    directory.join(socket_name(interface))
}

pub(super) fn socket_name(interface: &str) -> String {
    format!("{interface}.sock")
}

fn state_name(interface: &str) -> String {
    format!("{interface}.state")
}

/// The start time of a process that runs: field 22 of `/proc/PID/stat` (proc(5)). Field 2 may contain blanks and
/// brackets. Field 3 is the state: a zombie (Z) or dead process (X) without other threads (field 20) has ended, and only
/// waits for its parent. Other threads that still end keep its files open.
fn start_time(pid: u32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, fields) = text.rsplit_once(')')?;
    let mut fields = fields.split_whitespace();
    let has_ended = matches!(fields.next()?, "Z" | "X" | "x");
    let threads: u32 = fields.nth(16)?.parse().ok()?;
    (!has_ended || threads > 1).then(|| fields.nth(1)?.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(name: &str) -> (PathBuf, RunFolder) {
        let path = std::env::temp_dir().join(format!("ropewalk-state-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        let folder = RunFolder::open(&path).unwrap();
        (path, folder)
    }

    #[test]
    fn a_process_that_has_ended_and_is_not_reaped_is_not_alive() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let state = StateFile { pid: child.id(), started: start_time(child.id()).unwrap(), ..StateFile::default() };
        assert!(state.is_alive());
        child.kill().unwrap();
        assert!(testing::eventually(|| !state.is_alive()));
        let stat = fs::read_to_string(format!("/proc/{}/stat", state.pid)).unwrap();
        assert!(stat.contains(") Z "), "{stat}");
        child.wait().unwrap();
    }

    #[test]
    fn a_state_is_read_as_it_was_written_and_this_process_is_alive() {
        let (path, folder) = folder("written");
        let mut state = StateFile::of_this_process(Path::new("/etc/ropewalk/rw0.toml"), "rw0");
        let file = state.create(&folder).unwrap();
        for route in ["192.168.7.0/24", "10.0.0.0/8"] {
            state.routes = vec![route.into()];
            file.write(&state).unwrap();
            assert_eq!(running_tunnel(&path, "rw0").as_ref(), Some(&state));
        }
        file.clear().unwrap();
        assert_eq!(StateFile::read(&path, "rw0"), None);
        StateFile::remove(&folder, "rw0").unwrap();
        assert_eq!(fs::read_dir(&path).unwrap().count(), 0);
        fs::remove_dir_all(path).unwrap();
    }

    #[test]
    fn a_killed_process_is_not_alive_even_if_its_id_is_reused() {
        let (path, folder) = folder("killed");
        let mut state = StateFile::of_this_process(Path::new("x.toml"), "rw0");
        state.started += 1;
        state.create(&folder).unwrap();
        assert_eq!((running_tunnel(&path, "rw0"), StateFile::read(&path, "rw0")), (None, Some(state)));
        fs::remove_dir_all(path).unwrap();
    }

    #[test]
    fn a_state_whose_earlier_text_was_longer_is_read_while_it_is_written() {
        let (path, folder) = folder("longer");
        let state = StateFile::of_this_process(Path::new("x.toml"), "rw0");
        let OpenStateFile(file) = state.create(&folder).unwrap();
        let len = file.metadata().unwrap().len();
        file.write_all_at(b"\"10.0.0.0/8\"]}", len).unwrap();
        assert_eq!(StateFile::read(&path, "rw0"), Some(state));
        fs::remove_dir_all(path).unwrap();
    }
}
