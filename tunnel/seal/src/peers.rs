//! All peers of a host. Handshake messages and sealed datagrams are matched by session index; initiations are created when
//! they are due.
//!
//! The driver calls [`Peers::initiation_due`] at [`Peers::deadline`] and after each change, sends [`Peers::initiation`]
//! by all routes to the peer, and hands over what arrives. Addresses are the driver's concern: a peer is whoever has its
//! key, from whatever address.

use std::collections::BTreeMap;

use units::Instant;

use crate::cipher::{Cipher, TAG_LEN};
use crate::cookie;
use crate::drop_reason::DropCounters;
use crate::entropy::{Entropy, random_bytes};
use crate::initiation_limiter::InitiationLimiter;
use crate::keys::{PresharedKey, PrivateKey, PublicKey, x25519};
use crate::mac::{MAC1_KEY_LABEL, MacKey};
use crate::message::HandshakeMessage;
use crate::peer::Peer;

/// Bytes before the body of a sealed datagram.
pub const HEADER_LEN: usize = wire::gre::Sealed::LEN;
/// Bytes that sealing adds to a body: header and tag.
pub const OVERHEAD: usize = HEADER_LEN + TAG_LEN;

/// Id of a peer, never reused in one [`Peers`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PeerId(pub u32);

/// Configuration of a host's [`Peers`].
pub struct SealConfig {
    /// The host's private key.
    pub private: PrivateKey,
    /// Acceptable ciphers, preferred ones first; by default [`SealConfig::ciphers`].
    pub ciphers: Vec<Cipher>,
    /// Initiations a second above which the host is under load and asks for cookies. One takes about 0.1 ms.
    pub under_load_threshold: u32,
}

impl SealConfig {
    /// The default configuration.
    #[must_use]
    pub fn new(private: PrivateKey) -> Self {
        Self { private, ciphers: Self::ciphers(), under_load_threshold: 100 }
    }

    /// The default ciphers, the fastest first: ChaCha20-Poly1305 always, AES only where the CPU has instructions for it,
    /// as it is slow without and its timing depends on the key.
    #[must_use]
    pub fn ciphers() -> Vec<Cipher> {
        match crate::preferred_cipher() {
            Cipher::Aes256Gcm => vec![Cipher::Aes256Gcm, Cipher::ChaCha20Poly1305],
            Cipher::ChaCha20Poly1305 => vec![Cipher::ChaCha20Poly1305],
        }
    }
}

/// Why a peer cannot be added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PeerError {
    /// The key is the host's own.
    OwnKey,
    /// Another peer has this key.
    DuplicateKey,
    /// The key is a point of low order, with which every shared secret would be zero.
    LowOrderKey,
}

impl std::fmt::Display for PeerError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::OwnKey => "this public key is our own: a peer has another one",
            Self::DuplicateKey => "another peer has this public key already",
            Self::LowOrderKey => "this is not the public key of anybody: no private key belongs to it",
        })
    }
}

impl std::error::Error for PeerError {}

/// A new session that seals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Established {
    /// The peer.
    pub peer: PeerId,
    /// Whether either end has lost its state: packet numbers of all paths start at zero. If not, everything continues,
    /// numbers included.
    pub fresh: bool,
    /// The AEAD of the session.
    pub cipher: Cipher,
}

/// The outcome of a valid handshake message.
#[derive(Debug)]
pub struct HandshakeOutcome {
    /// The authenticated sender; `None` for a cookie reply and for an initiation that gets one.
    pub peer: Option<PeerId>,
    /// A message to send back to its source, by the same route.
    pub reply: Option<HandshakeMessage>,
    /// The session that a response established. A datagram must be sealed soon: before key confirmation the peer cannot
    /// send.
    pub established: Option<Established>,
}

/// An opened datagram, whose body lies between header and tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opened {
    /// The sender.
    pub peer: PeerId,
    /// The path.
    pub path: u8,
    /// The packet number on the path.
    pub number: u64,
    /// The session that it confirmed, if it is its first one; to be handled before the body.
    pub established: Option<Established>,
}

/// Status of a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeerStatus {
    /// The public key.
    pub public: PublicKey,
    /// When the current session was established; `None` if there is none.
    pub since: Option<Instant>,
    /// The AEAD of the session.
    pub cipher: Option<Cipher>,
    /// Initiations sent since the last response.
    pub attempts: u32,
}

/// One end of all tunnels of a host.
pub struct Peers {
    pub(crate) config: SealConfig,
    pub(crate) public: PublicKey,
    pub(crate) mac1: MacKey,
    pub(crate) cookie_key: MacKey,
    pub(crate) entropy: Box<dyn Entropy + Send>,
    /// By id; removed ones leave a gap.
    pub(crate) peers: Vec<Option<Peer>>,
    pub(crate) keys: BTreeMap<PublicKey, PeerId>,
    /// Local session indices.
    pub(crate) indices: BTreeMap<u32, PeerId>,
    pub(crate) limiter: InitiationLimiter,
    pub(crate) counters: DropCounters,
    pub(crate) deadline: Instant,
    pub(crate) freed_indices: Vec<u32>,
}

impl Peers {
    /// A host without peers.
    #[must_use]
    pub fn new(config: SealConfig, entropy: Box<dyn Entropy + Send>) -> Self {
        let public = config.private.public();
        Self {
            mac1: MacKey::derive(MAC1_KEY_LABEL, &public),
            cookie_key: MacKey::derive(cookie::COOKIE_KEY_LABEL, &public),
            limiter: InitiationLimiter::new(config.under_load_threshold),
            config,
            public,
            entropy,
            peers: Vec::new(),
            keys: BTreeMap::new(),
            indices: BTreeMap::new(),
            counters: DropCounters::default(),
            deadline: Instant::NEVER,
            freed_indices: Vec::new(),
        }
    }

    /// The host's public key.
    #[must_use]
    pub const fn public(&self) -> &PublicKey {
        &self.public
    }

    /// Counters of dropped datagrams by reason.
    #[must_use]
    pub const fn counters(&self) -> &DropCounters {
        &self.counters
    }

    /// Adds a peer.
    ///
    /// # Errors
    /// If the key cannot be a peer's.
    pub fn add(&mut self, public: PublicKey, preshared: Option<PresharedKey>) -> Result<PeerId, PeerError> {
        self.check(&public)?;
        if self.keys.contains_key(&public) {
            return Err(PeerError::DuplicateKey);
        }
        let id = PeerId(u32::try_from(self.peers.len()).expect("fewer than 2^32 peers were ever added"));
        let instance = u64::from_be_bytes(random_bytes(&mut *self.entropy));
        self.peers.push(Some(Peer::new(public, preshared.unwrap_or_else(no_preshared_key), instance)));
        self.keys.insert(public, id);
        Ok(id)
    }

    /// Checks that a key can be a peer's.
    ///
    /// # Errors
    /// Why it cannot.
    pub fn check(&self, public: &PublicKey) -> Result<(), PeerError> {
        if *public == self.public {
            return Err(PeerError::OwnKey);
        }
        x25519(self.config.private.bytes(), public.bytes()).map(drop).ok_or(PeerError::LowOrderKey)
    }

    /// Removes a peer and its sessions.
    pub fn remove(&mut self, id: PeerId) {
        if let Some(peer) = self.peers.get_mut(id.0 as usize).and_then(Option::take) {
            self.keys.remove(&peer.public);
            self.indices.retain(|_, owner| *owner != id);
        }
    }

    /// Sets the preshared key of a peer. The current session stays in use until it expires; if the host
    /// [initiates](Self::start_initiating), handshakes with the new key start now, until the peer has it too.
    pub fn set_preshared(&mut self, now: Instant, id: PeerId, preshared: Option<PresharedKey>) {
        if let Some(peer) = self.peers.get_mut(id.0 as usize).and_then(Option::as_mut) {
            peer.set_preshared(preshared.unwrap_or_else(no_preshared_key), &mut self.freed_indices);
        }
        self.release_indices();
        self.schedule(now);
    }

    /// The peer with this public key.
    #[must_use]
    pub fn find(&self, public: &PublicKey) -> Option<PeerId> {
        self.keys.get(public).copied()
    }

    /// Initiates handshakes with this peer, now and whenever there is no session. Otherwise the host only responds.
    pub fn start_initiating(&mut self, now: Instant, id: PeerId) {
        if let Some(peer) = self.peer_mut(id) {
            peer.initiates = true;
        }
        self.schedule(now);
    }

    /// Initiates no more handshakes with this peer; the current session stays until it expires.
    pub fn stop_initiating(&mut self, id: PeerId) {
        if let Some(peer) = self.peer_mut(id) {
            peer.initiates = false;
        }
    }

    /// Starts a new handshake now, for instance if no path works.
    pub fn rekey(&mut self, now: Instant, id: PeerId) {
        if let Some(peer) = self.peer_mut(id) {
            peer.rekey_requested = true;
        }
        self.schedule(now);
    }

    /// Drops all state of a peer that closed the tunnel or that starts anew. The next handshake tells the peer.
    pub fn reset(&mut self, now: Instant, id: PeerId) {
        let instance = u64::from_be_bytes(random_bytes(&mut *self.entropy));
        if let Some(peer) = self.peers.get_mut(id.0 as usize).and_then(Option::as_mut) {
            peer.reset(instance);
        }
        self.indices.retain(|_, owner| *owner != id);
        self.schedule(now);
    }

    /// Status of a peer.
    #[must_use]
    pub fn status(&self, id: PeerId) -> Option<PeerStatus> {
        let peer = self.peer(id)?;
        let current = peer.sessions.current();
        Some(PeerStatus {
            public: peer.public,
            since: current.map(|entry| entry.created),
            cipher: current.map(|entry| entry.session.cipher()),
            attempts: peer.attempts,
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
