//! Keys of an identity: private key, public key, and the preshared key of a pair of peers.
//!
//! All three are 32 bytes, written in base64 exactly as `wg genkey`, `wg pubkey` and `wg genpsk` write them, so that a
//! WireGuard key file can be used as it is. Public keys are Curve25519 points (RFC 7748).

use std::fmt;
use std::str::FromStr;

use base64ct::{Base64, Encoding};
use curve25519_dalek::montgomery::MontgomeryPoint;
use subtle::ConstantTimeEq;
use zeroize::{Zeroize, Zeroizing};

use crate::entropy::{Entropy, random_bytes};

/// Length of a key, bytes.
pub const KEY_LEN: usize = 32;
/// Length of a key in base64, characters.
pub const KEY_TEXT_LEN: usize = 44;

/// A Curve25519 private key. Zeroised on drop.
#[derive(Clone, PartialEq, Eq)]
pub struct PrivateKey([u8; KEY_LEN]);

/// A Curve25519 public key: the identity of a peer. It is not secret, but a host does not reply to senders that do not
/// know the host's public key.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PublicKey([u8; KEY_LEN]);

/// A secret that two peers share in addition to their key pairs, so that recorded traffic stays secret even if
/// Curve25519 is broken later (WireGuard white paper, section 5.2). Zeroised on drop.
#[derive(Clone, PartialEq, Eq)]
pub struct PresharedKey([u8; KEY_LEN]);

/// Why a text is not a key. The error never repeats the text, which may be most of a secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyError {
    /// The length, which is not 44 characters.
    Length(usize),
    /// The position (from 1) of a character that is not base64.
    Character(usize),
    /// Bits beyond the 32 bytes of a key are set.
    TrailingBits,
}

impl fmt::Display for KeyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Length(length) => {
                write!(f, "a key is 44 characters of base64, as `ropewalk genkey` prints it; this has {length}")
            }
            Self::Character(position) => {
                write!(f, "a key is base64 (A-Z a-z 0-9 + /, and one = at its end); character {position} is wrong")
            }
            Self::TrailingBits => {
                write!(f, "a key is 32 bytes in base64; this text has bits beyond them: check its end")
            }
        }
    }
}

impl std::error::Error for KeyError {}

impl PrivateKey {
    /// Generates a key, clamped as in RFC 7748, section 5.
    #[must_use]
    pub fn generate(entropy: &mut dyn Entropy) -> Self {
        let mut bytes = random_bytes::<KEY_LEN>(entropy);
        bytes[0] &= 0b1111_1000;
        bytes[31] = bytes[31] & 0b0111_1111 | 0b0100_0000;
        Self(bytes)
    }

    /// Whether the bits are set and cleared as in RFC 7748, section 5, as `genkey` does. One in sixteen public keys has
    /// that form, too.
    #[must_use]
    pub const fn is_clamped(&self) -> bool {
        self.0[0].trailing_zeros() >= 3 && self.0[KEY_LEN - 1] >> 6 == 1
    }

    /// Whether these are the bytes of this public key, which was given as the private one by mistake.
    #[must_use]
    pub fn has_bytes_of(&self, key: &PublicKey) -> bool {
        self.0 == key.0
    }

    /// A key from its bytes.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; KEY_LEN]) -> Self {
        Self(bytes)
    }

    /// The public key.
    #[must_use]
    pub fn public_key(&self) -> PublicKey {
        PublicKey(derive_public(&self.0))
    }

    /// In base64, as `wg genkey` writes it.
    #[must_use]
    pub fn to_text(&self) -> Zeroizing<String> {
        Zeroizing::new(Base64::encode_string(&self.0))
    }

    pub(crate) const fn bytes(&self) -> &[u8; KEY_LEN] {
        &self.0
    }
}

impl PublicKey {
    /// A key from its bytes.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; KEY_LEN]) -> Self {
        Self(bytes)
    }

    /// The bytes.
    #[must_use]
    pub const fn bytes(&self) -> &[u8; KEY_LEN] {
        &self.0
    }
}

impl PresharedKey {
    /// Generates a key.
    #[must_use]
    pub fn generate(entropy: &mut dyn Entropy) -> Self {
        Self(random_bytes(entropy))
    }

    /// A key from its bytes. All zero means no preshared key, as in WireGuard.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; KEY_LEN]) -> Self {
        Self(bytes)
    }

    /// In base64, as `wg genpsk` writes it.
    #[must_use]
    pub fn to_text(&self) -> Zeroizing<String> {
        Zeroizing::new(Base64::encode_string(&self.0))
    }

    pub(crate) const fn bytes(&self) -> &[u8; KEY_LEN] {
        &self.0
    }
}

/// X25519 with the base point: the public key of a private key.
pub(crate) fn derive_public(private: &[u8; KEY_LEN]) -> [u8; KEY_LEN] {
    MontgomeryPoint::mul_base_clamped(*private).to_bytes()
}

/// X25519: the shared secret of a private and a public key. `None` for points of low order, with which it would be zero
/// (RFC 7748, section 6.1).
pub(crate) fn x25519(private: &[u8; KEY_LEN], public: &[u8; KEY_LEN]) -> Option<Zeroizing<[u8; KEY_LEN]>> {
    let secret = Zeroizing::new(MontgomeryPoint(*public).mul_clamped(*private).to_bytes());
    (!bool::from(secret.ct_eq(&[0; KEY_LEN]))).then_some(secret)
}

fn parse(text: &str) -> Result<[u8; KEY_LEN], KeyError> {
    let text = text.trim_ascii();
    let length = text.chars().count();
    if length != KEY_TEXT_LEN {
        return Err(KeyError::Length(length));
    }
    let is_allowed = |position: usize, c: char| match position {
        43 => c == '=',
        _ => c.is_ascii_alphanumeric() || c == '+' || c == '/',
    };
    if let Some((position, _)) = text.chars().enumerate().find(|&(position, c)| !is_allowed(position, c)) {
        return Err(KeyError::Character(position + 1));
    }
    let mut bytes = [0; KEY_LEN];
    match Base64::decode(text, &mut bytes) {
        Ok(decoded) if decoded.len() == KEY_LEN => Ok(bytes),
        _ => Err(KeyError::TrailingBits),
    }
}

/// Implements parsing of base64; surrounding white space is ignored, as key files end with a line feed.
macro_rules! from_text {
    ($key:ty) => {
        impl FromStr for $key {
            type Err = KeyError;

            fn from_str(text: &str) -> Result<Self, KeyError> {
                parse(text).map(Self)
            }
        }
    };
}
from_text!(PrivateKey);
from_text!(PublicKey);
from_text!(PresharedKey);

impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&Base64::encode_string(&self.0))
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PublicKey({self})")
    }
}

impl fmt::Debug for PrivateKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PrivateKey(secret)")
    }
}

impl fmt::Debug for PresharedKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PresharedKey(secret)")
    }
}

impl Drop for PrivateKey {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

impl Drop for PresharedKey {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn unhex(text: &str) -> Vec<u8> {
        (0..text.len() / 2).map(|i| u8::from_str_radix(&text[2 * i..2 * i + 2], 16).unwrap()).collect()
    }

    fn key(text: &str) -> [u8; KEY_LEN] {
        unhex(text).try_into().unwrap()
    }

    #[test]
    fn the_test_vector_of_rfc_7748_section_6_1() {
        let alice = key("77076d0a7318a57d3c16c17251b26645df4c2f87ebc0992ab177fba51db92c2a");
        let bob = key("5dab087e624a8a4b79e17f8b83800ee66f3bb1292618b6fd1c2f8b27ff88e0eb");
        assert_eq!(derive_public(&alice), key("8520f0098930a754748b7ddcb43ef75a0dbf3a0d26381af4eba4a98eaa9b4e6a"));
        let shared = key("4a5d9d5ba4ce2de1728e3bf480350f25e07e21c947d19e3376f09b3c1e161742");
        assert_eq!(*x25519(&alice, &derive_public(&bob)).unwrap(), shared);
        assert_eq!(*x25519(&bob, &derive_public(&alice)).unwrap(), shared);
    }

    #[test]
    fn a_point_of_low_order_is_rejected() {
        assert!(x25519(&[7; KEY_LEN], &[0; KEY_LEN]).is_none());
    }
}
