//! Encoding of handshake messages. GRE without key and sequence number (RFC 2784), protocol type 0x88B6, then:
//!
//! | bytes | field |
//! |---|---|
//! | 0-3 | GRE: `00 00 88 B6` |
//! | 4 | type: 1 initiation, 2 response, 3 cookie reply |
//! | 5 | version: 2 |
//! | 6-7 | zero |
//! | 8-11 | session index of the initiator, 24 bits |
//! | 12.. | initiation and response: a Noise message, mac1, and in an initiation mac2; cookie reply: a nonce of 16 bytes, the encrypted cookie |
//!
//! No message is longer than the one that it replies to.

use crate::cipher::{Cipher, TAG_LEN};
use crate::drop_reason::DropReason;
use crate::keys::KEY_LEN;
use crate::mac::{MAC_LEN, MAC1_KEY_LABEL, MacKey};

/// GRE protocol type of handshake messages: IEEE 802, local experimental 2.
pub const PROTOCOL_HANDSHAKE: u16 = 0x88b6;
/// The version of the handshake.
pub const VERSION: u8 = 2;
/// The capability to take datagrams with several inner packets.
pub const TAKES_BUNDLES: u8 = 1;
/// Length of a session index, bits.
pub(crate) const INDEX_BITS: u32 = 24;

/// Bytes of the header, which is not encrypted. That of the initiation is a part of the Noise prologue.
pub(crate) const HEADER_LEN: usize = 12;
/// Bytes of an initiation's payload: timestamp, boot id, ciphers, capabilities, 6 reserved.
pub(crate) const INITIATION_PAYLOAD_LEN: usize = 24;
/// Bytes of a response's payload: boot id, index, cipher, capabilities, 6 reserved.
pub(crate) const RESPONSE_PAYLOAD_LEN: usize = 20;

/// Bytes of Noise message 1 of IK: ephemeral key, encrypted static key, encrypted payload.
const NOISE_MESSAGE_1_LEN: usize = KEY_LEN + (KEY_LEN + TAG_LEN) + (INITIATION_PAYLOAD_LEN + TAG_LEN);
/// Bytes of Noise message 2 of IK: ephemeral key, encrypted payload.
const NOISE_MESSAGE_2_LEN: usize = KEY_LEN + (RESPONSE_PAYLOAD_LEN + TAG_LEN);

/// Bytes of an initiation: 164.
pub const INITIATION_LEN: usize = HEADER_LEN + NOISE_MESSAGE_1_LEN + 2 * MAC_LEN;
/// Bytes of a response: 96.
pub const RESPONSE_LEN: usize = HEADER_LEN + NOISE_MESSAGE_2_LEN + MAC_LEN;
/// Bytes of a cookie reply: 60.
pub const COOKIE_REPLY_LEN: usize = HEADER_LEN + MAC_LEN + (MAC_LEN + TAG_LEN);

const _: () = assert!(RESPONSE_LEN <= INITIATION_LEN && COOKIE_REPLY_LEN <= RESPONSE_LEN, "a reply would amplify");

/// The type of a handshake message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MessageType {
    Initiation,
    Response,
    CookieReply,
}

impl MessageType {
    const fn number(self) -> u8 {
        match self {
            Self::Initiation => 1,
            Self::Response => 2,
            Self::CookieReply => 3,
        }
    }

    const fn length(self) -> usize {
        match self {
            Self::Initiation => INITIATION_LEN,
            Self::Response => RESPONSE_LEN,
            Self::CookieReply => COOKIE_REPLY_LEN,
        }
    }
}

/// A handshake message to be sent as the payload of a UDP datagram.
#[derive(Clone, PartialEq, Eq)]
pub struct HandshakeMessage {
    bytes: [u8; INITIATION_LEN],
    message_type: MessageType,
}

impl HandshakeMessage {
    /// The session index that a response or a cookie reply is sent to.
    pub(crate) fn receiver_index(datagram: &[u8]) -> Option<u32> {
        let message = ParsedMessage::parse(datagram).ok()?;
        (message.message_type != MessageType::Initiation).then_some(message.index)
    }

    /// A message with a header, and zeros after it.
    pub(crate) fn new(message_type: MessageType, index: u32) -> Self {
        let mut bytes = [0; INITIATION_LEN];
        bytes[2..4].copy_from_slice(&PROTOCOL_HANDSHAKE.to_be_bytes());
        bytes[4] = message_type.number();
        bytes[5] = VERSION;
        bytes[8..12].copy_from_slice(&index.to_be_bytes());
        Self { bytes, message_type }
    }

    /// The UDP payload.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.message_type.length()]
    }

    pub(crate) fn header(&self) -> [u8; HEADER_LEN] {
        *self.bytes.first_chunk().expect("a message has a header")
    }

    /// The key of the mac1 of the response to this initiation.
    pub(crate) fn response_mac1_key(&self) -> MacKey {
        response_mac1_key(&self.bytes[HEADER_LEN..])
    }

    /// The Noise message, or the nonce and the encrypted cookie.
    pub(crate) fn body_mut(&mut self) -> &mut [u8] {
        let macs_len = match self.message_type {
            MessageType::Initiation => 2 * MAC_LEN,
            MessageType::Response => MAC_LEN,
            MessageType::CookieReply => 0,
        };
        &mut self.bytes[HEADER_LEN..self.message_type.length() - macs_len]
    }

    /// Computes mac1 over everything before it, writes and returns it.
    pub(crate) fn write_mac1(&mut self, key: &MacKey) -> [u8; MAC_LEN] {
        let start = HEADER_LEN + self.body_mut().len();
        let mac = key.mac(&self.bytes[..start]);
        self.bytes[start..start + MAC_LEN].copy_from_slice(&mac);
        mac
    }

    /// Computes the mac2 of an initiation over everything before it, and writes it.
    pub(crate) fn write_mac2(&mut self, cookie: &[u8; MAC_LEN]) {
        let mac = MacKey::new(cookie).mac(&self.bytes[..INITIATION_LEN - MAC_LEN]);
        self.bytes[INITIATION_LEN - MAC_LEN..].copy_from_slice(&mac);
    }
}

impl std::fmt::Debug for HandshakeMessage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?} of {} bytes", self.message_type, self.message_type.length())
    }
}

/// A received message, split into its fields; nothing is authenticated yet.
pub(crate) struct ParsedMessage<'a> {
    pub(crate) message_type: MessageType,
    pub(crate) index: u32,
    pub(crate) header: &'a [u8; HEADER_LEN],
    /// The Noise message, or the nonce and the encrypted cookie.
    pub(crate) body: &'a [u8],
    datagram: &'a [u8],
}

impl<'a> ParsedMessage<'a> {
    pub(crate) fn parse(datagram: &'a [u8]) -> Result<Self, DropReason> {
        let (header, body_and_macs) = datagram.split_first_chunk::<HEADER_LEN>().ok_or(DropReason::Malformed)?;
        let [0, 0, p0, p1, message_type, version, 0, 0, 0, i0, i1, i2] = *header else {
            return Err(DropReason::Malformed);
        };
        if u16::from_be_bytes([p0, p1]) != PROTOCOL_HANDSHAKE {
            return Err(DropReason::Malformed);
        }
        if version != VERSION {
            return Err(DropReason::UnknownVersion);
        }
        let (message_type, macs_len) = match message_type {
            1 => (MessageType::Initiation, 2 * MAC_LEN),
            2 => (MessageType::Response, MAC_LEN),
            3 => (MessageType::CookieReply, 0),
            _ => return Err(DropReason::Malformed),
        };
        if datagram.len() != message_type.length() {
            return Err(DropReason::Malformed);
        }
        let index = u32::from_be_bytes([0, i0, i1, i2]);
        Ok(Self { message_type, index, header, body: &body_and_macs[..body_and_macs.len() - macs_len], datagram })
    }

    /// The key of the mac1 of the response to this initiation.
    pub(crate) fn response_mac1_key(&self) -> MacKey {
        response_mac1_key(self.body)
    }

    /// The bytes that mac1 authenticates, and mac1.
    pub(crate) fn mac1(&self) -> (&'a [u8], &'a [u8; MAC_LEN]) {
        let (authenticated, macs) = self.datagram.split_at(HEADER_LEN + self.body.len());
        (authenticated, macs.first_chunk().expect("initiations and responses have a mac1"))
    }

    /// The bytes that mac2 authenticates, and mac2.
    pub(crate) fn mac2(&self) -> (&'a [u8], &'a [u8]) {
        self.datagram.split_at(INITIATION_LEN - MAC_LEN)
    }
}

/// The key of the mac1 of the response to an initiation with this Noise message, which begins with the ephemeral key.
fn response_mac1_key(initiation: &[u8]) -> MacKey {
    MacKey::derive(MAC1_KEY_LABEL, initiation.first_chunk().expect("an initiation has an ephemeral key"))
}

/// The encrypted payload of an initiation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct InitiationPayload {
    /// Nanoseconds of the initiator's wall clock; greater in each of its initiations.
    pub(crate) timestamp: u64,
    /// The initiator's boot id: the same until it loses its state of the peer.
    pub(crate) boot_id: u64,
    /// The offered ciphers, one bit each.
    pub(crate) ciphers: u8,
    /// The initiator's capabilities, one bit each; 0 from an earlier version.
    pub(crate) capabilities: u8,
}

impl InitiationPayload {
    pub(crate) fn write(&self) -> [u8; INITIATION_PAYLOAD_LEN] {
        let mut bytes = [0; INITIATION_PAYLOAD_LEN];
        bytes[..8].copy_from_slice(&self.timestamp.to_be_bytes());
        bytes[8..16].copy_from_slice(&self.boot_id.to_be_bytes());
        bytes[16..18].copy_from_slice(&[self.ciphers, self.capabilities]);
        bytes
    }

    pub(crate) fn read(bytes: &[u8; INITIATION_PAYLOAD_LEN]) -> Self {
        let [t0, t1, t2, t3, t4, t5, t6, t7, n0, n1, n2, n3, n4, n5, n6, n7, ciphers, capabilities, ..] = *bytes;
        Self {
            timestamp: u64::from_be_bytes([t0, t1, t2, t3, t4, t5, t6, t7]),
            boot_id: u64::from_be_bytes([n0, n1, n2, n3, n4, n5, n6, n7]),
            ciphers,
            capabilities,
        }
    }
}

/// The encrypted payload of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ResponsePayload {
    /// The responder's boot id.
    pub(crate) boot_id: u64,
    /// The responder's session index.
    pub(crate) index: u32,
    pub(crate) cipher: Cipher,
    /// The responder's capabilities, one bit each; 0 from an earlier version.
    pub(crate) capabilities: u8,
}

impl ResponsePayload {
    pub(crate) fn write(&self) -> [u8; RESPONSE_PAYLOAD_LEN] {
        let mut bytes = [0; RESPONSE_PAYLOAD_LEN];
        bytes[..8].copy_from_slice(&self.boot_id.to_be_bytes());
        bytes[8..12].copy_from_slice(&self.index.to_be_bytes());
        bytes[12..14].copy_from_slice(&[self.cipher.bit(), self.capabilities]);
        bytes
    }

    /// `None` if the index or the cipher is invalid.
    pub(crate) fn read(bytes: &[u8; RESPONSE_PAYLOAD_LEN]) -> Option<Self> {
        let [n0, n1, n2, n3, n4, n5, n6, n7, 0, i0, i1, i2, cipher, capabilities, ..] = *bytes else {
            return None;
        };
        Some(Self {
            boot_id: u64::from_be_bytes([n0, n1, n2, n3, n4, n5, n6, n7]),
            index: u32::from_be_bytes([0, i0, i1, i2]),
            cipher: Cipher::from_bit(cipher)?,
            capabilities,
        })
    }
}
