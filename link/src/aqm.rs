//! Active queue management: what is dropped or marked before a queue is full, on arrival or at departure.

use super::egress::Egress;
use super::packet::Packet;
use super::packet_queue::{PacketQueue, QueuedPacket};
use std::fmt::Debug;
use units::{Instant, Rate};

/// What RED or PIE does with a packet that arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EnqueueAction {
    Accept,
    /// Mark the packet if that is possible, else drop it.
    MarkOrDrop,
    Drop,
}

/// What CoDel or COBALT does at the head of a queue: which packets leave, and which are dropped or marked.
pub(super) trait DequeueAqm: Clone + Debug {
    /// The packet that leaves `queue` at `now`, after those before it that had to be dropped.
    fn dequeue<P: Packet>(
        &mut self,
        now: Instant,
        queue: &mut PacketQueue<P>,
        shared: SharedBacklog,
        egress: &mut Egress<P>,
    ) -> Option<QueuedPacket<P>>;

    /// `packets` were dropped because the queue was full.
    fn on_overflow(&mut self, now: Instant, packets: u32);

    /// The flow queue was empty when it was served.
    fn on_empty(&mut self, _now: Instant) {}

    /// The flow queue gets a packet and joins the list of new flows.
    fn on_activated(&mut self, _now: Instant) {}

    /// The link's rate, `None` for no limit.
    fn set_rate(&mut self, _rate: Option<Rate>) {}
}

/// State of the queueing discipline of which a queue is part.
#[derive(Clone, Copy, Debug)]
pub(super) struct SharedBacklog {
    /// Bytes in other flow queues.
    pub(super) other_bytes: u64,
    /// The largest packet so far, bytes: what CoDel leaves in the queue \[`maxpacket_`\].
    pub(super) max_packet: u64,
}
