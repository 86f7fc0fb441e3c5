//! Packets are kept in a slab; pipes carry small descriptors with the packets' slots.

use crate::super_segment::SuperSegment;
use link::EcnField;
use std::collections::BTreeSet;
use transport::tcp::{Ack, Segment};
use transport::{mptcp, quic};
use units::Instant;

/// A packet's content.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Body {
    /// TCP, towards the receiver.
    TcpSegment(Segment),
    /// TCP, towards the receiver: several segments as one packet.
    TcpSuperSegment(SuperSegment),
    /// TCP, towards the sender.
    TcpAck(Ack),
    /// MPTCP, towards the receiver.
    MptcpSegment(mptcp::Segment),
    /// MPTCP, towards the sender.
    MptcpAck(mptcp::Ack),
    /// Multipath QUIC, towards the receiver.
    QuicPacket(quic::Packet),
    /// Multipath QUIC, towards the sender.
    QuicReply(quic::Reply),
    /// A client's request, by its number, towards the sender.
    Request(u32),
    /// A UDP datagram.
    Udp {
        /// Send time.
        sent: Instant,
        /// Number in its flow, from zero.
        number: u64,
    },
    /// A packet of no flow.
    Stray,
    /// A datagram of Ropewalk's tunnel, by its slot in the tunnel's own store.
    TunnelDatagram(u32),
}

/// The direction in which a packet travels: forward is towards a flow's receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    Forward = 0,
    Reverse = 1,
}

impl Direction {
    /// The opposite direction.
    pub(crate) fn other(self) -> Self {
        match self {
            Self::Forward => Self::Reverse,
            Self::Reverse => Self::Forward,
        }
    }
}

/// A packet in the network.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Packet {
    pub body: Body,
    /// The GRE sequence number in an MPT tunnel.
    pub tunnel_seq: Option<u64>,
    pub flow: u16,
    /// The connection or subflow of the flow that the packet belongs to.
    pub connection: u16,
    pub path: u16,
    pub hop: u8,
    pub direction: Direction,
}

impl Packet {
    /// A packet at its sending host.
    #[inline]
    pub(crate) fn new(body: Body, flow: u16, connection: u16, direction: Direction) -> Self {
        Self { body, tunnel_seq: None, flow, connection, path: 0, hop: 0, direction }
    }

    /// The flow number by which queue disciplines classify: each connection is a flow of its own. (Multiples of an odd
    /// number do not repeat within 16 bits.)
    #[inline]
    pub(crate) fn flow_hash(&self) -> u16 {
        self.flow.wrapping_add(self.connection.wrapping_mul(0x9e37))
    }

    /// Whether it counts as a data packet; a datagram of a tunnel does in the forward direction.
    pub(crate) fn is_data(&self) -> bool {
        match self.body {
            Body::TcpSegment(_)
            | Body::TcpSuperSegment(_)
            | Body::MptcpSegment(_)
            | Body::QuicPacket(_)
            | Body::Udp { .. } => true,
            Body::TcpAck(_) | Body::MptcpAck(_) | Body::QuicReply(_) | Body::Request(_) => false,
            Body::Stray | Body::TunnelDatagram(_) => self.direction == Direction::Forward,
        }
    }
}

/// The descriptor of a packet that pipes carry: its slot, and the fields that queues read or change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PacketDescriptor {
    pub slot: u32,
    /// Size with all headers but the link layer's, bytes.
    pub bytes: u32,
    /// The flow by the outermost headers: in a tunnel all packets of a path are one.
    pub flow: u16,
    /// The ECN field of the outermost header.
    pub ecn: EcnField,
    /// The checksum is wrong.
    pub corrupted: bool,
    /// A copy that a wire has just made; its slot is still the original's.
    pub is_new_copy: bool,
}

impl PacketDescriptor {
    /// The descriptor of a packet at its sending host.
    #[inline]
    pub(crate) fn new(slot: u32, bytes: u32, flow: u16, ecn: EcnField) -> Self {
        Self { slot, bytes, flow, ecn, corrupted: false, is_new_copy: false }
    }
}

impl link::Packet for PacketDescriptor {
    fn bytes(&self) -> u32 {
        self.bytes
    }

    fn flow(&self) -> u16 {
        self.flow
    }

    fn ecn(&self) -> EcnField {
        self.ecn
    }

    fn mark(&mut self) {
        self.ecn = self.ecn.marked();
    }

    fn duplicate(&mut self) -> Self {
        Self { is_new_copy: true, ..*self }
    }

    fn corrupt(&mut self) {
        self.corrupted = true;
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

    /// Frees the slot of a packet that has arrived or is lost.
    #[inline]
    pub(crate) fn remove(&mut self, slot: u32) -> Packet {
        self.free.push(slot);
        self.packets[slot as usize]
    }

    /// Number of datagrams of Ropewalk's tunnel. (Looks at every packet.)
    pub(crate) fn tunnel_datagrams(&self) -> u64 {
        let free: BTreeSet<u32> = self.free.iter().copied().collect();
        let used = (0..).zip(&self.packets).filter(|(slot, _)| !free.contains(slot));
        used.filter(|(_, packet)| matches!(packet.body, Body::TunnelDatagram(_))).count() as u64
    }

    /// Number of packets.
    pub(crate) fn len(&self) -> u64 {
        (self.packets.len() - self.free.len()) as u64
    }
}
