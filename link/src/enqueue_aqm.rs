//! A queue that decides on arrival (drop-tail, RED): transmission and propagation in one event.
//!
//! A packet's departure and its arrival at the far end are known when it is accepted, so it goes to the wire at once,
//! and the only pending event is the arrival of the wire's head. Only start times and sizes of waiting packets are
//! kept, and they are updated at each call. If a transmission starts and a packet arrives at the same instant, the
//! start comes first.

use super::aqm::EnqueueAction;
use super::egress::Egress;
use super::limit::EffectiveLimit;
use super::packet::{Forwarded, Packet, Verdict};
use super::packet_queue::Backlog;
use super::red::Red;
use super::transmitter::{FixedRate, Transmission, Transmitter};
use crate::config::{QueueConfig, QueueDiscipline};
use std::collections::VecDeque;
use units::{Instant, Rate};

/// The queue in front of a transmitter.
#[derive(Debug)]
pub(super) struct EnqueueAqm {
    config: QueueConfig,
    limit: EffectiveLimit,
    red: Option<Red>,
    waiting: VecDeque<ScheduledPacket>,
    bytes: u64,
}

/// A packet whose transmission has not started.
#[derive(Clone, Copy, Debug)]
struct ScheduledPacket {
    start: Instant,
    size: u64,
}

impl EnqueueAqm {
    pub(super) fn new(config: QueueConfig, rate: Option<Rate>) -> Self {
        let red = match config.discipline {
            QueueDiscipline::Red(red) => Some(Red::new(red)),
            _ => None,
        };
        Self { config, limit: EffectiveLimit::new(config.limit, rate), red, waiting: VecDeque::new(), bytes: 0 }
    }

    #[inline]
    pub(super) fn enqueue<P: Packet>(
        &mut self,
        now: Instant,
        mut packet: P,
        size: u64,
        egress: &mut Egress<P>,
    ) -> Verdict {
        if !self.admits(now, &mut packet, size, egress) {
            return egress.discard_dropped(packet);
        }
        let (start, verdict) = egress.send(now, packet, size);
        self.wait_until(start, now, size);
        verdict
    }

    /// As [`enqueue`](Self::enqueue). A packet that arrives before `horizon` leaves the pipe at once.
    #[inline]
    pub(super) fn forward<P: Packet>(
        &mut self,
        now: Instant,
        mut packet: P,
        size: u64,
        horizon: Instant,
        egress: &mut Egress<P>,
    ) -> Forwarded<P> {
        if !self.admits(now, &mut packet, size, egress) {
            return Forwarded::Enqueued(egress.discard_dropped(packet));
        }
        let (start, forwarded) = egress.forward(now, packet, size, horizon);
        self.wait_until(start, now, size);
        forwarded
    }

    /// Whether the queue drops only packets for which it has no room.
    pub(super) fn is_drop_tail(&self) -> bool {
        self.red.is_none()
    }

    /// The transmission of a packet of `size` bytes that joins a [drop-tail](Self::is_drop_tail) queue now; `None` if
    /// there is no room.
    #[inline(always)]
    pub(super) fn next_transmission(&mut self, now: Instant, size: u64, rate: &mut FixedRate) -> Option<Transmission> {
        self.dequeue_until(now);
        let has_room = rate.idle_at <= now || self.limit.has_room_for(self.waiting.len(), self.bytes, size);
        has_room.then(|| rate.next(now, size))
    }

    #[inline]
    fn admits<P: Packet>(&mut self, now: Instant, packet: &mut P, size: u64, egress: &mut Egress<P>) -> bool {
        self.dequeue_until(now);
        self.passes_red(now, packet, egress) && self.has_room(now, size, egress)
    }

    /// Adds a packet that waits until its transmission starts.
    #[inline(always)]
    pub(super) fn wait_until(&mut self, start: Instant, now: Instant, size: u64) {
        if start > now {
            self.waiting.push_back(ScheduledPacket { start, size });
            self.bytes += size;
        }
    }

    /// Removes the packets whose transmission has started by `now`.
    #[inline]
    pub(super) fn dequeue_until(&mut self, now: Instant) {
        while let Some(first) = self.waiting.front().filter(|first| first.start <= now) {
            self.bytes -= first.size;
            self.waiting.pop_front();
        }
    }

    /// The backlog at the last `dequeue_until`.
    pub(super) fn backlog(&self) -> Backlog {
        Backlog { packets: self.waiting.len() as u64, bytes: self.bytes }
    }

    /// The start of transmission of the `count`-th waiting packet from the end.
    pub(super) fn start_of_nth_last(&self, count: u64) -> Instant {
        self.waiting[self.waiting.len() - count as usize].start
    }

    /// The sizes of the waiting packets, as of the last `dequeue_until`.
    pub(super) fn sizes(&self) -> impl Iterator<Item = u64> {
        self.waiting.iter().map(|waiting| waiting.size)
    }

    /// Reschedules the waiting packets at a new rate. The packet in transmission keeps the previous one.
    pub(super) fn set_rate<P: Packet>(&mut self, now: Instant, rate: Rate, egress: &mut Egress<P>) {
        self.reschedule(now, egress, |transmitter, from| transmitter.set_rate(rate, from));
        self.limit = EffectiveLimit::new(self.config.limit, Some(rate));
    }

    /// Holds the waiting packets until `until`. The packet in transmission leaves.
    pub(super) fn pause<P: Packet>(&mut self, now: Instant, until: Instant, egress: &mut Egress<P>) {
        self.reschedule(now, egress, |transmitter, from| transmitter.pause(from, until));
    }

    /// Reschedules the waiting packets after `change` has changed the transmitter.
    fn reschedule<P: Packet>(
        &mut self,
        now: Instant,
        egress: &mut Egress<P>,
        change: impl FnOnce(&mut Transmitter, Instant),
    ) {
        self.dequeue_until(now);
        let (old_rate, counters) = (egress.transmitter.rate(), &mut egress.counters);
        let effective_from =
            egress.wire.departure_before(self.waiting.len()).map_or(now, |departure| departure.max(now));
        change(&mut egress.transmitter, effective_from);
        let mut departures = Vec::with_capacity(self.waiting.len());
        for waiting in &mut self.waiting {
            let transmission = egress.transmitter.send(now, waiting.size);
            counters.queue_delay_total_ns = counters.queue_delay_total_ns + transmission.start.0 - waiting.start.0;
            counters.busy_ns = counters.busy_ns + transmission.serialisation_time.0
                - old_rate.map_or(0, |rate| rate.time_for(waiting.size).0);
            waiting.start = transmission.start;
            departures.push(transmission.departure);
        }
        egress.wire.reschedule(now, &departures, &mut egress.rng);
    }

    /// Takes the link down: the queueing delay of the waiting packets ends now.
    pub(super) fn take_down<P: Packet>(&mut self, now: Instant, egress: &mut Egress<P>) {
        self.dequeue_until(now);
        let unserved_delay: u64 = self.waiting.iter().map(|waiting| waiting.start.since(now).0).sum();
        egress.counters.queue_delay_total_ns -= unserved_delay;
        egress.take_down(now, self.sizes());
        self.waiting.clear();
        self.bytes = 0;
    }

    /// Whether the queue accepts a packet: the transmitter is idle, or the queue has room.
    #[inline]
    fn has_room<P: Packet>(&self, now: Instant, size: u64, egress: &Egress<P>) -> bool {
        egress.transmitter.idle_at() <= now || self.limit.has_room_for(self.waiting.len(), self.bytes, size)
    }

    #[inline]
    fn passes_red<P: Packet>(&mut self, now: Instant, packet: &mut P, egress: &mut Egress<P>) -> bool {
        let Some(red) = &mut self.red else { return true };
        let idle_at = egress.transmitter.idle_at();
        let idle = (idle_at <= now).then(|| (now.since(idle_at), egress.transmitter.rate()));
        match red.enqueue(self.bytes, idle, &mut egress.rng) {
            EnqueueAction::Accept => true,
            EnqueueAction::MarkOrDrop if self.config.ecn && packet.ecn_capable() => {
                egress.mark(packet);
                true
            }
            EnqueueAction::MarkOrDrop | EnqueueAction::Drop => false,
        }
    }
}
