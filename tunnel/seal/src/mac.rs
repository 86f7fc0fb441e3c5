//! Message authentication that needs no secret of one's own: mac1 shows that a stranger knows whom he talks to, mac2 that
//! he can read what is sent to his address (WireGuard white paper, section 5.4.4). HMAC-SHA-256, cut to 16 bytes.

use ring::{digest, hmac};
use subtle::ConstantTimeEq;

use crate::keys::PublicKey;

/// Bytes of a code.
pub(crate) const MAC: usize = 16;

/// What mac1 is keyed with, beside the receiver's public key.
pub(crate) const MAC1: &str = "ropewalk mac1";

/// A key to compute codes with.
pub(crate) struct MacKey(hmac::Key);

impl MacKey {
    /// From bytes nobody can guess.
    pub(crate) fn new(secret: &[u8]) -> Self {
        Self(hmac::Key::new(hmac::HMAC_SHA256, secret))
    }

    /// From a public key: `label` keeps the purposes apart.
    pub(crate) fn of_public(label: &str, key: &PublicKey) -> Self {
        let mut hash = digest::Context::new(&digest::SHA256);
        hash.update(label.as_bytes());
        hash.update(key.bytes());
        Self::new(hash.finish().as_ref())
    }

    /// All 32 bytes of the code of these parts one after another.
    pub(crate) fn sign(&self, parts: &[&[u8]]) -> [u8; 32] {
        let mut context = hmac::Context::with_key(&self.0);
        for part in parts {
            context.update(part);
        }
        context.sign().as_ref().try_into().expect("SHA-256 gives 32 bytes")
    }

    /// The code.
    pub(crate) fn mac(&self, message: &[u8]) -> [u8; MAC] {
        *self.sign(&[message]).first_chunk().expect("32 bytes hold 16")
    }

    /// Whether `mac` is the code of `message`, in constant time.
    pub(crate) fn verify(&self, message: &[u8], mac: &[u8]) -> bool {
        self.mac(message).ct_eq(mac).into()
    }
}
