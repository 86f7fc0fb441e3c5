//! Reassembly of inner packets from the fragments that an [`Endpoint`](super::Endpoint) delivers, for its driver.
//!
//! A packet with a missing fragment is dropped. A packet of one fragment may be delivered between the fragments of
//! another packet of its stream.

use super::ingress::STREAMS;
use super::packet::{Delivery, Payload};

/// Maximum length of a packet, bytes: an IP packet with its virtio-net header and padding. Bounds the memory of a
/// stream whatever a peer sends.
const MAX_PACKET_BYTES: u32 = 65_535 + 10 + 64;

/// A driver's buffer for the fragments of one packet.
pub trait PacketBuffer<P>: Default {
    /// Removes all fragments.
    fn clear(&mut self);
    /// Appends the next fragment of the packet.
    fn append(&mut self, payload: &P);
}

impl<P: Clone> PacketBuffer<P> for Vec<P> {
    fn clear(&mut self) {
        self.clear();
    }

    fn append(&mut self, payload: &P) {
        self.push(payload.clone());
    }
}

/// The packet of a stream that is being reassembled.
#[derive(Clone, Debug, Default)]
struct PartialPacket<B> {
    buffer: B,
    bytes: u32,
    /// Whether a packet has begun, and no fragment of it is missing.
    is_valid: bool,
    ce: bool,
}

/// A reassembled packet.
#[derive(Debug)]
pub struct ReassembledPacket<'a, B> {
    /// All of its fragments.
    pub buffer: &'a mut B,
    /// Whether a fragment was marked CE.
    pub ce: bool,
}

/// Reassembles the packets of all streams.
#[derive(Debug)]
pub struct Reassembler<B> {
    streams: Vec<PartialPacket<B>>,
    /// A packet of one fragment.
    single: B,
    /// Packets dropped because a fragment was missing.
    pub incomplete_packets: u64,
}

impl<B: Default> Default for Reassembler<B> {
    fn default() -> Self {
        let streams =
            (0..STREAMS).map(|_| PartialPacket { buffer: B::default(), bytes: 0, is_valid: false, ce: false });
        Self { streams: streams.collect(), single: B::default(), incomplete_packets: 0 }
    }
}

impl<B> Reassembler<B> {
    /// Adds a fragment; returns the packet that it completes.
    pub fn add<P: Payload>(&mut self, delivery: &Delivery<P>) -> Option<ReassembledPacket<'_, B>>
    where
        B: PacketBuffer<P>,
    {
        let Delivery { stream, payload, first, last, gap, ce } = delivery;
        if *first && *last {
            self.single.clear();
            self.single.append(payload);
            return Some(ReassembledPacket { buffer: &mut self.single, ce: *ce });
        }
        let partial = &mut self.streams[usize::from(*stream)];
        let was_valid = partial.is_valid;
        if *first {
            partial.buffer.clear();
            (partial.bytes, partial.is_valid, partial.ce) = (0, true, false);
        } else {
            partial.is_valid &= !gap && partial.bytes + payload.len() <= MAX_PACKET_BYTES;
        }
        self.incomplete_packets += u64::from(was_valid && (*first || !partial.is_valid));
        if !partial.is_valid {
            return None;
        }
        partial.buffer.append(payload);
        partial.bytes += payload.len();
        partial.ce |= ce;
        partial.is_valid = !last;
        last.then_some(ReassembledPacket { ce: partial.ce, buffer: &mut partial.buffer })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Debug, PartialEq)]
    struct Text(&'static str);

    impl Payload for Text {
        fn len(&self) -> u32 {
            self.0.len() as u32
        }

        fn slice(&self, start: u32, end: u32) -> Self {
            Self(&self.0[start as usize..end as usize])
        }
    }

    /// Adds fragments (text, first, last, gap), of which "marked" carries CE; returns the reassembled packets.
    fn add_all(
        reassembler: &mut Reassembler<Vec<Text>>,
        fragments: &[(&'static str, bool, bool, bool)],
    ) -> Vec<(String, bool)> {
        let add = |(text, first, last, gap): &(&'static str, bool, bool, bool)| {
            let (first, last, gap, ce) = (*first, *last, *gap, *text == "marked");
            let packet = reassembler.add(&Delivery { stream: 7, payload: Text(text), first, last, gap, ce })?;
            Some((packet.buffer.iter().map(|text| text.0).collect(), packet.ce))
        };
        fragments.iter().filter_map(add).collect()
    }

    #[test]
    fn fragments_make_a_packet_and_a_packet_of_one_fragment_may_arrive_between() {
        let mut reassembler = Reassembler::default();
        let fragments = [
            ("rope", true, false, false),
            ("one", true, true, false),
            ("marked", false, false, false),
            ("walk", false, true, false),
        ];
        let expected = [("one".to_owned(), false), ("ropemarkedwalk".to_owned(), true)];
        assert_eq!(add_all(&mut reassembler, &fragments), expected);
        assert_eq!(reassembler.incomplete_packets, 0);
    }

    #[test]
    fn a_packet_with_a_gap_is_dropped_and_the_next_one_is_not() {
        let mut reassembler = Reassembler::default();
        let fragments = [
            ("a", true, false, false),
            ("c", false, false, true),
            ("d", false, true, false),
            ("e", true, false, false),
            ("f", false, true, false),
        ];
        assert_eq!(add_all(&mut reassembler, &fragments), [("ef".to_owned(), false)]);
        assert_eq!(reassembler.incomplete_packets, 1);
        assert_eq!(add_all(&mut reassembler, &[("g", false, true, false)]), []);
    }
}
