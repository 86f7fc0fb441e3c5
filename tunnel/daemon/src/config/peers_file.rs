//! The `peers-file`: peers that `ropewalk setup server` adds and removes, and whose keys enrolment replaces.
//!
//! A new peer has a one-time key, which a token carries, until `token-expires`. With it the client opens a session and
//! sends its own public key, which then replaces the one-time key: a token works once. The file is always replaced as a
//! whole: a new file is written and renamed. The writer holds the lock of `FILE.lock`, which only the file's owner and
//! root can open.

use filesystem::{Folder, Lock};
use nix::unistd::Uid;
use seal::{PresharedKey, PublicKey};
use std::ffi::OsString;
use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use super::lan::parse_network;
use super::read::ConfigErrors;
use super::secrets;
use super::tables::{PeersTables, StringOrList};
use ipnet::IpNet;
use parse::{Diagnostic, Error};
use zeroize::Zeroizing;

/// The longest peers-file, bytes: ten thousand peers.
const MAX_LEN: u64 = 4 << 20;
/// The time for which another process may hold the lock.
pub(crate) const LOCK_TIMEOUT: Duration = Duration::from_secs(5);
/// The time until the lock is tried again.
pub(crate) const LOCK_INTERVAL: Duration = Duration::from_millis(50);
/// Why the file is not written.
pub(crate) const LOCKED: &str = "another process holds the lock of the list of peers: try again";
/// The longest name of a peer, bytes.
const MAX_NAME_LEN: usize = 64;
/// The description of valid peer names.
pub const PEER_NAME_HELP: &str = "1 to 64 letters, digits, `-`, `_` or `.`, not beginning with `-` or `.`";

/// Whether `name` may name a peer: it is safe in a terminal, a page, a file and a command line.
#[must_use]
pub fn is_peer_name(name: &str) -> bool {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    (1..=MAX_NAME_LEN).contains(&name.len()) && name.chars().all(is_allowed) && !name.starts_with(['-', '.'])
}

/// The time now, seconds of Unix time.
#[must_use]
pub fn unix_time() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs())
}

/// A peer of the file.
#[derive(Clone, Debug, PartialEq)]
pub struct EnrolledPeer {
    /// The name, unique in the file.
    pub name: String,
    /// The peer's key, or the one-time key of its token.
    pub public_key: PublicKey,
    /// A shared secret in addition to the key pairs.
    pub preshared_key: Option<PresharedKey>,
    /// Its inner addresses and networks.
    pub allowed_ips: Vec<IpNet>,
    /// The expiry of its token, Unix time in seconds; `None` once the token is used.
    pub token_expires: Option<u64>,
    /// The end of the client's time, Unix time in seconds; `None` if it has none.
    pub expires: Option<u64>,
}

impl EnrolledPeer {
    /// The networks behind the peer: its allowed IPs that are more than a single address.
    #[must_use]
    pub fn lans(&self) -> Vec<IpNet> {
        self.allowed_ips.iter().filter(|network| network.prefix_len() < network.max_prefix_len()).copied().collect()
    }
}

/// The peers, under the file's lock.
#[derive(Debug)]
pub struct PeersFile {
    folder: Folder,
    name: OsString,
    /// The peers, in the file's order.
    pub peers: Vec<EnrolledPeer>,
    _lock: Option<Lock>,
}

/// The keys and networks that a client sends when it enrols.
#[derive(Clone, Debug)]
pub struct ClientIdentity {
    /// Its own public key.
    pub public_key: PublicKey,
    /// The preshared key that it has made; `None` from earlier versions, which keep the token's.
    pub preshared_key: Option<PresharedKey>,
    /// The networks behind it.
    pub lans: Vec<IpNet>,
}

/// The outcome of an enrolment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Enrolment {
    /// The peer of this name now has the client's own key, and these networks behind it.
    Enrolled(String, Vec<IpNet>),
    /// The reason for a refusal, as text for the client.
    Refused(String),
}

/// Reads the text of a peers-file, which belongs to the daemon's user even if root reads it.
///
/// # Errors
/// It cannot be read, or is not a regular file of at most [`MAX_LEN`] bytes.
pub(super) fn read(path: &Path) -> io::Result<secrets::SecretText> {
    secrets::read_untrusted(path, MAX_LEN)
}

fn unreadable(path: &Path) -> impl Fn(io::Error) -> ConfigErrors + '_ {
    |error| Error::unreadable(&path.display().to_string(), format!("cannot read it: {error}")).into()
}

/// The peers of the file at `path`, read without its lock, because the file is complete at any time. A missing file has
/// no peers.
///
/// # Errors
/// It cannot be read, or is wrong.
pub(crate) fn peers(path: &Path) -> Result<Vec<EnrolledPeer>, ConfigErrors> {
    let file = match read(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(unreadable(path)(error)),
    };
    read_peers(&file.text).map_err(|diagnostic| {
        Error::new(&path.display().to_string(), &super::mask::mask_secrets(&file.text), diagnostic).into()
    })
}

impl PeersFile {
    /// Locks and reads the file at `path`; a missing file has no peers. Waits while another process has the lock.
    ///
    /// # Errors
    /// Another process holds the lock for five seconds; the file cannot be read, or is wrong.
    pub fn open(path: &Path) -> Result<Self, ConfigErrors> {
        let start = Instant::now();
        loop {
            match Self::try_open(path)? {
                Some(file) => return Ok(file),
                None if start.elapsed() < LOCK_TIMEOUT => thread::sleep(LOCK_INTERVAL),
                None => return Err(unreadable(path)(io::Error::new(io::ErrorKind::TimedOut, LOCKED))),
            }
        }
    }

    /// As [`PeersFile::open`], without waiting: `None` if another process has the lock.
    ///
    /// # Errors
    /// The file cannot be read, or is wrong.
    pub fn try_open(path: &Path) -> Result<Option<Self>, ConfigErrors> {
        let (folder, name) = Folder::of_file(path).map_err(unreadable(path))?;
        let mut lock_name = name.clone();
        lock_name.push(".lock");
        let Some(lock) = folder.try_lock(&lock_name).map_err(unreadable(path))? else { return Ok(None) };
        if Uid::effective().is_root() {
            let owner = folder.owner().map_err(unreadable(path))?;
            // A daemon that runs as root without the right to change owners has no folder of another user.
            let _ = folder.give(lock.file(), owner);
        }
        Ok(Some(Self { peers: peers(path)?, folder, name, _lock: Some(lock) }))
    }

    /// As [`PeersFile::open`], but ignores the lock: for root, whose change must be possible even if the daemon's user
    /// keeps the lock. An enrolment at the same moment may be lost.
    ///
    /// # Errors
    /// The file cannot be read, or is wrong.
    pub fn open_without_lock(path: &Path) -> Result<Self, ConfigErrors> {
        let (folder, name) = Folder::of_file(path).map_err(unreadable(path))?;
        Ok(Self { peers: peers(path)?, folder, name, _lock: None })
    }

    /// The user and group that own the folder, and to which the file will belong.
    ///
    /// # Errors
    /// The file system's.
    pub fn folder_owner(&self) -> io::Result<(u32, u32)> {
        self.folder.owner()
    }

    /// Replaces the file by a new one with mode 0600. `owner` is the user and group that the file is given to if they
    /// own the folder.
    ///
    /// # Errors
    /// The file system's; the earlier file is untouched then.
    pub fn write(&self, owner: Option<(u32, u32)>) -> io::Result<()> {
        let mut new_name = self.name.clone();
        new_name.push(".new");
        self.folder.remove(&new_name)?;
        let mut file = self.folder.create_new(&new_name, 0o600)?;
        owner.map_or(Ok(()), |owner| self.folder.give(&file, owner))?;
        file.write_all(self.text().as_bytes())?;
        file.sync_all()?;
        self.folder.rename(&new_name, &self.name)
    }

    fn text(&self) -> Zeroizing<String> {
        // The buffer does not grow, so that no copy of a secret is left in memory.
        let networks: usize = self.peers.iter().map(|peer| peer.allowed_ips.len()).sum();
        let mut text = Zeroizing::new(String::with_capacity(256 + 320 * self.peers.len() + 64 * networks));
        text.push_str("# Written by Ropewalk: `ropewalk setup server --add NAME`, `--revoke NAME`, and enrolment.\n");
        for peer in &self.peers {
            let networks: Vec<_> = peer.allowed_ips.iter().map(|network| format!("\"{network}\"")).collect();
            let _ = write!(text, "\n[[peer]]\nname = \"{}\"\npublic-key = \"{}\"\n", peer.name, peer.public_key);
            if let Some(key) = &peer.preshared_key {
                let _ = writeln!(text, "preshared-key = \"{}\"", *key.to_text());
            }
            let _ = writeln!(text, "allowed-ips = [{}]", networks.join(", "));
            if let Some(expires) = peer.token_expires {
                let _ = writeln!(text, "token-expires = {expires}");
            }
            if let Some(expires) = peer.expires {
                let _ = writeln!(text, "expires = {expires}");
            }
        }
        text
    }

    /// Replaces the key `current` of a peer by the client's keys, if it is that of a token which has not expired at
    /// `now` (Unix time in seconds). Adds the client's networks to the peer's, and writes the file. A repetition
    /// changes nothing. `taken` are the keys that no client may have.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn enrol(
        &mut self,
        current: PublicKey,
        client: &ClientIdentity,
        taken: &[PublicKey],
        now: u64,
    ) -> io::Result<Enrolment> {
        let key = client.public_key;
        let refused = |reason: &str| Ok(Enrolment::Refused(reason.to_owned()));
        let is_taken = taken.contains(&key) || self.peers.iter().any(|peer| peer.public_key == key);
        let Some(peer) = self.peers.iter_mut().find(|peer| peer.public_key == current) else {
            return refused("the token has been revoked");
        };
        match peer.token_expires {
            None if current == key => return Ok(Enrolment::Enrolled(peer.name.clone(), peer.lans())),
            None => return refused("the token has been used already"),
            Some(expires) if expires <= now => return refused("the token has expired"),
            Some(_) if is_taken => return refused("this key is in use: a client makes a key of its own"),
            Some(_) => (peer.public_key, peer.token_expires) = (key, None),
        }
        if client.preshared_key.is_some() {
            peer.preshared_key.clone_from(&client.preshared_key);
        }
        let new: Vec<_> = client.lans.iter().filter(|lan| !peer.allowed_ips.contains(lan)).copied().collect();
        peer.allowed_ips.extend(new);
        let enrolled = Enrolment::Enrolled(peer.name.clone(), peer.lans());
        self.write(None).map(|()| enrolled)
    }
}

impl PeersFile {
    /// Replaces the key `current` of a client by its new keys, and writes the file. `taken` are the keys that no client may
    /// have.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn rotate(
        &mut self,
        current: PublicKey,
        client: &ClientIdentity,
        taken: &[PublicKey],
    ) -> io::Result<Enrolment> {
        let key = client.public_key;
        let is_taken = taken.contains(&key) || self.peers.iter().any(|peer| peer.public_key == key);
        let enrolled = |peer: &&mut EnrolledPeer| peer.public_key == current && peer.token_expires.is_none();
        let Some(peer) = self.peers.iter_mut().find(enrolled) else {
            return Ok(Enrolment::Refused("the client has been revoked".to_owned()));
        };
        if is_taken {
            return Ok(Enrolment::Refused("this key is in use: a client makes a key of its own".to_owned()));
        }
        peer.public_key = key;
        if client.preshared_key.is_some() {
            peer.preshared_key.clone_from(&client.preshared_key);
        }
        let enrolled = Enrolment::Enrolled(peer.name.clone(), Vec::new());
        self.write(None).map(|()| enrolled)
    }
}

fn read_peers(text: &str) -> Result<Vec<EnrolledPeer>, Diagnostic> {
    let tables = parse::parse(text).and_then(parse::deserialize::<PeersTables>)?;
    let tables = tables.peer.unwrap_or_default();
    let missing = |span: std::ops::Range<usize>, key: &str| Diagnostic::new(span, format!("missing key `{key}`"));
    let unix_time = |seconds: &parse::Spanned<i64>| u64::try_from(*seconds.get()).unwrap_or(0);
    let read = |table: &parse::Spanned<super::tables::PeerTable>| {
        let (values, span) = (table.get(), table.span());
        let name = values.name.as_ref().ok_or_else(|| missing(span.clone(), "name"))?;
        if !is_peer_name(name.get()) {
            return Err(Diagnostic::new(name.span(), "this is not a name of a peer").with_help(PEER_NAME_HELP));
        }
        let public_key = values.public_key.as_ref().ok_or_else(|| missing(span.clone(), "public-key"))?;
        let key_error =
            |span: std::ops::Range<usize>| move |error: seal::KeyError| Diagnostic::new(span, error.to_string());
        let preshared_key = values.preshared_key.as_ref();
        let preshared_key = preshared_key.map(|text| text.get().parse().map_err(key_error(text.span()))).transpose()?;
        let networks = match values.allowed_ips.as_ref().map(parse::Spanned::get) {
            None => return Err(missing(span, "allowed-ips")),
            Some(StringOrList::String(text)) => vec![text.clone()],
            Some(StringOrList::List(texts)) => texts.iter().map(|text| text.get().clone()).collect(),
        };
        let to_network = |text: &String| {
            parse_network(text).ok_or_else(|| Diagnostic::new(span.clone(), format!("`{text}` is not a network")))
        };
        Ok(EnrolledPeer {
            name: name.get().clone(),
            public_key: public_key.get().parse().map_err(key_error(public_key.span()))?,
            preshared_key,
            allowed_ips: networks.iter().map(to_network).collect::<Result<_, _>>()?,
            token_expires: values.token_expires.as_ref().map(unix_time),
            expires: values.expires.as_ref().map(unix_time),
        })
    };
    tables.iter().map(read).collect()
}
