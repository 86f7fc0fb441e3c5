//! Active queue management: the decision which packets are dropped or marked before a queue is full, on arrival or at
//! departure.

use super::egress::Egress;
use super::packet::Packet;
use super::packet_queue::{PacketQueue, QueuedPacket};
use std::fmt::Debug;
use units::{Instant, Rate};

/// RED's or PIE's action for an arriving packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EnqueueAction {
    Accept,
    /// Mark the packet if possible, otherwise drop it.
    MarkOrDrop,
    Drop,
}

/// Active queue management at the head of a queue (CoDel, COBALT): which packets leave, and which are dropped or
/// marked.
pub(super) trait HeadDropAqm: Send + Clone + Debug {
    /// Removes the packet that leaves `queue` at `now`, and drops packets before it as necessary.
    fn dequeue<P: Packet>(
        &mut self,
        now: Instant,
        queue: &mut PacketQueue<P>,
        shared: SharedBacklog,
        egress: &mut Egress<P>,
    ) -> Option<QueuedPacket<P>>;

    /// Called when `packets` packets have been dropped because the queue was full.
    fn on_overflow(&mut self, now: Instant, packets: u32);

    /// Called when the flow queue is served but empty.
    fn on_empty(&mut self, _now: Instant) {}

    /// Called when the flow queue gets its first packet and joins the list of new flows.
    fn on_activated(&mut self, _now: Instant) {}

    /// Sets the link's rate, `None` for no limit.
    fn set_rate(&mut self, _rate: Option<Rate>) {}
}

/// State of the queueing discipline to which a flow queue belongs.
#[derive(Clone, Copy, Debug)]
pub(super) struct SharedBacklog {
    /// Bytes in other flow queues.
    pub(super) other_bytes: u64,
    /// The largest packet so far, bytes: CoDel drops nothing when no more than this is left \[`maxpacket_`\].
    pub(super) max_packet: u64,
}
