//! Coalescing (GRO): consecutive TCP segments of one flow, or UDP datagrams of one size, become one super-packet, so
//! that the host's stack handles them at once. The inverse of [`segment`](crate::segment).
//!
//! Payload is not copied: a super-packet is a header of its own and the payloads in place, ready for one `writev`. Its
//! segments are the coalesced packets, byte for byte, except for the identification of IPv4 packets that are never
//! fragmented (it has no meaning then: RFC 6864).

use crate::checksum::{Sum, pseudo_header_sum};
use crate::inner::{addresses, protocol};
use crate::reader::{put_word, word};
use crate::virtio::{Gso, GsoType, Layout, VirtioNetHeader, tcp_sequence};

/// Maximum number of coalesced packets. With the header they are 65 slices of a `writev`.
pub const MAX_PACKETS: usize = 64;
/// Maximum length of a super-packet, bytes.
const MAX_BYTES: usize = 0xffff;
/// Maximum length of the header, bytes: 60 of IPv4 and 60 of TCP, with all options.
const MAX_HEADER: usize = VirtioNetHeader::LEN + 120;
const ACK: u8 = 0x10;
const PUSH: u8 = 0x08;
const DO_NOT_FRAGMENT: u8 = 0x40;

/// Coalesces packets for a device.
#[derive(Clone, Debug)]
pub struct Coalescer {
    tcp: bool,
    udp: bool,
    header: [u8; MAX_HEADER],
    len: usize,
}

impl Coalescer {
    /// `tcp`, `udp`: whether the device accepts super-packets of these protocols.
    #[must_use]
    pub const fn new(tcp: bool, udp: bool) -> Self {
        Self { tcp, udp, header: [0; MAX_HEADER], len: VirtioNetHeader::LEN }
    }

    /// Coalesces as many of the first of `packets` as possible; returns their number, which is 0 only if there are
    /// none. The caller writes [`header`](Self::header) and then each of them without its first [`skip`](Self::skip)
    /// bytes. A packet that cannot be coalesced with the next, or whose checksum is wrong, is written alone and
    /// unchanged.
    pub fn coalesce<P: AsRef<[u8]>>(&mut self, packets: &[P]) -> usize {
        self.header[..VirtioNetHeader::LEN].fill(0);
        self.len = VirtioNetHeader::LEN;
        let [first, others @ ..] = packets else { return 0 };
        let Some(mut builder) = self.begin(first.as_ref()) else { return 1 };
        let coalesced = others.iter().take(MAX_PACKETS - 1).take_while(|next| builder.add(next.as_ref())).count();
        if coalesced > 0 {
            self.write_header(&builder);
        }
        1 + coalesced
    }

    /// The virtio_net_hdr, and after it the headers of the super-packet if packets were coalesced.
    #[must_use]
    pub fn header(&self) -> &[u8] {
        &self.header[..self.len]
    }

    /// Length of each packet's own headers, which [`header`](Self::header) replaces; 0 for a single packet.
    #[must_use]
    pub const fn skip(&self) -> usize {
        self.len - VirtioNetHeader::LEN
    }

    fn begin<'a>(&self, first: &'a [u8]) -> Option<SuperPacketBuilder<'a>> {
        let layout = Layout::of(first).ok()?;
        let header = &first[layout.transport..];
        let payload = first.len() - layout.payload;
        let is_accepted = match layout.gso_type() {
            GsoType::TcpV4 | GsoType::TcpV6 => self.tcp && header[13] & !PUSH == ACK,
            GsoType::UdpL4 => self.udp,
        };
        let has_no_extensions = !layout.v6 || layout.transport == 40;
        (is_accepted && has_no_extensions && payload > 0).then_some(SuperPacketBuilder {
            first,
            layout,
            payload,
            len: first.len(),
            packet_count: 1,
            is_complete: layout.tcp && header[13] & PUSH != 0,
            has_psh: false,
        })
    }

    /// Writes the header of a super-packet.
    fn write_header(&mut self, builder: &SuperPacketBuilder<'_>) {
        let Layout { transport, payload, v6, tcp } = builder.layout;
        let gso = Gso { gso_type: builder.layout.gso_type(), size: builder.payload as u16, cwr: false };
        let checksum = Some(builder.layout.partial_checksum());
        let offload = VirtioNetHeader { checksum, data_valid: false, gso: Some(gso), hdr_len: payload as u16 };
        self.len = VirtioNetHeader::LEN + payload;
        let (virtio_header, headers) = self.header[..self.len].split_at_mut(VirtioNetHeader::LEN);
        virtio_header.copy_from_slice(&offload.to_bytes());
        headers.copy_from_slice(&builder.first[..payload]);
        if v6 {
            put_word(headers, 4, (builder.len - 40) as u16);
        } else {
            put_word(headers, 2, builder.len as u16);
            put_word(headers, 10, 0);
            let checksum = Sum::of(&headers[..transport]).checksum();
            put_word(headers, 10, checksum);
        }
        let len = (builder.len - transport) as u16;
        if tcp {
            headers[transport + 13] |= if builder.has_psh { PUSH } else { 0 };
        } else {
            put_word(headers, transport + 4, len);
        }
        let sum = pseudo_header_sum_of(builder.first, builder.layout).add_word(len).folded();
        put_word(headers, transport + builder.layout.checksum_offset(), sum);
    }
}

/// A super-packet under construction.
struct SuperPacketBuilder<'a> {
    first: &'a [u8],
    layout: Layout,
    /// Payload of each packet but the last, bytes.
    payload: usize,
    /// Length of the super-packet, bytes.
    len: usize,
    packet_count: u16,
    /// Whether no packet may follow: the last one was short or had PSH.
    is_complete: bool,
    has_psh: bool,
}

impl SuperPacketBuilder<'_> {
    /// Adds `next` if it continues the super-packet.
    fn add(&mut self, next: &[u8]) -> bool {
        let Some(payload) = next.len().checked_sub(self.layout.payload) else { return false };
        let fits = !self.is_complete && (1..=self.payload).contains(&payload) && self.len + payload <= MAX_BYTES;
        if !fits || Layout::of(next) != Ok(self.layout) || !self.is_same_flow(next) || !self.is_in_order(next) {
            return false;
        }
        if self.packet_count == 1 && !has_canonical_checksums(self.first, self.layout)
            || !has_canonical_checksums(next, self.layout)
        {
            return false;
        }
        self.has_psh = self.layout.tcp && next[self.layout.transport + 13] & PUSH != 0;
        self.is_complete = self.has_psh || payload < self.payload;
        self.len += payload;
        self.packet_count += 1;
        true
    }

    /// Whether the headers are equal where segments of a super-packet must be.
    fn is_same_flow(&self, next: &[u8]) -> bool {
        let Layout { transport, payload, v6, tcp } = self.layout;
        let is_equal = |start: usize, end: usize| self.first[start..end] == next[start..end];
        let is_ip_equal = if v6 {
            is_equal(0, 4) && is_equal(6, 40)
        } else {
            is_equal(0, 2) && is_equal(6, 10) && is_equal(12, transport)
        };
        let flags = |packet: &[u8]| packet[transport + 13] & !PUSH;
        // Ports; acknowledgement and offset; window; urgent pointer and options.
        is_ip_equal
            && is_equal(transport, transport + 4)
            && (!tcp
                || is_equal(transport + 8, transport + 13)
                    && is_equal(transport + 14, transport + 16)
                    && is_equal(transport + 18, payload)
                    && flags(self.first) == flags(next))
    }

    /// Whether TCP's sequence number continues, and IPv4's identification where it has a meaning.
    fn is_in_order(&self, next: &[u8]) -> bool {
        let transport = self.layout.transport;
        let payload_bytes = (self.len - self.layout.payload) as u32;
        let is_contiguous = !self.layout.tcp
            || tcp_sequence(self.first, transport).wrapping_add(payload_bytes) == tcp_sequence(next, transport);
        let id = word(self.first, 4).wrapping_add(self.packet_count);
        is_contiguous && (self.layout.v6 || next[6] & DO_NOT_FRAGMENT != 0 || word(next, 4) == id)
    }
}

fn pseudo_header_sum_of(packet: &[u8], layout: Layout) -> Sum {
    pseudo_header_sum(addresses(packet).unwrap_or_default(), if layout.tcp { protocol::TCP } else { protocol::UDP })
}

/// Whether the checksums are correct, and have the form that segmentation writes.
fn has_canonical_checksums(packet: &[u8], layout: Layout) -> bool {
    let body = &packet[layout.transport..];
    let field = word(body, layout.checksum_offset());
    let sum = pseudo_header_sum_of(packet, layout).add_word(body.len() as u16).add_sum(Sum::of(body));
    let is_ip_correct = layout.v6 || Sum::of(&packet[..layout.transport]).checksum() == 0;
    let is_length_correct = layout.tcp || usize::from(word(body, 4)) == body.len();
    let is_canonical = if layout.tcp { field != 0xffff } else { field != 0 };
    is_ip_correct && is_length_correct && is_canonical && sum.checksum() == 0
}

#[cfg(test)]
mod tests;
