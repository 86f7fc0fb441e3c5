//! `setup rotate-key`: another key for this end, at a server or at a client. Connections in the tunnel live on.
//!
//! A client sends its new key to the server through the tunnel, as at its enrolment, and then starts with it. A server
//! announces its next key, which clients fetch through the tunnel; `--now` makes it the server's key, and each client that
//! no longer reaches the server tries the announced one.

use super::audit;
use super::clients::Server;
use super::plan::replace_text;
use super::record::Record;
use super::service::{self, Service};
use super::{announcement_file, client, config_file, environment, key_file, next_key_file};
use crate::tunnel::runtime_directory;
use crate::{Failure, output};
use daemon::config::{self, Announcement, ClientIdentity, EnrolledPeer, Mode};
use daemon::control_plane::{Client, EnrolError, KnownClient, rotate};
use seal::{PresharedKey, PrivateKey};
use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use zeroize::Zeroizing;

/// What to do about a server's clients that do not know its next key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Announce the next key.
    Announce,
    /// Use it, if all clients know it.
    Now,
    /// Use it; clients that do not know it are lost.
    Force,
}

pub(super) fn run(interface: &str, step: Step) -> Result<(), Failure> {
    let record = Record::read(interface).map_err(environment)?.filter(|record| record.is_complete);
    match record {
        None => Err(Failure::Environment(format!("no tunnel {interface} was set up here by `ropewalk setup`"))),
        Some(record) if record.server.is_some() && step == Step::Announce => announce(interface),
        Some(record) if record.server.is_some() => switch(interface, step == Step::Force),
        Some(_) if step != Step::Announce => {
            Err(Failure::Usage("--now is for a server: a client's new key is in use at once".into()))
        }
        Some(record) => of_client(interface, record),
    }
}

/// Makes the server's next key, unless there is one, and announces it.
fn announce(interface: &str) -> Result<(), Failure> {
    Server::open(interface)?;
    let file = next_key_file(interface);
    audit::note(interface, "announce-key", interface, "")?;
    if !file.exists() {
        write_as(&file, &daemon::keys::genkey(), &key_file(interface)).map_err(environment)?;
    }
    let key: PrivateKey = read_key(&file)?;
    let path = announcement_file(interface);
    let announcement = Announcement::read(&path).map_err(|error| environment(error.to_string()))?;
    let announcement = Announcement { next_key: Some(key.public_key().to_string()), ..announcement };
    announcement.write(&path).map_err(|error| environment(format!("{}: {error}", path.display())))?;
    output::print(&format!(
        "the next key of {interface} is {}: clients that are connected fetch it within ten minutes, `ropewalk setup server \
         --list` shows which have it, and `ropewalk setup rotate-key --now` makes it the server's key\n",
        key.public_key()
    ))
}

/// Makes the announced key the server's.
fn switch(interface: &str, is_forced: bool) -> Result<(), Failure> {
    let file = next_key_file(interface);
    if !file.exists() {
        return Err(Failure::Usage("there is no next key yet: `ropewalk setup rotate-key` announces one".into()));
    }
    let unaware = unaware_clients(interface)?;
    if !unaware.is_empty() && !is_forced {
        return Err(Failure::Environment(format!(
            "{} do not know the next key: they would need another token. Wait until they have been connected, --revoke them, \
             or --force leaves them behind",
            unaware.join(", ")
        )));
    }
    let key = read_key(&file)?;
    audit::note(interface, "rotate-key", interface, &key.public_key().to_string())?;
    replace_text(&key_file(interface), &key.to_text()).map_err(environment)?;
    fs::remove_file(&file).map_err(|error| environment(format!("{}: {error}", file.display())))?;
    let path = announcement_file(interface);
    let announcement = Announcement::read(&path).map_err(|error| environment(error.to_string()))?;
    let announcement = Announcement { next_key: None, ..announcement };
    announcement.write(&path).map_err(|error| environment(format!("{}: {error}", path.display())))?;
    restart(interface).map_err(environment)?;
    output::print(&format!("{interface} has the key {}; its clients follow within a minute\n", key.public_key()))
}

/// Names of the enrolled clients that have not fetched the announcement.
fn unaware_clients(interface: &str) -> Result<Vec<String>, Failure> {
    let server = Server::open(interface)?;
    let known = known_clients(interface);
    let is_aware = |peer: &EnrolledPeer| {
        known.iter().any(|client| client.public_key == peer.public_key.to_string() && client.has_announcement)
    };
    let enrolled = server.peers_without_lock()?.into_iter().filter(|peer| peer.token_expires.is_none());
    Ok(enrolled.filter(|peer| !is_aware(peer)).map(|peer| peer.name).collect())
}

/// What the daemon knows of its clients; nothing if it does not run.
pub(super) fn known_clients(interface: &str) -> Vec<KnownClient> {
    let answer = Client::new(&runtime_directory(), interface).request("GET", "/v1/clients", "");
    answer.ok().and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default()
}

/// Another key for a client.
fn of_client(interface: &str, mut record: Record) -> Result<(), Failure> {
    let file = config_file(interface);
    let config = config::load(&file).map_err(Failure::Configuration)?;
    let Mode::Ropewalk { private_key: old } = &config.mode else {
        return Err(Failure::Environment("keys are for mode \"ropewalk\"".into()));
    };
    let Some(server) = record.promises.client.server.first().copied() else {
        return Err(Failure::Environment("the server's inner address is not known: set the client up again".into()));
    };
    audit::note(interface, "rotate-key", interface, "")?;
    let (private_key, preshared_key) = client::pending_keys(&mut record).map_err(environment)?;
    if private_key.public_key() != old.public_key() {
        send(server, &private_key, &preshared_key, &mut record)?;
    }
    change_keys(interface, &[private_key.to_text(), preshared_key.to_text()])?;
    (record.client, record.may_be_sent) = (None, false);
    record.write().map_err(environment)?;
    output::print(&format!("{interface} has the key {}\n", private_key.public_key()))
}

/// Starts the daemon with other keys. If the server does not answer to them, the earlier ones return.
fn change_keys(interface: &str, new: &[Zeroizing<String>; 2]) -> Result<(), Failure> {
    let files = [key_file(interface), client::psk_file(interface)];
    let read = |file: &Path| fs::read_to_string(file).map(Zeroizing::new);
    let earlier: Result<Vec<_>, _> = files.iter().map(|file| read(file)).collect();
    let earlier = earlier.map_err(|error| environment(format!("{}: {error}", files[0].display())))?;
    let start = |texts: &[Zeroizing<String>]| {
        files.iter().zip(texts).try_for_each(|(file, text)| replace_text(file, text))?;
        restart(interface)
    };
    start(new).map_err(environment)?;
    let client = Client::new(&runtime_directory(), interface);
    let has_session =
        || client.status().is_ok_and(|status| status.peers.iter().any(|peer| peer.handshake_age_ms.is_some()));
    if service::wait(has_session) {
        return Ok(());
    }
    start(&earlier).map_err(environment)?;
    Err(environment(
        "the server does not answer to the new key: the earlier one is in use again; the same command tries once more"
            .into(),
    ))
}

/// Sends the client's new keys to the server, which may have them already if this was interrupted.
fn send(
    server: std::net::IpAddr,
    private_key: &PrivateKey,
    preshared_key: &PresharedKey,
    record: &mut Record,
) -> Result<(), Failure> {
    let identity = ClientIdentity {
        public_key: private_key.public_key(),
        preshared_key: Some(preshared_key.clone()),
        lans: Vec::new(),
    };
    let sent = rotate(server, &identity);
    let is_unsure = matches!(sent, Err(EnrolError::Connection(_)));
    match sent {
        // The answer to an earlier attempt may have been lost.
        Err(_) if is_unsure && record.may_be_sent => Ok(()),
        Err(error) => {
            record.may_be_sent = is_unsure;
            record.write().map_err(environment)?;
            Err(Failure::Environment(error.to_string()))
        }
        Ok(()) => {
            record.may_be_sent = true;
            record.write().map_err(environment)
        }
    }
}

/// Starts the daemon again, with another key.
pub(super) fn restart(interface: &str) -> Result<(), String> {
    Service::detect(interface, &config_file(interface)).restart(interface)
}

fn read_key(file: &Path) -> Result<PrivateKey, Failure> {
    let text = fs::read_to_string(file).map(Zeroizing::new);
    let text = text.map_err(|error| environment(format!("{}: {error}", file.display())))?;
    text.trim().parse().map_err(|error| environment(format!("{}: {error}", file.display())))
}

/// Writes a new file with a secret, with the owner of `like`.
pub(super) fn write_as(path: &Path, text: &str, like: &Path) -> Result<(), String> {
    use std::os::unix::fs::MetadataExt as _;
    let write = || {
        let owner = fs::symlink_metadata(like)?;
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
        std::os::unix::fs::fchown(&file, Some(owner.uid()), Some(owner.gid()))?;
        file.write_all(text.as_bytes()).and_then(|()| file.sync_all())
    };
    write().map_err(|error: std::io::Error| format!("{}: {error}", path.display()))
}
