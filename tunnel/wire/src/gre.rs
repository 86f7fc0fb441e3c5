//! The GRE header (RFC 2784) with key and sequence number (RFC 2890), as it stands in a UDP datagram (RFC 8086).
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
/// Protocol type of a sealed datagram: IEEE 802's first number for local experiments.
pub const SEALED: u16 = 0x88b5;

const CHECKSUM: u16 = 0x8000;
const KEY: u16 = 0x2000;
const SEQUENCE: u16 = 0x1000;
/// Bits 1, 4 and 5: a receiver must discard the packet if they are set (RFC 2784, section 2.3; bits 2 and 3 have become
/// K and S). Bits 6 to 12 are ignored.
const RESERVED: u16 = 0x4c00;
const VERSION: u16 = 0x0007;

/// What a GRE header says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Header {
    /// What follows: an EtherType.
    pub protocol: u16,
    /// Whether a checksum covers header and payload.
    pub checksum: bool,
    /// The flow that the packet belongs to.
    pub key: Option<u32>,
    /// Its number in the flow.
    pub sequence: Option<u32>,
}

impl Header {
    /// The header of `packet` and the payload after it. A checksum is verified.
    ///
    /// # Errors
    /// `Truncated`, `Version`, `Reserved`, or `Checksum`.
    pub fn parse(packet: &[u8]) -> Result<(Self, &[u8]), Malformed> {
        let mut rest = Reader(packet);
        let [first, second, protocol @ ..] = rest.array::<4>()?;
        let flags = u16::from_be_bytes([first, second]);
        if flags & VERSION != 0 {
            return Err(Malformed::Version);
        }
        if flags & RESERVED != 0 {
            return Err(Malformed::Reserved);
        }
        let checksum = flags & CHECKSUM != 0;
        if checksum {
            rest.u32()?;
        }
        let key = if flags & KEY != 0 { Some(rest.u32()?) } else { None };
        let sequence = if flags & SEQUENCE != 0 { Some(rest.u32()?) } else { None };
        if checksum && Sum::of(packet).checksum() != 0 {
            return Err(Malformed::Checksum);
        }
        Ok((Self { protocol: u16::from_be_bytes(protocol), checksum, key, sequence }, rest.0))
    }

    /// Bytes of the header: 4 to 16.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "a header is never empty")]
    pub const fn len(&self) -> usize {
        4 + 4 * (self.checksum as usize + self.key.is_some() as usize + self.sequence.is_some() as usize)
    }

    /// Writes the header to the front of `packet`, whose payload already stands behind it (the checksum covers it).
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
        for (place, word) in words.into_iter().flatten().enumerate() {
            packet[4 + 4 * place..8 + 4 * place].copy_from_slice(&word.to_be_bytes());
        }
        if self.checksum {
            reader::put_word(packet, 4, Sum::of(packet).checksum());
        }
    }
}

/// The header of a sealed datagram: K and S, always 12 bytes, which are also the cipher's associated data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sealed {
    /// The receiver's index of the session, 24 bits.
    pub session: u32,
    /// The path.
    pub path: u8,
    /// The path's packet number, modulo 2^32.
    pub number: u32,
}

impl Sealed {
    /// Bytes of the header.
    pub const LEN: usize = 12;
    /// Flags K and S, [`SEALED`].
    const START: [u8; 4] = [0x30, 0x00, 0x88, 0xb5];

    /// The header as bytes. Only the low 24 bits of `session` are told.
    #[must_use]
    pub fn to_bytes(self) -> [u8; Self::LEN] {
        let mut bytes = [0; Self::LEN];
        bytes[..4].copy_from_slice(&Self::START);
        bytes[4..8].copy_from_slice(&(self.session << 8 | u32::from(self.path)).to_be_bytes());
        bytes[8..].copy_from_slice(&self.number.to_be_bytes());
        bytes
    }

    /// The header that `datagram` begins with; `None` if it is not a sealed one as we send them.
    #[must_use]
    pub fn parse(datagram: &[u8]) -> Option<Self> {
        let [start @ .., k0, k1, k2, path, n0, n1, n2, n3] = datagram.first_chunk::<{ Self::LEN }>()?;
        let session = u32::from_be_bytes([0, *k0, *k1, *k2]);
        (*start == Self::START).then_some(Self {
            session,
            path: *path,
            number: u32::from_be_bytes([*n0, *n1, *n2, *n3]),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const PLAIN: Header = Header { protocol: IPV4, checksum: false, key: None, sequence: None };

    fn written(header: Header, payload: &[u8]) -> Vec<u8> {
        let mut packet = vec![0; header.len()];
        packet.extend_from_slice(payload);
        header.write(&mut packet);
        packet
    }

    #[test]
    fn data_of_mpt_is_written_as_it_stands_on_the_wire() {
        let numbered = Header { sequence: Some(7), ..PLAIN };
        assert_eq!(written(numbered, b"E"), [0x10, 0, 0x08, 0, 0, 0, 0, 7, b'E']);
        assert_eq!(written(Header { protocol: IPV6, ..PLAIN }, b"`"), [0, 0, 0x86, 0xdd, b'`']);
    }

    #[test]
    fn all_fields_stand_in_the_order_of_rfc_2890() {
        let header = Header { protocol: IPV4, checksum: true, key: Some(0x0102_0304), sequence: Some(0x0506_0708) };
        let packet = written(header, &[0xab]);
        // The complement of b000 + 0800 + 0102 + 0304 + 0506 + 0708 + ab00.
        assert_eq!(packet, [0xb0, 0, 8, 0, 0x8c, 0xea, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 0xab]);
        assert_eq!(Header::parse(&packet), Ok((header, &[0xab][..])));
    }

    #[test]
    fn bits_that_rfc_2784_forbids_are_refused_and_bits_that_it_ignores_are_ignored() {
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
    fn a_sealed_header_has_key_and_sequence_in_twelve_bytes() {
        let sealed = Sealed { session: 0x00ab_cdef, path: 3, number: 0x0102_0304 };
        let bytes = sealed.to_bytes();
        assert_eq!(bytes, [0x30, 0, 0x88, 0xb5, 0xab, 0xcd, 0xef, 3, 1, 2, 3, 4]);
        let general = Header { protocol: SEALED, checksum: false, key: Some(0xabcd_ef03), sequence: Some(0x0102_0304) };
        assert_eq!(Header::parse(&bytes), Ok((general, &[][..])));
        assert_eq!(Sealed::parse(&bytes), Some(sealed));
        assert_eq!(Sealed::parse(&bytes[..11]), None);
        assert_eq!(Sealed::parse(&written(PLAIN, &bytes)), None);
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(protocol: u16, checksum: bool, key: Option<u32>, sequence: Option<u32>,
                                   payload: Vec<u8>, flip in 0..64_usize) {
            let header = Header { protocol, checksum, key, sequence };
            let mut packet = written(header, &payload);
            prop_assert_eq!(Header::parse(&packet), Ok((header, &payload[..])));
            if checksum && (2..packet.len()).contains(&flip) {
                packet[flip] ^= 0x10;
                prop_assert_eq!(Header::parse(&packet), Err(Malformed::Checksum));
            }
        }
    }
}
