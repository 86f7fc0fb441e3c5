//! The interface of packets, and the verdict on an enqueued packet.

use std::fmt::Debug;
use units::Instant;

/// The properties of a packet that a pipe uses.
pub trait Packet: Debug + Send + Sized + 'static {
    /// Size from the IP header on, bytes.
    fn bytes(&self) -> u32;
    /// Index of the flow, for fair queueing.
    fn flow(&self) -> u16;
    /// The ECN field.
    fn ecn(&self) -> EcnField;
    /// Whether the packet is ECN-capable, so that it can be marked instead of dropped.
    fn ecn_capable(&self) -> bool {
        self.ecn() != EcnField::NotEct
    }
    /// Sets CE (RFC 3168).
    fn mark(&mut self);
    /// A copy of the packet, for a wire that duplicates. The copy leaves the pipe before the packet itself.
    fn duplicate(&mut self) -> Self;
    /// Flips a bit. The packet still crosses its path, and its receiver's checksum discards it.
    fn corrupt(&mut self);
}

/// The ECN field of an IP header (RFC 3168, section 5; RFC 9331, section 2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EcnField {
    /// Not-ECT: only a drop signals congestion.
    #[default]
    NotEct,
    /// ECT(0): classic ECN.
    Ect0,
    /// ECT(1): low latency, low loss, scalable throughput (L4S).
    Ect1,
    /// CE: congestion experienced.
    Ce,
}

impl EcnField {
    /// The field after a mark. A packet that is not ECN-capable cannot be marked.
    #[must_use]
    pub const fn marked(self) -> Self {
        match self {
            Self::NotEct => Self::NotEct,
            Self::Ect0 | Self::Ect1 | Self::Ce => Self::Ce,
        }
    }

    /// Whether an L4S queue classifies the packet as L4S: ECT(1), and CE, because it may have been ECT(1) (RFC 9331,
    /// section 5.1).
    #[must_use]
    pub const fn is_l4s(self) -> bool {
        matches!(self, Self::Ect1 | Self::Ce)
    }
}

/// The verdict on a packet enqueued in a pipe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The packet is in the pipe. A queue that decides at departure, or the wire, may still drop it.
    Accepted,
    /// The queue dropped the packet, or the delay stage was full.
    Dropped,
    /// The wire lost the packet, or the link is down.
    Lost,
}

/// The result of forwarding a packet through a pipe.
#[derive(Debug)]
pub enum Forwarded<P> {
    /// It has left the pipe, and arrives at the far end at this time.
    Arrives(P, Instant),
    /// It was enqueued, with this verdict.
    Enqueued(Verdict),
}
