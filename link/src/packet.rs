//! What links know of packets, and what becomes of them.

use std::fmt::Debug;

/// What a pipe has to know of a packet.
pub trait Packet: Debug + 'static {
    /// Its bytes, from the IP header on.
    fn bytes(&self) -> u32;
    /// What tells flows apart: the same for all packets of a flow.
    fn flow(&self) -> u16;
    /// Whether its sender understands marks (ECT).
    fn ecn_capable(&self) -> bool;
    /// Sets CE.
    fn mark(&mut self);
}

/// What became of a packet offered to a pipe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The packet is in the pipe. A queue that decides at departure, and the wire behind it, may still drop it.
    Accepted,
    /// The queue dropped the packet, or the delay stage's limit did.
    Dropped,
    /// The wire lost the packet, or the link is down.
    Lost,
}
