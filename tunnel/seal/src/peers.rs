//! All peers: handshake messages and sealed datagrams come in by session index, questions go out when they are due.
//!
//! A driver calls [`Peers::question_due`] when [`Peers::deadline`] has come and after whatever it told the machine, sends
//! [`Peers::question`] by the routes that it knows, and hands over what arrives. Addresses are its own business: a peer is
//! who proves to be it, wherever from.

use std::collections::BTreeMap;

use units::Instant;

use crate::cipher::{Cipher, TAG};
use crate::cookie;
use crate::entropy::{Entropy, draw};
use crate::keys::{PresharedKey, PrivateKey, PublicKey, agree};
use crate::load::Load;
use crate::mac::{MAC1, MacKey};
use crate::message::Message;
use crate::peer::Peer;
use crate::refusal::Counters;

/// Bytes before the body of a sealed datagram.
pub const HEADER: usize = 12;
/// Bytes that sealing adds to a body: header and tag.
pub const OVERHEAD: usize = HEADER + TAG;

/// GRE (RFC 2890) with key and sequence number, protocol type 0x88B5: IEEE 802, local experimental 1.
pub(crate) const DATA: [u8; 4] = [0x30, 0x00, 0x88, 0xb5];

/// A peer, as long as the [`Peers`] live; never given again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PeerId(pub u32);

/// What one end is told once.
pub struct Setup {
    /// Who we are.
    pub private: PrivateKey,
    /// Ciphers that we would use, the best first; usually [`Setup::ciphers`].
    pub ciphers: Vec<Cipher>,
    /// Bits that the peer learns.
    pub features: u32,
    /// Initiations a second that are served without a cookie. One costs about 0.1 ms.
    pub unasked: u32,
}

impl Setup {
    /// As it should be for almost everyone.
    #[must_use]
    pub fn new(private: PrivateKey) -> Self {
        Self { private, ciphers: Self::ciphers(), features: 0, unasked: 100 }
    }

    /// What this machine does fast, the best first. ChaCha20-Poly1305 always; AES without instructions for it never, as it
    /// is slow then and its timing depends on the key.
    #[must_use]
    pub fn ciphers() -> Vec<Cipher> {
        match crate::fast_cipher() {
            Cipher::Aes256Gcm => vec![Cipher::Aes256Gcm, Cipher::ChaCha20Poly1305],
            Cipher::ChaCha20Poly1305 => vec![Cipher::ChaCha20Poly1305],
        }
    }
}

/// Why a peer cannot be added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PeerError {
    /// The key is our own.
    Ourselves,
    /// It is a peer already.
    Twice,
    /// The key is one of the few points with which every secret would be zero.
    Weak,
}

impl std::fmt::Display for PeerError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Ourselves => "this public key is our own: a peer has another one",
            Self::Twice => "another peer has this public key already",
            Self::Weak => "this is not the public key of anybody: no private key belongs to it",
        })
    }
}

impl std::error::Error for PeerError {}

/// A session that seals from now on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Established {
    /// With whom.
    pub peer: PeerId,
    /// The peer has no memory of what was before (or we have none): begin anew, with all paths' numbers at zero. If not,
    /// all goes on, numbers included.
    pub fresh: bool,
    /// What it is sealed with.
    pub cipher: Cipher,
    /// The peer's feature bits.
    pub features: u32,
}

/// A handshake message was taken.
#[derive(Debug)]
pub struct Taken {
    /// Who proved to have sent it; nobody, if it was only asked for a cookie or brought one.
    pub peer: Option<PeerId>,
    /// To be sent to where the message came from, the way it came.
    pub reply: Option<Message>,
    /// Our question was answered. Something must be sealed soon: before that the peer cannot send.
    pub established: Option<Established>,
}

/// A datagram was opened; its body lies between header and tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opened {
    /// Who sealed it.
    pub peer: PeerId,
    /// For which path.
    pub path: u8,
    /// The path's packet number.
    pub number: u64,
    /// It is the first one of a session; to be considered before the body.
    pub established: Option<Established>,
}

/// What is known of a peer, for people.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeerStatus {
    /// Who it is.
    pub public: PublicKey,
    /// When the session that seals was made; none if there is none.
    pub since: Option<Instant>,
    /// What it is sealed with.
    pub cipher: Option<Cipher>,
    /// Questions asked since the last answer.
    pub attempts: u32,
}

/// One end of all its tunnels.
pub struct Peers {
    pub(crate) setup: Setup,
    pub(crate) public: PublicKey,
    pub(crate) mac1: MacKey,
    pub(crate) cookie_key: MacKey,
    pub(crate) entropy: Box<dyn Entropy + Send>,
    /// By number; gone ones leave a gap.
    pub(crate) peers: Vec<Option<Peer>>,
    pub(crate) keys: BTreeMap<PublicKey, PeerId>,
    /// Our session indices.
    pub(crate) indices: BTreeMap<u32, PeerId>,
    pub(crate) load: Load,
    pub(crate) counters: Counters,
    pub(crate) due: Instant,
    pub(crate) freed: Vec<u32>,
}

impl Peers {
    /// An end without peers.
    #[must_use]
    pub fn new(setup: Setup, entropy: Box<dyn Entropy + Send>) -> Self {
        let public = setup.private.public();
        Self {
            mac1: MacKey::of_public(MAC1, &public),
            cookie_key: MacKey::of_public(cookie::LABEL, &public),
            load: Load::new(setup.unasked),
            setup,
            public,
            entropy,
            peers: Vec::new(),
            keys: BTreeMap::new(),
            indices: BTreeMap::new(),
            counters: Counters::default(),
            due: Instant::NEVER,
            freed: Vec::new(),
        }
    }

    /// Our public key.
    #[must_use]
    pub const fn public(&self) -> &PublicKey {
        &self.public
    }

    /// Why datagrams were refused, and how often.
    #[must_use]
    pub const fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Whom we talk to from now on.
    ///
    /// # Errors
    /// If the key cannot be a peer's.
    pub fn add(&mut self, public: PublicKey, preshared: Option<PresharedKey>) -> Result<PeerId, PeerError> {
        self.check(&public)?;
        if self.keys.contains_key(&public) {
            return Err(PeerError::Twice);
        }
        let id = PeerId(u32::try_from(self.peers.len()).expect("fewer than 2^32 peers were ever added"));
        let instance = u64::from_be_bytes(draw(&mut *self.entropy));
        self.peers.push(Some(Peer::new(public, preshared.unwrap_or_else(none), instance)));
        self.keys.insert(public, id);
        Ok(id)
    }

    /// Whether a key can be a peer's.
    ///
    /// # Errors
    /// Why not.
    pub fn check(&self, public: &PublicKey) -> Result<(), PeerError> {
        if *public == self.public {
            return Err(PeerError::Ourselves);
        }
        agree(self.setup.private.bytes(), public.bytes()).map(drop).ok_or(PeerError::Weak)
    }

    /// Forgets a peer and its sessions.
    pub fn remove(&mut self, id: PeerId) {
        if let Some(peer) = self.peers.get_mut(id.0 as usize).and_then(Option::take) {
            self.keys.remove(&peer.public);
            self.indices.retain(|_, owner| *owner != id);
        }
    }

    /// Another secret shared with a peer. What is sealed goes on with the present session, which lasts three minutes from its
    /// handshake at most; if a session is [wanted](Self::want), one with the new secret is asked for now, until the peer has
    /// that secret too.
    pub fn set_preshared(&mut self, now: Instant, id: PeerId, preshared: Option<PresharedKey>) {
        if let Some(peer) = self.peers.get_mut(id.0 as usize).and_then(Option::as_mut) {
            peer.set_preshared(preshared.unwrap_or_else(none), &mut self.freed);
        }
        self.release();
        self.schedule(now);
    }

    /// Who has this public key.
    #[must_use]
    pub fn find(&self, public: &PublicKey) -> Option<PeerId> {
        self.keys.get(public).copied()
    }

    /// A session with this peer shall be there always: it is asked for now, and whenever it ends. Without it, we only
    /// answer.
    pub fn want(&mut self, now: Instant, id: PeerId) {
        if let Some(peer) = self.peer_mut(id) {
            peer.wanted = true;
        }
        self.schedule(now);
    }

    /// No session with this peer is asked for any more; the present one lives out its time.
    pub fn leave(&mut self, id: PeerId) {
        if let Some(peer) = self.peer_mut(id) {
            peer.wanted = false;
        }
    }

    /// Something is wrong with the present session (no path answers): ask for a new one now.
    pub fn renew(&mut self, now: Instant, id: PeerId) {
        if let Some(peer) = self.peer_mut(id) {
            peer.renew = true;
        }
        self.schedule(now);
    }

    /// The peer said that it forgets us, or we begin anew: nothing of what was remains, and the peer will be told so by the
    /// next handshake.
    pub fn forget(&mut self, now: Instant, id: PeerId) {
        let instance = u64::from_be_bytes(draw(&mut *self.entropy));
        if let Some(peer) = self.peers.get_mut(id.0 as usize).and_then(Option::as_mut) {
            peer.forget(instance);
        }
        self.indices.retain(|_, owner| *owner != id);
        self.schedule(now);
    }

    /// What is known of a peer.
    #[must_use]
    pub fn status(&self, id: PeerId) -> Option<PeerStatus> {
        let peer = self.peer(id)?;
        let current = peer.sessions.current();
        Some(PeerStatus {
            public: peer.public,
            since: current.map(|held| held.born),
            cipher: current.map(|held| held.session.cipher()),
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

/// What stands for no secret (white paper, section 5.4.2).
fn none() -> PresharedKey {
    PresharedKey::from_bytes([0; 32])
}
