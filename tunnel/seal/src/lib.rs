//! What keeps strangers out of a tunnel: handshake, keys, sealed datagrams, replay windows, cookies. Sans-IO; chance and
//! time come in as arguments.
//!
//! [`Peers`] is one end of all its tunnels. What it sends and why is told in `docs/security.md`.

mod answering;
mod asking;
#[doc(hidden)]
pub mod check;
mod cipher;
mod cookie;
mod entropy;
mod keys;
mod load;
mod mac;
mod message;
mod noise;
mod peer;
mod peers;
mod refusal;
mod replay;
mod session;
mod sessions;

pub use cipher::{Cipher, TAG, fast_cipher};
pub use entropy::{Entropy, SystemEntropy};
pub use keys::{KEY, KEY_TEXT, KeyError, PresharedKey, PrivateKey, PublicKey};
pub use message::{COOKIE, INITIATION, Message, PROTOCOL_HANDSHAKE, RESPONSE, VERSION};
pub use noise::PATTERN;
pub use peer::SILENCE;
pub use peers::{Established, HEADER, OVERHEAD, Opened, PeerError, PeerId, PeerStatus, Peers, Setup, Taken};
pub use refusal::{Counters, Refusal, Unsealed};
pub use replay::WINDOW;
pub use session::{PATHS, Session, SessionKeys};
pub use sessions::{REJECT_AFTER, REKEY_AFTER};
