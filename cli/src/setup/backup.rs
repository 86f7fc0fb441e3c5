//! `setup server --backup` and `--restore`: all that makes a server, in one file.
//!
//! The first line names the format, its version, the length of the rest and its CRC-32; the rest is JSON. So a file that is
//! cut off or damaged is refused, and so is one of a later version. It holds the server's private key.

use super::audit;
use super::clients::Server;
use super::plan::{NewFile, Plan, Step, user_exists};
use super::promises::ServerPromises;
use super::record::{Record, ServerRecord};
use super::server::{Design, design_of_backup, plan, promises};
use super::{
    DAEMON_USER, Go, SetupServer, announcement_file, carry_out, config_file, environment, host, keep, key_file,
    next_key_file, peers_file,
};
use crate::{Failure, output};
use daemon::config::{self, Announcement, TunnelConfig, unix_time};
use filesystem::Folder;
use serde::{Deserialize, Serialize};
use std::fs;
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use zeroize::{Zeroize, Zeroizing};

/// The first word of the file.
const FORMAT: &str = "ropewalk-server-backup";
/// The version of the format.
const VERSION: u32 = 1;
/// The longest backup, bytes: ten thousand clients, and their changes.
const MAX_LEN: u64 = 32 << 20;

/// All that makes a server.
#[derive(Serialize, Deserialize)]
struct Backup {
    /// The program that wrote it.
    program_version: String,
    /// When, Unix time in seconds.
    unix_s: u64,
    /// The host's name.
    host_name: String,
    /// The tunnel's device.
    interface: String,
    config: String,
    private_key: String,
    next_private_key: Option<String>,
    peers: String,
    announcement: Announcement,
    server: ServerRecord,
    promises: ServerPromises,
    audit: String,
}

impl Drop for Backup {
    fn drop(&mut self) {
        [&mut self.config, &mut self.private_key, &mut self.peers].into_iter().for_each(Zeroize::zeroize);
        self.next_private_key.zeroize();
    }
}

impl Backup {
    /// What makes the server at this host.
    fn of_server(server: &Server, interface: &str) -> Result<Self, Failure> {
        let read = |path: PathBuf| {
            fs::read_to_string(&path).map_err(|error| environment(format!("{}: {error}", path.display())))
        };
        let optional = |path: PathBuf| if path.exists() { read(path).map(Some) } else { Ok(None) };
        let record = server.record();
        let missing = || environment(keep::early_text(interface));
        Ok(Self {
            program_version: crate::VERSION.to_owned(),
            unix_s: unix_time(),
            host_name: host::name(),
            interface: interface.to_owned(),
            config: read(config_file(interface))?,
            private_key: read(key_file(interface))?,
            next_private_key: optional(next_key_file(interface))?,
            peers: optional(peers_file(interface))?.unwrap_or_default(),
            announcement: Announcement::read(&announcement_file(interface)).map_err(|e| environment(e.to_string()))?,
            server: record.server.clone().ok_or_else(missing)?,
            promises: record.promises.server.clone().ok_or_else(missing)?,
            audit: optional(audit::path(interface))?.unwrap_or_default(),
        })
    }

    fn text(&self) -> Result<Zeroizing<String>, Failure> {
        let body = serde_json::to_string_pretty(self).map_err(|error| environment(error.to_string()))?;
        let body = Zeroizing::new(body);
        let checksum = crc32fast::hash(body.as_bytes());
        Ok(Zeroizing::new(format!("{FORMAT} {VERSION} {} {checksum:08x}\n{}", body.len(), *body)))
    }

    /// Reads a backup.
    ///
    /// # Errors
    /// Why it is not used, in words that repeat none of its secrets.
    fn parse(text: &str) -> Result<Self, String> {
        let (head, body) = text.split_once('\n').unwrap_or((text, ""));
        let mut words = head.split(' ');
        if words.next() != Some(FORMAT) {
            return Err("this is not a backup of `ropewalk setup server --backup`".to_owned());
        }
        match words.next().and_then(|word| word.parse::<u32>().ok()) {
            Some(VERSION) => {}
            Some(version) => {
                return Err(format!(
                    "the backup is of version {version} of its format, and this program reads version {VERSION}: use the \
                     version of ropewalk that wrote it, or a later one"
                ));
            }
            None => return Err("the first line of the backup is damaged".to_owned()),
        }
        let expected = [body.len().to_string(), format!("{:08x}", crc32fast::hash(body.as_bytes()))];
        if !words.eq(expected.iter().map(String::as_str)) {
            return Err("the backup is incomplete or damaged: its length or its checksum is wrong".to_owned());
        }
        // An error of serde_json names a place and no value.
        serde_json::from_str(body)
            .map_err(|error| format!("the backup is wrong at line {}, column {}", error.line() + 1, error.column()))
    }
}

/// Writes a backup of a server, which only root can read.
pub(super) fn write(interface: &str, path: &Path) -> Result<(), Failure> {
    let server = Server::open(interface)?;
    let text = Backup::of_server(&server, interface)?.text()?;
    audit::note(interface, "backup", interface, &path.display().to_string())?;
    let write = || -> io::Result<()> {
        let (folder, name) = Folder::of_file(path)?;
        let mut new_name = name.clone();
        new_name.push(".ropewalk-new");
        folder.remove(&new_name)?;
        let mut file = folder.create_new(&new_name, 0o600)?;
        let written = file.write_all(text.as_bytes()).and_then(|()| file.sync_all());
        // An earlier backup stays until this one is whole.
        written.and_then(|()| folder.rename(&new_name, &name)).inspect_err(|_| drop(folder.remove(&new_name)))
    };
    write().map_err(|error| environment(format!("{}: {error}", path.display())))?;
    output::print(&format!(
        "{}: the server {interface} with its private key; keep it as secret as the key\n",
        path.display()
    ))
}

/// Makes this host the server of a backup.
pub(super) fn restore(arguments: &SetupServer, path: &Path) -> Result<(), Failure> {
    let unreadable = |error: io::Error| environment(format!("{}: {error}", path.display()));
    let mut text = Zeroizing::new(String::new());
    fs::File::open(path).map_err(unreadable)?.take(MAX_LEN).read_to_string(&mut text).map_err(unreadable)?;
    let backup = Backup::parse(&text).map_err(|error| Failure::Usage(format!("{}: {error}", path.display())))?;
    let name = &backup.interface;
    super::device_name(name).map_err(Failure::Usage)?;
    if Record::read(name).map_err(environment)?.is_some() {
        return Err(Failure::Environment(format!(
            "{name} is set up here already: `ropewalk setup remove --name {name}` first undoes that"
        )));
    }
    let file = config_file(name);
    let config =
        config::parse(&file.display().to_string(), &without_files(&backup), &file).map_err(Failure::Configuration)?;
    let design = design_of_backup(arguments, &config, &backup.server, &backup.promises)?;
    let plan = plan_of(&backup, &design, path);
    let mut record = record_of(&backup, &config, &design);
    if carry_out(&plan, plan.steps.len(), &mut record, arguments.dry_run, arguments.yes)? == Go::No {
        return Ok(());
    }
    record.is_complete = true;
    record.write().map_err(environment)?;
    let noted = audit::append(name, &backup.audit);
    noted.map_err(|error| environment(format!("{}: {error}", audit::path(name).display())))?;
    audit::note(name, "restore", name, &format!("of {}, {}", backup.host_name, super::clients::date(backup.unix_s)))?;
    keep::look(name);
    output::print(&format!(
        "{name} is restored with its clients, which reach it at {}, UDP port {}. The earlier host must not run it any more: \
         `ropewalk setup remove` there.\n",
        design.endpoints.join(" and "),
        design.port
    ))
}

/// The configuration with the key in it: its files do not exist yet.
fn without_files(backup: &Backup) -> Zeroizing<String> {
    let key_line = format!("private-key-file = \"{}.key\"", backup.interface);
    let key = format!("private-key = \"{}\"\nallow-readable-keys = true", backup.private_key.trim());
    let text = backup.config.replacen(&key_line, &key, 1);
    Zeroizing::new(text)
}

fn record_of(backup: &Backup, config: &TunnelConfig, design: &Design) -> Record {
    let server = ServerPromises { uplinks: design.uplinks.clone(), ..backup.promises.clone() };
    let mut promises = promises(design, Vec::new());
    promises.server = Some(server);
    let endpoints = design.endpoints.clone();
    debug_assert_eq!(config.interface.name, backup.interface);
    Record {
        interface: backup.interface.clone(),
        server: Some(ServerRecord { endpoints, ..backup.server.clone() }),
        promises,
        ..Record::default()
    }
}

/// The steps of a new server, with the files of the backup.
fn plan_of(backup: &Backup, design: &Design, path: &Path) -> Plan {
    let name = &backup.interface;
    let mut plan = plan(name, "", design, &backup.promises.open, &[]);
    let owner = (user_exists(DAEMON_USER) || host::program("useradd").is_some()).then(|| DAEMON_USER.to_owned());
    let endpoints = design.endpoints.iter().map(|host| super::client::with_port(host, design.port));
    let announcement = Announcement { endpoints: endpoints.collect(), ..backup.announcement.clone() };
    let mut files = vec![
        (peers_file(name), backup.peers.clone(), "the clients, as in the backup"),
        (announcement_file(name), announcement.text(), "what clients are told"),
    ];
    if let Some(key) = &backup.next_private_key {
        files.push((next_key_file(name), key.clone(), "the next private key, as in the backup"));
    }
    for step in &mut plan.steps {
        let Step::File(file) = step else { continue };
        if file.path == key_file(name) {
            (file.text, file.shown_as) =
                (Zeroizing::new(backup.private_key.clone()), Some("the private key of the backup"));
        } else if file.path == config_file(name) {
            file.text = Zeroizing::new(backup.config.clone());
        }
    }
    let new = files.into_iter().map(|(path, text, shown_as)| {
        Step::File(NewFile { path, mode: 0o600, owner: owner.clone(), text: text.into(), shown_as: Some(shown_as) })
    });
    let position =
        plan.steps.iter().position(|step| matches!(step, Step::File(file) if file.path == config_file(name)));
    let position = position.unwrap_or(plan.steps.len());
    plan.steps.splice(position..position, new);
    plan.title = format!(
        "The server {name} of the backup {}, of {}, {}.\nClients reach it at {}, UDP port {}.",
        path.display(),
        backup.host_name,
        super::clients::date(backup.unix_s),
        design.endpoints.join(" and "),
        design.port
    );
    plan
}

#[cfg(test)]
mod tests {
    use super::*;

    fn backup() -> Backup {
        Backup {
            program_version: "0.1.0".into(),
            unix_s: 1_795_946_400,
            host_name: "gateway".into(),
            interface: "rw0".into(),
            config: "[interface]\n".into(),
            private_key: "KEY".into(),
            next_private_key: None,
            peers: "# é\n".into(),
            announcement: Announcement::default(),
            server: ServerRecord { endpoints: vec!["203.0.113.1".into()], port: 4754, dns: Vec::new() },
            promises: ServerPromises::default(),
            audit: String::new(),
        }
    }

    #[test]
    fn a_backup_is_read_as_it_was_written_and_half_of_it_is_refused() {
        let text = backup().text().unwrap();
        let read = Backup::parse(&text).unwrap();
        assert_eq!((read.peers.as_str(), read.server.port), ("# é\n", 4754));
        for end in (0..text.len()).filter(|end| text.is_char_boundary(*end)) {
            assert!(Backup::parse(&text[..end]).is_err(), "{end}");
        }
        assert!(Backup::parse(&format!("{}\n", *text)).is_err());
        assert!(Backup::parse(&text.replacen("KEY", "KEX", 1)).is_err_and(|error| error.contains("damaged")));
        let later = text.replacen(" 1 ", " 2 ", 1);
        assert!(Backup::parse(&later).is_err_and(|error| error.contains("version 2")));
        assert!(Backup::parse("rw1-AAAA").is_err_and(|error| error.contains("not a backup")));
    }
}
