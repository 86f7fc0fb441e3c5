//! The interface of packets, and the verdict on one that is enqueued.

use std::fmt::Debug;
use units::Instant;

/// Properties of a packet that a pipe uses.
pub trait Packet: Debug + Send + Sized + 'static {
    /// Size from the IP header on, bytes.
    fn bytes(&self) -> u32;
    /// Index of the flow, for fair queueing.
    fn flow(&self) -> u16;
    /// Whether the packet is ECN-capable (ECT).
    fn ecn_capable(&self) -> bool;
    /// Sets CE (RFC 3168).
    fn mark(&mut self);
    /// A copy of the packet, for a wire that duplicates. It leaves the pipe before the packet itself.
    fn duplicate(&mut self) -> Self;
    /// Flips a bit: the packet still crosses its path, and its receiver's checksum discards it.
    fn corrupt(&mut self);
}

/// The verdict on a packet enqueued in a pipe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The packet is in the pipe. A queue that decides at departure, and the wire behind it, may still drop it.
    Accepted,
    /// The queue dropped the packet, or the delay stage's limit did.
    Dropped,
    /// The wire lost the packet, or the link is down.
    Lost,
}

/// What became of a packet that a pipe was to forward.
#[derive(Debug)]
pub enum Forwarded<P> {
    /// It has left the pipe, and arrives at the far end at this time.
    Arrives(P, Instant),
    /// It was enqueued, with this verdict.
    Enqueued(Verdict),
}
