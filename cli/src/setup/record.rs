//! The steps that a setup has made, and how to undo them: `/var/lib/ropewalk-setup/NAME.json`.
//!
//! Each step is recorded before it is made, so that an interrupted step is undone too. Only root may use the folder: its
//! contents are carried out as root, and the daemon's user must not be able to write it.

use super::access::{access, owner_name, set_access};
use super::audit;
use super::follow::Follow;
use super::host;
use super::keep;
use super::plan::replace_text;
use super::promises::Promises;
use super::service::Service;
use crate::tunnel::runtime_directory;
use daemon::control_plane::{Client, ClientError};
use filesystem::Folder;
use ipnet::IpNet;
use serde::{Deserialize, Serialize};
use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write as _};
use std::net::IpAddr;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// The folder of records: where state lasts, which is not `/var` on OpenWrt.
pub(super) fn folder() -> &'static Path {
    Path::new(if host::is_openwrt() { "/etc/ropewalk-setup" } else { "/var/lib/ropewalk-setup" })
}

/// The record of one tunnel.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Record {
    /// The tunnel's device.
    pub(super) interface: String,
    /// Whether all steps were made.
    pub(super) is_complete: bool,
    /// The data that a server puts into its clients' tokens.
    pub(super) server: Option<ServerRecord>,
    /// The enrolment of a client.
    pub(super) client: Option<ClientRecord>,
    /// Traffic that was taken and is not confirmed.
    #[serde(default)]
    pub(super) trial: Option<TrialRecord>,
    /// The promises that `setup keep` keeps.
    #[serde(default)]
    pub(super) promises: Promises,
    /// What a client knows of its server.
    #[serde(default)]
    pub(super) follow: Follow,
    /// Whether the server may have the keys in `client`, which are not in use yet.
    #[serde(default)]
    pub(super) may_be_sent: bool,
    /// The undo of each step, in order.
    pub(super) undo: Vec<Undo>,
}

/// Traffic that was taken on trial.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct TrialRecord {
    /// The process of the setup; 0 once the traffic was given back.
    pub(super) process: u32,
    /// The number of steps before those that took the traffic.
    pub(super) undo_from: usize,
    /// The configuration.
    pub(super) config: PathBuf,
    /// Its text if the traffic stays in the tunnel.
    pub(super) after: String,
}

/// The data that a server puts into its clients' tokens.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct ServerRecord {
    pub(super) endpoints: Vec<String>,
    pub(super) port: u16,
    pub(super) dns: Vec<IpAddr>,
}

/// The enrolment of a client.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct ClientRecord {
    /// The public half of the token's one-time key, which identifies the token.
    pub(super) token: String,
    /// The client's own private key, which the server may already have accepted when the setup is interrupted.
    pub(super) private_key: String,
    /// The preshared key that the client has made itself.
    #[serde(default)]
    pub(super) preshared_key: Option<String>,
    /// The networks behind this host that the server has accepted.
    #[serde(default)]
    pub(super) taken: Vec<IpNet>,
}

/// The undo of a step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Undo {
    /// Removes a file.
    File(PathBuf),
    /// Removes a file of the daemon, if there is one.
    DaemonFile(PathBuf),
    /// Removes a folder, if it is empty.
    Folder(PathBuf),
    /// Restores the earlier permissions and owner of a folder, user and group.
    FolderAccess { path: PathBuf, mode: u32, owner: (u32, u32) },
    /// Restores the earlier value of a key of `/proc/sys`.
    Sysctl { key: String, value: String },
    /// Runs a command.
    Command(Vec<String>),
    /// Deletes the nftables rules with this comment.
    Rules(String),
    /// Restores the earlier text of a configuration, and reloads it.
    Traffic { config: PathBuf, text: String },
    /// Stops the daemon, and disables its start at boot.
    Service(Service),
    /// Stops the keeper, and removes the settings that it has put in place.
    Keep(Service),
}

impl Record {
    /// The record of a tunnel, if there is one.
    ///
    /// # Errors
    /// It cannot be read, or users other than root could have written it.
    pub(super) fn read(interface: &str) -> Result<Option<Self>, String> {
        let path = path(interface);
        let text = match fs::read_to_string(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            result => result.map_err(|error| format!("{}: {error}", path.display()))?,
        };
        for name in [folder(), &path] {
            let metadata = fs::symlink_metadata(name).map_err(|error| format!("{}: {error}", name.display()))?;
            if metadata.uid() != 0 || metadata.mode() & 0o022 != 0 || metadata.is_symlink() {
                return Err(format!(
                    "{} could have been written by users other than root: it is not used",
                    name.display()
                ));
            }
        }
        serde_json::from_str(&text).map(Some).map_err(|error| format!("{}: {error}", path.display()))
    }

    /// Writes the record: a new file in its place.
    ///
    /// # Errors
    /// The file system's.
    pub(super) fn write(&self) -> Result<(), String> {
        let path = path(&self.interface);
        let new = path.with_extension("new");
        let write = || -> io::Result<()> {
            if !folder().is_dir() {
                DirBuilder::new().recursive(true).mode(0o700).create(folder())?;
            }
            let _ = fs::remove_file(&new);
            let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&new)?;
            file.write_all(serde_json::to_string_pretty(self).map_err(io::Error::other)?.as_bytes())?;
            file.sync_all()?;
            fs::rename(&new, &path)
        };
        write().map_err(|error| format!("{}: {error}", path.display()))
    }

    /// Removes the record, and its folder with the last one.
    pub(super) fn remove(interface: &str) -> Result<(), String> {
        let path = path(interface);
        fs::remove_file(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        let _ = fs::remove_file(audit::path(interface));
        let _ = fs::remove_dir(folder());
        Ok(())
    }

    /// Whether `setup keep` keeps its promises: setups of version 0.1.0 had none.
    pub(super) fn is_kept(&self) -> bool {
        self.undo.iter().any(|undo| matches!(undo, Undo::Keep(_)))
    }

    /// Undoes all steps, the last one first. A step that cannot be undone is reported, and the others are still undone.
    pub(super) fn undo(&self) -> Vec<String> {
        let ends_daemon = self.undo.iter().any(|undo| matches!(undo, Undo::Service(_)));
        let mut failures = Vec::new();
        for undo in self.undo.iter().rev() {
            // A daemon that is stopped next need not read the earlier text; other changes of the file may need a restart.
            let is_moot = ends_daemon && matches!(undo, Undo::Traffic { .. });
            // The interrupted step may not have been made.
            if let Err(error) = undo.carry_out(&self.interface)
                && self.is_complete
                && !is_moot
            {
                failures.push(error);
            }
        }
        failures
    }
}

fn path(interface: &str) -> PathBuf {
    folder().join(format!("{interface}.json"))
}

impl Undo {
    fn carry_out(&self, interface: &str) -> Result<(), String> {
        let missing_is_fine = |path: &Path, result: io::Result<()>| match result {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(format!("{}: {error}", path.display())),
            _ => Ok(()),
        };
        match self {
            Self::File(path) | Self::DaemonFile(path) => missing_is_fine(path, fs::remove_file(path)),
            Self::Folder(path) => match fs::remove_dir(path) {
                Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => Ok(()),
                result => missing_is_fine(path, result),
            },
            Self::FolderAccess { path, mode, owner } => {
                let changed = Folder::open(path).and_then(|folder| set_access(&folder, *mode, Some(*owner)));
                missing_is_fine(path, changed)
            }
            Self::Sysctl { key, value } => write_sysctl(key, value),
            Self::Command(command) => host::run(command),
            Self::Rules(comment) => delete_rules(comment),
            Self::Traffic { config, text } => give_traffic_back(interface, config, text),
            Self::Service(service) => service.stop(interface),
            Self::Keep(service) => {
                // A purge may already have removed the unit.
                let stopped = service.stop_keeper(interface);
                keep::release(interface).and(stopped)
            }
        }
    }
}

impl std::fmt::Display for Undo {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::File(path) | Self::DaemonFile(path) => write!(f, "remove   {}", path.display()),
            Self::Folder(path) => write!(f, "remove   {}, if it is empty", path.display()),
            Self::FolderAccess { path, mode, owner } => {
                write!(f, "access   {}{}, as before", path.display(), access(*mode, Some(&owner_name(*owner))))
            }
            Self::Sysctl { key, value } => write!(f, "sysctl   {key} = {value}, as before"),
            Self::Command(command) => write!(f, "run      {}", command.join(" ")),
            Self::Rules(comment) => write!(f, "nftables delete the rules with the comment \"{comment}\""),
            Self::Traffic { config, .. } => write!(f, "reload   {} with its inner networks alone", config.display()),
            Self::Service(service) => write!(f, "stop     {}", service.stop_description()),
            Self::Keep(_) => f.write_str("stop     the keeper of nftables, routes and resolvers, and remove these"),
        }
    }
}

/// The daemon may be down, and its configuration may be missing.
fn give_traffic_back(interface: &str, config: &Path, text: &str) -> Result<(), String> {
    if !config.exists() {
        return Ok(());
    }
    replace_text(config, text)?;
    match Client::new(&runtime_directory(), interface).request("POST", "/v1/reload", "") {
        Ok(_) | Err(ClientError::NotRunning { .. }) => keep::look(interface),
        Err(error) => return Err(error.to_string()),
    }
    Ok(())
}

/// The value of a key of `/proc/sys`.
pub(super) fn read_sysctl(key: &str) -> Option<String> {
    fs::read_to_string(sysctl_path(key)).ok().map(|text| text.trim().to_owned())
}

pub(super) fn write_sysctl(key: &str, value: &str) -> Result<(), String> {
    fs::write(sysctl_path(key), value).map_err(|error| format!("sysctl {key}: {error}"))
}

/// `/` separates the parts of a key in which a device's name has dots.
fn sysctl_path(key: &str) -> PathBuf {
    Path::new("/proc/sys").join(if key.contains('/') { key.to_owned() } else { key.replace('.', "/") })
}

/// Deletes the rules with this comment from all tables.
pub(super) fn delete_rules(comment: &str) -> Result<(), String> {
    let text = host::output(&["nft", "-j", "list", "ruleset"]).ok_or("`nft -j list ruleset` fails")?;
    let ruleset: serde_json::Value = serde_json::from_str(&text).map_err(|error| error.to_string())?;
    let rules = ruleset["nftables"].as_array().into_iter().flatten().map(|object| &object["rule"]);
    for rule in rules.filter(|rule| rule["comment"] == comment) {
        let word = |key: &str| rule[key].as_str().unwrap_or_default().to_owned();
        let handle = rule["handle"].to_string();
        let words = ["nft".into(), "delete".into(), "rule".into(), word("family"), word("table"), word("chain")];
        host::run(&[&words[..], &["handle".into(), handle]].concat())?;
    }
    Ok(())
}
