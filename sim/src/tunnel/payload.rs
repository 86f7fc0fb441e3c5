//! What a Ropewalk tunnel carries: inner packets and the relay's messages, and the datagrams that carry them.

use crate::packet::{Body, Packet, PacketDescriptor};
use link::{EcnField, Packet as _};
use machine::{Fragment, PacketBuffer, Payload, QueueRelation, Transmit};
use relay::{Chunk, Message};
use std::sync::Arc;
use wire::frame::Frame;

/// Bytes of a flow, by their positions: from `start` to before `end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ByteRange {
    pub start: u64,
    pub end: u64,
}

impl Chunk for ByteRange {
    fn len(&self) -> u32 {
        (self.end - self.start) as u32
    }

    fn slice(&self, start: u32, end: u32) -> Self {
        Self { start: self.start + u64::from(start), end: self.start + u64::from(end) }
    }
}

/// What the tunnel carries.
#[derive(Clone, Debug)]
pub(crate) enum InnerPacket {
    /// A packet, and the descriptor with which it entered; its slot may have been reused.
    Packet(Packet, PacketDescriptor),
    /// A message of the relay.
    Message(Message<ByteRange>),
}

/// Bytes `start` to `end` of an inner packet, which all its fragments share: a clone is cheap.
#[derive(Clone, Debug)]
pub(crate) struct TunnelPayload {
    pub inner: Arc<InnerPacket>,
    start: u32,
    end: u32,
    /// The ECN field with which the packet came, before the ingress queue marks it.
    ecn: EcnField,
}

impl TunnelPayload {
    /// A packet with an offload header of this many bytes in front.
    pub(crate) fn packet(packet: Packet, descriptor: PacketDescriptor, offload_header: u32) -> Self {
        let (end, ecn) = (descriptor.bytes() + offload_header, descriptor.ecn());
        Self { inner: Arc::new(InnerPacket::Packet(packet, descriptor)), start: 0, end, ecn }
    }

    /// A message of the relay, with its header.
    pub(crate) fn message(message: Message<ByteRange>) -> Self {
        let bytes = message.chunk.map_or(0, |range| (range.end - range.start) as u32);
        Self {
            start: 0,
            end: message.header.len() as u32 + bytes,
            inner: Arc::new(InnerPacket::Message(message)),
            ecn: EcnField::NotEct,
        }
    }

    /// The ECN field of the datagram that carries it: the one with which the packet came (RFC 6040, section 4.1). CE is not
    /// copied, because it does not signal congestion of the path.
    pub(crate) fn outer_ecn(&self) -> EcnField {
        if self.ecn == EcnField::Ce { EcnField::Ect0 } else { self.ecn }
    }
}

impl Payload for TunnelPayload {
    fn len(&self) -> u32 {
        self.end - self.start
    }

    fn slice(&self, start: u32, end: u32) -> Self {
        Self { inner: self.inner.clone(), start: self.start + start, end: self.start + end, ecn: self.ecn }
    }

    fn may_share_datagram(&self, other: &Self) -> bool {
        self.outer_ecn() == other.outer_ecn()
    }

    fn relation(&self, earlier: &Self) -> QueueRelation {
        let (InnerPacket::Packet(packet, _), InnerPacket::Packet(earlier, _)) = (&*self.inner, &*earlier.inner) else {
            return QueueRelation::Unrelated;
        };
        if (packet.flow, packet.connection) != (earlier.flow, earlier.connection) {
            return QueueRelation::Unrelated;
        }
        match (&packet.content.body, &earlier.content.body) {
            (Body::TcpAck(ack), Body::TcpAck(earlier)) if ack.supersedes(earlier) => QueueRelation::Supersedes,
            (Body::TcpAck(ack), Body::TcpAck(earlier)) if ack.ack == earlier.ack => QueueRelation::Duplicate,
            _ => QueueRelation::SameFlow,
        }
    }

    /// A packet that is not ECN-capable loses the first segment of its super-segment. The relay needs no signal: it offers
    /// only what the tunnel can carry.
    fn signal_congestion(&mut self) -> bool {
        let InnerPacket::Packet(packet, descriptor) = Arc::make_mut(&mut self.inner) else { return true };
        descriptor.mark();
        if descriptor.ecn() == EcnField::Ce {
            return true;
        }
        let Body::TcpPacket(whole) = &mut packet.content.body else { return false };
        let dropped = whole.trim_first();
        self.end -= dropped.unwrap_or(0);
        dropped.is_some()
    }
}

/// The contents of a datagram in flight.
#[derive(Debug)]
pub(crate) struct Datagram {
    pub transmit: Transmit<TunnelPayload>,
    /// The frames of [`TransmitBody::Control`] and [`TransmitBody::Bundle`].
    pub frames: Vec<Frame>,
    /// The fragments of [`TransmitBody::Bundle`].
    pub fragments: Vec<Fragment<TunnelPayload>>,
    /// Size without the outer headers, bytes.
    pub bytes: u32,
}

/// The inner packet of the latest fragment.
impl PacketBuffer<TunnelPayload> for Option<Arc<InnerPacket>> {
    fn clear(&mut self) {
        *self = None;
    }

    fn append(&mut self, fragment: &TunnelPayload) {
        *self = Some(fragment.inner.clone());
    }

    fn memory_bytes(&self) -> u64 {
        size_of::<Self>() as u64
    }
}
