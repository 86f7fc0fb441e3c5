//! Cutting: a super-packet into ordinary packets with complete checksums, as a network card would; and the checksum of a
//! plain packet that its sender left to a device.

mod trim;

pub use trim::trim_first;

use crate::Malformed;
use crate::checksum::{Sum, pseudo};
use crate::inner::{addresses, protocol};
use crate::offload::{Cut, Layout, Offload, Partial, tcp_sequence};
use crate::reader::{put_word, word};

/// TCP's flags that end something, and so belong to the last segment: FIN and PSH.
const ENDING: u8 = 0x01 | 0x08;
/// TCP's CWR: the answer to one mark (RFC 3168, section 6.1.2), so it belongs to the first segment.
pub(crate) const CWR: u8 = 0x80;

/// Completes the checksum that `offload` leaves to do in a plain packet. A result of 0 is written as 0xffff, which is the
/// same sum and for UDP does not mean "none" (RFC 768).
///
/// # Errors
/// `Length` if the field is outside the packet.
pub fn complete(offload: &Offload, packet: &mut [u8]) -> Result<(), Malformed> {
    let Some(Partial { start, offset }) = offload.checksum else { return Ok(()) };
    let summed = packet.get_mut(usize::from(start)..).ok_or(Malformed::Length)?;
    let at = usize::from(offset);
    if at + 2 > summed.len() {
        return Err(Malformed::Length);
    }
    let checksum = Sum::of(summed).checksum();
    put_word(summed, at, or_ones(checksum));
    Ok(())
}

const fn or_ones(checksum: u16) -> u16 {
    if checksum == 0 { 0xffff } else { checksum }
}

/// The packets of a parcel, one after another. A parcel that is not to be cut is one packet.
#[derive(Clone, Debug)]
pub struct Segmenter<'a> {
    packet: &'a [u8],
    offload: Offload,
    plan: Option<Plan>,
    /// Offset of the next payload; `None` at the end.
    next: Option<usize>,
    /// Packets so far.
    count: u16,
}

/// What all segments of a super-packet have in common.
#[derive(Clone, Copy, Debug)]
struct Plan {
    layout: Layout,
    size: usize,
    /// The sum of addresses and protocol.
    pseudo: Sum,
    /// IPv4's header without length, identification and checksum.
    header: Sum,
}

impl Plan {
    fn new(offload: &Offload, cut: Cut, packet: &[u8]) -> Result<Self, Malformed> {
        let layout = offload.layout(cut, packet)?;
        let protocol = if layout.tcp { protocol::TCP } else { protocol::UDP };
        let pseudo = pseudo(addresses(packet).ok_or(Malformed::Version)?, protocol);
        let parts = [&packet[..2], &packet[6..10], &packet[12..layout.transport]];
        let header = parts.into_iter().map(Sum::of).fold(Sum::default(), Sum::plus);
        Ok(Self { layout, size: usize::from(cut.size), pseudo, header })
    }
}

impl<'a> Segmenter<'a> {
    /// Begins to cut `packet` as `offload` says.
    ///
    /// # Errors
    /// As [`Offload::validate`].
    pub fn new(offload: Offload, packet: &'a [u8]) -> Result<Self, Malformed> {
        let plan = match offload.cut {
            Some(cut) => Some(Plan::new(&offload, cut, packet)?),
            None => {
                offload.validate(packet)?;
                None
            }
        };
        let next = Some(plan.map_or(0, |plan| plan.layout.payload));
        Ok(Self { packet, offload, plan, next, count: 0 })
    }

    /// Bytes of the longest packet, which is each but the last.
    #[must_use]
    pub fn longest(&self) -> usize {
        let whole = self.packet.len();
        self.plan.map_or(whole, |plan| whole.min(plan.layout.payload + plan.size))
    }

    /// Writes the next packet to the front of `out` and says its length; `None` after the last.
    ///
    /// # Panics
    /// If `out` is shorter than [`longest`](Self::longest).
    pub fn next_into(&mut self, out: &mut [u8]) -> Option<usize> {
        let start = self.next?;
        let Some(plan) = self.plan else {
            self.next = None;
            let out = &mut out[..self.packet.len()];
            out.copy_from_slice(self.packet);
            // It was checked to be inside.
            let _ = complete(&self.offload, out);
            return Some(out.len());
        };
        let end = self.packet.len().min(start + plan.size);
        self.next = (end < self.packet.len()).then_some(end);
        let (headers, payload) = (&self.packet[..plan.layout.payload], &self.packet[start..end]);
        let out = &mut out[..headers.len() + payload.len()];
        out[..headers.len()].copy_from_slice(headers);
        out[headers.len()..].copy_from_slice(payload);
        self.finish(plan, out);
        self.count = self.count.wrapping_add(1);
        Some(out.len())
    }

    /// Makes headers and checksums those of this one segment.
    fn finish(&self, plan: Plan, segment: &mut [u8]) {
        let Layout { transport, v6, tcp, .. } = plan.layout;
        if v6 {
            put_word(segment, 4, (segment.len() - 40) as u16);
        } else {
            let (len, id) = (segment.len() as u16, word(segment, 4).wrapping_add(self.count));
            put_word(segment, 2, len);
            put_word(segment, 4, id);
            put_word(segment, 10, plan.header.word(len).word(id).checksum());
        }
        let header = &mut segment[transport..];
        let len = header.len() as u16;
        if tcp {
            self.number(plan, header);
        } else {
            put_word(header, 4, len);
        }
        let at = plan.layout.checksum_offset();
        put_word(header, at, 0);
        let checksum = plan.pseudo.word(len).plus(Sum::of(header)).checksum();
        put_word(header, at, if tcp { checksum } else { or_ones(checksum) });
    }

    /// TCP's sequence number and flags.
    fn number(&self, plan: Plan, header: &mut [u8]) {
        let sequence = tcp_sequence(header, 0).wrapping_add(u32::from(self.count) * plan.size as u32);
        header[4..8].copy_from_slice(&sequence.to_be_bytes());
        if self.next.is_some() {
            header[13] &= !ENDING;
        }
        if self.count > 0 {
            header[13] &= !CWR;
        }
    }
}

#[cfg(test)]
mod tests;
