//! The peers of a host (WireGuard `wg_device`). Handshake messages and sealed datagrams are matched by session index;
//! initiations are created when they are due.
//!
//! The driver calls [`SealDevice::initiation_due`] at [`SealDevice::deadline`] and after each change, sends
//! [`SealDevice::initiation`] by all routes to the peer, and passes on all datagrams that arrive. A peer is identified
//! by its key alone; the driver handles addresses.

use std::collections::BTreeMap;

use units::Instant;

use crate::cipher::{Cipher, TAG_LEN};
use crate::cookie;
use crate::drop_reason::DropCounters;
use crate::entropy::{Entropy, random_bytes};
use crate::initiation_limiter::InitiationLimiter;
use crate::keys::{PresharedKey, PrivateKey, PublicKey, x25519};
use crate::mac::{MAC1_KEY_LABEL, MacKey};
use crate::message::{HandshakeMessage, TAKES_BUNDLES};
use crate::peer::Peer;
use crate::source::Source;

/// Bytes before the body of a sealed datagram.
pub const HEADER_LEN: usize = wire::gre::Sealed::LEN;
/// Bytes that sealing adds to a body: header and tag.
pub const SEAL_OVERHEAD: usize = HEADER_LEN + TAG_LEN;

/// Id of a peer, never reused in one [`SealDevice`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PeerId(pub u32);

/// Configuration of a [`SealDevice`].
pub struct HandshakeConfig {
    /// The host's private key.
    pub private_key: PrivateKey,
    /// Acceptable ciphers, preferred ones first; by default [`HandshakeConfig::ciphers`].
    pub ciphers: Vec<Cipher>,
    /// Failed initiations per second above which the host is under load and asks for cookies. One takes about 0.1 ms.
    pub under_load_threshold: u32,
    /// The upper four bits of all session indices. A host with several devices of one key finds the device of a
    /// datagram by them ([`owner`](crate::owner)). With `None`, all bits are drawn at random.
    pub index_prefix: Option<u8>,
    /// The host's capabilities, which its handshakes announce to the peer: a sum of constants such as
    /// [`TAKES_BUNDLES`](crate::TAKES_BUNDLES).
    pub capabilities: u8,
}

impl HandshakeConfig {
    /// The default configuration.
    #[must_use]
    pub fn new(private_key: PrivateKey) -> Self {
        Self {
            private_key,
            ciphers: Self::ciphers(),
            under_load_threshold: 100,
            index_prefix: None,
            capabilities: TAKES_BUNDLES,
        }
    }

    /// The default ciphers, the fastest first: ChaCha20-Poly1305 always, AES only if the CPU has instructions for it.
    /// Without them AES is slow, and its timing depends on the key.
    #[must_use]
    pub fn ciphers() -> Vec<Cipher> {
        match crate::preferred_cipher() {
            Cipher::Aes256Gcm => vec![Cipher::Aes256Gcm, Cipher::ChaCha20Poly1305],
            Cipher::ChaCha20Poly1305 => vec![Cipher::ChaCha20Poly1305],
        }
    }
}

/// Error of adding a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PeerError {
    /// The key is that of the host itself.
    OwnKey,
    /// Another peer has this key.
    DuplicateKey,
    /// The key is a point of low order on Curve25519: every shared secret would be zero (RFC 7748, section 6.1).
    LowOrderKey,
}

impl std::fmt::Display for PeerError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::OwnKey => "this is the public key of this end itself: a peer has another one",
            Self::DuplicateKey => "another peer has this public key already",
            Self::LowOrderKey => "this is not a valid public key: no private key belongs to it",
        })
    }
}

impl std::error::Error for PeerError {}

/// A new session that seals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Established {
    /// The peer.
    pub peer: PeerId,
    /// Whether the packet numbers of all paths start at zero, because either host has lost its state; otherwise they
    /// continue.
    pub numbers_reset: bool,
    /// The AEAD of the session.
    pub cipher: Cipher,
    /// The peer's capabilities, one bit each, such as [`TAKES_BUNDLES`](crate::TAKES_BUNDLES); 0 from an earlier
    /// version.
    pub capabilities: u8,
}

/// The outcome of a valid handshake message.
#[derive(Debug)]
pub struct HandshakeOutcome {
    /// The authenticated sender; `None` for a cookie reply and for an initiation that gets one.
    pub peer: Option<PeerId>,
    /// A message to send to the address that the handled one came from, by the same route.
    pub reply: Option<HandshakeMessage>,
    /// The session that a response established. The host must soon seal a datagram: before this key confirmation the
    /// peer cannot send.
    pub established: Option<Established>,
    /// The other device of this host to pass the initiation to: it was admitted here, and its sender is a peer of that
    /// device ([`SealDevice::set_other_peers`]).
    pub pass_to: Option<u8>,
}

/// The result of opening a datagram, whose body is then between header and tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opened {
    /// The sender.
    pub peer: PeerId,
    /// The path.
    pub path: u8,
    /// The packet number on the path.
    pub packet_number: u64,
    /// The session that the datagram confirmed, if it is the first datagram of that session. To be handled before the
    /// body.
    pub established: Option<Established>,
}

/// Status of a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeerStatus {
    /// The public key.
    pub public_key: PublicKey,
    /// When the current session was established; `None` if there is none.
    pub latest_handshake: Option<Instant>,
    /// The AEAD of the session.
    pub cipher: Option<Cipher>,
    /// Initiations sent since the last response.
    pub handshake_attempts: u32,
    /// When a host last took the session back from another host with the same private key; `None` if that never
    /// happened.
    pub latest_takeover: Option<Instant>,
}

/// A peer of another device of this host.
pub(crate) struct OtherPeer {
    device: u8,
    /// Maximum timestamp of its initiations that were passed on.
    received_timestamp: u64,
}

impl OtherPeer {
    pub(crate) fn received_timestamp(&self) -> u64 {
        self.received_timestamp
    }

    /// The device that an authentic initiation is passed to; `None` if it is a replay.
    pub(crate) fn pass(&mut self, timestamp: u64) -> Option<u8> {
        let is_new = timestamp > self.received_timestamp;
        self.received_timestamp = self.received_timestamp.max(timestamp);
        is_new.then_some(self.device)
    }
}

/// Handshakes and sessions of a host with its peers.
pub struct SealDevice {
    pub(crate) config: HandshakeConfig,
    pub(crate) public_key: PublicKey,
    pub(crate) mac1: MacKey,
    pub(crate) cookie_key: MacKey,
    pub(crate) entropy: Box<dyn Entropy + Send>,
    /// By id; removed peers leave a gap.
    pub(crate) peers: Vec<Option<Peer>>,
    pub(crate) by_public_key: BTreeMap<PublicKey, PeerId>,
    /// By local session index.
    pub(crate) session_indices: BTreeMap<u32, PeerId>,
    /// Peers of the host's other devices.
    pub(crate) other_peers: BTreeMap<PublicKey, OtherPeer>,
    pub(crate) initiation_limiter: InitiationLimiter,
    pub(crate) counters: DropCounters,
    /// Replayed initiations that are older than any copy of the peer's latest one.
    pub(crate) outdated_initiations: u64,
    pub(crate) deadline: Instant,
    pub(crate) released_indices: Vec<u32>,
}

impl SealDevice {
    /// A host without peers.
    #[must_use]
    pub fn new(config: HandshakeConfig, entropy: Box<dyn Entropy + Send>) -> Self {
        let public_key = config.private_key.public_key();
        Self {
            mac1: MacKey::derive(MAC1_KEY_LABEL, public_key.bytes()),
            cookie_key: MacKey::derive(cookie::COOKIE_KEY_LABEL, public_key.bytes()),
            initiation_limiter: InitiationLimiter::new(config.under_load_threshold),
            config,
            public_key,
            entropy,
            peers: Vec::new(),
            by_public_key: BTreeMap::new(),
            session_indices: BTreeMap::new(),
            other_peers: BTreeMap::new(),
            counters: DropCounters::default(),
            outdated_initiations: 0,
            deadline: Instant::NEVER,
            released_indices: Vec::new(),
        }
    }

    /// The host's public key.
    #[must_use]
    pub const fn public_key(&self) -> &PublicKey {
        &self.public_key
    }

    /// Counters of dropped datagrams by reason.
    #[must_use]
    pub const fn counters(&self) -> &DropCounters {
        &self.counters
    }

    /// Initiations dropped as [`DropReason::ReplayedInitiation`](crate::DropReason::ReplayedInitiation) that neither
    /// are copies of the peer's latest initiation nor were overtaken by it. Either the peer's clock was set back, or
    /// somebody recorded them and sends them again.
    #[must_use]
    pub const fn outdated_initiations(&self) -> u64 {
        self.outdated_initiations
    }

    /// Adds a peer.
    ///
    /// # Errors
    /// If the key cannot be a peer's.
    pub fn add(&mut self, public_key: PublicKey, preshared_key: Option<PresharedKey>) -> Result<PeerId, PeerError> {
        self.check_peer_key(&public_key)?;
        if self.by_public_key.contains_key(&public_key) {
            return Err(PeerError::DuplicateKey);
        }
        let id = PeerId(u32::try_from(self.peers.len()).expect("fewer than 2^32 peers were ever added"));
        let boot_id = u64::from_be_bytes(random_bytes(&mut *self.entropy));
        self.peers.push(Some(Peer::new(public_key, preshared_key.unwrap_or_else(no_preshared_key), boot_id)));
        self.by_public_key.insert(public_key, id);
        Ok(id)
    }

    /// Checks that a key can be a peer's.
    ///
    /// # Errors
    /// The reason if it cannot.
    pub fn check_peer_key(&self, public_key: &PublicKey) -> Result<(), PeerError> {
        if *public_key == self.public_key {
            return Err(PeerError::OwnKey);
        }
        x25519(self.config.private_key.bytes(), public_key.bytes()).map(drop).ok_or(PeerError::LowOrderKey)
    }

    /// Sets the peers of this host's other devices. Initiations name no device: those of these peers are admitted here
    /// and passed on.
    pub fn set_other_peers(&mut self, peers: impl Iterator<Item = (PublicKey, u8)>) {
        let mut previous = std::mem::take(&mut self.other_peers);
        let other_peer = |(key, device)| {
            let received_timestamp = previous.remove(&key).map_or(0, |peer| peer.received_timestamp);
            (key, OtherPeer { device, received_timestamp })
        };
        self.other_peers = peers.map(other_peer).collect();
    }

    /// Removes a peer and its sessions.
    pub fn remove(&mut self, id: PeerId) {
        if let Some(peer) = self.peers.get_mut(id.0 as usize).and_then(Option::take) {
            self.by_public_key.remove(&peer.public_key);
            self.initiation_limiter.forget(id);
            self.session_indices.retain(|_, owner| *owner != id);
        }
    }

    /// Sets the preshared key of a peer. The current session stays in use until it expires; if the host
    /// [initiates](Self::start_initiating), handshakes with the new key start now, until the peer has it too.
    pub fn set_preshared(&mut self, now: Instant, id: PeerId, preshared_key: Option<PresharedKey>) {
        if let Some(peer) = self.peers.get_mut(id.0 as usize).and_then(Option::as_mut) {
            peer.set_preshared(preshared_key.unwrap_or_else(no_preshared_key), &mut self.released_indices);
        }
        self.release_indices();
        self.schedule(now);
    }

    /// Notes that a peer was authenticated at `source` (octets as in [`SealDevice::receive`]), for instance by
    /// validation of a new path. Initiations from a peer's latest sources have a budget of their own. The sources of
    /// handshakes are added without this call.
    pub fn remember_source(&mut self, id: PeerId, source: &[u8]) {
        if self.peer(id).is_some() {
            self.initiation_limiter.remember(id, Source::new(source));
        }
    }

    /// Whether a peer was recently authenticated at `source`.
    #[must_use]
    pub fn knows_source(&self, source: &[u8]) -> bool {
        self.initiation_limiter.knows(&Source::new(source))
    }

    /// The peer with this public key.
    #[must_use]
    pub fn find(&self, public_key: &PublicKey) -> Option<PeerId> {
        self.by_public_key.get(public_key).copied()
    }

    /// Initiates handshakes with this peer, now and whenever there is no session. Otherwise the host only responds.
    pub fn start_initiating(&mut self, now: Instant, id: PeerId) {
        if let Some(peer) = self.peer_mut(id) {
            peer.is_initiator = true;
        }
        self.schedule(now);
    }

    /// Initiates no more handshakes with this peer; the current session stays until it expires.
    pub fn stop_initiating(&mut self, id: PeerId) {
        if let Some(peer) = self.peer_mut(id) {
            peer.is_initiator = false;
        }
    }

    /// Starts a new handshake now, for instance if no path works.
    pub fn rekey(&mut self, now: Instant, id: PeerId) {
        if let Some(peer) = self.peer_mut(id) {
            peer.rekey_requested = true;
        }
        self.schedule(now);
    }

    /// Drops all state of a peer that closed the tunnel or has restarted. The next handshake carries another boot id.
    pub fn reset(&mut self, now: Instant, id: PeerId) {
        let boot_id = u64::from_be_bytes(random_bytes(&mut *self.entropy));
        if let Some(peer) = self.peers.get_mut(id.0 as usize).and_then(Option::as_mut) {
            peer.reset(boot_id);
        }
        self.session_indices.retain(|_, owner| *owner != id);
        self.schedule(now);
    }

    /// Status of a peer.
    #[must_use]
    pub fn status(&self, id: PeerId) -> Option<PeerStatus> {
        let peer = self.peer(id)?;
        let current = peer.sessions.current();
        Some(PeerStatus {
            public_key: peer.public_key,
            latest_handshake: current.map(|entry| entry.created),
            cipher: current.map(|entry| entry.session.cipher()),
            handshake_attempts: peer.handshake_attempts,
            latest_takeover: peer.sessions.latest_takeover(),
        })
    }

    pub(crate) fn peer(&self, id: PeerId) -> Option<&Peer> {
        self.peers.get(id.0 as usize)?.as_ref()
    }

    fn peer_mut(&mut self, id: PeerId) -> Option<&mut Peer> {
        self.peers.get_mut(id.0 as usize)?.as_mut()
    }
}

/// The preshared key of peers without one (white paper, section 5.4.2).
fn no_preshared_key() -> PresharedKey {
    PresharedKey::from_bytes([0; 32])
}
