//! Pure TCP acknowledgements: a newer one may make an earlier one redundant (the ACK filter of CAKE, Høiland-Jørgensen
//! et al. 2018).

use super::{Inner, protocol};
use crate::reader::word;
use core::net::IpAddr;

const ACK: u8 = 0x10;
/// ECE and CWR.
const ECN_FLAGS: u8 = 0xc0;
/// Options (RFC 9293, RFC 7323, RFC 2018).
mod option {
    pub(super) const END: u8 = 0;
    pub(super) const NO_OPERATION: u8 = 1;
    pub(super) const SACK: u8 = 5;
    pub(super) const TIMESTAMPS: u8 = 8;
}
/// Maximum number of SACK blocks in 40 bytes of options.
const MAX_SACK_BLOCKS: usize = 4;

/// Addresses and ports of a TCP connection, of one direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Connection {
    source: IpAddr,
    destination: IpAddr,
    ports: (u16, u16),
}

/// A TCP segment without data that only acknowledges.
#[derive(Clone, Copy, Debug)]
pub struct PureAck<'a> {
    sequence: u32,
    acknowledgement: u32,
    /// Reserved bits, AE of accurate ECN (RFC 9768) among them, and flags.
    flags: (u8, u8),
    tos: u8,
    options: &'a [u8],
}

/// The connection of a TCP packet, and the packet as an acknowledgement if it is a pure one: without data, IP options
/// and extension headers, and with no flags other than ACK and those of ECN. `None` if it is not TCP, or a fragment.
#[must_use]
pub fn parse(packet: &[u8]) -> Option<(Connection, Option<PureAck<'_>>)> {
    let inner = Inner::parse(packet).ok()?;
    let ports = inner.ports.filter(|_| inner.protocol == protocol::TCP)?;
    let connection = Connection { source: inner.source, destination: inner.destination, ports };
    Some((connection, PureAck::parse(&inner, &packet[..inner.len])))
}

impl<'a> PureAck<'a> {
    fn parse(inner: &Inner, packet: &'a [u8]) -> Option<Self> {
        let header = packet.get(inner.transport..)?;
        let is_plain = inner.transport == if inner.is_v6() { 40 } else { 20 };
        let options = header.get(20..)?;
        let header_len = usize::from(header[12] >> 4) * 4;
        if !is_plain || header_len != header.len() || header[13] & !ECN_FLAGS != ACK {
            return None;
        }
        let number = |offset: usize| u32::from(word(header, offset)) << 16 | u32::from(word(header, offset + 2));
        Some(Self {
            sequence: number(4),
            acknowledgement: number(8),
            flags: (header[12] & 15, header[13]),
            tos: inner.tos,
            options,
        })
    }

    /// Whether both have the same acknowledgement number: the sender of the data counts duplicates (RFC 5681).
    #[must_use]
    pub fn is_duplicate_of(&self, earlier: &Self) -> bool {
        self.acknowledgement == earlier.acknowledgement
    }

    /// Whether this one makes an `earlier` one of the same connection redundant. Flags, DSCP, ECN field and sequence
    /// number are the same, and so are the options except timestamps and SACK; this one covers the earlier SACK blocks.
    /// This one acknowledges more: by its number, or by SACK blocks, which a sender that uses them counts instead of
    /// duplicates (RFC 6675).
    #[must_use]
    pub fn supersedes(&self, earlier: &Self) -> bool {
        let is_alike = (self.sequence, self.flags, self.tos) == (earlier.sequence, earlier.flags, earlier.tos);
        let (Some(options), Some(earlier_options)) = (Options::parse(self.options), Options::parse(earlier.options))
        else {
            return false;
        };
        let is_newer = is_before(earlier.acknowledgement, self.acknowledgement)
            || self.is_duplicate_of(earlier) && options.adds_to(&earlier_options, self.acknowledgement);
        is_newer
            && is_alike
            && options.has_timestamps == earlier_options.has_timestamps
            && options.covers(self.acknowledgement, &earlier_options, earlier.acknowledgement)
            && others(self.options).eq(others(earlier.options))
    }
}

/// Whether sequence number `a` is before `b` (RFC 9293, section 3.4).
fn is_before(a: u32, b: u32) -> bool {
    (b.wrapping_sub(a) as i32) > 0
}

/// The options of an acknowledgement.
#[derive(Clone, Copy, Debug, Default)]
struct Options {
    has_timestamps: bool,
    sack_blocks: [(u32, u32); MAX_SACK_BLOCKS],
    sack_count: usize,
}

impl Options {
    /// `None` if an option is malformed.
    fn parse(bytes: &[u8]) -> Option<Self> {
        let mut options = Self::default();
        for (kind, value) in Iter(bytes) {
            let value = value?;
            match kind {
                option::TIMESTAMPS if value.len() == 8 => options.has_timestamps = true,
                option::SACK if value.len().is_multiple_of(8) => {
                    for block in value.chunks_exact(8) {
                        let edge = |at: usize| u32::from(word(block, at)) << 16 | u32::from(word(block, at + 2));
                        *options.sack_blocks.get_mut(options.sack_count)? = (edge(0), edge(4));
                        options.sack_count += 1;
                    }
                }
                option::TIMESTAMPS | option::SACK => return None,
                _ => {}
            }
        }
        Some(options)
    }

    fn blocks(&self) -> &[(u32, u32)] {
        &self.sack_blocks[..self.sack_count]
    }

    /// Whether this one covers the SACK blocks of an earlier acknowledgement. A block that reports a duplicate is never
    /// covered (RFC 2883): it is below the acknowledgement number, or inside the second block.
    fn covers(&self, acknowledgement: u32, earlier: &Self, earlier_acknowledgement: u32) -> bool {
        let is_covered = |&(start, end): &(u32, u32)| {
            !is_before(start, earlier_acknowledgement)
                && (!is_before(acknowledgement, end) || is_inside((start, end), self.blocks()))
        };
        let is_duplicate = |(first, others): (&(u32, u32), &[(u32, u32)])| is_inside(*first, others);
        let has_duplicate = earlier.blocks().split_first().is_some_and(is_duplicate);
        !has_duplicate && earlier.blocks().iter().all(is_covered)
    }

    /// Whether a SACK block above the acknowledgement number acknowledges more than those of an earlier
    /// acknowledgement.
    fn adds_to(&self, earlier: &Self, acknowledgement: u32) -> bool {
        let is_new = |block: &(u32, u32)| !is_before(block.0, acknowledgement) && !is_inside(*block, earlier.blocks());
        self.blocks().iter().any(is_new)
    }
}

/// Whether a SACK block is inside one of `blocks`.
fn is_inside((start, end): (u32, u32), blocks: &[(u32, u32)]) -> bool {
    blocks.iter().any(|block| !is_before(start, block.0) && !is_before(block.1, end))
}

/// The options except timestamps and SACK.
fn others(bytes: &[u8]) -> impl Iterator<Item = (u8, Option<&[u8]>)> {
    Iter(bytes).filter(|(kind, _)| !matches!(*kind, option::TIMESTAMPS | option::SACK))
}

/// Iterator over options: kind and value; the value is `None` for a malformed option.
struct Iter<'a>(&'a [u8]);

impl<'a> Iterator for Iter<'a> {
    type Item = (u8, Option<&'a [u8]>);

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            match *self.0 {
                [] | [option::END, ..] => return None,
                [option::NO_OPERATION, ..] => self.0 = &self.0[1..],
                [kind, ref rest @ ..] => {
                    let len = rest.first().map_or(0, |len| usize::from(*len));
                    let value = self.0.get(2..len);
                    self.0 = self.0.get(len..).filter(|_| value.is_some()).unwrap_or_default();
                    return Some((kind, value));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
