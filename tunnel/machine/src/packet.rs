//! Inner packets, their fragments, and the datagrams that carry them, as an [`Endpoint`](super::Endpoint) takes and
//! gives them.

use units::PathId;

/// Streams from this one on are unordered: an inner packet of one fragment is delivered as it arrives.
pub const FIRST_UNORDERED_STREAM: u8 = 240;

/// Streams from this one to [`REALTIME_END`], some of them unordered, are for packets that a driver has marked as
/// real-time, if [`TunnelOptions::realtime`](crate::TunnelOptions::realtime) is on.
pub const FIRST_REALTIME_STREAM: u8 = 224;
/// One past the last stream of marked packets.
pub const REALTIME_END: u8 = 248;

/// Bytes of a sealed datagram outside its body: GRE with key and sequence number, and the AEAD's tag (16).
pub const SEAL_OVERHEAD: u32 = wire::gre::Sealed::LEN as u32 + 16;

/// Bytes of the header before a fragment.
pub const DATA_HEADER_BYTES: u32 = wire::frame::DataHeader::LEN as u32;

/// An inner packet, or a fragment of one. The machine reads none of its bytes.
pub trait Payload: Clone {
    /// Length in bytes.
    fn len(&self) -> u32;
    /// The bytes `start..end`.
    #[must_use]
    fn slice(&self, start: u32, end: u32) -> Self;
    /// Signals congestion to the packet's sender by a CE mark, or by dropping a part of a super-packet. False if
    /// neither is possible: then only dropping the whole packet is a signal.
    fn signal_congestion(&mut self) -> bool {
        false
    }
    /// Memory that the payload keeps in use while it is queued, bytes.
    fn memory_bytes(&self) -> u64 {
        u64::from(self.len())
    }
    /// Whether both may be in one datagram, whose outer header has only one DSCP and one ECN field.
    fn may_share_datagram(&self, _other: &Self) -> bool {
        true
    }
    /// How it relates to an earlier packet that waits in the same queue.
    fn relation(&self, _earlier: &Self) -> QueueRelation {
        QueueRelation::Unrelated
    }
    /// Moves the bytes to memory of their own, before they are held for long: a few bytes must not keep a large buffer
    /// in use.
    fn detach(&mut self) {}
    /// Whether the length is zero.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// How an inner packet relates to an earlier one that waits in the same queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueRelation {
    /// They are of different flows.
    Unrelated,
    /// They are of one flow, and both are needed.
    SameFlow,
    /// Both are pure acknowledgements of one flow with the same number, and SACK blocks do not distinguish them: fast
    /// retransmit counts them (RFC 5681).
    Duplicate,
    /// Both are pure acknowledgements of one flow, and nothing in the earlier one is missing in this one.
    Supersedes,
}

/// A fragment of an inner packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fragment<P> {
    /// The stream (flow) of the inner packet.
    pub stream: u8,
    /// Sequence number in the stream, modulo 2^32.
    pub sequence: u32,
    /// Whether it is the first fragment of its inner packet.
    pub first: bool,
    /// Whether it is the last fragment of its inner packet.
    pub last: bool,
    /// Whether it was sent before.
    pub retransmission: bool,
    /// The bytes.
    pub payload: P,
}

/// The body of a datagram.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TransmitBody<P> {
    /// One fragment.
    Data(Fragment<P>),
    /// The fragments of [`Endpoint::bundle`](crate::Endpoint::bundle), each a whole inner packet, after the frames of
    /// [`Endpoint::control_frames`](crate::Endpoint::control_frames), if there are any.
    Bundle,
    /// The frames of [`Endpoint::control_frames`](crate::Endpoint::control_frames), padded to `pad_to` bytes of body if
    /// they are fewer.
    Control {
        /// Minimum length of the body, bytes.
        pad_to: u32,
    },
}

/// The destination of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Destination {
    /// The present address of the path.
    Present,
    /// The [candidate](crate::Candidate) of the path. The datagram is a ping.
    Candidate,
}

/// A datagram to be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transmit<P> {
    /// The path to send it on.
    pub path: PathId,
    /// The destination.
    pub destination: Destination,
    /// Packet number on the path, from 0 without gaps.
    pub packet_number: u64,
    /// The body.
    pub body: TransmitBody<P>,
}

/// The metadata of a received datagram, which is authentic and not a replay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// The path that it arrived on.
    pub path: PathId,
    /// Packet number on the path.
    pub packet_number: u64,
    /// Whether the outer IP header has CE.
    pub ce: bool,
}

/// A fragment that is delivered. The fragments of an inner packet follow each other, unless one was given up. An inner
/// packet of one fragment may be delivered between two fragments of another if it does not have to be in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery<P> {
    /// The stream.
    pub stream: u8,
    /// The bytes.
    pub payload: P,
    /// Whether it is the first fragment of its inner packet.
    pub first: bool,
    /// Whether it is the last fragment of its inner packet.
    pub last: bool,
    /// Whether a fragment before it was given up, so that a partly delivered inner packet stays incomplete.
    pub gap: bool,
    /// Whether its datagram had CE.
    pub ce: bool,
}
