//! The interface of the queueing disciplines that decide at departure.

use super::egress::Egress;
use super::limit::EffectiveLimit;
use super::packet::{Packet, Verdict};
use super::packet_queue::{Backlog, QueuedPacket};
use std::fmt::Debug;
use units::{Instant, Rate};

/// A queueing discipline that decides at departure.
pub(super) trait Qdisc<P: Packet>: Debug + Send {
    /// Enqueues a packet, or drops it or others. `limit` is `None` if queue and transmitter are idle, so that the
    /// packet does not wait.
    fn enqueue(&mut self, packet: QueuedPacket<P>, limit: Option<&EffectiveLimit>, egress: &mut Egress<P>) -> Verdict;

    /// Removes the packet that leaves at `now`, and drops packets before it as necessary.
    fn dequeue(&mut self, now: Instant, egress: &mut Egress<P>) -> Option<QueuedPacket<P>>;

    /// Removes a packet without active queue management, when the link goes down.
    fn remove_head(&mut self) -> Option<QueuedPacket<P>>;

    fn backlog(&self) -> Backlog;

    /// Arrival time of any packet in the queue: each arrived after the transmitter became busy.
    fn head_arrival(&self) -> Option<Instant>;

    /// Called if the queue was empty at `now`, when the transmitter became idle.
    fn on_idle(&mut self, _now: Instant) {}

    /// Called when the link's rate has changed.
    fn set_rate(&mut self, _rate: Rate) {}
}
