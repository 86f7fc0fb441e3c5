//! The GRE header (RFC 2784) with key and sequence number (RFC 2890), in a UDP datagram (RFC 8086).
//!
//! ```text
//!  C . K S . . | ignored | version | protocol type
//!  checksum, reserved (if C) | key (if K) | sequence number (if S)
//! ```

use crate::checksum::Sum;
use crate::reader::Reader;
use crate::{Malformed, reader};

/// Protocol type of an IPv4 packet.
pub const IPV4: u16 = 0x0800;
/// Protocol type of an IPv6 packet.
pub const IPV6: u16 = 0x86dd;
/// Protocol type of a sealed datagram: IEEE 802, local experimental 1.
pub const SEALED: u16 = 0x88b5;

const CHECKSUM: u16 = 0x8000;
const KEY: u16 = 0x2000;
const SEQUENCE: u16 = 0x1000;
/// Bits 1, 4 and 5: a receiver must discard a packet with one of them set (RFC 2784, section 2.3; bits 2 and 3 are K
/// and S since RFC 2890). Bits 6 to 12 are ignored.
const RESERVED: u16 = 0x4c00;
const VERSION: u16 = 0x0007;

/// A GRE header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Header {
    /// Protocol type of the payload: an EtherType.
    pub protocol: u16,
    /// Whether a checksum covers header and payload.
    pub checksum: bool,
    /// Key: the flow of the packet.
    pub key: Option<u32>,
    /// Sequence number in the flow.
    pub sequence: Option<u32>,
}

impl Header {
    /// Decodes the header of `packet`, and verifies its checksum; returns it with the payload after it.
    ///
    /// # Errors
    /// `Truncated`, `Version`, `Reserved`, or `Checksum`.
    pub fn parse(packet: &[u8]) -> Result<(Self, &[u8]), Malformed> {
        let mut reader = Reader(packet);
        let [first, second, protocol @ ..] = reader.array::<4>()?;
        let flags = u16::from_be_bytes([first, second]);
        if flags & VERSION != 0 {
            return Err(Malformed::Version);
        }
        if flags & RESERVED != 0 {
            return Err(Malformed::Reserved);
        }
        let checksum = flags & CHECKSUM != 0;
        if checksum {
            reader.u32()?;
        }
        let key = if flags & KEY != 0 { Some(reader.u32()?) } else { None };
        let sequence = if flags & SEQUENCE != 0 { Some(reader.u32()?) } else { None };
        if checksum && Sum::of(packet).checksum() != 0 {
            return Err(Malformed::Checksum);
        }
        Ok((Self { protocol: u16::from_be_bytes(protocol), checksum, key, sequence }, reader.0))
    }

    /// Length, bytes: 4 to 16.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "a header is never empty")]
    pub const fn len(&self) -> usize {
        4 + 4 * (self.checksum as usize + self.key.is_some() as usize + self.sequence.is_some() as usize)
    }

    /// Encodes the header at the front of `packet`, whose payload must be in place already (the checksum covers it).
    ///
    /// # Panics
    /// If `packet` is shorter than the header.
    pub fn write(&self, packet: &mut [u8]) {
        let flag = |set: bool, flag: u16| if set { flag } else { 0 };
        let flags =
            flag(self.checksum, CHECKSUM) | flag(self.key.is_some(), KEY) | flag(self.sequence.is_some(), SEQUENCE);
        reader::put_word(packet, 0, flags);
        reader::put_word(packet, 2, self.protocol);
        let words = [self.checksum.then_some(0), self.key, self.sequence];
        for (index, word) in words.into_iter().flatten().enumerate() {
            packet[4 + 4 * index..8 + 4 * index].copy_from_slice(&word.to_be_bytes());
        }
        if self.checksum {
            reader::put_word(packet, 4, Sum::of(packet).checksum());
        }
    }
}

/// The header of a sealed datagram: GRE with key and sequence number, which is also the AEAD's associated data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sealed {
    /// The receiver's session index, 24 bits.
    pub session: u32,
    /// The path.
    pub path: u8,
    /// Packet number on the path, modulo 2^32.
    pub packet_number: u32,
}

impl Sealed {
    /// Length of the header, bytes.
    pub const LEN: usize = 12;
    /// Flags K and S, and [`SEALED`].
    const PREFIX: [u8; 4] = [0x30, 0, (SEALED >> 8) as u8, SEALED as u8];

    /// Encodes the header. Only the low 24 bits of `session` are used.
    #[must_use]
    pub fn to_bytes(self) -> [u8; Self::LEN] {
        let mut bytes = [0; Self::LEN];
        bytes[..4].copy_from_slice(&Self::PREFIX);
        bytes[4..8].copy_from_slice(&(self.session << 8 | u32::from(self.path)).to_be_bytes());
        bytes[8..].copy_from_slice(&self.packet_number.to_be_bytes());
        bytes
    }

    /// Decodes the header of `datagram`; `None` if it is not a sealed datagram.
    #[must_use]
    pub fn parse(datagram: &[u8]) -> Option<Self> {
        let [prefix @ .., k0, k1, k2, path, n0, n1, n2, n3] = datagram.first_chunk::<{ Self::LEN }>()?;
        let session = u32::from_be_bytes([0, *k0, *k1, *k2]);
        (*prefix == Self::PREFIX).then_some(Self {
            session,
            path: *path,
            packet_number: u32::from_be_bytes([*n0, *n1, *n2, *n3]),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const PLAIN: Header = Header { protocol: IPV4, checksum: false, key: None, sequence: None };

    fn encoded(header: Header, payload: &[u8]) -> Vec<u8> {
        let mut packet = vec![0; header.len()];
        packet.extend_from_slice(payload);
        header.write(&mut packet);
        packet
    }

    #[test]
    fn a_data_packet_of_mpt_is_encoded_as_on_the_wire() {
        let numbered = Header { sequence: Some(7), ..PLAIN };
        assert_eq!(encoded(numbered, b"E"), [0x10, 0, 0x08, 0, 0, 0, 0, 7, b'E']);
        assert_eq!(encoded(Header { protocol: IPV6, ..PLAIN }, b"`"), [0, 0, 0x86, 0xdd, b'`']);
    }

    #[test]
    fn the_fields_are_in_the_order_of_rfc_2890() {
        let header = Header { protocol: IPV4, checksum: true, key: Some(0x0102_0304), sequence: Some(0x0506_0708) };
        let packet = encoded(header, &[0xab]);
        // The complement of b000 + 0800 + 0102 + 0304 + 0506 + 0708 + ab00.
        assert_eq!(packet, [0xb0, 0, 8, 0, 0x8c, 0xea, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 0xab]);
        assert_eq!(Header::parse(&packet), Ok((header, &[0xab][..])));
    }

    #[test]
    fn reserved_bits_of_rfc_2784_are_rejected_or_ignored() {
        for bit in 0..16 {
            let flags = 0x8000_u16 >> bit;
            let mut packet = [0_u8; 16];
            packet[..2].copy_from_slice(&flags.to_be_bytes());
            packet[2] = 8;
            let expected = match bit {
                0 => Err(Malformed::Checksum),
                1 | 4 | 5 => Err(Malformed::Reserved),
                2 => Ok(Header { key: Some(0), ..PLAIN }),
                3 => Ok(Header { sequence: Some(0), ..PLAIN }),
                6..=12 => Ok(PLAIN),
                _ => Err(Malformed::Version),
            };
            assert_eq!(Header::parse(&packet).map(|(header, _)| header), expected, "bit {bit}");
        }
    }

    #[test]
    fn the_header_of_a_sealed_datagram_has_twelve_bytes() {
        let sealed = Sealed { session: 0x00ab_cdef, path: 3, packet_number: 0x0102_0304 };
        let bytes = sealed.to_bytes();
        assert_eq!(bytes, [0x30, 0, 0x88, 0xb5, 0xab, 0xcd, 0xef, 3, 1, 2, 3, 4]);
        let gre_header =
            Header { protocol: SEALED, checksum: false, key: Some(0xabcd_ef03), sequence: Some(0x0102_0304) };
        assert_eq!(Header::parse(&bytes), Ok((gre_header, &[][..])));
        assert_eq!(Sealed::parse(&bytes), Some(sealed));
        assert_eq!(Sealed::parse(&bytes[..11]), None);
        assert_eq!(Sealed::parse(&encoded(PLAIN, &bytes)), None);
    }

    proptest! {
        #[test]
        fn an_encoded_header_is_decoded(protocol: u16, checksum: bool, key: Option<u32>, sequence: Option<u32>,
                                   payload: Vec<u8>, flipped_byte in 0..64_usize) {
            let header = Header { protocol, checksum, key, sequence };
            let mut packet = encoded(header, &payload);
            prop_assert_eq!(Header::parse(&packet), Ok((header, &payload[..])));
            if checksum && (2..packet.len()).contains(&flipped_byte) {
                packet[flipped_byte] ^= 0x10;
                prop_assert_eq!(Header::parse(&packet), Err(Malformed::Checksum));
            }
        }
    }
}
