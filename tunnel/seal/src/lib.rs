//! The tunnel's security: handshake, session keys, sealed datagrams, replay windows and cookies. Sans-IO; random bytes
//! and time are arguments.
//!
//! The protocol is WireGuard's in its structure (Noise IKpsk2, mac1 and mac2, cookie replies, rekeying by time) with
//! GRE headers and a packet number space per path; `docs/reference/protocol.md` describes it. [`SealDevice`] has all peers of a
//! host: it creates and handles handshake messages, and seals and opens datagrams. [`Session`] is the AEAD of one
//! session alone.

#[doc(hidden)]
pub mod check;
mod cipher;
mod cookie;
mod data;
mod device;
mod drop_reason;
mod entropy;
#[cfg(test)]
mod exhaustive;
mod initiation_limiter;
mod initiator;
mod keys;
mod known_sources;
mod mac;
mod message;
mod noise;
mod owner;
mod peer;
mod rate_limit;
mod replay;
mod responder;
mod session;
mod sessions;
mod source;
#[cfg(test)]
mod vectors;

pub use cipher::{Cipher, TAG_LEN, preferred_cipher};
pub use device::{
    Established, HEADER_LEN, HandshakeConfig, HandshakeOutcome, Opened, PeerError, PeerId, PeerStatus, SEAL_OVERHEAD,
    SealDevice,
};
pub use drop_reason::{DropCounters, DropReason, SealError};
pub use entropy::{Entropy, SystemEntropy};
pub use keys::{KEY_LEN, KEY_TEXT_LEN, KeyError, PresharedKey, PrivateKey, PublicKey};
pub use message::{
    COOKIE_REPLY_LEN, HandshakeMessage, INITIATION_LEN, PROTOCOL_HANDSHAKE, RESPONSE_LEN, TAKES_BUNDLES, VERSION,
};
pub use noise::NOISE_PROTOCOL_NAME;
pub use owner::owner;
pub use peer::SILENCE_TIMEOUT;
pub use replay::REPLAY_WINDOW;
pub use session::{PACKET_NUMBER_SPACES, Session, SessionKeys};
pub use sessions::{REJECT_AFTER, REKEY_AFTER};
