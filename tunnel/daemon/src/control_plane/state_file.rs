//! `/run/ropewalk/NAME.state`: the process of a tunnel and the routes it added, so that the next start can clean up
//! after `kill -9`.
//!
//! Addresses and routes are removed with the device, and the device with the process. Left behind are the socket, this
//! file, and all of it if the device is persistent.

use serde::{Deserialize, Serialize};
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// The directory of sockets and state files.
pub const RUNTIME_DIRECTORY: &str = "/run/ropewalk";

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

    /// Reads the file of `interface`; `None` if there is none, or if it is malformed.
    #[must_use]
    pub fn read(directory: &Path, interface: &str) -> Option<Self> {
        serde_json::from_str(&fs::read_to_string(state_path(directory, interface)).ok()?).ok()
    }

    /// Writes the file atomically: a temporary file, renamed.
    ///
    /// # Errors
    /// The directory cannot be written.
    pub fn write(&self, directory: &Path) -> io::Result<()> {
        fs::create_dir_all(directory)?;
        let path = state_path(directory, &self.interface);
        let temporary_path = path.with_extension("state.new");
        let mut text = serde_json::to_string_pretty(self).map_err(io::Error::other)?;
        text.push('\n');
        let mut file = fs::File::create(&temporary_path)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(temporary_path, path)
    }

    /// Whether its process is alive.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        start_time(self.pid).is_some_and(|start_ticks| start_ticks == self.started)
    }

    /// Removes the file and the socket of `interface`.
    pub fn remove(directory: &Path, interface: &str) {
        // Files that do not exist are no error.
        let _ = fs::remove_file(state_path(directory, interface));
        let _ = fs::remove_file(socket_path(directory, interface));
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
    directory.join(format!("{interface}.sock"))
}

fn state_path(directory: &Path, interface: &str) -> PathBuf {
    directory.join(format!("{interface}.state"))
}

/// The start time of a process: field 22 of `/proc/PID/stat` (proc(5)). Field 2 may contain blanks and brackets.
fn start_time(pid: u32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, fields) = text.rsplit_once(')')?;
    fields.split_whitespace().nth(19)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("ropewalk-state-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        folder
    }

    #[test]
    fn a_state_is_read_as_it_was_written_and_this_process_is_alive() {
        let folder = folder("written");
        let mut state = StateFile::of_this_process(Path::new("/etc/ropewalk/rw0.toml"), "rw0");
        state.routes.push("192.168.7.0/24".into());
        state.write(&folder).unwrap();
        assert_eq!(running_tunnel(&folder, "rw0"), Some(state));
        StateFile::remove(&folder, "rw0");
        assert_eq!(StateFile::read(&folder, "rw0"), None);
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_killed_process_is_not_alive_even_if_its_id_is_reused() {
        let folder = folder("killed");
        let mut state = StateFile::of_this_process(Path::new("x.toml"), "rw0");
        state.started += 1;
        state.write(&folder).unwrap();
        assert_eq!((running_tunnel(&folder, "rw0"), StateFile::read(&folder, "rw0")), (None, Some(state)));
        fs::remove_dir_all(folder).unwrap();
    }
}
