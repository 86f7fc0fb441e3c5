//! One session: a key for each direction, and per path what was sealed and what has arrived.
//!
//! The nonce is the path (32 bits) and the packet number (64 bits), both big-endian: as paths count for themselves, none
//! of them need know of another, and no number is used twice. Numbers belong to the sender's machine and simply go on when
//! a session follows another; a session only refuses to seal with a number that is not larger than the path's last.

use zeroize::Zeroize;

use crate::cipher::{Cipher, DataKey, TAG};
use crate::keys::KEY;
use crate::refusal::{Refusal, Unsealed};
use crate::replay::{END, Stale, Window};

/// Paths that a session can tell apart.
pub const PATHS: usize = 256;

/// Both keys of a new session, as the handshake gives them. Wiped when dropped.
pub struct SessionKeys {
    /// What it is sealed with.
    pub cipher: Cipher,
    /// For what we send.
    pub seal: [u8; KEY],
    /// For what we receive.
    pub open: [u8; KEY],
}

impl Drop for SessionKeys {
    fn drop(&mut self) {
        self.seal.zeroize();
        self.open.zeroize();
    }
}

/// What seals and opens the datagrams between two peers until the next handshake. Sealing and opening allocate nothing,
/// but for the first datagram that arrives on a path.
pub struct Session {
    cipher: Cipher,
    seal: DataKey,
    open: DataKey,
    /// Per path: the smallest number that may be sealed.
    unused: Box<[u64; PATHS]>,
    windows: Box<[Option<Window>; PATHS]>,
    blocks: u64,
}

impl Session {
    /// A session of two that meet for the first time: every path's numbers begin near zero.
    #[must_use]
    pub fn new(keys: &SessionKeys) -> Self {
        Self {
            cipher: keys.cipher,
            seal: DataKey::new(keys.cipher, &keys.seal),
            open: DataKey::new(keys.cipher, &keys.open),
            unused: Box::new([0; PATHS]),
            windows: Box::new([const { None }; PATHS]),
            blocks: 0,
        }
    }

    /// The peer's numbers go on where they are in `earlier`; only a hint for telling low halves apart, no permission.
    pub(crate) fn expect_as(&mut self, earlier: &Expected) {
        for (window, &next) in self.windows.iter_mut().zip(earlier.0.iter()) {
            *window = (next > 0).then(|| Window::new(next));
        }
    }

    /// What it is sealed with.
    #[must_use]
    pub const fn cipher(&self) -> Cipher {
        self.cipher
    }

    /// How much of what the key may seal is used up, in 1/256 of the limit of [`Cipher`].
    #[must_use]
    pub(crate) const fn wear(&self) -> u64 {
        self.blocks / (self.cipher.most_blocks() / 256)
    }

    /// Encrypts `body` where it lies, proves `header` and body with `tag`. About 0.2 us for 1400 bytes.
    ///
    /// # Errors
    /// If the number, or what the key may seal, is used up; then nothing was touched.
    pub fn seal(
        &mut self,
        path: u8,
        number: u64,
        header: &[u8],
        body: &mut [u8],
        tag: &mut [u8; TAG],
    ) -> Result<(), Unsealed> {
        let unused = &mut self.unused[usize::from(path)];
        // Each packet costs a block for its length and one for its proof.
        let blocks = self.blocks + (header.len().div_ceil(16) + body.len().div_ceil(16)) as u64 + 2;
        if number >= END || blocks > self.cipher.most_blocks() {
            return Err(Unsealed::Exhausted);
        }
        if number < *unused {
            return Err(Unsealed::NumberUsed);
        }
        *unused = number + 1;
        self.blocks = blocks;
        self.seal.seal(nonce(path, number), header, body, tag);
        Ok(())
    }

    /// Decrypts what lies in `sealed`, a body and its tag, and says which number it had: `low` is the lower half. The body
    /// is then `sealed` without its last 16 bytes.
    ///
    /// # Errors
    /// If it came before, or too late to know, or was not sealed by the peer for this path, number and header; then the
    /// bytes of `sealed` are worthless.
    pub fn open(&mut self, path: u8, low: u32, header: &[u8], sealed: &mut [u8]) -> Result<u64, Refusal> {
        let window = &mut self.windows[usize::from(path)];
        let number = window.as_ref().map_or(u64::from(low), |window| window.expand(low));
        match window.as_ref().map_or(Ok(()), |window| window.check(number)) {
            Ok(()) => {}
            Err(Stale::Seen) => return Err(Refusal::Replayed),
            Err(Stale::TooOld) => return Err(Refusal::TooOld),
        }
        if sealed.len() < TAG || number >= END {
            return Err(Refusal::Malformed);
        }
        self.open.open(nonce(path, number), header, sealed).ok_or(Refusal::Forged)?;
        window.get_or_insert_with(|| Window::new(0)).insert(number);
        Ok(number)
    }
}

/// Per path, one more than the largest number that a peer has used so far.
pub(crate) struct Expected(Box<[u64; PATHS]>);

impl Expected {
    /// Of a peer that begins anew.
    pub(crate) fn none() -> Self {
        Self(Box::new([0; PATHS]))
    }

    /// Takes over what has arrived in `session`.
    pub(crate) fn learn(&mut self, session: &Session) {
        for (next, window) in self.0.iter_mut().zip(session.windows.iter()) {
            *next = (*next).max(window.as_ref().map_or(0, Window::next));
        }
    }
}

fn nonce(path: u8, number: u64) -> [u8; 12] {
    let mut nonce = [0; 12];
    nonce[..4].copy_from_slice(&u32::from(path).to_be_bytes());
    nonce[4..].copy_from_slice(&number.to_be_bytes());
    nonce
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A session whose key has sealed so many blocks.
    fn used(cipher: Cipher, blocks: u64) -> Session {
        let mut session = Session::new(&SessionKeys { cipher, seal: [1; KEY], open: [1; KEY] });
        session.blocks = blocks;
        session
    }

    #[test]
    fn aes_gcm_seals_2_to_the_35_blocks_and_no_more() {
        // RFC 9001 appendix B.1.1: 2^28 packets of 2^7 blocks. 12 + 100 bytes are 1 + 7 blocks, and 2 for each packet.
        let mut session = used(Cipher::Aes256Gcm, (1 << 35) - 11);
        let mut seal = |number| session.seal(0, number, &[0; 12], &mut [0; 100], &mut [0; TAG]);
        assert_eq!(seal(0), Ok(()));
        assert_eq!(seal(1), Err(Unsealed::Exhausted));
    }

    #[test]
    fn half_of_what_a_key_may_seal_is_half_worn() {
        assert_eq!(used(Cipher::Aes256Gcm, 1 << 34).wear(), 128);
        assert_eq!(used(Cipher::ChaCha20Poly1305, 1 << 59).wear(), 128);
        assert_eq!(used(Cipher::Aes256Gcm, 100_000_000 * 90).wear(), 67, "a million full datagrams a second for 100 s");
    }
}
