//! One session: a key for each direction, and for each path the packet numbers sealed and received.
//!
//! The nonce is the path (32 bits) and the packet number (64 bits), both big-endian: each path has its own packet
//! number space, and no nonce is used twice. The caller chooses the numbers, which continue when a session follows
//! another; a session only refuses to seal with a number that is not larger than the path's last.

use zeroize::Zeroize;

use crate::cipher::{Cipher, DataKey, TAG_LEN};
use crate::drop_reason::{DropReason, SealError};
use crate::keys::KEY_LEN;
use crate::replay::{PACKET_NUMBER_LIMIT, ReplayError, ReplayWindow};

/// Number of packet number spaces: those of the path ids 0 to 15. Each has a replay window, so their number bounds the
/// memory that a peer can make a session hold.
pub const PACKET_NUMBER_SPACES: usize = 16;

/// The transport keys of a session (Noise `Split()`). Zeroised on drop.
pub struct SessionKeys {
    /// The AEAD.
    pub cipher: Cipher,
    /// Key of the sending direction.
    pub seal: [u8; KEY_LEN],
    /// Key of the receiving direction.
    pub open: [u8; KEY_LEN],
}

impl Drop for SessionKeys {
    fn drop(&mut self) {
        self.seal.zeroize();
        self.open.zeroize();
    }
}

/// Seals and opens the datagrams between two peers until the next handshake. Allocates only when the first datagram of
/// a path arrives.
pub struct Session {
    cipher: Cipher,
    seal: DataKey,
    open: DataKey,
    /// The smallest packet number that may be sealed, by path.
    next_packet_numbers: Box<[u64; PACKET_NUMBER_SPACES]>,
    replay_windows: Box<[Option<ReplayWindow>; PACKET_NUMBER_SPACES]>,
    /// AEAD blocks sealed so far.
    blocks: u64,
}

impl Session {
    /// A session whose packet numbers begin at zero on every path.
    #[must_use]
    pub fn new(keys: &SessionKeys) -> Self {
        Self {
            cipher: keys.cipher,
            seal: DataKey::new(keys.cipher, &keys.seal),
            open: DataKey::new(keys.cipher, &keys.open),
            next_packet_numbers: Box::new([0; PACKET_NUMBER_SPACES]),
            replay_windows: Box::new([const { None }; PACKET_NUMBER_SPACES]),
            blocks: 0,
        }
    }

    /// Sets the packet numbers that the peer continues with, to decode truncated numbers.
    pub(crate) fn set_expected_packet_numbers(&mut self, expected: &ExpectedPacketNumbers) {
        for (window, &number) in self.replay_windows.iter_mut().zip(expected.0.iter()) {
            *window = (number > 0).then(|| ReplayWindow::new(number));
        }
    }

    /// The AEAD.
    #[must_use]
    pub const fn cipher(&self) -> Cipher {
        self.cipher
    }

    /// Used share of the key's usage limit, in 1/256 (RFC 9001, section 6.6: confidentiality limit).
    #[must_use]
    pub(crate) const fn usage(&self) -> u64 {
        self.blocks / (self.cipher.max_blocks() / 256)
    }

    /// Encrypts `body` in place, and authenticates `header` and body with `tag`. About 0.2 us for 1400 bytes.
    ///
    /// # Errors
    /// If the number is used, or the key's usage limit is reached; then nothing was written.
    ///
    /// # Panics
    /// With a path id of [`PACKET_NUMBER_SPACES`] or more.
    pub fn seal(
        &mut self,
        path: u8,
        packet_number: u64,
        header: &[u8],
        body: &mut [u8],
        tag: &mut [u8; TAG_LEN],
    ) -> Result<(), SealError> {
        let next_packet_number = &mut self.next_packet_numbers[usize::from(path)];
        // Each packet uses a block for its lengths and one for its tag.
        let blocks = self.blocks + (header.len().div_ceil(16) + body.len().div_ceil(16)) as u64 + 2;
        if packet_number >= PACKET_NUMBER_LIMIT || blocks > self.cipher.max_blocks() {
            return Err(SealError::Exhausted);
        }
        if packet_number < *next_packet_number {
            return Err(SealError::NumberUsed);
        }
        *next_packet_number = packet_number + 1;
        self.blocks = blocks;
        self.seal.seal(nonce(path, packet_number), header, body, tag);
        Ok(())
    }

    /// Decrypts `sealed`, a body and its tag, in place; `truncated` is its packet number modulo 2^32. Returns the full
    /// one. The body is then `sealed` without its last 16 bytes.
    ///
    /// # Errors
    /// If the path id is too large, or the datagram is a replay, behind the replay window, or not authentic for this
    /// path, number and header; then the bytes of `sealed` are undefined.
    pub fn open(&mut self, path: u8, truncated: u32, header: &[u8], sealed: &mut [u8]) -> Result<u64, DropReason> {
        let window = self.replay_windows.get_mut(usize::from(path)).ok_or(DropReason::Malformed)?;
        let packet_number = window.as_ref().map_or(u64::from(truncated), |window| window.decode(truncated));
        match window.as_ref().map_or(Ok(()), |window| window.check(packet_number)) {
            Ok(()) => {}
            Err(ReplayError::Duplicate) => return Err(DropReason::Replayed),
            Err(ReplayError::TooOld) => return Err(DropReason::TooOld),
        }
        if sealed.len() < TAG_LEN || packet_number >= PACKET_NUMBER_LIMIT {
            return Err(DropReason::Malformed);
        }
        self.open.open(nonce(path, packet_number), header, sealed).ok_or(DropReason::AuthenticationFailed)?;
        window.get_or_insert_with(|| ReplayWindow::new(0)).insert(packet_number);
        Ok(packet_number)
    }
}

/// One more than the largest packet number of the peer, by path.
pub(crate) struct ExpectedPacketNumbers(Box<[u64; PACKET_NUMBER_SPACES]>);

impl ExpectedPacketNumbers {
    /// The packet numbers of a peer that has lost its state.
    pub(crate) fn zero() -> Self {
        Self(Box::new([0; PACKET_NUMBER_SPACES]))
    }

    /// Takes over the packet numbers received in `session`.
    pub(crate) fn update(&mut self, session: &Session) {
        for (number, window) in self.0.iter_mut().zip(session.replay_windows.iter()) {
            *number = (*number).max(window.as_ref().map_or(0, ReplayWindow::expected));
        }
    }
}

#[cfg(test)]
impl Session {
    /// The packet numbers of path 0, for a search over the states: the next one to seal, and a bit for each of the
    /// first 16 that would be opened.
    pub(crate) fn snapshot(&self) -> [u64; 2] {
        let window = self.replay_windows[0].as_ref();
        let is_open = |number: &u64| window.is_none_or(|window| window.check(*number).is_ok());
        [self.next_packet_numbers[0], (0..16).filter(is_open).map(|number| 1 << number).sum()]
    }
}

#[cfg(test)]
impl ExpectedPacketNumbers {
    pub(crate) fn of_path_zero(&self) -> u64 {
        self.0[0]
    }
}

fn nonce(path: u8, packet_number: u64) -> [u8; 12] {
    let mut nonce = [0; 12];
    nonce[..4].copy_from_slice(&u32::from(path).to_be_bytes());
    nonce[4..].copy_from_slice(&packet_number.to_be_bytes());
    nonce
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A session whose key has sealed `blocks` blocks.
    fn used(cipher: Cipher, blocks: u64) -> Session {
        let mut session = Session::new(&SessionKeys { cipher, seal: [1; KEY_LEN], open: [1; KEY_LEN] });
        session.blocks = blocks;
        session
    }

    #[test]
    fn aes_gcm_seals_at_most_2_to_the_35_blocks() {
        // RFC 9001 appendix B.1.1: 2^28 packets of 2^7 blocks. 12 + 100 bytes are 1 + 7 blocks, and 2 for each packet.
        let mut session = used(Cipher::Aes256Gcm, (1 << 35) - 11);
        let mut seal = |number| session.seal(0, number, &[0; 12], &mut [0; 100], &mut [0; TAG_LEN]);
        assert_eq!(seal(0), Ok(()));
        assert_eq!(seal(1), Err(SealError::Exhausted));
    }

    #[test]
    fn half_of_the_usage_limit_is_a_usage_of_128() {
        assert_eq!(used(Cipher::Aes256Gcm, 1 << 34).usage(), 128);
        assert_eq!(used(Cipher::ChaCha20Poly1305, 1 << 59).usage(), 128);
        assert_eq!(
            used(Cipher::Aes256Gcm, 100_000_000 * 90).usage(),
            67,
            "a million full datagrams a second for 100 s"
        );
    }
}
