//! Packets live in one slab; what moves through pipes is a small parcel that names a slot.

use std::collections::BTreeSet;
use transport::mptcp;
use transport::tcp::{Ack, Segment};
use units::Instant;

/// A packet's content.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Body {
    /// TCP, towards the receiver.
    Segment(Segment),
    /// TCP, towards the sender.
    Ack(Ack),
    /// MPTCP, towards the receiver.
    DataSegment(mptcp::Segment),
    /// MPTCP, towards the sender.
    DataAck(mptcp::Ack),
    /// A client's request, by its number, towards the sender.
    Request(u32),
    /// UDP background.
    Datagram {
        /// When it was sent.
        sent: Instant,
    },
    /// Belongs to no flow.
    Stray,
    /// A datagram of Ropewalk's tunnel, by its place in the tunnel's own store.
    Tunnelled(u32),
}

/// Towards the receiving or the sending side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    Forward = 0,
    Reverse = 1,
}

impl Direction {
    /// The way back.
    pub(crate) fn other(self) -> Self {
        match self {
            Self::Forward => Self::Reverse,
            Self::Reverse => Self::Forward,
        }
    }
}

/// A packet on its way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Packet {
    pub body: Body,
    /// Number in the tunnel's sequence, if it goes through the tunnel.
    pub tunnel_seq: Option<u64>,
    pub flow: u16,
    /// Of the flow's connections or subflows, the one that it belongs to.
    pub connection: u16,
    pub path: u16,
    pub hop: u8,
    pub direction: Direction,
}

impl Packet {
    /// At its host, about to leave.
    #[inline]
    pub(crate) fn new(body: Body, flow: u16, connection: u16, direction: Direction) -> Self {
        Self { body, tunnel_seq: None, flow, connection, path: 0, hop: 0, direction }
    }

    /// What a queue tells flows by: a new connection is a new flow. (Multiples of an odd number go through all others
    /// before they meet another flow's.)
    #[inline]
    pub(crate) fn label(&self) -> u16 {
        self.flow.wrapping_add(self.connection.wrapping_mul(0x9e37))
    }

    /// Counts as a data packet in benchmarks.
    pub(crate) fn is_data(&self) -> bool {
        self.direction == Direction::Forward
    }
}

/// What moves through pipes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Parcel {
    pub slot: u32,
    /// Size with all headers but the link's own, bytes.
    pub bytes: u32,
    /// The flow as a queue can tell from the outermost headers: in a tunnel, all packets of a path are one.
    pub flow: u16,
    /// ECN-capable transport.
    pub capable: bool,
    /// Congestion experienced.
    pub marked: bool,
}

impl link::Packet for Parcel {
    fn bytes(&self) -> u32 {
        self.bytes
    }

    fn flow(&self) -> u16 {
        self.flow
    }

    fn ecn_capable(&self) -> bool {
        self.capable
    }

    fn mark(&mut self) {
        self.marked = true;
    }
}

/// Packets by slot; freed slots are used again.
#[derive(Debug, Default)]
pub(crate) struct Slab {
    packets: Vec<Packet>,
    free: Vec<u32>,
}

impl Slab {
    #[inline]
    pub(crate) fn insert(&mut self, packet: Packet) -> u32 {
        if let Some(slot) = self.free.pop() {
            self.packets[slot as usize] = packet;
            return slot;
        }
        self.packets.push(packet);
        (self.packets.len() - 1) as u32
    }

    #[inline]
    pub(crate) fn get(&self, slot: u32) -> &Packet {
        &self.packets[slot as usize]
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, slot: u32) -> &mut Packet {
        &mut self.packets[slot as usize]
    }

    /// The packet has arrived or is lost.
    #[inline]
    pub(crate) fn remove(&mut self, slot: u32) -> Packet {
        self.free.push(slot);
        self.packets[slot as usize]
    }

    /// Datagrams of Ropewalk's tunnel in it. (Looks at every packet.)
    pub(crate) fn tunnelled(&self) -> u64 {
        let free: BTreeSet<u32> = self.free.iter().copied().collect();
        let used = (0..).zip(&self.packets).filter(|(slot, _)| !free.contains(slot));
        used.filter(|(_, packet)| matches!(packet.body, Body::Tunnelled(_))).count() as u64
    }

    /// Packets in it.
    pub(crate) fn len(&self) -> u64 {
        (self.packets.len() - self.free.len()) as u64
    }
}
