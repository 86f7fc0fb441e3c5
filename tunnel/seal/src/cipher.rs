//! The AEADs of sealed datagrams: AES-256-GCM where the CPU has instructions for it, ChaCha20-Poly1305 elsewhere.

use ring::aead::{AES_256_GCM, Aad, Algorithm, CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey};

use crate::keys::KEY_LEN;

/// Length of the authentication tag, bytes.
pub const TAG_LEN: usize = 16;

/// An AEAD.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cipher {
    /// AES-256 in Galois/counter mode (NIST SP 800-38D).
    Aes256Gcm,
    /// ChaCha20-Poly1305 (RFC 8439).
    ChaCha20Poly1305,
}

impl Cipher {
    /// Name in status and logs.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Aes256Gcm => "aes-256-gcm",
            Self::ChaCha20Poly1305 => "chacha20-poly1305",
        }
    }

    /// The bit in the handshake's set of ciphers.
    pub(crate) const fn bit(self) -> u8 {
        match self {
            Self::Aes256Gcm => 1,
            Self::ChaCha20Poly1305 => 2,
        }
    }

    pub(crate) const fn from_bit(bit: u8) -> Option<Self> {
        match bit {
            1 => Some(Self::Aes256Gcm),
            2 => Some(Self::ChaCha20Poly1305),
            _ => None,
        }
    }

    /// Usage limit of a key, blocks of 16 bytes. AES-GCM: 2^35, for a distinguishing advantage of at most 2^-57 (RFC
    /// 9001, appendix B.1.1: 2^28 packets of 2^7 blocks). ChaCha20-Poly1305: none within the 2^60 messages of WireGuard
    /// (RFC 9001 section 6.6).
    pub(crate) const fn max_blocks(self) -> u64 {
        match self {
            Self::Aes256Gcm => 1 << 35,
            Self::ChaCha20Poly1305 => 1 << 60,
        }
    }

    fn algorithm(self) -> &'static Algorithm {
        match self {
            Self::Aes256Gcm => &AES_256_GCM,
            Self::ChaCha20Poly1305 => &CHACHA20_POLY1305,
        }
    }
}

/// The faster cipher of this machine: AES takes about a third of ChaCha20's time if the CPU has instructions for it.
/// Without them it takes many times as long, and its timing depends on the key.
#[must_use]
pub fn preferred_cipher() -> Cipher {
    #[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
    let aes = std::arch::is_x86_feature_detected!("aes") && std::arch::is_x86_feature_detected!("pclmulqdq");
    #[cfg(target_arch = "aarch64")]
    let aes = std::arch::is_aarch64_feature_detected!("aes");
    #[cfg(not(any(target_arch = "x86", target_arch = "x86_64", target_arch = "aarch64")))]
    let aes = false;
    if aes { Cipher::Aes256Gcm } else { Cipher::ChaCha20Poly1305 }
}

/// The key of one direction.
pub(crate) struct DataKey(LessSafeKey);

impl DataKey {
    pub(crate) fn new(cipher: Cipher, key: &[u8; KEY_LEN]) -> Self {
        let key = UnboundKey::new(cipher.algorithm(), key).expect("both ciphers have keys of 32 bytes");
        Self(LessSafeKey::new(key))
    }

    /// Encrypts `body` in place and writes the tag.
    pub(crate) fn seal(&self, nonce: [u8; 12], header: &[u8], body: &mut [u8], tag: &mut [u8; TAG_LEN]) {
        let nonce = Nonce::assume_unique_for_key(nonce);
        let computed = self.0.seal_in_place_separate_tag(nonce, Aad::from(header), body).expect("a body is no 64 GiB");
        tag.copy_from_slice(computed.as_ref());
    }

    /// Decrypts body and tag in place. `None`, and the bytes are undefined, if they are not authentic.
    pub(crate) fn open<'a>(&self, nonce: [u8; 12], header: &[u8], sealed: &'a mut [u8]) -> Option<&'a mut [u8]> {
        self.0.open_in_place(Nonce::assume_unique_for_key(nonce), Aad::from(header), sealed).ok()
    }
}
