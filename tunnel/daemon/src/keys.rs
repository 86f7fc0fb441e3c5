//! `genkey`, `genpsk` and `pubkey`, as in `wg`.

use crate::config::read_secret;
use seal::{KeyError, PresharedKey, PrivateKey, SystemEntropy};
use std::io::{self, Read};
use zeroize::Zeroizing;

/// Maximum number of bytes from which a key is read.
const MAX_TEXT_LEN: usize = 1 << 12;

/// A new private key in base64.
#[must_use]
pub fn genkey() -> Zeroizing<String> {
    PrivateKey::generate(&mut SystemEntropy).to_text()
}

/// A new preshared key in base64.
#[must_use]
pub fn genpsk() -> Zeroizing<String> {
    PresharedKey::generate(&mut SystemEntropy).to_text()
}

/// The text of a key from `source`, wiped on drop.
///
/// # Errors
/// It cannot be read, or is longer than any key.
pub fn read(source: impl Read) -> io::Result<Zeroizing<String>> {
    read_secret(source, MAX_TEXT_LEN)
}

/// The public key of a private key.
///
/// # Errors
/// `private` is not a key; the error repeats nothing of it.
pub fn pubkey(private: &str) -> Result<String, KeyError> {
    private.parse::<PrivateKey>().map(|key| key.public_key().to_string())
}
