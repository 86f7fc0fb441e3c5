//! The virtio_net_hdr (Virtio 1.2, section 5.1.6), which a TUN device with `IFF_VNET_HDR` puts before a packet: the
//! checksum or the segmentation that is still to be done.
//!
//! ```text
//! flags 1   gso_type 1   hdr_len 2   gso_size 2   csum_start 2   csum_offset 2
//! ```
//! The words of the header are little-endian, both between the ends of a tunnel and to the device: a driver on a
//! big-endian host asks its device for that (`TUNSETVNETLE`).

use crate::Malformed;
use crate::inner::{Inner, protocol};
use crate::reader::{put_word, word};
use crate::segment::CWR;

const NEEDS_CSUM: u8 = 1;
const DATA_VALID: u8 = 2;
const GSO_NONE: u8 = 0;
const GSO_TCPV4: u8 = 1;
const GSO_TCPV6: u8 = 4;
const GSO_UDP_L4: u8 = 5;
const GSO_ECN: u8 = 0x80;

/// Maximum number of segments of a peer's TCP super-packet, which bounds the work per super-packet. With the smallest
/// MSS that Linux accepts from a peer (`TCP_MIN_MSS`, 88 bytes with 12 of options), a super-packet of 64 KiB has 862
/// segments.
pub const MAX_TCP_SEGMENTS: usize = 1024;
/// Maximum number of segments of a peer's UDP super-packet: Linux's (`UDP_MAX_SEGMENTS`).
pub const MAX_UDP_SEGMENTS: usize = 128;

/// A decoded virtio_net_hdr.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VirtioNetHeader {
    /// The checksum to complete (`VIRTIO_NET_HDR_F_NEEDS_CSUM`).
    pub checksum: Option<PartialChecksum>,
    /// Whether the checksums are known to be correct (`VIRTIO_NET_HDR_F_DATA_VALID`).
    pub data_valid: bool,
    /// Generic segmentation offload, if the packet is a super-packet.
    pub gso: Option<Gso>,
    /// Length of all headers, bytes; a hint that may be wrong.
    pub hdr_len: u16,
}

/// A partial checksum: its field holds the sum of the pseudo-header, not complemented.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartialChecksum {
    /// Offset of the summed bytes (`csum_start`).
    pub start: u16,
    /// Offset of the checksum field from `start` (`csum_offset`).
    pub offset: u16,
}

/// The segmentation of a super-packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gso {
    /// The type of its segments.
    pub gso_type: GsoType,
    /// Payload of each segment but the last, bytes (`gso_size`).
    pub size: u16,
    /// Whether TCP's CWR is set, which belongs to the first segment only (`VIRTIO_NET_HDR_GSO_ECN`).
    pub cwr: bool,
}

/// The type of the segments of a super-packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GsoType {
    /// TCP segments over IPv4.
    TcpV4,
    /// TCP segments over IPv6.
    TcpV6,
    /// UDP datagrams over either.
    UdpL4,
}

/// Offsets of the headers of a TCP or UDP packet.
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
    /// The layout of `packet`, if it is one unfragmented TCP or UDP packet without trailing bytes.
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
        let min_header_len = if tcp { 20 } else { 8 };
        let header_len = match transport.get(12) {
            Some(offset) if tcp => usize::from(offset >> 4) * 4,
            _ => min_header_len,
        };
        if transport.len() < header_len.max(min_header_len) {
            return Err(Malformed::Truncated);
        }
        if header_len < min_header_len {
            return Err(Malformed::Length);
        }
        Ok(Self { transport: inner.transport, payload: inner.transport + header_len, v6: inner.is_v6(), tcp })
    }

    /// Offset of the checksum field in the transport header.
    pub(crate) const fn checksum_offset(self) -> usize {
        if self.tcp { 16 } else { 6 }
    }

    /// The checksum to complete.
    pub(crate) const fn partial_checksum(self) -> PartialChecksum {
        PartialChecksum { start: self.transport as u16, offset: self.checksum_offset() as u16 }
    }

    pub(crate) const fn gso_type(self) -> GsoType {
        match (self.tcp, self.v6) {
            (true, false) => GsoType::TcpV4,
            (true, true) => GsoType::TcpV6,
            (false, _) => GsoType::UdpL4,
        }
    }
}

impl Gso {
    /// The segmentation of `packet`; `None` if it is not longer than one segment.
    fn rebuild(self, layout: Layout, packet: &[u8]) -> Result<Option<Self>, Malformed> {
        if self.gso_type != layout.gso_type() {
            return Err(Malformed::Type);
        }
        let (size, payload) = (usize::from(self.size), packet.len() - layout.payload);
        let max_segments = if layout.tcp { MAX_TCP_SEGMENTS } else { MAX_UDP_SEGMENTS };
        if size == 0 || payload.div_ceil(size) > max_segments {
            return Err(Malformed::Value);
        }
        let cwr = layout.tcp && packet[layout.transport + 13] & CWR != 0;
        Ok((payload > size).then_some(Self { cwr, ..self }))
    }
}

impl VirtioNetHeader {
    /// Length of the header, bytes.
    pub const LEN: usize = 10;

    /// Decodes the header; returns it with the packet after it, against which it is not validated yet.
    ///
    /// # Errors
    /// `Truncated`, or `Type` for an unknown segmentation type (such as UDP fragmentation).
    pub fn parse(bytes: &[u8]) -> Result<(Self, &[u8]), Malformed> {
        let ([flags, gso_type, words @ ..], packet) = bytes.split_first_chunk::<10>().ok_or(Malformed::Truncated)?;
        let word = |index: usize| u16::from_le_bytes([words[2 * index], words[2 * index + 1]]);
        let segment_type = match gso_type & !GSO_ECN {
            GSO_NONE => None,
            GSO_TCPV4 => Some(GsoType::TcpV4),
            GSO_TCPV6 => Some(GsoType::TcpV6),
            GSO_UDP_L4 => Some(GsoType::UdpL4),
            _ => return Err(Malformed::Type),
        };
        let header = Self {
            checksum: (flags & NEEDS_CSUM != 0).then(|| PartialChecksum { start: word(2), offset: word(3) }),
            data_valid: flags & DATA_VALID != 0,
            gso: segment_type.map(|segment_type| Gso {
                gso_type: segment_type,
                size: word(1),
                cwr: gso_type & GSO_ECN != 0,
            }),
            hdr_len: word(0),
        };
        Ok((header, packet))
    }

    /// Encodes the header.
    #[must_use]
    pub fn to_bytes(self) -> [u8; Self::LEN] {
        let mut bytes = [0; Self::LEN];
        bytes[0] = if self.data_valid { DATA_VALID } else { 0 };
        bytes[2..4].copy_from_slice(&self.hdr_len.to_le_bytes());
        if let Some(PartialChecksum { start, offset }) = self.checksum {
            bytes[0] |= NEEDS_CSUM;
            bytes[6..8].copy_from_slice(&start.to_le_bytes());
            bytes[8..10].copy_from_slice(&offset.to_le_bytes());
        }
        if let Some(Gso { gso_type, size, cwr }) = self.gso {
            let gso_type = match gso_type {
                GsoType::TcpV4 => GSO_TCPV4,
                GsoType::TcpV6 => GSO_TCPV6,
                GsoType::UdpL4 => GSO_UDP_L4,
            };
            bytes[1] = gso_type | if cwr { GSO_ECN } else { 0 };
            bytes[4..6].copy_from_slice(&size.to_le_bytes());
        }
        bytes
    }

    /// Rebuilds the header from `packet`. The peer's header contributes only whether a checksum is to be completed, and
    /// the size of segments; everything else comes from the packet. To be called before a packet of a peer is written
    /// to a device or segmented.
    ///
    /// # Errors
    /// As [`Inner::parse`]; `Type` if there is a checksum to complete and the packet is not one unfragmented TCP segment
    /// or UDP datagram, or not of the segments' type; `Length` if the checksum is not in the field of its transport
    /// header, or UDP's length is not that of the packet; `Value` for segments without payload, or for more of them than
    /// [`MAX_TCP_SEGMENTS`] and [`MAX_UDP_SEGMENTS`].
    pub fn rebuild(&self, packet: &[u8]) -> Result<Self, Malformed> {
        if self.checksum.is_none() && self.gso.is_none() {
            return Inner::parse(packet).map(|_| Self::default());
        }
        let layout = Layout::of(packet)?;
        let checksum = Some(layout.partial_checksum());
        if self.checksum != checksum {
            return Err(Malformed::Length);
        }
        if !layout.tcp && usize::from(word(packet, layout.transport + 4)) != packet.len() - layout.transport {
            return Err(Malformed::Length);
        }
        let gso = self.gso.map(|gso| gso.rebuild(layout, packet)).transpose()?.flatten();
        Ok(Self { checksum, data_valid: false, gso, hdr_len: layout.payload as u16 })
    }

    /// The validated layout of a super-packet.
    pub(crate) fn layout(&self, gso: Gso, packet: &[u8]) -> Result<Layout, Malformed> {
        let layout = Layout::of(packet)?;
        if layout.gso_type() != gso.gso_type {
            return Err(Malformed::Type);
        }
        if gso.size == 0 {
            return Err(Malformed::Value);
        }
        if self.checksum != Some(layout.partial_checksum()) {
            return Err(Malformed::Length);
        }
        Ok(layout)
    }

    /// Number of segments of `packet`: 1 unless it is a valid super-packet.
    #[must_use]
    pub fn segment_count(&self, packet: &[u8]) -> usize {
        let Some(gso) = self.gso else { return 1 };
        let payload = self.layout(gso, packet).map_or(0, |layout| packet.len() - layout.payload);
        payload.div_ceil(usize::from(gso.size.max(1))).max(1)
    }
}

/// A valid super-packet of two segments over IPv4, with its virtio_net_hdr, to find out whether a kernel accepts
/// super-packets. The checksum of its IP header is wrong, so that the host discards it (RFC 1122, section 3.2.1.2).
#[must_use]
pub fn probe(tcp: bool) -> Vec<u8> {
    let mut packet = vec![0; if tcp { 40 } else { 28 }];
    packet.extend_from_slice(&[0; 16]);
    let len = packet.len() as u16;
    packet[0] = 0x45;
    put_word(&mut packet, 2, len);
    packet[8] = 1;
    packet[9] = if tcp { protocol::TCP } else { protocol::UDP };
    if tcp {
        packet[32] = 5 << 4;
    } else {
        put_word(&mut packet, 24, len - 20);
    }
    let layout = Layout { transport: 20, payload: packet.len() - 16, v6: false, tcp };
    let gso = Some(Gso { gso_type: layout.gso_type(), size: 8, cwr: false });
    let checksum = Some(layout.partial_checksum());
    let header = VirtioNetHeader { checksum, data_valid: false, gso, hdr_len: layout.payload as u16 };
    [&header.to_bytes()[..], &packet].concat()
}

/// TCP's sequence number; its header is at `offset`.
pub(crate) fn tcp_sequence(packet: &[u8], offset: usize) -> u32 {
    u32::from(word(packet, offset + 4)) << 16 | u32::from(word(packet, offset + 6))
}

#[cfg(test)]
mod tests;
