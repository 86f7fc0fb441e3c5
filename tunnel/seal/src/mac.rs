//! mac1 and mac2 of handshake messages (WireGuard white paper, section 5.4.4). The mac1 of an initiation shows that its
//! sender knows the responder's public key. The mac1 of a response shows that its sender saw the initiation, and mac2
//! that an initiator can read messages sent to its address. HMAC-SHA-256, truncated to 16 bytes.
//!
//! The key of a response's mac1 is derived from the initiator's ephemeral key. WireGuard's is derived from the static
//! key, by which an eavesdropper with a list of public keys could identify the initiator.

use ring::{digest, hmac};
use subtle::ConstantTimeEq;

use crate::keys::KEY_LEN;

/// Length of a MAC, bytes.
pub(crate) const MAC_LEN: usize = 16;

/// Label of the mac1 key, which is derived from the responder's public key, or for a response from the public ephemeral
/// key of the initiation.
pub(crate) const MAC1_KEY_LABEL: &str = "ropewalk mac1";

/// A key of HMAC-SHA-256.
pub(crate) struct MacKey(hmac::Key);

impl MacKey {
    /// A key from secret bytes.
    pub(crate) fn new(secret: &[u8]) -> Self {
        Self(hmac::Key::new(hmac::HMAC_SHA256, secret))
    }

    /// A key derived from a public key and a label, which separates purposes.
    pub(crate) fn derive(label: &str, key: &[u8; KEY_LEN]) -> Self {
        let mut hash = digest::Context::new(&digest::SHA256);
        hash.update(label.as_bytes());
        hash.update(key);
        Self::new(hash.finish().as_ref())
    }

    /// The untruncated MAC of the concatenated `parts`.
    pub(crate) fn sign(&self, parts: &[&[u8]]) -> [u8; 32] {
        let mut context = hmac::Context::with_key(&self.0);
        for part in parts {
            context.update(part);
        }
        context.sign().as_ref().try_into().expect("SHA-256 gives 32 bytes")
    }

    /// The truncated MAC.
    pub(crate) fn mac(&self, message: &[u8]) -> [u8; MAC_LEN] {
        *self.sign(&[message]).first_chunk().expect("32 bytes hold 16")
    }

    /// Whether `mac` is the MAC of `message`, in constant time.
    pub(crate) fn verify(&self, message: &[u8], mac: &[u8]) -> bool {
        self.mac(message).ct_eq(mac).into()
    }
}
