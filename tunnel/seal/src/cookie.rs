//! Cookies on their way: sealed, so that only who saw the question and knows whom it asked can read one (WireGuard white
//! paper, section 5.4.7). 16 random bytes, the cookie, and its tag; mac1 of the question is proved too. Instead of a
//! cipher with long nonces, each cookie has a key of its own, which depends on the random bytes.

use crate::cipher::{Cipher, DataKey, TAG};
use crate::mac::{MAC, MacKey};

/// What the key is made of, beside the public key of who sends the cookie.
pub(crate) const LABEL: &str = "ropewalk cookie";

/// Fills the body of a cookie message.
pub(crate) fn seal(key: &MacKey, mac1: &[u8], nonce: [u8; MAC], cookie: &[u8; MAC], body: &mut [u8]) {
    let (clear, sealed) = body.split_at_mut(MAC);
    clear.copy_from_slice(&nonce);
    let (text, tag) = sealed.split_at_mut(MAC);
    text.copy_from_slice(cookie);
    let tag = tag.first_chunk_mut::<TAG>().expect("a cookie message has room for a tag");
    single_key(key, mac1, &nonce).seal([0; 12], mac1, text, tag);
}

/// The cookie in the body of a cookie message, if it answers the question with this mac1.
pub(crate) fn open(key: &MacKey, mac1: &[u8], body: &[u8]) -> Option<[u8; MAC]> {
    let (nonce, sealed) = body.split_first_chunk::<MAC>()?;
    let mut sealed: [u8; MAC + TAG] = sealed.try_into().ok()?;
    single_key(key, mac1, nonce).open([0; 12], mac1, &mut sealed)?;
    sealed.first_chunk().copied()
}

fn single_key(key: &MacKey, mac1: &[u8], nonce: &[u8; MAC]) -> DataKey {
    DataKey::new(Cipher::ChaCha20Poly1305, &key.sign(&[mac1, nonce]))
}
