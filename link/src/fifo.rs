//! One queue for all flows, managed at one end: CoDel at departure, PIE on arrival, or drops from the head when the
//! queue is full.

use super::aqm::{EnqueueAction, HeadDropAqm, SharedBacklog};
use super::codel::CoDel;
use super::egress::Egress;
use super::limit::EffectiveLimit;
use super::packet::{Packet, Verdict};
use super::packet_queue::{Backlog, PacketQueue, QueuedPacket};
use super::pie::Pie;
use super::qdisc::Qdisc;
use units::Instant;

/// A first-in, first-out queue with active management.
#[derive(Debug)]
pub(super) struct Fifo<P> {
    queue: PacketQueue<P>,
    aqm: Aqm,
    /// The largest packet so far, bytes.
    max_packet: u64,
}

/// The active queue management of a [`Fifo`].
#[derive(Debug)]
pub(super) enum Aqm {
    CoDel(CoDel),
    Pie(Pie),
    /// Drop from front (Lakshman, Neidhardt, Ott 1996): the newest packets stay, and the sender notices a loss earlier
    /// by the length of the queue.
    DropHead,
}

impl<P> Fifo<P> {
    pub(super) fn new(aqm: Aqm) -> Self {
        Self { queue: PacketQueue::default(), aqm, max_packet: 0 }
    }

    /// Drops packets at the head until one of `size` bytes has room, if possible.
    fn make_room(&mut self, size: u64, limit: &EffectiveLimit, egress: &mut Egress<P>)
    where
        P: Packet,
    {
        let is_full = |queue: &PacketQueue<P>| !limit.has_room_for(queue.packets() as usize, queue.bytes(), size);
        while limit.has_room_for(0, 0, size) && is_full(&self.queue) {
            let Some(head) = self.queue.pop() else { return };
            egress.discard_dropped(head.packet);
        }
    }
}

impl<P: Packet> Qdisc<P> for Fifo<P> {
    fn enqueue(
        &mut self,
        mut packet: QueuedPacket<P>,
        limit: Option<&EffectiveLimit>,
        egress: &mut Egress<P>,
    ) -> Verdict {
        if let (Aqm::DropHead, Some(limit)) = (&self.aqm, limit) {
            self.make_room(packet.size, limit, egress);
        }
        let Backlog { packets, bytes } = self.backlog();
        self.max_packet = self.max_packet.max(packet.size);
        if limit.is_some_and(|limit| !limit.has_room_for(packets as usize, bytes, packet.size)) {
            return egress.discard_dropped(packet.packet);
        }
        if let Aqm::Pie(pie) = &mut self.aqm {
            match pie.enqueue(packet.arrived, bytes, packet.packet.ecn_capable(), &mut egress.rng) {
                EnqueueAction::Accept => {}
                EnqueueAction::MarkOrDrop => egress.mark(&mut packet.packet),
                EnqueueAction::Drop => return egress.discard_dropped(packet.packet),
            }
        }
        self.queue.push(packet);
        Verdict::Accepted
    }

    fn dequeue(&mut self, now: Instant, egress: &mut Egress<P>) -> Option<QueuedPacket<P>> {
        match &mut self.aqm {
            Aqm::CoDel(codel) => {
                let shared = SharedBacklog { other_bytes: 0, max_packet: self.max_packet };
                codel.dequeue(now, &mut self.queue, shared, egress)
            }
            Aqm::Pie(pie) => {
                let head = self.queue.pop()?;
                pie.on_departure(now, now.since(head.arrived), self.queue.is_empty());
                Some(head)
            }
            Aqm::DropHead => self.queue.pop(),
        }
    }

    fn remove_head(&mut self) -> Option<QueuedPacket<P>> {
        self.queue.pop()
    }

    fn backlog(&self) -> Backlog {
        Backlog { packets: self.queue.packets(), bytes: self.queue.bytes() }
    }

    fn head_arrival(&self) -> Option<Instant> {
        self.queue.head().map(|head| head.arrived)
    }
}
