//! Reassembly of inner packets from the fragments that an [`Endpoint`](super::Endpoint) delivers, for its driver.
//!
//! A packet with a missing fragment is dropped. A packet of one fragment may be delivered between the fragments of
//! another packet of its stream. The memory of incomplete packets is bounded: beyond the bound, the one that began
//! first is dropped.

use super::packet::{Delivery, Payload};
use std::collections::BTreeMap;

/// Maximum length of a packet, bytes: an IP packet with its virtio-net header and padding. Bounds the memory of a
/// stream whatever a peer sends.
const MAX_PACKET_BYTES: u32 = 65_535 + 10 + 64;

/// Maximum memory of the incomplete packets of all streams, bytes: 64 of the longest, in buffers that double.
const MAX_INCOMPLETE_BYTES: u64 = 8 << 20;
/// Maximum number of buffers that are kept for further packets.
const MAX_SPARE_BUFFERS: usize = 4;

/// A driver's buffer for the fragments of one packet.
pub trait PacketBuffer<P>: Default {
    /// Removes all fragments.
    fn clear(&mut self);
    /// Appends the next fragment of the packet.
    fn append(&mut self, payload: &P);
    /// Memory that the buffer keeps in use, bytes.
    fn memory_bytes(&self) -> u64;
}

impl<P: Payload> PacketBuffer<P> for Vec<P> {
    fn clear(&mut self) {
        self.clear();
    }

    fn append(&mut self, payload: &P) {
        self.push(payload.clone());
    }

    fn memory_bytes(&self) -> u64 {
        self.iter().map(Payload::memory_bytes).sum::<u64>() + (self.capacity() * size_of::<P>()) as u64
    }
}

/// The packet of a stream that is being reassembled; no fragment of it is missing.
#[derive(Clone, Debug)]
struct PartialPacket<B> {
    buffer: B,
    bytes: u32,
    /// The memory of the buffer, bytes.
    memory: u64,
    /// Its place in the order in which packets began.
    order: u64,
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
    /// The incomplete packet of each stream that has one.
    streams: BTreeMap<u8, PartialPacket<B>>,
    /// The memory of the incomplete packets, bytes.
    memory: u64,
    /// Packets of several fragments that have begun.
    begun: u64,
    /// The latest packet that was complete.
    complete: B,
    spare: Vec<B>,
    /// Packets dropped because a fragment or memory was missing.
    pub incomplete_packets: u64,
}

impl<B: Default> Default for Reassembler<B> {
    fn default() -> Self {
        Self {
            streams: BTreeMap::new(),
            memory: 0,
            begun: 0,
            complete: B::default(),
            spare: Vec::new(),
            incomplete_packets: 0,
        }
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
            self.complete.clear();
            self.complete.append(payload);
            return Some(ReassembledPacket { buffer: &mut self.complete, ce: *ce });
        }
        if *first {
            self.drop_incomplete(*stream);
            self.begin(*stream);
        }
        let partial = self.streams.get_mut(stream)?;
        if !first && (*gap || partial.bytes + payload.len() > MAX_PACKET_BYTES) {
            self.drop_incomplete(*stream);
            return None;
        }
        partial.buffer.append(payload);
        partial.bytes += payload.len();
        partial.ce |= ce;
        if *last {
            return self.complete(*stream);
        }
        let memory = partial.buffer.memory_bytes();
        self.memory = self.memory - partial.memory + memory;
        partial.memory = memory;
        while self.memory > MAX_INCOMPLETE_BYTES {
            self.drop_oldest();
        }
        None
    }

    /// Memory of the incomplete packets, bytes: at most 8 MiB.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        self.memory
    }

    /// Checks the charged memory by counting again.
    ///
    /// # Panics
    /// If the sum differs, or too much memory is held.
    #[doc(hidden)]
    pub fn check<P>(&self)
    where
        B: PacketBuffer<P>,
    {
        let partials = || self.streams.values();
        assert_eq!(self.memory, partials().map(|partial| partial.buffer.memory_bytes()).sum::<u64>());
        assert!(self.memory <= MAX_INCOMPLETE_BYTES && self.spare.len() <= MAX_SPARE_BUFFERS);
        assert!(partials().all(|partial| partial.bytes <= MAX_PACKET_BYTES));
    }

    fn begin<P>(&mut self, stream: u8)
    where
        B: PacketBuffer<P>,
    {
        let buffer = self.spare.pop().unwrap_or_default();
        self.begun += 1;
        let partial = PartialPacket { buffer, bytes: 0, memory: 0, order: self.begun, ce: false };
        self.streams.insert(stream, partial);
    }

    fn complete<P>(&mut self, stream: u8) -> Option<ReassembledPacket<'_, B>>
    where
        B: PacketBuffer<P>,
    {
        let partial = self.streams.remove(&stream)?;
        self.memory -= partial.memory;
        let previous = std::mem::replace(&mut self.complete, partial.buffer);
        self.keep(previous);
        Some(ReassembledPacket { buffer: &mut self.complete, ce: partial.ce })
    }

    fn drop_oldest<P>(&mut self)
    where
        B: PacketBuffer<P>,
    {
        if let Some((oldest, _)) = self.streams.iter().min_by_key(|(_, partial)| partial.order) {
            let oldest = *oldest;
            self.drop_incomplete(oldest);
        }
    }

    /// Drops the incomplete packet of a stream, if there is one.
    fn drop_incomplete<P>(&mut self, stream: u8)
    where
        B: PacketBuffer<P>,
    {
        if let Some(partial) = self.streams.remove(&stream) {
            self.memory -= partial.memory;
            self.incomplete_packets += 1;
            self.keep(partial.buffer);
        }
    }

    /// Keeps a buffer for another packet, unless there are enough.
    fn keep<P>(&mut self, mut buffer: B)
    where
        B: PacketBuffer<P>,
    {
        if self.spare.len() < MAX_SPARE_BUFFERS {
            buffer.clear();
            self.spare.push(buffer);
        }
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
