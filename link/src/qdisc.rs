//! The queueing disciplines that decide at departure, as the transmitter sees them.

use super::egress::Egress;
use super::limit::EffectiveLimit;
use super::packet::{Packet, Verdict};
use super::packet_queue::QueuedPacket;
use std::fmt::Debug;
use units::{Instant, Rate};

/// A queueing discipline that decides at departure.
pub(super) trait Qdisc<P: Packet>: Debug {
    /// Enqueues a packet, or drops it, or others instead. `limit` is `None` where queue and transmitter are idle, so that
    /// the packet needs no room.
    fn enqueue(&mut self, packet: QueuedPacket<P>, limit: Option<&EffectiveLimit>, egress: &mut Egress<P>) -> Verdict;

    /// The packet that leaves at `now`, after those before it that had to be dropped.
    fn dequeue(&mut self, now: Instant, egress: &mut Egress<P>) -> Option<QueuedPacket<P>>;

    /// Removes any packet: the link is down.
    fn purge(&mut self) -> Option<QueuedPacket<P>>;

    /// Packets and bytes that wait.
    fn backlog(&self) -> (u64, u64);

    /// Arrival of a waiting packet. (Any of them: none waits whose transmission could have begun.)
    fn waiting_since(&self) -> Option<Instant>;

    /// The queue was empty at `now`, when the transmitter became free.
    fn on_idle(&mut self, _now: Instant) {}

    /// The link's rate has changed.
    fn set_rate(&mut self, _rate: Rate) {}
}
