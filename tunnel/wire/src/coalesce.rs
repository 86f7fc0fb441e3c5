//! Merging: consecutive TCP segments of one flow, or UDP datagrams of one size, into one super-packet, so that the far
//! host's stack is entered once for all of them. The opposite of [`segment`](crate::segment).
//!
//! Payload is not touched: a super-packet is a head of its own and the payloads where they lie, ready for one `writev`.
//! What is cut again from it is what was merged, byte for byte, but for the identification of IPv4 packets that are never
//! fragmented (RFC 6864 gives it no meaning then).

use crate::checksum::{Sum, pseudo};
use crate::inner::{addresses, protocol};
use crate::offload::{Cut, Kind, Layout, Offload, tcp_sequence};
use crate::reader::{put_word, word};

/// The most packets that are merged into one. With the head they are 65 slices of a `writev`.
pub const MOST_PACKETS: usize = 64;
/// The longest packet that IPv4's length can tell.
const MOST_BYTES: usize = 0xffff;
/// Options and all: 60 bytes of IPv4 and 60 of TCP.
const MOST_HEAD: usize = Offload::LEN + 120;
const ACK: u8 = 0x10;
const PUSH: u8 = 0x08;
const DO_NOT_FRAGMENT: u8 = 0x40;

/// Merges packets, as far as the device can take it.
#[derive(Clone, Debug)]
pub struct Merger {
    tcp: bool,
    udp: bool,
    head: [u8; MOST_HEAD],
    len: usize,
}

impl Merger {
    /// `tcp`, `udp`: what the device can cut again.
    #[must_use]
    pub const fn new(tcp: bool, udp: bool) -> Self {
        Self { tcp, udp, head: [0; MOST_HEAD], len: Offload::LEN }
    }

    /// How many of the first of `packets` go to the device at once; 0 only if there are none. What is written is
    /// [`head`](Self::head) and then each of them without its first [`skip`](Self::skip) bytes. A packet that cannot be
    /// merged with the next, or whose checksum is wrong, goes alone and as it is.
    pub fn take<P: AsRef<[u8]>>(&mut self, packets: &[P]) -> usize {
        self.head[..Offload::LEN].fill(0);
        self.len = Offload::LEN;
        let [first, rest @ ..] = packets else { return 0 };
        let Some(mut run) = self.begin(first.as_ref()) else { return 1 };
        let merged = rest.iter().take(MOST_PACKETS - 1).take_while(|next| run.add(next.as_ref())).count();
        if merged > 0 {
            self.write(&run);
        }
        1 + merged
    }

    /// The virtio-net header, and behind it the headers of the super-packet if packets were merged.
    #[must_use]
    pub fn head(&self) -> &[u8] {
        &self.head[..self.len]
    }

    /// Bytes of each packet's own headers that [`head`](Self::head) replaces; 0 for a packet that goes alone.
    #[must_use]
    pub const fn skip(&self) -> usize {
        self.len - Offload::LEN
    }

    fn begin<'a>(&self, first: &'a [u8]) -> Option<Run<'a>> {
        let layout = Layout::of(first).ok()?;
        let header = &first[layout.transport..];
        let payload = first.len() - layout.payload;
        let wanted = match layout.kind() {
            Kind::TcpV4 | Kind::TcpV6 => self.tcp && header[13] & !PUSH == ACK,
            Kind::Udp => self.udp,
        };
        // IPv6's extension headers are none of a plain flow's.
        let plain = !layout.v6 || layout.transport == 40;
        (wanted && plain && payload > 0).then_some(Run {
            first,
            layout,
            payload,
            len: first.len(),
            packets: 1,
            over: layout.tcp && header[13] & PUSH != 0,
            pushed: false,
        })
    }

    /// Writes the head of a run.
    fn write(&mut self, run: &Run<'_>) {
        let Layout { transport, payload, v6, tcp } = run.layout;
        let cut = Cut { kind: run.layout.kind(), size: run.payload as u16, cwr: false };
        let checksum = Some(run.layout.partial());
        let offload = Offload { checksum, verified: false, cut: Some(cut), headers: payload as u16 };
        self.len = Offload::LEN + payload;
        let (before, headers) = self.head[..self.len].split_at_mut(Offload::LEN);
        before.copy_from_slice(&offload.to_bytes());
        headers.copy_from_slice(&run.first[..payload]);
        if v6 {
            put_word(headers, 4, (run.len - 40) as u16);
        } else {
            put_word(headers, 2, run.len as u16);
            put_word(headers, 10, 0);
            let checksum = Sum::of(&headers[..transport]).checksum();
            put_word(headers, 10, checksum);
        }
        let len = (run.len - transport) as u16;
        if tcp {
            headers[transport + 13] |= if run.pushed { PUSH } else { 0 };
        } else {
            put_word(headers, transport + 4, len);
        }
        let sum = pseudo_of(run.first, run.layout).word(len).folded();
        put_word(headers, transport + run.layout.checksum_offset(), sum);
    }
}

/// Packets that are merged so far.
struct Run<'a> {
    first: &'a [u8],
    layout: Layout,
    /// Bytes of payload of each but the last.
    payload: usize,
    /// Bytes of the super-packet.
    len: usize,
    packets: u16,
    /// Nothing may follow: the last was short or said PSH.
    over: bool,
    pushed: bool,
}

impl Run<'_> {
    /// Adds `next` if it goes on where the run ends.
    fn add(&mut self, next: &[u8]) -> bool {
        let Some(payload) = next.len().checked_sub(self.layout.payload) else { return false };
        let fits = !self.over && (1..=self.payload).contains(&payload) && self.len + payload <= MOST_BYTES;
        if !fits || Layout::of(next) != Ok(self.layout) || !self.same_flow(next) || !self.in_order(next) {
            return false;
        }
        if self.packets == 1 && !is_sound(self.first, self.layout) || !is_sound(next, self.layout) {
            return false;
        }
        self.pushed = self.layout.tcp && next[self.layout.transport + 13] & PUSH != 0;
        self.over = self.pushed || payload < self.payload;
        self.len += payload;
        self.packets += 1;
        true
    }

    /// All of the headers that must be equal for one header to stand for both.
    fn same_flow(&self, next: &[u8]) -> bool {
        let Layout { transport, payload, v6, tcp } = self.layout;
        let same = |from: usize, to: usize| self.first[from..to] == next[from..to];
        let ip = if v6 { same(0, 4) && same(6, 40) } else { same(0, 2) && same(6, 10) && same(12, transport) };
        let flags = |packet: &[u8]| packet[transport + 13] & !PUSH;
        // Ports; acknowledgement and offset; window; urgent pointer and options.
        ip && same(transport, transport + 4)
            && (!tcp
                || same(transport + 8, transport + 13)
                    && same(transport + 14, transport + 16)
                    && same(transport + 18, payload)
                    && flags(self.first) == flags(next))
    }

    /// TCP's sequence numbers must join, and IPv4's identification too where it means something.
    fn in_order(&self, next: &[u8]) -> bool {
        let at = self.layout.transport;
        let sent = (self.len - self.layout.payload) as u32;
        let joined = !self.layout.tcp || tcp_sequence(self.first, at).wrapping_add(sent) == tcp_sequence(next, at);
        let id = word(self.first, 4).wrapping_add(self.packets);
        joined && (self.layout.v6 || next[6] & DO_NOT_FRAGMENT != 0 || word(next, 4) == id)
    }
}

fn pseudo_of(packet: &[u8], layout: Layout) -> Sum {
    pseudo(addresses(packet).unwrap_or_default(), if layout.tcp { protocol::TCP } else { protocol::UDP })
}

/// Whether the checksums are right, in the form that cutting gives them again.
fn is_sound(packet: &[u8], layout: Layout) -> bool {
    let body = &packet[layout.transport..];
    let field = word(body, layout.checksum_offset());
    let sum = pseudo_of(packet, layout).word(body.len() as u16).plus(Sum::of(body));
    let ip = layout.v6 || Sum::of(&packet[..layout.transport]).checksum() == 0;
    let length = layout.tcp || usize::from(word(body, 4)) == body.len();
    let canonical = if layout.tcp { field != 0xffff } else { field != 0 };
    ip && length && canonical && sum.checksum() == 0
}

#[cfg(test)]
mod tests;
