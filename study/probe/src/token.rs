//! The shared secret, and keyed hashes with it. The token itself never leaves an end.

use blake2::digest::consts::U32;
use blake2::digest::{Digest as _, Mac as _};
use blake2::{Blake2s256, Blake2sMac};
use std::fmt;

/// Length of a keyed hash, bytes.
pub(crate) const MAC_LEN: usize = 32;
/// The shortest token, characters.
const MIN_LEN: usize = 16;

/// A secret that both ends know.
#[derive(Clone)]
pub struct Token([u8; 32]);

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token")
    }
}

impl Token {
    /// The token of a text.
    ///
    /// # Errors
    ///
    /// The text has fewer than 16 characters.
    pub fn new(text: &str) -> Result<Self, String> {
        if text.chars().count() < MIN_LEN {
            return Err(format!("a token has at least {MIN_LEN} characters"));
        }
        Ok(Self(Blake2s256::digest(text.as_bytes()).into()))
    }

    /// A new token as text: 128 random bits, hexadecimal.
    ///
    /// # Errors
    ///
    /// The system gives no random numbers.
    pub fn generate() -> std::io::Result<String> {
        Ok(hex(&random::<16>()?))
    }

    /// The keyed hash of parts, whose lengths are hashed with them.
    pub(crate) fn mac(&self, parts: &[&[u8]]) -> [u8; MAC_LEN] {
        self.hash(parts).finalize().into_bytes().into()
    }

    /// Whether `mac` is the keyed hash of these parts, or a beginning of it, in constant time.
    pub(crate) fn verifies(&self, parts: &[&[u8]], mac: &[u8]) -> bool {
        self.hash(parts).verify_truncated_left(mac).is_ok()
    }

    /// A key for one session.
    pub(crate) fn for_session(&self, id: u64) -> Self {
        Self(self.mac(&[b"session", &id.to_be_bytes()]))
    }

    fn hash(&self, parts: &[&[u8]]) -> Blake2sMac<U32> {
        let mut hash = Blake2sMac::new_from_slice(&self.0).expect("a key of 32 bytes fits");
        for part in parts {
            hash.update(&(part.len() as u64).to_be_bytes());
            hash.update(part);
        }
        hash
    }
}

/// Random bytes of the system.
pub(crate) fn random<const LEN: usize>() -> std::io::Result<[u8; LEN]> {
    let mut bytes = [0; LEN];
    getrandom::fill(&mut bytes).map_err(|error| std::io::Error::other(error.to_string()))?;
    Ok(bytes)
}

/// Bytes as hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The bytes of hexadecimal digits; none if the text has others, or not this many.
pub(crate) fn unhex<const LEN: usize>(text: &str) -> Option<[u8; LEN]> {
    let mut bytes = [0; LEN];
    if text.len() != 2 * LEN || !text.is_ascii() {
        return None;
    }
    for (index, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&text[2 * index..2 * index + 2], 16).ok()?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_is_verified_by_the_same_token_over_the_same_parts_only() {
        let [token, other] = ["0123456789abcdef", "0123456789abcdeg"].map(|text| Token::new(text).unwrap());
        let mac = token.mac(&[b"ab", b"c"]);
        assert!(token.verifies(&[b"ab", b"c"], &mac) && token.verifies(&[b"ab", b"c"], &mac[..16]));
        assert!(!token.verifies(&[b"a", b"bc"], &mac) && !other.verifies(&[b"ab", b"c"], &mac));
        assert!(!token.verifies(&[b"ab", b"c"], &[]), "nothing is no hash");
        assert!(!token.for_session(1).verifies(&[b"ab", b"c"], &mac));
        assert!(Token::new("0123456789abcde").is_err());
    }

    #[test]
    fn hexadecimal_digits_are_read_as_they_were_written() {
        assert_eq!(unhex::<3>(&hex(&[0, 171, 255])), Some([0, 171, 255]));
        for text in ["", "0", "00abf", "00abfg", "ä0ff", "00abff00"] {
            assert_eq!(unhex::<3>(text), None, "{text}");
        }
    }
}
