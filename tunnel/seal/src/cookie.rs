//! Encryption of cookies: only a host that saw the initiation and knows the responder's public key can decrypt one
//! (WireGuard white paper, section 5.4.7). A nonce of 16 bytes, the cookie, and its tag; the initiation's mac1 is the
//! additional data. Instead of XChaCha20's long nonce, each cookie has a key of its own, derived from the nonce.

use crate::cipher::{Cipher, DataKey, TAG_LEN};
use crate::mac::{MAC_LEN, MacKey};

/// Label of the cookie key, which is derived from the responder's public key.
pub(crate) const COOKIE_KEY_LABEL: &str = "ropewalk cookie";

/// Writes the body of a cookie reply.
pub(crate) fn seal(key: &MacKey, mac1: &[u8], nonce: [u8; MAC_LEN], cookie: &[u8; MAC_LEN], body: &mut [u8]) {
    let (nonce_field, sealed) = body.split_at_mut(MAC_LEN);
    nonce_field.copy_from_slice(&nonce);
    let (cookie_field, tag) = sealed.split_at_mut(MAC_LEN);
    cookie_field.copy_from_slice(cookie);
    let tag = tag.first_chunk_mut::<TAG_LEN>().expect("a cookie reply has room for a tag");
    cookie_cipher_key(key, mac1, &nonce).seal([0; 12], mac1, cookie_field, tag);
}

/// Decrypts the body of a cookie reply to the initiation with this mac1.
pub(crate) fn open(key: &MacKey, mac1: &[u8], body: &[u8]) -> Option<[u8; MAC_LEN]> {
    let (nonce, sealed) = body.split_first_chunk::<MAC_LEN>()?;
    let mut sealed: [u8; MAC_LEN + TAG_LEN] = sealed.try_into().ok()?;
    cookie_cipher_key(key, mac1, nonce).open([0; 12], mac1, &mut sealed)?;
    sealed.first_chunk().copied()
}

fn cookie_cipher_key(key: &MacKey, mac1: &[u8], nonce: &[u8; MAC_LEN]) -> DataKey {
    DataKey::new(Cipher::ChaCha20Poly1305, &key.sign(&[mac1, nonce]))
}
