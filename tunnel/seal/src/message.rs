//! The bytes of handshake messages. GRE without key and sequence number (RFC 2784), protocol type 0x88B6, then:
//!
//! | bytes | field |
//! |---|---|
//! | 0-3 | GRE: `00 00 88 B6` |
//! | 4 | type: 1 initiation, 2 response, 3 cookie |
//! | 5 | version: 1 |
//! | 6-7 | zero |
//! | 8-11 | session index of the initiator, 24 bits |
//! | 12.. | initiation and response: a Noise message, mac1, and in an initiation mac2; cookie: 16 random bytes, the sealed cookie |
//!
//! No message is longer than the one that it answers.

use crate::cipher::{Cipher, TAG};
use crate::keys::KEY;
use crate::mac::{MAC, MacKey};
use crate::refusal::Refusal;

/// GRE protocol type of handshake messages: IEEE 802, local experimental 2.
pub const PROTOCOL_HANDSHAKE: u16 = 0x88b6;
/// The version of the handshake.
pub const VERSION: u8 = 1;
/// Session indices have so many bits.
pub(crate) const INDEX_BITS: u32 = 24;

/// Clear bytes before a message's Noise part; both ends mix those of the initiation into the handshake (its prologue).
pub(crate) const HEADER: usize = 12;
/// Time, instance, ciphers, features.
pub(crate) const ASK: usize = 24;
/// Instance, index, cipher, features.
pub(crate) const ANSWER: usize = 20;

/// Noise message 1 of IK: ephemeral key, sealed static key, sealed payload.
const NOISE_1: usize = KEY + (KEY + TAG) + (ASK + TAG);
/// Noise message 2 of IK: ephemeral key, sealed payload.
const NOISE_2: usize = KEY + (ANSWER + TAG);

/// Bytes of an initiation: 164.
pub const INITIATION: usize = HEADER + NOISE_1 + 2 * MAC;
/// Bytes of a response: 96.
pub const RESPONSE: usize = HEADER + NOISE_2 + MAC;
/// Bytes of a cookie message: 60.
pub const COOKIE: usize = HEADER + MAC + (MAC + TAG);

const _: () = assert!(RESPONSE <= INITIATION && COOKIE <= RESPONSE, "an answer would amplify");

/// What a message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Initiation,
    Response,
    Cookie,
}

impl Kind {
    const fn number(self) -> u8 {
        match self {
            Self::Initiation => 1,
            Self::Response => 2,
            Self::Cookie => 3,
        }
    }

    const fn length(self) -> usize {
        match self {
            Self::Initiation => INITIATION,
            Self::Response => RESPONSE,
            Self::Cookie => COOKIE,
        }
    }
}

/// A handshake message to be sent as the payload of a UDP datagram.
#[derive(Clone, PartialEq, Eq)]
pub struct Message {
    bytes: [u8; INITIATION],
    kind: Kind,
}

impl Message {
    /// A message whose parts after the header are still zero.
    pub(crate) fn new(kind: Kind, index: u32) -> Self {
        let mut bytes = [0; INITIATION];
        bytes[2..4].copy_from_slice(&PROTOCOL_HANDSHAKE.to_be_bytes());
        bytes[4] = kind.number();
        bytes[5] = VERSION;
        bytes[8..12].copy_from_slice(&index.to_be_bytes());
        Self { bytes, kind }
    }

    /// The bytes to send.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.kind.length()]
    }

    pub(crate) fn header(&self) -> [u8; HEADER] {
        *self.bytes.first_chunk().expect("a message has a header")
    }

    /// What follows the header: the Noise message, or a cookie's parts.
    pub(crate) fn body_mut(&mut self) -> &mut [u8] {
        let macs = match self.kind {
            Kind::Initiation => 2 * MAC,
            Kind::Response => MAC,
            Kind::Cookie => 0,
        };
        &mut self.bytes[HEADER..self.kind.length() - macs]
    }

    /// Writes mac1, over all before it, and returns it.
    pub(crate) fn sign(&mut self, key: &MacKey) -> [u8; MAC] {
        let place = HEADER + self.body_mut().len();
        let mac = key.mac(&self.bytes[..place]);
        self.bytes[place..place + MAC].copy_from_slice(&mac);
        mac
    }

    /// Writes the mac2 of an initiation, over all before it.
    pub(crate) fn show_cookie(&mut self, cookie: &[u8; MAC]) {
        let mac = MacKey::new(cookie).mac(&self.bytes[..INITIATION - MAC]);
        self.bytes[INITIATION - MAC..].copy_from_slice(&mac);
    }
}

impl std::fmt::Debug for Message {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?} of {} bytes", self.kind, self.kind.length())
    }
}

/// A message that arrived, cut into its parts; nothing of it is proved.
pub(crate) struct Parts<'a> {
    pub(crate) kind: Kind,
    pub(crate) index: u32,
    pub(crate) header: &'a [u8; HEADER],
    /// The Noise message, or a cookie's parts.
    pub(crate) body: &'a [u8],
    whole: &'a [u8],
}

impl<'a> Parts<'a> {
    pub(crate) fn of(datagram: &'a [u8]) -> Result<Self, Refusal> {
        let (header, rest) = datagram.split_first_chunk::<HEADER>().ok_or(Refusal::Malformed)?;
        let [0, 0, p0, p1, kind, version, 0, 0, 0, i0, i1, i2] = *header else { return Err(Refusal::Malformed) };
        if u16::from_be_bytes([p0, p1]) != PROTOCOL_HANDSHAKE {
            return Err(Refusal::Malformed);
        }
        if version != VERSION {
            return Err(Refusal::UnknownVersion);
        }
        let (kind, macs) = match kind {
            1 => (Kind::Initiation, 2 * MAC),
            2 => (Kind::Response, MAC),
            3 => (Kind::Cookie, 0),
            _ => return Err(Refusal::Malformed),
        };
        if datagram.len() != kind.length() {
            return Err(Refusal::Malformed);
        }
        let index = u32::from_be_bytes([0, i0, i1, i2]);
        Ok(Self { kind, index, header, body: &rest[..rest.len() - macs], whole: datagram })
    }

    /// What mac1 covers, and mac1.
    pub(crate) fn mac1(&self) -> (&'a [u8], &'a [u8; MAC]) {
        let (before, after) = self.whole.split_at(HEADER + self.body.len());
        (before, after.first_chunk().expect("initiations and responses have a mac1"))
    }

    /// What mac2 covers, and mac2.
    pub(crate) fn mac2(&self) -> (&'a [u8], &'a [u8]) {
        self.whole.split_at(INITIATION - MAC)
    }
}

/// What an initiation says in secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ask {
    /// Nanoseconds of the initiator's wall clock; each of its initiations has a larger one.
    pub(crate) time: u64,
    /// What the initiator remembers: the same number as long as it has not forgotten the peer.
    pub(crate) instance: u64,
    /// One bit a cipher.
    pub(crate) ciphers: u8,
    pub(crate) features: u32,
}

impl Ask {
    pub(crate) fn write(&self) -> [u8; ASK] {
        let mut bytes = [0; ASK];
        bytes[..8].copy_from_slice(&self.time.to_be_bytes());
        bytes[8..16].copy_from_slice(&self.instance.to_be_bytes());
        bytes[16] = self.ciphers;
        bytes[20..].copy_from_slice(&self.features.to_be_bytes());
        bytes
    }

    pub(crate) fn read(bytes: &[u8; ASK]) -> Self {
        let [t0, t1, t2, t3, t4, t5, t6, t7, n0, n1, n2, n3, n4, n5, n6, n7, ciphers, _, _, _, f0, f1, f2, f3] = *bytes;
        Self {
            time: u64::from_be_bytes([t0, t1, t2, t3, t4, t5, t6, t7]),
            instance: u64::from_be_bytes([n0, n1, n2, n3, n4, n5, n6, n7]),
            ciphers,
            features: u32::from_be_bytes([f0, f1, f2, f3]),
        }
    }
}

/// What a response says in secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    /// As [`Ask::instance`], of the responder.
    pub(crate) instance: u64,
    /// The responder's session index.
    pub(crate) index: u32,
    pub(crate) cipher: Cipher,
    pub(crate) features: u32,
}

impl Answer {
    pub(crate) fn write(&self) -> [u8; ANSWER] {
        let mut bytes = [0; ANSWER];
        bytes[..8].copy_from_slice(&self.instance.to_be_bytes());
        bytes[8..12].copy_from_slice(&self.index.to_be_bytes());
        bytes[12] = self.cipher.bit();
        bytes[16..].copy_from_slice(&self.features.to_be_bytes());
        bytes
    }

    /// None if the index or the cipher is none.
    pub(crate) fn read(bytes: &[u8; ANSWER]) -> Option<Self> {
        let [n0, n1, n2, n3, n4, n5, n6, n7, 0, i0, i1, i2, cipher, _, _, _, f0, f1, f2, f3] = *bytes else {
            return None;
        };
        Some(Self {
            instance: u64::from_be_bytes([n0, n1, n2, n3, n4, n5, n6, n7]),
            index: u32::from_be_bytes([0, i0, i1, i2]),
            cipher: Cipher::from_bit(cipher)?,
            features: u32::from_be_bytes([f0, f1, f2, f3]),
        })
    }
}
