//! What the clients of a server say of themselves, and what it announces to them.
//!
//! A client that has a key of its own connects to the port of enrolments, through the tunnel, and sends one line:
//! `rw1 hello VERSION HOST CHECKSUM`, with the checksum of the announcement that it knows. The answer is `ok ` and the
//! announcement in JSON. With `rw1 rotate PUBLICKEY psk=PRESHAREDKEY` it replaces its key. As at an enrolment, the inner
//! source address tells who it is.

use super::enrolment::{CLIENT_INTERVAL, EnrolError, TRY_AGAIN, exchange, line_of, peer_of};
use super::reload::Reloader;
use super::server::Refusal;
use crate::config::{
    Announcement, ClientIdentity, ConfiguredPeer, Enrolment, Mode, PeersFile, TunnelConfig, enrolled_peers, unix_time,
};
use crate::event::{Event, EventKind, EventLevel};
use filesystem::Folder;
use seal::PublicKey;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::{self, Read as _, Write as _};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The most clients that are remembered.
const MAX_CLIENTS: usize = 10_000;
/// The longest file of them, bytes.
const MAX_FILE_LEN: u64 = 8 << 20;
/// How often a client tries again while the server serves another connection of it.
const ATTEMPTS: usize = 20;
/// The longest version, and the longest name of a host, characters.
const MAX_WORD: usize = 64;
/// What stands for an unknown word.
const UNKNOWN: &str = "-";

/// What a client says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hello {
    version: String,
    host_name: String,
    checksum: u32,
}

impl Hello {
    /// The hello of a program of `version` on the host `host_name` that knows `announcement`.
    #[must_use]
    pub fn new(version: &str, host_name: &str, announcement: &Announcement) -> Self {
        Self { version: word(version), host_name: word(host_name), checksum: announcement.checksum() }
    }

    /// Reads what follows `rw1 hello `.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let mut words = text.split(' ');
        let mut next = || words.next().filter(|text| word(text) == *text);
        let (version, host_name, checksum) = (next()?.to_owned(), next()?.to_owned(), next()?);
        let checksum = u32::from_str_radix(checksum, 16).ok()?;
        words.next().is_none().then_some(Self { version, host_name, checksum })
    }

    fn line(&self) -> String {
        format!("rw1 hello {} {} {:08x}\n", self.version, self.host_name, self.checksum)
    }
}

/// A text as a word that is safe in a terminal, a page and a line.
fn word(text: &str) -> String {
    let is_allowed = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '+' | '~');
    let word: String = text.chars().filter(is_allowed).take(MAX_WORD).collect();
    if word.is_empty() { UNKNOWN.to_owned() } else { word }
}

/// A client that has said hello, as `GET /v1/clients` reports it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KnownClient {
    /// Its public key.
    pub public_key: String,
    /// The name in the `peers-file`.
    pub name: String,
    /// The version of its program.
    pub version: String,
    /// Its host's name, as it says.
    pub host_name: String,
    /// When it last said hello, Unix time in seconds.
    pub seen_unix_s: u64,
    /// Whether it knows what the server announces now.
    pub has_announcement: bool,
}

/// The latest hello of each client: what is reported of it, and the checksum of its announcement.
#[derive(Debug, Default)]
pub(super) struct Clients(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    clients: BTreeMap<PublicKey, (KnownClient, u32)>,
    /// Whether the file lacks something.
    is_new: bool,
}

impl Clients {
    /// The clients of the file that goes with a `peers-file`: an earlier daemon has written it.
    pub(super) fn read(peers_file: Option<&Path>) -> Self {
        let read = || -> Option<Vec<(KnownClient, u32)>> {
            let file = std::fs::File::open(file(peers_file?)).ok()?;
            serde_json::from_reader(file.take(MAX_FILE_LEN)).ok()
        };
        let keyed = |known: (KnownClient, u32)| Some((known.0.public_key.parse().ok()?, known));
        let clients = read().into_iter().flatten().take(MAX_CLIENTS).filter_map(keyed).collect();
        Self(Mutex::new(Known { clients, is_new: false }))
    }

    /// Writes the file if there is something new.
    pub(super) fn write(&self, peers_file: &Path) -> io::Result<()> {
        let text = {
            let mut known = self.lock();
            if !std::mem::take(&mut known.is_new) {
                return Ok(());
            }
            serde_json::to_string(&known.clients.values().collect::<Vec<_>>())?
        };
        let (folder, name) = Folder::of_file(&file(peers_file))?;
        let mut new_name = name.clone();
        new_name.push(".new");
        folder.remove(&new_name)?;
        folder.create_new(&new_name, 0o600)?.write_all(text.as_bytes())?;
        folder.rename(&new_name, &name)
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The clients, of which those know the announcement whose checksum is that of `announcement`, unless that is empty.
    pub(super) fn list(&self, announcement: &Announcement) -> Vec<KnownClient> {
        let is_empty = *announcement == Announcement::default();
        let known = |(client, checksum): &(KnownClient, u32)| KnownClient {
            has_announcement: !is_empty && *checksum == announcement.checksum(),
            ..client.clone()
        };
        self.lock().clients.values().map(known).collect()
    }

    /// Keeps a hello. Clients that are no longer configured are forgotten.
    fn note(&self, key: PublicKey, name: &str, hello: &Hello, config: &TunnelConfig) {
        let mut known = self.lock();
        known.is_new = true;
        let clients = &mut known.clients;
        clients.retain(|key, _| config.peers.iter().any(|peer| peer.public_key == Some(*key)));
        if clients.len() >= MAX_CLIENTS && !clients.contains_key(&key) {
            return;
        }
        let Hello { version, host_name, checksum } = hello.clone();
        let (public_key, name) = (key.to_string(), name.to_owned());
        let client =
            KnownClient { public_key, name, version, host_name, seen_unix_s: unix_time(), has_announcement: false };
        clients.insert(key, (client, checksum));
    }
}

/// The file of the clients, which a `peers-file` goes with.
fn file(peers_file: &Path) -> PathBuf {
    peers_file.with_extension("clients")
}

/// What the server of this configuration announces; nothing if the file is missing or wrong.
pub(super) fn announcement(config: &TunnelConfig) -> Announcement {
    let file = config.interface.peers_file.as_deref().map(Announcement::file);
    file.and_then(|file| Announcement::read(&file).ok()).unwrap_or_default()
}

impl Reloader {
    /// Keeps a client's hello; returns the announcement.
    pub(super) fn greet(&self, source: IpAddr, hello: &Hello) -> Result<String, Refusal> {
        let config = &self.control.config;
        let (peer, key) = enrolled_peer(config, source)?;
        self.clients.note(key, peer.name.as_deref().unwrap_or_default(), hello, config);
        Ok(announcement(config).text())
    }

    /// Replaces a client's keys in the `peers-file`. The tunnel uses them from `EndEnrolment` on.
    pub(super) fn rotate(&self, source: IpAddr, client: &ClientIdentity) -> Result<String, Refusal> {
        let config = &self.control.config;
        let refused = |reason: String| Refusal::Other(reason);
        let (_, current) = enrolled_peer(config, source)?;
        let file = config.interface.peers_file.as_ref().ok_or_else(|| refused("this end has no clients".into()))?;
        let mut taken: Vec<_> = config.peers.iter().filter_map(|peer| peer.public_key).collect();
        if let Mode::Ropewalk { private_key } = &config.mode {
            taken.push(private_key.public_key());
        }
        let internal = |error: String| {
            tracing::error!("another key of a client: {error}");
            refused("the server cannot write its list of peers: its log has the reason".into())
        };
        let peers = PeersFile::try_open(file).map_err(|error| internal(error.to_string()))?;
        let rotated = peers.ok_or(Refusal::Busy)?.rotate(current, client, &taken);
        match rotated.map_err(|error| internal(error.to_string()))? {
            Enrolment::Enrolled(name, _) => Ok(name),
            Enrolment::Refused(reason) => Err(refused(reason)),
        }
    }

    /// The configuration in force with the keys that clients in the `peers-file` have by now.
    pub(super) fn rotated_config(&self) -> TunnelConfig {
        let mut config = self.enrolled_config();
        let entries = config.interface.peers_file.as_ref().and_then(|file| enrolled_peers(file).ok());
        for entry in entries.iter().flatten() {
            let is_entry = |peer: &&mut ConfiguredPeer| peer.is_enrolled && peer.name.as_ref() == Some(&entry.name);
            if let Some(peer) = config.peers.iter_mut().find(is_entry) {
                peer.public_key = Some(entry.public_key);
                peer.preshared_key.clone_from(&entry.preshared_key);
            }
        }
        config
    }
}

/// The event about another key of a client.
pub(super) fn rotation_event(source: IpAddr, result: &Result<String, Refusal>) -> Event {
    match result {
        Ok(name) => Event {
            peer_name: Some(name.clone()),
            ..Event::new(EventLevel::Info, EventKind::Enrolment, "it has another key".to_owned())
        },
        Err(refusal) => {
            let message = format!("another key of {source} refused: {}", refusal.text());
            Event::new(EventLevel::Warn, EventKind::Enrolment, message)
        }
    }
}

/// The client with this inner address, which has a key of its own.
fn enrolled_peer(config: &TunnelConfig, source: IpAddr) -> Result<(&ConfiguredPeer, PublicKey), Refusal> {
    let peer = peer_of(config, source).filter(|peer| peer.is_enrolled && peer.token_expires.is_none());
    let keyed = peer.and_then(|peer| Some((peer, peer.public_key?)));
    keyed.ok_or_else(|| Refusal::Other("no client with a key of its own has this address".to_owned()))
}

/// The client's side: says hello to the server at the inner address `server`. Returns what the server announces.
///
/// # Errors
/// The server does not answer, refuses, or is of an earlier version.
pub fn greet(server: IpAddr, hello: &Hello) -> Result<Announcement, EnrolError> {
    let answer = exchange_patiently(server, &hello.line())?;
    Announcement::parse(&answer).map_err(EnrolError::Connection)
}

/// The client's side: replaces its keys at the server. The server knows it by the new ones once it has read the answer.
///
/// # Errors
/// As [`greet`].
pub fn rotate(server: IpAddr, client: &ClientIdentity) -> Result<(), EnrolError> {
    let line = line_of(client);
    let line = zeroize::Zeroizing::new(line.replacen("rw1 ", "rw1 rotate ", 1));
    exchange_patiently(server, &line).map(drop)
}

/// As [`exchange`], again while the server serves another connection of this client.
fn exchange_patiently(server: IpAddr, line: &str) -> Result<String, EnrolError> {
    for _ in 0..ATTEMPTS {
        match exchange(server, line) {
            Err(EnrolError::Refused(reason)) if reason.contains(TRY_AGAIN) => std::thread::sleep(CLIENT_INTERVAL),
            result => return result,
        }
    }
    exchange(server, line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_clients_say_is_kept_for_the_next_daemon_and_forgotten_with_the_client() {
        let text = "[interface]\naddress = \"10.77.0.1/24\"\nprivate-key = \"PRIVATE\"\nlisten-port = 4754\n\
                    [[peer]]\nname = \"a\"\npublic-key = \"PUBLIC\"\nallowed-ips = \"10.77.0.2/32\"\n";
        let public = crate::keys::pubkey(&crate::keys::genkey()).unwrap();
        let text = text.replace("PRIVATE", crate::keys::genkey().trim()).replace("PUBLIC", public.trim());
        let config = crate::config::parse("a", &text, Path::new("a.toml")).unwrap();
        let folder = std::env::temp_dir().join(format!("ropewalk-clients-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let peers_file = folder.join("rw0.peers.toml");
        let announcement = Announcement { endpoints: vec!["192.0.2.1:4754".into()], next_key: None };
        let (clients, key) = (Clients::read(Some(&peers_file)), config.peers[0].public_key.unwrap());
        clients.note(key, "a", &Hello::new("0.1.0", "host", &announcement), &config);
        clients.write(&peers_file).unwrap();
        let read = Clients::read(Some(&peers_file));
        let list = read.list(&announcement);
        assert_eq!((list.len(), list[0].has_announcement, list[0].host_name.as_str()), (1, true, "host"));
        assert_eq!(list, clients.list(&announcement));
        // Nothing is announced, or something else.
        assert!(!read.list(&Announcement::default())[0].has_announcement);
        let other = config.peers[0].public_key.map(|_| PublicKey::from_bytes([9; 32])).unwrap();
        let mut config = config;
        config.peers[0].public_key = Some(other);
        read.note(other, "b", &Hello::new("0.1.0", "host", &announcement), &config);
        assert_eq!(read.list(&announcement).iter().map(|client| client.name.as_str()).collect::<Vec<_>>(), ["b"]);
        std::fs::write(file(&peers_file), "[{").unwrap();
        assert!(Clients::read(Some(&peers_file)).list(&announcement).is_empty(), "a damaged file is no list");
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_hello_is_read_as_it_was_written_and_odd_words_are_not() {
        let hello = Hello::new("0.1.0+git 1", "büro\n\u{1b}[1m", &Announcement::default());
        assert_eq!((hello.version.as_str(), hello.host_name.as_str()), ("0.1.0+git1", "bro1m"));
        let line = hello.line();
        assert_eq!(Hello::parse(line.trim_end().strip_prefix("rw1 hello ").unwrap()), Some(hello));
        assert_eq!(Hello::new("", "\u{7f}", &Announcement::default()).host_name, UNKNOWN);
        let long = "x".repeat(MAX_WORD + 1);
        for text in
            ["", "0.1.0", "0.1.0 host", "0.1.0 host xyz", "0.1.0 host 0 0", "0.1.0 a\u{1b} 0", &format!("{long} a 0")]
        {
            assert_eq!(Hello::parse(text), None, "{text}");
        }
    }
}
