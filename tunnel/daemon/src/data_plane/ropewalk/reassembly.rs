//! Reassembly of packets from fragments. A packet with a missing fragment is dropped; a packet of one fragment is copied once.

use super::packet::PacketSlice;
use machine::Delivery;

/// The largest packet: an IP packet with its virtio-net header and padding, bytes.
const MAX_BYTES: usize = 65_535 + wire::virtio::VirtioNetHeader::LEN + 64;
const STREAMS: usize = 256;

/// The packet of a stream that is being reassembled.
#[derive(Debug, Default)]
struct PartialPacket {
    bytes: Vec<u8>,
    /// Whether a packet has begun, and no fragment of it is missing.
    is_valid: bool,
    ce: bool,
}

/// A reassembled packet.
#[derive(Debug)]
pub(super) struct Reassembled<'a> {
    pub(super) bytes: &'a mut [u8],
    /// Whether it begins with a virtio-net header.
    pub(super) offload: bool,
    /// Whether a fragment was marked CE on the way.
    pub(super) ce: bool,
}

/// Reassembles the packets of all streams of a peer.
#[derive(Debug)]
pub(super) struct Reassembler {
    streams: Vec<PartialPacket>,
    /// A packet of one fragment.
    single: Vec<u8>,
    /// Packets dropped because a fragment was missing.
    pub(super) incomplete: u64,
}

impl Reassembler {
    pub(super) fn new() -> Self {
        let streams = (0..STREAMS).map(|_| PartialPacket::default()).collect();
        Self { streams, single: Vec::new(), incomplete: 0 }
    }

    /// Adds a fragment; returns the packet that it completes.
    pub(super) fn add(&mut self, delivery: &Delivery<PacketSlice>) -> Option<Reassembled<'_>> {
        let Delivery { stream, payload, first, last, gap, ce } = delivery;
        let offload = payload.offload;
        if *first && *last {
            // It may arrive between the fragments of another packet.
            self.single.clear();
            self.single.extend_from_slice(&payload.bytes);
            return Some(Reassembled { bytes: &mut self.single, offload, ce: *ce });
        }
        let partial = &mut self.streams[usize::from(*stream)];
        let was_valid = partial.is_valid;
        if *first {
            partial.bytes.clear();
            (partial.is_valid, partial.ce) = (true, false);
        } else {
            partial.is_valid &= !gap && partial.bytes.len() + payload.bytes.len() <= MAX_BYTES;
        }
        self.incomplete += u64::from(was_valid && (*first || !partial.is_valid));
        if !partial.is_valid {
            return None;
        }
        partial.bytes.extend_from_slice(&payload.bytes);
        partial.ce |= ce;
        partial.is_valid = !last;
        last.then_some(Reassembled { ce: partial.ce, bytes: &mut partial.bytes, offload })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data_plane::buffer::{Pool, SizeClass};

    /// Adds fragments (text, first, last, gap); returns the reassembled packets.
    fn add_all(reassembler: &mut Reassembler, fragments: &[(&str, bool, bool, bool)]) -> Vec<(String, bool)> {
        let mut pool = Pool::new(8, 0);
        let mut packets = Vec::new();
        for (text, first, last, gap) in fragments {
            let mut buffer = pool.take(SizeClass::Small).expect("enough buffers");
            buffer[..text.len()].copy_from_slice(text.as_bytes());
            let payload = PacketSlice { bytes: buffer.freeze(text.len()), offload: false, tos: 0 };
            let ce = *text == "marked";
            let delivery = Delivery { stream: 7, payload, first: *first, last: *last, gap: *gap, ce };
            let text = reassembler.add(&delivery).map(|it| (String::from_utf8_lossy(it.bytes).into_owned(), it.ce));
            packets.extend(text);
        }
        packets
    }

    #[test]
    fn fragments_make_a_packet_and_a_packet_of_one_fragment_may_arrive_between() {
        let mut reassembler = Reassembler::new();
        let fragments = [
            ("rope", true, false, false),
            ("one", true, true, false),
            ("marked", false, false, false),
            ("walk", false, true, false),
        ];
        let expected = [("one".to_owned(), false), ("ropemarkedwalk".to_owned(), true)];
        assert_eq!(add_all(&mut reassembler, &fragments), expected);
        assert_eq!(reassembler.incomplete, 0);
    }

    #[test]
    fn a_packet_with_a_gap_is_dropped_and_the_next_one_is_not() {
        let mut reassembler = Reassembler::new();
        let fragments = [
            ("a", true, false, false),
            ("c", false, false, true),
            ("d", false, true, false),
            ("e", true, false, false),
            ("f", false, true, false),
        ];
        assert_eq!(add_all(&mut reassembler, &fragments), [("ef".to_owned(), false)]);
        assert_eq!(reassembler.incomplete, 1);
        assert_eq!(add_all(&mut reassembler, &[("g", false, true, false)]), []);
    }
}
