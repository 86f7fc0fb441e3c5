//! Who changed what: a file of JSON lines, `/var/lib/ropewalk-setup/NAME.audit`, to which setups append. Only root may read
//! it.

use super::environment;
use super::record::folder;
use crate::{Failure, output};
use daemon::config::unix_time;
use nix::fcntl::OFlag;
use nix::unistd::{Uid, User};
use serde::{Deserialize, Serialize};
use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;

/// A change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Entry {
    /// When, Unix time in seconds.
    pub(super) unix_s: u64,
    /// Who: the user that called `sudo`, or the user of the process.
    pub(super) user: String,
    /// That user's number.
    pub(super) user_id: u32,
    /// What was done: a word.
    pub(super) action: String,
    /// To what: a client, or the server.
    pub(super) object: String,
    /// More about it.
    #[serde(default)]
    pub(super) detail: String,
}

pub(super) fn path(interface: &str) -> PathBuf {
    folder().join(format!("{interface}.audit"))
}

/// Notes a change that is about to be made.
///
/// # Errors
/// The file cannot be written, and the change must not be made.
pub(super) fn note(interface: &str, action: &str, object: &str, detail: &str) -> Result<(), Failure> {
    note_all(interface, action, &[(object.to_owned(), detail.to_owned())])
}

/// As [`note`], for changes of several objects, each with its detail: all or none.
pub(super) fn note_all(interface: &str, action: &str, objects: &[(String, String)]) -> Result<(), Failure> {
    let (user, user_id) = who();
    let mut lines = String::new();
    for (object, detail) in objects {
        let (action, object, detail) = (action.to_owned(), object.clone(), detail.clone());
        let entry = Entry { unix_s: unix_time(), user: user.clone(), user_id, action, object, detail };
        lines += &serde_json::to_string(&entry).map_err(|error| environment(error.to_string()))?;
        lines.push('\n');
    }
    append(interface, &lines).map_err(|error| environment(format!("{}: {error}", path(interface).display())))
}

/// Appends whole lines, or none.
pub(super) fn append(interface: &str, lines: &str) -> io::Result<()> {
    let flags = OFlag::O_NOFOLLOW.bits();
    let mut file =
        OpenOptions::new().create(true).append(true).mode(0o600).custom_flags(flags).open(path(interface))?;
    let before = file.metadata()?.len();
    let written = file.write_all(lines.as_bytes()).and_then(|()| file.sync_all());
    if written.is_err() {
        // A full file system may have taken a part.
        let _ = file.set_len(before);
    }
    written
}

/// The user that called `sudo`, if root's environment names one, or else the user of this process.
fn who() -> (String, u32) {
    let variable = |name| std::env::var(name).ok();
    let of_sudo = variable("SUDO_UID").and_then(|id| id.parse().ok()).map(Uid::from_raw);
    let uid = of_sudo.unwrap_or_else(Uid::current);
    let name = User::from_uid(uid).ok().flatten().map(|user| user.name);
    (name.unwrap_or_else(|| uid.to_string()), uid.as_raw())
}

/// The changes so far, the oldest first.
fn read(interface: &str) -> Result<Vec<Entry>, Failure> {
    let text = match fs::read_to_string(path(interface)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        result => result.map_err(|error| environment(format!("{}: {error}", path(interface).display())))?,
    };
    let entry = |(index, line): (usize, &str)| {
        let wrong = |error| environment(format!("{}:{}: {error}", path(interface).display(), index + 1));
        serde_json::from_str(line).map_err(wrong)
    };
    text.lines().enumerate().map(entry).collect()
}

/// Prints the changes.
pub(super) fn show(interface: &str, json: bool) -> Result<(), Failure> {
    let entries = read(interface)?;
    if json {
        return output::json(&entries);
    }
    let lines = entries.iter().map(|entry| {
        let Entry { unix_s, user, user_id, action, object, detail } = entry;
        let detail = if detail.is_empty() { String::new() } else { format!("  {detail}") };
        format!("{}  {user} ({user_id})  {action} {object}{detail}\n", super::clients::date(*unix_s))
    });
    output::print(&lines.collect::<String>())
}
