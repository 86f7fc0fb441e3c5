//! The packets in flight, as far as a stack tells them.

use sender::path::Outstanding;
use sender::recovery::SendSnapshot;
use std::collections::VecDeque;
use units::Instant;

/// Maximum number of packets in flight that are known: 6 Gbit/s over 100 ms. Beyond it the oldest is forgotten, because a
/// stack that does not tell acknowledgements from other packets may report endless numbers that nobody acknowledges.
const MAX_PACKETS: usize = 1 << 16;

/// A packet in flight.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SentPacket {
    /// Its position among all packets of the path.
    pub seq: u64,
    /// Its packet number, if the stack tells it.
    pub number: Option<u64>,
    pub sent: Instant,
    pub bytes: u64,
    /// Full packets that it counts as.
    pub segments: u32,
    pub snapshot: SendSnapshot,
}

/// The packets in flight, in the order in which they were sent.
#[derive(Debug, Default)]
pub(crate) struct SentPackets {
    packets: VecDeque<SentPacket>,
    next: u64,
    bytes: u64,
    segments: u32,
}

impl SentPackets {
    pub(crate) fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }

    /// Bytes in flight.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Full packets in flight.
    pub(crate) fn segments(&self) -> u32 {
        self.segments
    }

    /// The position of the next packet.
    pub(crate) fn next(&self) -> u64 {
        self.next
    }

    /// The position of the oldest packet in flight, or of the next one.
    pub(crate) fn oldest(&self) -> u64 {
        self.packets.front().map_or(self.next, |packet| packet.seq)
    }

    pub(crate) fn outstanding(&self) -> Outstanding {
        let in_flight = self.segments;
        Outstanding { in_flight, packets_out: in_flight, sacked: 0, snd_una: self.oldest(), snd_nxt: self.next }
    }

    pub(crate) fn push(&mut self, packet: SentPacket) {
        if self.packets.len() == MAX_PACKETS {
            self.remove(0);
        }
        self.next = packet.seq + 1;
        (self.bytes, self.segments) = (self.bytes + packet.bytes, self.segments + packet.segments);
        self.packets.push_back(packet);
    }

    fn remove(&mut self, index: usize) -> Option<SentPacket> {
        let packet = self.packets.remove(index)?;
        (self.bytes, self.segments) = (self.bytes - packet.bytes, self.segments - packet.segments);
        Some(packet)
    }

    /// Takes the packet that was sent at `sent`. Without a number, it is the oldest of those that were.
    pub(crate) fn take_sent(&mut self, sent: Instant, number: Option<u64>) -> Option<SentPacket> {
        let first = self.packets.partition_point(|packet| packet.sent < sent);
        let mut at_once = self.packets.range(first..).take_while(|packet| packet.sent == sent);
        let offset = at_once.position(|packet| number.is_none() || packet.number == number)?;
        self.remove(first + offset)
    }

    /// Takes the oldest packet with this number.
    pub(crate) fn take_numbered(&mut self, number: u64) -> Option<SentPacket> {
        // Lost packets are older than nearly all others.
        let index = self.packets.iter().position(|packet| packet.number == Some(number))?;
        self.remove(index)
    }

    /// Takes the oldest packet if it was sent at `newest` or before.
    pub(crate) fn take_oldest(&mut self, newest: Instant) -> Option<SentPacket> {
        if self.packets.front()?.sent > newest {
            return None;
        }
        self.remove(0)
    }

    /// Forgets packets that the stack, which has `bytes` in flight, no longer counts: those of a number space that was
    /// discarded, and acknowledgements, which nobody acknowledges.
    pub(crate) fn forget_beyond(&mut self, bytes: u64) {
        while self.packets.front().is_some_and(|packet| packet.bytes <= self.bytes.saturating_sub(bytes)) {
            self.remove(0);
        }
    }
}
