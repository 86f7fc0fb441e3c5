//! Packets are kept in a slab; pipes carry small descriptors with the packets' slots.

use link::EcnField;
use std::collections::BTreeSet;
use std::num::NonZeroU32;
use transport::tcp::{Ack, Segment, SegmentKind};
use transport::{mptcp, quic};
use units::Instant;

/// A packet's content.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Body {
    /// TCP, towards the receiver.
    TcpPacket(TcpPacket),
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
    /// A datagram of a hosted stack.
    Datagram {
        /// Its slot in the network's store.
        id: u32,
        /// Number among those that its end has sent, from zero.
        number: u64,
        /// Whether the end that has data sends it.
        is_data: bool,
    },
    /// A packet of no flow.
    Stray,
    /// A datagram of Ropewalk's tunnel, by its slot in the tunnel's own store.
    TunnelDatagram(u32),
}

/// Consecutive segments of TCP as one packet: one, or a super-segment, which TCP passes to the device of a Ropewalk tunnel
/// uncut, by segmentation offload (TSO). In the tunnel that is one inner packet, and the receiving host's TCP gets it as one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TcpPacket {
    pub first: Segment,
    pub segments: u32,
    /// Payload of each segment of a super-segment but the last, bytes.
    pub payload: u32,
}

impl TcpPacket {
    /// A segment.
    #[inline]
    pub(crate) fn new(segment: Segment) -> Self {
        Self { first: segment, segments: 1, payload: 0 }
    }

    /// Drops the first segment, and returns by how many bytes the packet is smaller; `None` if it is the only one.
    pub(crate) fn trim_first(&mut self) -> Option<u32> {
        if self.segments < 2 {
            return None;
        }
        self.first = Segment { seq: self.first.seq + 1, cwr: false, ..self.first };
        self.segments -= 1;
        Some(self.payload)
    }

    /// Number of the segment after the last one.
    #[inline]
    pub(crate) fn end(&self) -> u64 {
        self.first.seq + u64::from(self.segments)
    }

    pub(crate) fn is_continued_by(&self, next: &Segment) -> bool {
        next.kind == SegmentKind::Data
            && next.seq == self.end()
            && next.retransmission == self.first.retransmission
            && !next.cwr
    }
}

/// Where a packet leaves its host: on a path, by its number in the experiment, or into the tunnel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Route {
    Path(u16),
    Tunnel,
}

/// The direction in which a packet travels: forward is towards a flow's receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Towards the receiver.
    Forward = 0,
    /// Towards the sender.
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
}

/// The descriptor of a packet that pipes carry: its slot, and the fields that queues read or change. It consists of two
/// numbers, so that it is passed in registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PacketDescriptor {
    /// The slot, and in the upper half the size with all headers but the link layer's, bytes.
    slot_and_bytes: u64,
    /// The flow by the outermost headers (in a tunnel all packets of a path are one flow), then the ECN field of the
    /// outermost header and flags.
    flow_and_flags: NonZeroU32,
}

const ECN_SHIFT: u32 = 16;
/// The checksum is wrong.
const CORRUPTED: u32 = 1 << 18;
/// A copy that the link has just made; its slot is still the original's.
const NEW_COPY: u32 = 1 << 19;
/// The packet counts as a data packet.
const DATA: u32 = 1 << 20;
/// Set in every descriptor.
const PRESENT: NonZeroU32 = NonZeroU32::new(1 << 21).expect("a bit");

impl PacketDescriptor {
    /// The descriptor of a packet at its sending host.
    #[inline]
    pub(crate) fn new(slot: u32, bytes: u32, flow: u16, ecn: EcnField, is_data: bool) -> Self {
        let slot_and_bytes = u64::from(bytes) << 32 | u64::from(slot);
        let flags = (ecn as u32) << ECN_SHIFT | if is_data { DATA } else { 0 };
        Self { slot_and_bytes, flow_and_flags: PRESENT | u32::from(flow) | flags }
    }

    /// Whether the packet counts as a data packet.
    #[inline]
    pub(crate) fn is_data(self) -> bool {
        self.flow_and_flags.get() & DATA != 0
    }

    /// The packet's slot.
    #[inline]
    pub(crate) fn slot(self) -> u32 {
        self.slot_and_bytes as u32
    }

    /// The same packet in another slot.
    pub(crate) fn moved(self, slot: u32) -> Self {
        Self { slot_and_bytes: self.slot_and_bytes & !u64::from(u32::MAX) | u64::from(slot), ..self }
    }

    /// The same packet with an outer header of this many bytes, which belongs to `flow`.
    pub(crate) fn encapsulated(self, bytes: u32, flow: u16) -> Self {
        let flags = self.flow_and_flags.get() & !u32::from(u16::MAX);
        Self {
            slot_and_bytes: self.slot_and_bytes + (u64::from(bytes) << 32),
            flow_and_flags: PRESENT | flags | u32::from(flow),
        }
    }

    /// Whether the checksum is wrong.
    #[inline]
    pub(crate) fn is_corrupted(self) -> bool {
        self.flow_and_flags.get() & CORRUPTED != 0
    }

    /// Whether it is a copy that the link has just made, whose slot is still the original's.
    #[inline]
    pub(crate) fn is_new_copy(self) -> bool {
        self.flow_and_flags.get() & NEW_COPY != 0
    }

    /// A new copy with a separate slot.
    pub(crate) fn separated(self, slot: u32) -> Self {
        Self { flow_and_flags: PRESENT | self.flow_and_flags.get() & !NEW_COPY, ..self.moved(slot) }
    }
}

impl link::Packet for PacketDescriptor {
    #[inline]
    fn bytes(&self) -> u32 {
        (self.slot_and_bytes >> 32) as u32
    }

    fn flow(&self) -> u16 {
        self.flow_and_flags.get() as u16
    }

    #[inline]
    fn ecn(&self) -> EcnField {
        match self.flow_and_flags.get() >> ECN_SHIFT & 3 {
            0 => EcnField::NotEct,
            1 => EcnField::Ect0,
            2 => EcnField::Ect1,
            _ => EcnField::Ce,
        }
    }

    fn mark(&mut self) {
        let others = self.flow_and_flags.get() & !(3 << ECN_SHIFT);
        self.flow_and_flags = PRESENT | others | (self.ecn().marked() as u32) << ECN_SHIFT;
    }

    fn duplicate(&mut self) -> Self {
        Self { flow_and_flags: self.flow_and_flags | NEW_COPY, ..*self }
    }

    fn corrupt(&mut self) {
        self.flow_and_flags |= CORRUPTED;
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
    pub(crate) fn remove(&mut self, slot: u32) -> &Packet {
        self.free.push(slot);
        &self.packets[slot as usize]
    }

    /// Number of datagrams of Ropewalk's tunnel. (Looks at every packet.)
    pub(crate) fn tunnel_datagrams(&self) -> u64 {
        self.count(|body| matches!(body, Body::TunnelDatagram(_)))
    }

    /// Number of datagrams of hosted stacks. (Looks at every packet.)
    pub(crate) fn hosted_datagrams(&self) -> u64 {
        self.count(|body| matches!(body, Body::Datagram { .. }))
    }

    fn count(&self, is_counted: fn(&Body) -> bool) -> u64 {
        let free: BTreeSet<u32> = self.free.iter().copied().collect();
        let used = (0..).zip(&self.packets).filter(|(slot, _)| !free.contains(slot));
        used.filter(|(_, packet)| is_counted(&packet.body)).count() as u64
    }

    /// Number of packets.
    pub(crate) fn len(&self) -> u64 {
        (self.packets.len() - self.free.len()) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use link::Packet as _;

    const FIELDS: [EcnField; 4] = [EcnField::NotEct, EcnField::Ect0, EcnField::Ect1, EcnField::Ce];

    /// All fields of a descriptor.
    fn parts(descriptor: PacketDescriptor) -> (u32, u32, u16, EcnField, bool, bool, bool) {
        (
            descriptor.slot(),
            descriptor.bytes(),
            descriptor.flow(),
            descriptor.ecn(),
            descriptor.is_data(),
            descriptor.is_corrupted(),
            descriptor.is_new_copy(),
        )
    }

    #[test]
    fn a_descriptor_changes_in_one_field_at_a_time() {
        let (slot, bytes, flow) = (u32::MAX, 65_535, u16::MAX);
        for (ecn, is_data) in FIELDS.into_iter().flat_map(|ecn| [(ecn, false), (ecn, true)]) {
            let mut descriptor = PacketDescriptor::new(slot, bytes, flow, ecn, is_data);
            assert_eq!(parts(descriptor), (slot, bytes, flow, ecn, is_data, false, false));
            assert_eq!(parts(descriptor.moved(7)), (7, bytes, flow, ecn, is_data, false, false));
            assert_eq!(parts(descriptor.encapsulated(42, 5)), (slot, bytes + 42, 5, ecn, is_data, false, false));
            let copy = descriptor.duplicate();
            assert_eq!(parts(copy), (slot, bytes, flow, ecn, is_data, false, true));
            assert_eq!(parts(copy.separated(8)), (8, bytes, flow, ecn, is_data, false, false));
            descriptor.mark();
            assert_eq!(parts(descriptor), (slot, bytes, flow, ecn.marked(), is_data, false, false));
            descriptor.corrupt();
            assert_eq!(parts(descriptor), (slot, bytes, flow, ecn.marked(), is_data, true, false));
        }
    }

    #[test]
    fn the_first_segment_is_dropped_but_never_the_only_one() {
        let first = Segment {
            kind: SegmentKind::Data,
            seq: 7,
            tsval: 1,
            tsecr: 0,
            cwr: true,
            retransmission: false,
            psh: false,
        };
        let mut whole = TcpPacket { first, segments: 2, payload: 1386 };
        assert_eq!((whole.trim_first(), whole.trim_first()), (Some(1386), None));
        assert_eq!((whole.first.seq, whole.first.cwr, whole.segments, whole.end()), (8, false, 1, 9));
    }
}
