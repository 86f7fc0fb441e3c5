//! The steps of a setup: shown first, then made one by one.

use super::access::{access, difference, give, is_as_wanted, make_folder, of_folder};
use super::host;
use super::keep;
use super::record::{Record, Undo, read_sysctl, write_sysctl};
use super::service::Service;
use crate::tunnel::runtime_directory;
use daemon::control_plane::Client;
use filesystem::Folder;
use nix::unistd::User;
use std::fmt::Write as _;
use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::ops::RangeBounds;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};
use zeroize::Zeroizing;

/// One step.
#[derive(Clone, Debug)]
pub(super) enum Step {
    /// Add a system user without a login.
    User(String),
    /// A folder.
    Folder { path: PathBuf, mode: u32, owner: Option<String> },
    /// A file that does not exist yet.
    File(NewFile),
    /// No action now; this undo at the end. It is for files of the daemon, and for work that a later undo leaves.
    AtRemoval(Undo),
    /// A key of `/proc/sys`.
    Sysctl { key: String, value: String },
    /// A command, and its undo.
    Command { run: Vec<String>, undo: Option<Undo> },
    /// The daemon.
    Start(Service),
    /// The keeper of the promises in the record.
    Keep(Service),
    /// The networks beyond the inner ones, once the tunnel works.
    Traffic(Traffic),
}

/// The change of a configuration that sends this machine's traffic through the tunnel.
#[derive(Clone, Debug)]
pub(super) struct Traffic {
    pub(super) config: PathBuf,
    /// The text with the inner networks alone.
    pub(super) before: String,
    pub(super) after: String,
    /// The networks of the new text.
    pub(super) allowed_ips: String,
    /// Whether everything else is blocked from then on.
    pub(super) is_exclusive: bool,
}

/// A new file.
#[derive(Clone, Debug)]
pub(super) struct NewFile {
    pub(super) path: PathBuf,
    pub(super) mode: u32,
    pub(super) owner: Option<String>,
    pub(super) text: Zeroizing<String>,
    /// The words shown instead of a secret text.
    pub(super) shown_as: Option<&'static str>,
}

impl NewFile {
    /// A file of root that everybody may read.
    pub(super) fn of_root(path: impl Into<PathBuf>, mode: u32, text: impl Into<String>) -> Self {
        Self { path: path.into(), mode, owner: None, text: Zeroizing::new(text.into()), shown_as: None }
    }
}

/// A command from its words.
pub(super) fn words(line: &[&str]) -> Vec<String> {
    line.iter().map(|word| (*word).to_owned()).collect()
}

impl Step {
    /// The step in words.
    fn describe(&self) -> String {
        match self {
            Self::User(name) => format!("  user     {name}: a system user without a login\n"),
            Self::Folder { path, mode, owner } => {
                let now = difference(path);
                format!("  folder   {}{}{now}\n", path.display(), access(*mode, owner.as_deref()))
            }
            Self::File(NewFile { path, mode, owner, text, shown_as }) => {
                let mut lines = format!("  file     {}{}", path.display(), access(*mode, owner.as_deref()));
                match shown_as {
                    Some(description) => {
                        let _ = writeln!(lines, ": {description}");
                    }
                    None => {
                        lines.push_str(":\n");
                        text.lines().for_each(|line| {
                            let _ = writeln!(lines, "               {line}");
                        });
                    }
                }
                lines
            }
            Self::AtRemoval(_) => String::new(),
            Self::Sysctl { key, value } => {
                let now = read_sysctl(key).unwrap_or("missing".into());
                format!("  sysctl   {key} = {value}  (now {now})\n")
            }
            Self::Command { run, .. } => format!("  run      {}\n", run.join(" ")),
            Self::Start(service) => format!("  start    {}\n", service.start_description()),
            Self::Keep(service) => format!("  start    {}\n", service.keeper_description()),
            Self::Traffic(Traffic { config, allowed_ips, is_exclusive, .. }) => {
                let exclusive = if *is_exclusive { "               exclusive = true\n" } else { "" };
                format!(
                    "  then     once the server answers through the tunnel, in {}:\n               allowed-ips = \
                     {allowed_ips}\n{exclusive}",
                    config.display()
                )
            }
        }
    }

    /// Its undo.
    fn undo(&self) -> Option<Undo> {
        match self {
            Self::User(name) => Some(Undo::Command(words(&["userdel", name]))),
            Self::Folder { path, .. } => Some(match of_folder(path) {
                Some((mode, owner)) => Undo::FolderAccess { path: path.clone(), mode, owner },
                None => Undo::Folder(path.clone()),
            }),
            Self::File(NewFile { path, .. }) => Some(Undo::File(path.clone())),
            Self::AtRemoval(undo) => Some(undo.clone()),
            Self::Sysctl { key, .. } => read_sysctl(key).map(|value| Undo::Sysctl { key: key.clone(), value }),
            Self::Command { undo, .. } => undo.clone(),
            Self::Start(service) => Some(Undo::Service(service.clone())),
            Self::Keep(service) => Some(Undo::Keep(service.clone())),
            Self::Traffic(Traffic { config, before, .. }) => {
                Some(Undo::Traffic { config: config.clone(), text: before.clone() })
            }
        }
    }

    /// Whether there is nothing to do.
    fn is_done(&self) -> bool {
        match self {
            Self::User(name) => user_exists(name),
            Self::Folder { path, mode, owner } => is_as_wanted(path, *mode, owner.as_deref()),
            Self::Sysctl { key, value } => read_sysctl(key).as_ref() == Some(value),
            _ => false,
        }
    }

    fn carry_out(&self, interface: &str) -> Result<(), String> {
        let error_at = |path: &Path| {
            let path = path.display().to_string();
            move |error: io::Error| format!("{path}: {error}")
        };
        match self {
            Self::User(name) => host::run(&words(&[
                "useradd",
                "--system",
                "--no-create-home",
                "--home-dir",
                "/nonexistent",
                "--shell",
                "/usr/sbin/nologin",
                name,
            ])),
            Self::Folder { path, mode, owner } => make_folder(path, *mode, owner.as_deref()),
            Self::File(file) => write_new(file).map_err(error_at(&file.path))?,
            Self::AtRemoval(_) => Ok(()),
            Self::Sysctl { key, value } => write_sysctl(key, value),
            Self::Command { run, .. } => host::run(run),
            Self::Start(service) => service.start(interface),
            Self::Keep(service) => service.start_keeper(interface),
            Self::Traffic(Traffic { config, after, .. }) => {
                replace_text(config, after)?;
                let reloaded = Client::new(&runtime_directory(), interface).request("POST", "/v1/reload", "");
                reloaded.map_err(|error| error.to_string())?;
                keep::look(interface);
                Ok(())
            }
        }
    }
}

/// Replaces the text of a file, which keeps its owner and mode.
pub(super) fn replace_text(path: &Path, text: &str) -> Result<(), String> {
    let replace = || {
        let metadata = fs::symlink_metadata(path)?;
        let new = path.with_extension("ropewalk-new");
        let _ = fs::remove_file(&new);
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&new)?;
        file.write_all(text.as_bytes())?;
        fchown(&file, Some(metadata.uid()), Some(metadata.gid()))?;
        file.set_permissions(metadata.permissions())?;
        file.sync_all()?;
        fs::rename(&new, path)
    };
    replace().map_err(|error: io::Error| format!("{}: {error}", path.display()))
}

/// Writes a temporary file next to its final name, and links it there: the file is whole or missing, and never replaces
/// another one.
fn write_new(file: &NewFile) -> io::Result<Result<(), String>> {
    let (folder, name) = Folder::of_file(&file.path)?;
    let mut new_name = name.clone();
    new_name.push(".ropewalk-new");
    folder.remove(&new_name)?;
    let mut output = folder.create_new(&new_name, 0o600)?;
    output.write_all(file.text.as_bytes())?;
    let owned = give(&output, file.owner.as_deref());
    output.set_permissions(fs::Permissions::from_mode(file.mode))?;
    output.sync_all()?;
    let linked = folder.link(&new_name, &name);
    folder.remove(&new_name)?;
    linked.map(|()| owned)
}

pub(super) fn user_exists(name: &str) -> bool {
    User::from_name(name).ok().flatten().is_some()
}

/// Steps in their order.
#[derive(Debug, Default)]
pub(super) struct Plan {
    /// A description in a sentence or two.
    pub(super) title: String,
    pub(super) steps: Vec<Step>,
    /// Notes for the user before the confirmation.
    pub(super) notes: Vec<String>,
}

impl Plan {
    /// The plan in words.
    pub(super) fn describe(&self) -> String {
        let steps: String = self.steps.iter().filter(|step| !step.is_done()).map(Step::describe).collect();
        let notes: String = self.notes.iter().map(|note| format!("\nNote: {note}\n")).collect();
        format!("{}\n\n{steps}{notes}", self.title)
    }

    /// The existing files that would have to be replaced.
    pub(super) fn conflicts(&self) -> Vec<String> {
        let files = self.steps.iter().filter_map(|step| match step {
            Step::File(NewFile { path, .. }) | Step::AtRemoval(Undo::File(path)) => Some(path),
            _ => None,
        });
        files.filter(|path| fs::symlink_metadata(path).is_ok()).map(|path| path.display().to_string()).collect()
    }

    /// Makes the steps of a range, each noted in `record` before it is made.
    ///
    /// # Errors
    /// The first step that fails, in words; the steps before it are made and noted.
    pub(super) fn carry_out(&self, range: impl RangeBounds<usize>, record: &mut Record) -> Result<(), String> {
        let steps = &self.steps[(range.start_bound().cloned(), range.end_bound().cloned())];
        for step in steps.iter().filter(|step| !step.is_done()) {
            record.undo.extend(step.undo());
            record.write()?;
            step.carry_out(&record.interface)?;
        }
        Ok(())
    }
}
