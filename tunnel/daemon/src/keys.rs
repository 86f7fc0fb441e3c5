//! `genkey`, `genpsk` and `pubkey`, as in `wg`.

use seal::{KeyError, PresharedKey, PrivateKey, SystemEntropy};

/// A new private key in base64.
#[must_use]
pub fn genkey() -> String {
    PrivateKey::generate(&mut SystemEntropy).to_text().to_string()
}

/// A new preshared key in base64.
#[must_use]
pub fn genpsk() -> String {
    PresharedKey::generate(&mut SystemEntropy).to_text().to_string()
}

/// The public key of a private key.
///
/// # Errors
/// `private` is not a key; the error repeats none of it.
pub fn pubkey(private: &str) -> Result<String, KeyError> {
    private.parse::<PrivateKey>().map(|key| key.public_key().to_string())
}
