//! The header of a relay message: an inner packet of the tunnel's own, whose first four bits are 0 where an IP packet
//! has its version.
//!
//! ```text
//! all      type 1   flags 1 (1: the sender of the message opened the connection; 2: end of the byte stream)   connection 4
//! open     01   family 1 (4 or 6)   client's address 4 or 16, port 2   server's address 4 or 16, port 2
//! accept   02   window end 8
//! data     03   offset 8   length 2   bytes
//! ack      04   offset 8   window end 8   gap end 8
//! reset    05   reason 1
//! gaps     06   offset 8   count 1   of each: distance 4, length 4
//! ```
//! Numbers are in network order. Bytes after the message are padding.

use crate::Malformed;
use crate::reader::Reader;
use core::net::{IpAddr, SocketAddr};
use core::ops::Range;

const OPEN: u8 = 1;
const ACCEPT: u8 = 2;
const DATA: u8 = 3;
const ACK: u8 = 4;
const RESET: u8 = 5;
const GAPS: u8 = 6;

const OPENED_BY_SENDER: u8 = 1;
const FIN: u8 = 2;

/// The addresses of a relayed TCP connection, as its client and its server see them: both of one family.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Addresses {
    /// The client's.
    pub source: SocketAddr,
    /// The server's.
    pub destination: SocketAddr,
}

impl Addresses {
    /// The addresses of packets in the other direction.
    #[must_use]
    pub fn reversed(self) -> Self {
        Self { source: self.destination, destination: self.source }
    }
}

/// Ranges of a byte stream that are missing although later bytes have arrived, ascending: some of those after the first gap,
/// which acknowledgements have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gaps {
    /// The offset from which the distance of the first one is counted.
    offset: u64,
    /// Of each, the distance from the end of the one before it, and the length.
    list: [(u32, u32); Self::MAX],
    count: u8,
}

impl Gaps {
    /// Maximum number in a message.
    pub const MAX: usize = 8;

    /// None so far, of those after `offset`.
    #[must_use]
    pub fn new(offset: u64) -> Self {
        Self { offset, list: [(0, 0); Self::MAX], count: 0 }
    }

    /// Adds a gap after the others. False if there is no room, or if it does not fit.
    pub fn push(&mut self, gap: Range<u64>) -> bool {
        let end = self.iter().last().map_or(self.offset, |gap| gap.end);
        let distance = gap.start.checked_sub(end).and_then(|distance| u32::try_from(distance).ok());
        let length = gap.end.checked_sub(gap.start).and_then(|length| u32::try_from(length).ok());
        let (Some(distance), Some(length), Some(free)) = (distance, length, self.list.get_mut(usize::from(self.count)))
        else {
            return false;
        };
        *free = (distance, length);
        self.count += 1;
        true
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The gaps.
    pub fn iter(&self) -> impl Iterator<Item = Range<u64>> {
        self.list[..usize::from(self.count)].iter().scan(self.offset, |end, (distance, length)| {
            let start = *end + u64::from(*distance);
            *end = start + u64::from(*length);
            Some(start..*end)
        })
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        let (mut gaps, count) = (Self::new(read_offset(reader)?), reader.u8()?);
        for entry in gaps.list.get_mut(..usize::from(count)).ok_or(Malformed::Value)? {
            *entry = (reader.u32()?, reader.u32()?);
        }
        Ok(Self { count, ..gaps })
    }
}

/// Why a connection is reset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResetReason {
    /// The server refused it.
    Refused,
    /// There is no route to the server.
    Unreachable,
    /// The server did not answer.
    TimedOut,
    /// A host reset it, or an end of the tunnel has lost its state.
    Reset,
    /// The far end does not relay it: it has too many connections, or does not relay at all.
    NotRelayed,
}

impl ResetReason {
    const ALL: [Self; 5] = [Self::Refused, Self::Unreachable, Self::TimedOut, Self::Reset, Self::NotRelayed];
}

/// The header of a relay message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Whether the connection was opened by the sender of the message: each end numbers its own.
    pub opened_by_sender: bool,
    /// Number of the connection.
    pub connection: u32,
    /// The rest, by type.
    pub body: Body,
}

/// The fields of a message by its type. Offsets count the bytes of one direction from 0; the end of the byte stream
/// counts as one more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Body {
    /// A client wants to connect.
    Open(Addresses),
    /// The server has accepted.
    Accept {
        /// The first offset that must not be sent yet.
        window_end: u64,
    },
    /// Data of the byte stream, after the header.
    Data {
        /// Offset of the first one.
        offset: u64,
        /// Their number.
        length: u16,
        /// Whether the byte stream ends after them.
        fin: bool,
    },
    /// Acknowledgement and flow control.
    Ack {
        /// All bytes before it have arrived.
        offset: u64,
        /// The first offset that must not be sent yet.
        window_end: u64,
        /// The bytes from `offset` to here are missing although later ones have arrived; equal to `offset` if none are
        /// missing.
        gap_end: u64,
    },
    /// The connection no longer exists.
    Reset(ResetReason),
    /// Gaps after the one that an acknowledgement has.
    Gaps(Gaps),
}

impl Header {
    /// Maximum length, bytes.
    pub const MAX_LEN: usize = 6 + 9 + 8 * Gaps::MAX;

    /// Whether an inner packet is a relay message, if it is valid at all.
    #[must_use]
    pub fn is_message(packet: &[u8]) -> bool {
        packet.first().is_some_and(|first| first >> 4 == 0)
    }

    /// Length of the encoded header, bytes.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "a header is never empty")]
    pub fn len(&self) -> usize {
        6 + match &self.body {
            Body::Open(addresses) => 1 + 2 * (if addresses.source.is_ipv4() { 4 } else { 16 } + 2),
            Body::Accept { .. } => 8,
            Body::Data { .. } => 10,
            Body::Ack { .. } => 24,
            Body::Reset(_) => 1,
            Body::Gaps(gaps) => 9 + 8 * usize::from(gaps.count),
        }
    }

    /// Appends the header to `buffer`.
    pub fn write(&self, buffer: &mut Vec<u8>) {
        let (kind, fin) = match self.body {
            Body::Open(_) => (OPEN, false),
            Body::Accept { .. } => (ACCEPT, false),
            Body::Data { fin, .. } => (DATA, fin),
            Body::Ack { .. } => (ACK, false),
            Body::Reset(_) => (RESET, false),
            Body::Gaps(_) => (GAPS, false),
        };
        let flags = if self.opened_by_sender { OPENED_BY_SENDER } else { 0 } | if fin { FIN } else { 0 };
        buffer.extend_from_slice(&[kind, flags]);
        buffer.extend_from_slice(&self.connection.to_be_bytes());
        match self.body {
            Body::Open(Addresses { source, destination }) => {
                buffer.push(if source.is_ipv4() { 4 } else { 6 });
                [source, destination].into_iter().for_each(|address| write_address(address, buffer));
            }
            Body::Accept { window_end } => buffer.extend_from_slice(&window_end.to_be_bytes()),
            Body::Data { offset, length, .. } => {
                buffer.extend_from_slice(&offset.to_be_bytes());
                buffer.extend_from_slice(&length.to_be_bytes());
            }
            Body::Ack { offset, window_end, gap_end } => {
                [offset, window_end, gap_end].iter().for_each(|field| buffer.extend_from_slice(&field.to_be_bytes()));
            }
            Body::Reset(reason) => buffer.push(reason as u8),
            Body::Gaps(Gaps { offset, list, count }) => {
                buffer.extend_from_slice(&offset.to_be_bytes());
                buffer.push(count);
                for (distance, length) in &list[..usize::from(count)] {
                    buffer.extend_from_slice(&distance.to_be_bytes());
                    buffer.extend_from_slice(&length.to_be_bytes());
                }
            }
        }
    }

    /// Decodes the header at the beginning of `packet`; returns it with the bytes of a data message.
    ///
    /// # Errors
    /// `Truncated`, `Type`, or `Value` for unknown flags, families and reasons, too many gaps, or a byte stream of 2^63 bytes
    /// or more.
    pub fn parse(packet: &[u8]) -> Result<(Self, &[u8]), Malformed> {
        let mut reader = Reader(packet);
        let (kind, flags) = (reader.u8()?, reader.u8()?);
        let connection = reader.u32()?;
        let fin = flags & FIN != 0;
        if flags & !(OPENED_BY_SENDER | FIN) != 0 || fin && kind != DATA {
            return Err(Malformed::Value);
        }
        let body = match kind {
            OPEN => {
                let family = reader.u8()?;
                let source = read_address(family, &mut reader)?;
                Body::Open(Addresses { source, destination: read_address(family, &mut reader)? })
            }
            ACCEPT => Body::Accept { window_end: read_offset(&mut reader)? },
            DATA => Body::Data { offset: read_offset(&mut reader)?, length: u16::from_be_bytes(reader.array()?), fin },
            ACK => Body::Ack {
                offset: read_offset(&mut reader)?,
                window_end: read_offset(&mut reader)?,
                gap_end: read_offset(&mut reader)?,
            },
            RESET => {
                let reason = ResetReason::ALL.get(usize::from(reader.u8()?));
                Body::Reset(*reason.ok_or(Malformed::Value)?)
            }
            GAPS => Body::Gaps(Gaps::read(&mut reader)?),
            _ => return Err(Malformed::Type),
        };
        let length = if let Body::Data { length, .. } = body { usize::from(length) } else { 0 };
        let bytes = reader.0.get(..length).ok_or(Malformed::Truncated)?;
        Ok((Self { opened_by_sender: flags & OPENED_BY_SENDER != 0, connection, body }, bytes))
    }
}

fn write_address(address: SocketAddr, buffer: &mut Vec<u8>) {
    match address.ip() {
        IpAddr::V4(ip) => buffer.extend_from_slice(&ip.octets()),
        IpAddr::V6(ip) => buffer.extend_from_slice(&ip.octets()),
    }
    buffer.extend_from_slice(&address.port().to_be_bytes());
}

fn read_address(family: u8, reader: &mut Reader<'_>) -> Result<SocketAddr, Malformed> {
    let ip = match family {
        4 => IpAddr::from(reader.array::<4>()?),
        6 => IpAddr::from(reader.array::<16>()?),
        _ => return Err(Malformed::Value),
    };
    Ok(SocketAddr::new(ip, u16::from_be_bytes(reader.array()?)))
}

/// An offset, below 2^63 so that sums with lengths and windows do not overflow.
fn read_offset(reader: &mut Reader<'_>) -> Result<u64, Malformed> {
    let offset = reader.u64()?;
    if offset >> 63 == 0 { Ok(offset) } else { Err(Malformed::Value) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gaps(ranges: impl IntoIterator<Item = Range<u64>>) -> Gaps {
        let mut gaps = Gaps::new(9);
        ranges.into_iter().for_each(|range| assert!(gaps.push(range)));
        gaps
    }

    fn headers() -> Vec<Header> {
        let v4 = Addresses { source: "10.9.0.1:40000".parse().unwrap(), destination: "10.9.0.2:80".parse().unwrap() };
        let v6 =
            Addresses { source: "[fd00::1]:1".parse().unwrap(), destination: "[2001:db8::2]:65535".parse().unwrap() };
        let bodies = [
            Body::Open(v4),
            Body::Open(v6),
            Body::Accept { window_end: 1 << 20 },
            Body::Data { offset: 5, length: 3, fin: false },
            Body::Data { offset: 8, length: 0, fin: true },
            Body::Ack { offset: 9, window_end: 1 << 40, gap_end: 12 },
            Body::Gaps(gaps([1009..2009, 3009..3010])),
        ];
        let resets = ResetReason::ALL.map(Body::Reset);
        let header = |(connection, body)| Header { opened_by_sender: connection % 2 == 0, connection, body };
        (0..).zip(bodies.into_iter().chain(resets)).map(header).collect()
    }

    #[test]
    fn every_message_is_encoded_and_decoded_to_the_same_and_padding_is_ignored() {
        for header in headers() {
            let mut encoded = Vec::new();
            header.write(&mut encoded);
            assert_eq!(encoded.len(), header.len(), "{header:?}");
            assert!(encoded.len() <= Header::MAX_LEN && Header::is_message(&encoded));
            for length in 0..encoded.len() {
                assert_eq!(Header::parse(&encoded[..length]), Err(Malformed::Truncated), "{header:?}");
            }
            encoded.extend_from_slice(b"ropewalk");
            let bytes: &[u8] = if let Body::Data { length: 3, .. } = header.body { b"rop" } else { b"" };
            assert_eq!(Header::parse(&encoded), Ok((header, bytes)));
        }
    }

    #[test]
    fn unknown_types_flags_families_reasons_and_huge_offsets_are_rejected() {
        let cases: [(&[u8], Malformed); 7] = [
            (&[7, 0, 0, 0, 0, 0], Malformed::Type),
            (&[4, 4, 0, 0, 0, 0], Malformed::Value),
            (&[4, 2, 0, 0, 0, 0], Malformed::Value),
            (&[1, 0, 0, 0, 0, 0, 5], Malformed::Value),
            (&[5, 0, 0, 0, 0, 0, 5], Malformed::Value),
            (&[6, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9], Malformed::Value),
            (&[2, 0, 0, 0, 0, 0, 0x80, 0, 0, 0, 0, 0, 0, 0], Malformed::Value),
        ];
        for (bytes, malformed) in cases {
            assert_eq!(Header::parse(bytes), Err(malformed), "{bytes:?}");
        }
        assert!(!Header::is_message(&[0x45]) && !Header::is_message(&[0x60]) && !Header::is_message(&[]));
    }

    #[test]
    fn gaps_keep_their_order_and_are_eight_at_most() {
        let ranges = [10..12, 13..20, 20..21, 50..60, 70..71, 72..73, 74..75];
        let mut gaps = gaps(ranges.clone());
        for wrong in [74..80, 1 << 40..1 << 41, 80..1 << 40] {
            assert!(!gaps.push(wrong), "before the last one, too far away, or too long");
        }
        assert!(gaps.push(80..81) && !gaps.push(90..91));
        assert!(gaps.iter().eq(ranges.into_iter().chain(std::iter::once(80..81))));
    }

    #[test]
    fn gaps_of_the_documented_layout_are_decoded() {
        let bytes = [6, 0, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0, 9, 1, 0, 0, 0, 1, 0, 0, 0, 2];
        let header = Header { opened_by_sender: false, connection: 7, body: Body::Gaps(gaps(Some(10..12))) };
        assert_eq!(Header::parse(&bytes), Ok((header, &[][..])));
    }

    #[test]
    fn an_ack_of_the_documented_layout_is_decoded() {
        let bytes = [4, 1, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 2];
        let body = Body::Ack { offset: 1, window_end: 256, gap_end: 2 };
        assert_eq!(Header::parse(&bytes), Ok((Header { opened_by_sender: true, connection: 7, body }, &[][..])));
    }
}
