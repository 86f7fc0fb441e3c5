//! What a TUN device with `IFF_VNET_HDR` puts before a packet: the virtio-net header (Virtio 1.2, section 5.1.6), which says
//! what the device has left undone: a checksum, or cutting a super-packet into packets.
//!
//! ```text
//! flags 1   gso_type 1   hdr_len 2   gso_size 2   csum_start 2   csum_offset 2
//! ```
//! Its words are little-endian, both between the ends of a tunnel and to the device: a driver on a big-endian host asks its
//! device for that (`TUNSETVNETLE`).

use crate::Malformed;
use crate::inner::{Inner, protocol};
use crate::reader::word;

const NEEDS_CSUM: u8 = 1;
const DATA_VALID: u8 = 2;
const GSO_NONE: u8 = 0;
const GSO_TCPV4: u8 = 1;
const GSO_TCPV6: u8 = 4;
const GSO_UDP_L4: u8 = 5;
const GSO_ECN: u8 = 0x80;

/// Work that is left to do for a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Offload {
    /// A checksum that is left to do.
    pub checksum: Option<Partial>,
    /// The checksums were verified by whom it comes from.
    pub verified: bool,
    /// A super-packet that is left to be cut.
    pub cut: Option<Cut>,
    /// Bytes of all headers; a hint that may be wrong.
    pub headers: u16,
}

/// A checksum that is left to do: its field holds the pseudo-header's sum, not complemented.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Partial {
    /// Where summing starts.
    pub start: u16,
    /// Where the field is, counted from `start`.
    pub offset: u16,
}

/// How a super-packet is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut {
    /// What it is.
    pub kind: Kind,
    /// Payload bytes of each packet but the last.
    pub size: u16,
    /// TCP's CWR is set, and belongs to the first packet alone.
    pub cwr: bool,
}

/// What a super-packet is cut into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// TCP segments over IPv4.
    TcpV4,
    /// TCP segments over IPv6.
    TcpV6,
    /// UDP datagrams over either.
    Udp,
}

/// Where the parts of a super-packet are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    /// Offset of TCP's or UDP's header.
    pub(crate) transport: usize,
    /// Offset of the payload.
    pub(crate) payload: usize,
    pub(crate) v6: bool,
    pub(crate) tcp: bool,
}

impl Layout {
    /// Of `packet`, if it is one whole TCP or UDP packet and nothing else.
    pub(crate) fn of(packet: &[u8]) -> Result<Self, Malformed> {
        let inner = Inner::parse(packet)?;
        if inner.len != packet.len() {
            return Err(Malformed::Length);
        }
        let tcp = inner.protocol == protocol::TCP;
        if inner.fragment || !tcp && inner.protocol != protocol::UDP {
            return Err(Malformed::Type);
        }
        let transport = &packet[inner.transport..];
        let least = if tcp { 20 } else { 8 };
        let header = match transport.get(12) {
            Some(offset) if tcp => usize::from(offset >> 4) * 4,
            _ => least,
        };
        if transport.len() < header.max(least) {
            return Err(Malformed::Truncated);
        }
        if header < least {
            return Err(Malformed::Length);
        }
        Ok(Self { transport: inner.transport, payload: inner.transport + header, v6: inner.is_v6(), tcp })
    }

    /// Where the transport's checksum is, counted from its header.
    pub(crate) const fn checksum_offset(self) -> usize {
        if self.tcp { 16 } else { 6 }
    }

    /// The checksum left undone.
    pub(crate) const fn partial(self) -> Partial {
        Partial { start: self.transport as u16, offset: self.checksum_offset() as u16 }
    }

    pub(crate) const fn kind(self) -> Kind {
        match (self.tcp, self.v6) {
            (true, false) => Kind::TcpV4,
            (true, true) => Kind::TcpV6,
            (false, _) => Kind::Udp,
        }
    }
}

impl Offload {
    /// Bytes of the header.
    pub const LEN: usize = 10;

    /// The header that `parcel` begins with, and the packet after it, to which it is not compared yet.
    ///
    /// # Errors
    /// `Truncated`, or `Type` for a way of cutting that is not known (UDP fragmentation among them).
    pub fn parse(parcel: &[u8]) -> Result<(Self, &[u8]), Malformed> {
        let ([flags, gso, words @ ..], packet) = parcel.split_first_chunk::<10>().ok_or(Malformed::Truncated)?;
        let word = |place: usize| u16::from_le_bytes([words[2 * place], words[2 * place + 1]]);
        let kind = match gso & !GSO_ECN {
            GSO_NONE => None,
            GSO_TCPV4 => Some(Kind::TcpV4),
            GSO_TCPV6 => Some(Kind::TcpV6),
            GSO_UDP_L4 => Some(Kind::Udp),
            _ => return Err(Malformed::Type),
        };
        let offload = Self {
            checksum: (flags & NEEDS_CSUM != 0).then(|| Partial { start: word(2), offset: word(3) }),
            verified: flags & DATA_VALID != 0,
            cut: kind.map(|kind| Cut { kind, size: word(1), cwr: gso & GSO_ECN != 0 }),
            headers: word(0),
        };
        Ok((offload, packet))
    }

    /// The header as bytes.
    #[must_use]
    pub fn to_bytes(self) -> [u8; Self::LEN] {
        let mut bytes = [0; Self::LEN];
        bytes[0] = if self.verified { DATA_VALID } else { 0 };
        bytes[2..4].copy_from_slice(&self.headers.to_le_bytes());
        if let Some(Partial { start, offset }) = self.checksum {
            bytes[0] |= NEEDS_CSUM;
            bytes[6..8].copy_from_slice(&start.to_le_bytes());
            bytes[8..10].copy_from_slice(&offset.to_le_bytes());
        }
        if let Some(Cut { kind, size, cwr }) = self.cut {
            let kind = match kind {
                Kind::TcpV4 => GSO_TCPV4,
                Kind::TcpV6 => GSO_TCPV6,
                Kind::Udp => GSO_UDP_L4,
            };
            bytes[1] = kind | if cwr { GSO_ECN } else { 0 };
            bytes[4..6].copy_from_slice(&size.to_le_bytes());
        }
        bytes
    }

    /// Whether all that the header says is true of `packet`. A peer may be hostile: ask before a parcel of its goes to a
    /// device or is looked into.
    ///
    /// # Errors
    /// As [`Inner::parse`]; `Length` for offsets outside the packet or not those of its transport, `Type` if the packet is
    /// not of the kind that is to be cut, `Value` for a size of 0.
    pub fn validate(&self, packet: &[u8]) -> Result<(), Malformed> {
        if let Some(Partial { start, offset }) = self.checksum
            && usize::from(start) + usize::from(offset) + 2 > packet.len()
        {
            return Err(Malformed::Length);
        }
        match self.cut {
            Some(cut) => self.layout(cut, packet).map(|_| ()),
            None => Inner::parse(packet).map(|_| ()),
        }
    }

    /// Where the parts of a super-packet are, all checked.
    pub(crate) fn layout(&self, cut: Cut, packet: &[u8]) -> Result<Layout, Malformed> {
        let layout = Layout::of(packet)?;
        if layout.kind() != cut.kind {
            return Err(Malformed::Type);
        }
        if cut.size == 0 {
            return Err(Malformed::Value);
        }
        if self.checksum != Some(layout.partial()) {
            return Err(Malformed::Length);
        }
        Ok(layout)
    }

    /// Packets that `packet` will be: 1 unless it is a valid super-packet.
    #[must_use]
    pub fn packets(&self, packet: &[u8]) -> usize {
        let Some(cut) = self.cut else { return 1 };
        let payload = self.layout(cut, packet).map_or(0, |layout| packet.len() - layout.payload);
        payload.div_ceil(usize::from(cut.size.max(1))).max(1)
    }
}

/// TCP's sequence number, where `at` is its header.
pub(crate) fn tcp_sequence(packet: &[u8], at: usize) -> u32 {
    u32::from(word(packet, at + 4)) << 16 | u32::from(word(packet, at + 6))
}

#[cfg(test)]
mod tests;
