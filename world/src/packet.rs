//! Packets are kept in a slab; pipes carry small descriptors with the packets' slots.

use link::EcnField;
use std::collections::BTreeSet;
use std::num::NonZeroU32;

/// The direction in which a packet travels along its path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Towards the receiver.
    Forward = 0,
    /// Towards the sender.
    Reverse = 1,
}

impl Direction {
    /// The opposite direction.
    #[inline]
    #[must_use]
    pub fn other(self) -> Self {
        match self {
            Self::Forward => Self::Reverse,
            Self::Reverse => Self::Forward,
        }
    }
}

/// A packet in the network.
#[derive(Clone, Copy, Debug)]
pub struct Packet<C> {
    /// What it carries.
    pub content: C,
    /// The flow that it belongs to.
    pub flow: u16,
    /// The connection or subflow of the flow that it belongs to.
    pub connection: u16,
    /// Its path, once it has entered it.
    pub path: u16,
    /// Pipes of its path that it has crossed.
    pub(crate) hop: u8,
    /// The direction in which it travels.
    pub direction: Direction,
}

impl<C> Packet<C> {
    /// A packet at its sending host.
    #[inline]
    pub fn new(content: C, flow: u16, connection: u16, direction: Direction) -> Self {
        Self { content, flow, connection, path: 0, hop: 0, direction }
    }

    /// The flow number by which queue disciplines classify: each connection is a separate flow. (Multiples of an odd
    /// number do not repeat within 16 bits.)
    #[inline]
    #[must_use]
    pub fn flow_hash(&self) -> u16 {
        self.flow.wrapping_add(self.connection.wrapping_mul(0x9e37))
    }
}

/// The descriptor of a packet that pipes carry: its slot, and the fields that queues read or change. It consists of two
/// numbers, so that it is passed in registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketDescriptor {
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
/// The pipe that the packet is in, or the latest one, has set CE.
const MARKED: u32 = 1 << 21;
/// Set in every descriptor.
const PRESENT: NonZeroU32 = NonZeroU32::new(1 << 22).expect("a bit");

impl PacketDescriptor {
    /// The descriptor of a packet at its sending host.
    #[inline]
    pub fn new(slot: u32, bytes: u32, flow: u16, ecn: EcnField, is_data: bool) -> Self {
        let slot_and_bytes = u64::from(bytes) << 32 | u64::from(slot);
        let flags = (ecn as u32) << ECN_SHIFT | if is_data { DATA } else { 0 };
        Self { slot_and_bytes, flow_and_flags: PRESENT | u32::from(flow) | flags }
    }

    /// Whether the packet counts as a data packet.
    #[inline]
    #[must_use]
    pub fn is_data(self) -> bool {
        self.flow_and_flags.get() & DATA != 0
    }

    /// The packet's slot.
    #[inline]
    #[must_use]
    pub fn slot(self) -> u32 {
        self.slot_and_bytes as u32
    }

    /// The same packet in another slot.
    #[must_use]
    pub fn moved(self, slot: u32) -> Self {
        Self { slot_and_bytes: self.slot_and_bytes & !u64::from(u32::MAX) | u64::from(slot), ..self }
    }

    /// The same packet with an outer header of this many bytes, which belongs to `flow`.
    #[must_use]
    pub fn encapsulated(self, bytes: u32, flow: u16) -> Self {
        let flags = self.flow_and_flags.get() & !u32::from(u16::MAX);
        Self {
            slot_and_bytes: self.slot_and_bytes + (u64::from(bytes) << 32),
            flow_and_flags: PRESENT | flags | u32::from(flow),
        }
    }

    /// Whether the checksum is wrong.
    #[inline]
    #[must_use]
    pub fn is_corrupted(self) -> bool {
        self.flow_and_flags.get() & CORRUPTED != 0
    }

    /// Whether it is a copy that the link has just made, whose slot is still the original's.
    #[inline]
    pub(crate) fn is_new_copy(self) -> bool {
        self.flow_and_flags.get() & NEW_COPY != 0
    }

    /// Whether a pipe has set CE since this was last [cleared](Self::without_news).
    pub(crate) fn is_newly_marked(self) -> bool {
        self.flow_and_flags.get() & MARKED != 0 && link::Packet::ecn(&self) == EcnField::Ce
    }

    /// The same packet, of which it is known that it is marked.
    pub(crate) fn without_news(self) -> Self {
        Self { flow_and_flags: PRESENT | self.flow_and_flags.get() & !MARKED, ..self }
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
        self.flow_and_flags = PRESENT | others | (self.ecn().marked() as u32) << ECN_SHIFT | MARKED;
    }

    fn duplicate(&mut self) -> Self {
        Self { flow_and_flags: self.flow_and_flags | NEW_COPY, ..*self }
    }

    fn corrupt(&mut self) {
        self.flow_and_flags |= CORRUPTED;
    }
}

/// Packets by slot; freed slots are used again.
#[derive(Debug)]
pub struct Slab<C> {
    packets: Vec<Packet<C>>,
    free: Vec<u32>,
}

impl<C> Default for Slab<C> {
    fn default() -> Self {
        Self { packets: Vec::new(), free: Vec::new() }
    }
}

impl<C> Slab<C> {
    /// Stores a packet, and returns its slot.
    #[inline]
    pub fn insert(&mut self, packet: Packet<C>) -> u32 {
        if let Some(slot) = self.free.pop() {
            self.packets[slot as usize] = packet;
            return slot;
        }
        self.packets.push(packet);
        (self.packets.len() - 1) as u32
    }

    /// The packet in a slot.
    #[inline]
    #[must_use]
    pub fn get(&self, slot: u32) -> &Packet<C> {
        &self.packets[slot as usize]
    }

    /// The packet in a slot.
    #[inline]
    pub fn get_mut(&mut self, slot: u32) -> &mut Packet<C> {
        &mut self.packets[slot as usize]
    }

    /// Frees the slot of a packet that has arrived or is lost. It holds the packet until the next [`insert`](Self::insert).
    #[inline]
    pub fn remove(&mut self, slot: u32) -> &Packet<C> {
        self.free.push(slot);
        &self.packets[slot as usize]
    }

    /// Number of packets with such a content. (Looks at every packet.)
    #[must_use]
    pub fn count(&self, is_counted: impl Fn(&C) -> bool) -> u64 {
        let free: BTreeSet<u32> = self.free.iter().copied().collect();
        let used = (0..).zip(&self.packets).filter(|(slot, _)| !free.contains(slot));
        used.filter(|(_, packet)| is_counted(&packet.content)).count() as u64
    }

    /// Number of packets.
    #[must_use]
    pub fn packets(&self) -> u64 {
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
}
