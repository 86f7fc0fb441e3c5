//! Segmentation of super-packets into packets with complete checksums, as network cards do it; and completion of a
//! partial checksum.

mod trim;

pub use trim::trim_first;

use crate::Malformed;
use crate::checksum::{Sum, pseudo_header_sum};
use crate::inner::{Inner, addresses, protocol};
use crate::reader::{put_word, word};
use crate::virtio::{Gso, Layout, PartialChecksum, VirtioNetHeader, tcp_sequence};

/// TCP flags of the last segment: FIN and PSH.
const LAST_SEGMENT_FLAGS: u8 = 0x01 | 0x08;
/// TCP's CWR, which belongs to the first segment (RFC 3168, section 6.1.2).
pub(crate) const CWR: u8 = 0x80;

/// Completes the partial checksum of a packet. A result of 0 is written as 0xffff, which is the same sum and for UDP
/// does not mean "none" (RFC 768).
///
/// # Errors
/// `Length` if the field is outside the packet.
pub fn complete_checksum(offload: &VirtioNetHeader, packet: &mut [u8]) -> Result<(), Malformed> {
    let Some(PartialChecksum { start, offset }) = offload.checksum else { return Ok(()) };
    let summed = packet.get_mut(usize::from(start)..).ok_or(Malformed::Length)?;
    let field = usize::from(offset);
    if field + 2 > summed.len() {
        return Err(Malformed::Length);
    }
    let checksum = Sum::of(summed).checksum();
    put_word(summed, field, nonzero_checksum(checksum));
    Ok(())
}

const fn nonzero_checksum(checksum: u16) -> u16 {
    if checksum == 0 { 0xffff } else { checksum }
}

/// Segments a super-packet; a packet without segmentation offload is its only segment.
#[derive(Clone, Debug)]
pub struct Segmenter<'a> {
    packet: &'a [u8],
    offload: VirtioNetHeader,
    template: Option<Template>,
    /// Offset of the next segment's payload; `None` at the end.
    next_payload: Option<usize>,
    /// Index of the next segment.
    index: u16,
}

/// The common part of the segments of a super-packet.
#[derive(Clone, Copy, Debug)]
struct Template {
    layout: Layout,
    size: usize,
    /// The sum of the pseudo-header without its length.
    pseudo: Sum,
    /// The sum of IPv4's header without length, identification and checksum.
    header: Sum,
}

impl Template {
    fn new(offload: &VirtioNetHeader, gso: Gso, packet: &[u8]) -> Result<Self, Malformed> {
        let layout = offload.layout(gso, packet)?;
        let protocol = if layout.tcp { protocol::TCP } else { protocol::UDP };
        let pseudo = pseudo_header_sum(addresses(packet).ok_or(Malformed::Version)?, protocol);
        let parts = [&packet[..2], &packet[6..10], &packet[12..layout.transport]];
        let header = parts.into_iter().map(Sum::of).fold(Sum::default(), Sum::add_sum);
        Ok(Self { layout, size: usize::from(gso.size), pseudo, header })
    }
}

impl<'a> Segmenter<'a> {
    /// A segmenter of `packet`.
    ///
    /// # Errors
    /// As [`Inner::parse`]; `Length` for a checksum outside the packet or, in a super-packet, not in the field of its
    /// transport header, `Type` if the packet is not of the segments' type, `Value` for a size of 0.
    pub fn new(offload: VirtioNetHeader, packet: &'a [u8]) -> Result<Self, Malformed> {
        let template = match offload.gso {
            Some(gso) => Some(Template::new(&offload, gso, packet)?),
            None => {
                Inner::parse(packet)?;
                if let Some(PartialChecksum { start, offset }) = offload.checksum
                    && usize::from(start) + usize::from(offset) + 2 > packet.len()
                {
                    return Err(Malformed::Length);
                }
                None
            }
        };
        let next_payload = Some(template.map_or(0, |template| template.layout.payload));
        Ok(Self { packet, offload, template, next_payload, index: 0 })
    }

    /// Length of the longest segment, bytes.
    #[must_use]
    pub fn max_len(&self) -> usize {
        let len = self.packet.len();
        self.template.map_or(len, |template| len.min(template.layout.payload + template.size))
    }

    /// Writes the next segment to the front of `buffer`; returns its length, or `None` after the last.
    ///
    /// # Panics
    /// If `buffer` is shorter than [`max_len`](Self::max_len).
    pub fn next_into(&mut self, buffer: &mut [u8]) -> Option<usize> {
        let start = self.next_payload?;
        let Some(template) = self.template else {
            self.next_payload = None;
            let segment = &mut buffer[..self.packet.len()];
            segment.copy_from_slice(self.packet);
            // The offsets were validated.
            let _ = complete_checksum(&self.offload, segment);
            return Some(segment.len());
        };
        let end = self.packet.len().min(start + template.size);
        self.next_payload = (end < self.packet.len()).then_some(end);
        let (headers, payload) = (&self.packet[..template.layout.payload], &self.packet[start..end]);
        let segment = &mut buffer[..headers.len() + payload.len()];
        segment[..headers.len()].copy_from_slice(headers);
        segment[headers.len()..].copy_from_slice(payload);
        self.update_headers(template, segment);
        self.index = self.index.wrapping_add(1);
        Some(segment.len())
    }

    /// Updates the headers and checksums of a segment.
    fn update_headers(&self, template: Template, segment: &mut [u8]) {
        let Layout { transport, v6, tcp, .. } = template.layout;
        if v6 {
            put_word(segment, 4, (segment.len() - 40) as u16);
        } else {
            let (len, id) = (segment.len() as u16, word(segment, 4).wrapping_add(self.index));
            put_word(segment, 2, len);
            put_word(segment, 4, id);
            put_word(segment, 10, template.header.add_word(len).add_word(id).checksum());
        }
        let header = &mut segment[transport..];
        let len = header.len() as u16;
        if tcp {
            self.update_tcp(template, header);
        } else {
            put_word(header, 4, len);
        }
        let field = template.layout.checksum_offset();
        put_word(header, field, 0);
        let checksum = template.pseudo.add_word(len).add_sum(Sum::of(header)).checksum();
        put_word(header, field, if tcp { checksum } else { nonzero_checksum(checksum) });
    }

    /// Updates TCP's sequence number and flags.
    fn update_tcp(&self, template: Template, header: &mut [u8]) {
        let sequence = tcp_sequence(header, 0).wrapping_add(u32::from(self.index) * template.size as u32);
        header[4..8].copy_from_slice(&sequence.to_be_bytes());
        if self.next_payload.is_some() {
            header[13] &= !LAST_SEGMENT_FLAGS;
        }
        if self.index > 0 {
            header[13] &= !CWR;
        }
    }
}

#[cfg(test)]
mod tests;
