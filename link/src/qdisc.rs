//! The queueing disciplines that decide at departure, as the transmitter sees them.

use super::egress::Egress;
use super::limit::EffectiveLimit;
use super::packet::{Packet, Verdict};
use super::packet_queue::QueuedPacket;
use std::fmt::Debug;
use units::{Instant, Rate};

/// Packets that wait, and who is next.
pub(super) trait Qdisc<P: Packet>: Debug {
    /// Takes a packet in, unless it is to be dropped; others may be dropped for it. `limit` is `None` where the packet
    /// finds queue and transmitter idle, and so needs no room.
    fn enqueue(&mut self, packet: QueuedPacket<P>, limit: Option<&EffectiveLimit>, egress: &mut Egress<P>) -> Verdict;

    /// The packet that leaves at `now`, after those before it that had to be dropped.
    fn dequeue(&mut self, now: Instant, egress: &mut Egress<P>) -> Option<QueuedPacket<P>>;

    /// Takes any packet out: the link is down.
    fn purge(&mut self) -> Option<QueuedPacket<P>>;

    /// Packets and bytes that wait.
    fn backlog(&self) -> (u64, u64);

    /// When a packet that waits has arrived. (Any will do: none waits that the transmitter could have begun.)
    fn waiting_since(&self) -> Option<Instant>;

    /// Nothing waited at `now`, when the transmitter asked for the next packet.
    fn on_idle(&mut self, _now: Instant) {}

    /// The link has another rate.
    fn set_rate(&mut self, _rate: Rate) {}
}
