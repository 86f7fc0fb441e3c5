//! Packets that wait for the transmitter, first in, first out.

use std::collections::VecDeque;
use units::Instant;

/// Length of a queue.
#[derive(Clone, Copy, Debug)]
pub(super) struct Backlog {
    pub(super) packets: u64,
    /// Bytes, with the link's overhead.
    pub(super) bytes: u64,
}

/// A packet in a queue.
#[derive(Debug)]
pub(super) struct QueuedPacket<P> {
    /// Time at which the packet joined the queue.
    pub(super) arrived: Instant,
    /// Bytes, with the link's overhead.
    pub(super) size: u64,
    pub(super) packet: P,
}

/// A first-in, first-out queue of packets and its length in bytes.
#[derive(Debug)]
pub(super) struct PacketQueue<P> {
    packets: VecDeque<QueuedPacket<P>>,
    bytes: u64,
}

impl<P> Default for PacketQueue<P> {
    fn default() -> Self {
        Self { packets: VecDeque::new(), bytes: 0 }
    }
}

impl<P> PacketQueue<P> {
    pub(super) fn push(&mut self, packet: QueuedPacket<P>) {
        self.bytes += packet.size;
        self.packets.push_back(packet);
    }

    pub(super) fn pop(&mut self) -> Option<QueuedPacket<P>> {
        let head = self.packets.pop_front()?;
        self.bytes -= head.size;
        Some(head)
    }

    pub(super) fn head(&self) -> Option<&QueuedPacket<P>> {
        self.packets.front()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }

    pub(super) fn packets(&self) -> u64 {
        self.packets.len() as u64
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }
}
