//! `/run/ropewalk/NAME.state`: who runs a tunnel and what it has set, so that the next start can repair after `kill -9`.
//!
//! Addresses and routes of the device vanish with it, and the device with the process. What can be left behind is the
//! socket, this file, and all of it if somebody made the device persistent.

use serde::{Deserialize, Serialize};
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Where sockets and state files lie.
pub const RUN: &str = "/run/ropewalk";

/// The contents of the file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct State {
    /// The daemon's process id.
    pub pid: u32,
    /// When that process started, in clock ticks since boot: a process id alone may be another's by now.
    pub started: u64,
    /// The configuration's file.
    pub config: PathBuf,
    /// The device.
    pub interface: String,
    /// Routes that were set.
    pub routes: Vec<String>,
}

impl State {
    /// That of this very process.
    #[must_use]
    pub fn of_this_process(config: &Path, interface: &str) -> Self {
        let pid = std::process::id();
        let started = start_of(pid).unwrap_or(0);
        Self { pid, started, config: config.to_owned(), interface: interface.to_owned(), routes: Vec::new() }
    }

    /// Reads the file of `interface` in `folder`; none if there is none, or if it is no state.
    #[must_use]
    pub fn read(folder: &Path, interface: &str) -> Option<Self> {
        serde_json::from_str(&fs::read_to_string(file(folder, interface)).ok()?).ok()
    }

    /// Writes the file: a new one beside it, then renamed, so that no reader sees half of it.
    ///
    /// # Errors
    /// The folder cannot be written.
    pub fn write(&self, folder: &Path) -> io::Result<()> {
        fs::create_dir_all(folder)?;
        let path = file(folder, &self.interface);
        let beside = path.with_extension("state.new");
        let mut text = serde_json::to_string_pretty(self).map_err(io::Error::other)?;
        text.push('\n');
        let mut new = fs::File::create(&beside)?;
        new.write_all(text.as_bytes())?;
        new.sync_all()?;
        fs::rename(beside, path)
    }

    /// Its process is alive.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        start_of(self.pid).is_some_and(|started| started == self.started)
    }

    /// Removes the file and the socket of `interface`.
    pub fn remove(folder: &Path, interface: &str) {
        // What is not there needs no removing.
        let _ = fs::remove_file(file(folder, interface));
        let _ = fs::remove_file(socket_path(folder, interface));
    }
}

/// The state of a tunnel that runs.
#[must_use]
pub fn is_running(folder: &Path, interface: &str) -> Option<State> {
    State::read(folder, interface).filter(State::is_alive)
}

/// The socket of a tunnel.
#[must_use]
pub fn socket_path(folder: &Path, interface: &str) -> PathBuf {
    folder.join(format!("{interface}.sock"))
}

fn file(folder: &Path, interface: &str) -> PathBuf {
    folder.join(format!("{interface}.state"))
}

/// The 22nd field of `/proc/PID/stat` (proc(5)); the second one may hold blanks and brackets.
fn start_of(pid: u32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, rest) = text.rsplit_once(')')?;
    rest.split_whitespace().nth(19)?.parse().ok()
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
        let mut state = State::of_this_process(Path::new("/etc/ropewalk/rw0.toml"), "rw0");
        state.routes.push("192.168.7.0/24".into());
        state.write(&folder).unwrap();
        assert_eq!(is_running(&folder, "rw0"), Some(state));
        State::remove(&folder, "rw0");
        assert_eq!(State::read(&folder, "rw0"), None);
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_process_that_was_killed_or_whose_number_is_anothers_is_not_alive() {
        let folder = folder("killed");
        let mut state = State::of_this_process(Path::new("x.toml"), "rw0");
        state.started += 1;
        state.write(&folder).unwrap();
        assert_eq!((is_running(&folder, "rw0"), State::read(&folder, "rw0")), (None, Some(state)));
        fs::remove_dir_all(folder).unwrap();
    }
}
