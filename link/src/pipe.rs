//! One direction of a link: a policer, a queue, a transmitter, a wire.
//!
//! ```text
//! enqueue -> policer -> queue -> transmitter -> wire -> dequeue_arrived
//!            (drops)    (drops)  (rate, trace)  (delay, jitter, loss,
//!                                               duplicates, bit errors, reordering)
//! ```
//!
//! A pipe has at most one pending event, at [`Pipe::next_event_at`], however many packets are in it. The driver reads
//! it after each call, and calls [`Pipe::dequeue_arrived`] at that instant. Each packet and each copy leaves the pipe
//! once: by [`Pipe::dequeue_arrived`] at the far end, or by [`Pipe::take_discarded`]. Whether and when a packet arrives
//! is computed as early as possible. With a queue that decides on arrival, a packet takes only one event.
//!
//! A pipe draws from one random stream. The seed of the flows' hash, if any, is first. Then come, in the order of the
//! packets, early drop, wire loss, impairments and jitter.

use crate::config::{LossModel, PipeConfig, QueueDiscipline};
use crate::counters::LinkCounters;
use crate::dequeue_aqm::DequeueAqm;
use crate::egress::Egress;
use crate::enqueue_aqm::EnqueueAqm;
use crate::loss::LossState;
use crate::packet::{Forwarded, Packet, Verdict};
use crate::packet_queue::Backlog;
use crate::policer::Policer;
use crate::transmitter::Transmitter;
use units::{Instant, Rate, RngStream, Span};

/// One direction of a link.
#[derive(Debug)]
pub struct Pipe<P> {
    is_up: bool,
    /// Link overhead per packet, bytes.
    overhead: u64,
    policer: Option<Policer>,
    queue: Queue<P>,
    egress: Egress<P>,
    /// Whether the pipe is only a drop-tail queue, a rate and a delay, as most are. Packets then take the fast path.
    is_plain: bool,
}

#[derive(Debug)]
enum Queue<P> {
    EnqueueAqm(EnqueueAqm),
    DequeueAqm(DequeueAqm<P>),
}

impl<P: Packet> Pipe<P> {
    /// An empty pipe with its random stream. The rate must not be zero (see [`pause`](Self::pause)), nor the trace
    /// empty.
    #[must_use]
    pub fn new(config: &PipeConfig, rng: RngStream) -> Self {
        let mut egress = Egress::new(config, rng);
        let queue = match config.queue.discipline {
            QueueDiscipline::DropTail | QueueDiscipline::Red(_) => {
                Queue::EnqueueAqm(EnqueueAqm::new(config.queue, egress.transmitter.rate()))
            }
            _ => Queue::DequeueAqm(DequeueAqm::new(config.queue, &mut egress)),
        };
        let policer = config.policer.map(Policer::new);
        let mut pipe =
            Self { is_up: true, overhead: u64::from(config.overhead), policer, queue, egress, is_plain: false };
        pipe.find_plain();
        pipe
    }

    /// Updates `is_plain`. It is called after every change that affects how packets pass.
    fn find_plain(&mut self) {
        let is_drop_tail = matches!(&self.queue, Queue::EnqueueAqm(queue) if queue.is_drop_tail());
        self.is_plain = self.is_up && self.policer.is_none() && is_drop_tail && self.egress.is_plain();
    }

    /// Transmits a packet of a plain pipe that arrives at the far end before `horizon`. Returns its departure and
    /// arrival. If the queue is full, the packet arrives later or the pipe is not plain, it returns `None` and changes
    /// nothing.
    #[inline(always)]
    fn transmit_plain(&mut self, now: Instant, bytes: u32, horizon: Instant) -> Option<(Instant, Instant)> {
        let (true, Queue::EnqueueAqm(queue), Transmitter::Rate(rate)) =
            (self.is_plain, &mut self.queue, &mut self.egress.transmitter)
        else {
            return None;
        };
        let size = u64::from(bytes) + self.overhead;
        let transmission = queue.next_transmission(now, size, rate)?;
        let arrival = self.egress.wire.plain_arrival_of(transmission.departure);
        if arrival >= horizon {
            return None;
        }
        rate.idle_at = transmission.departure;
        queue.wait_until(transmission.start, now, size);
        self.egress.count_plain(now, &transmission, arrival);
        Some((transmission.departure, arrival))
    }

    /// As [`forward`](Self::forward), for a packet of `bytes` that is only delayed. Returns its arrival. If there is
    /// more to decide, it returns `None` and changes nothing.
    #[inline(always)]
    pub fn forward_plain(&mut self, now: Instant, bytes: u32, horizon: Instant) -> Option<Instant> {
        let (_, arrival) = self.transmit_plain(now, bytes, horizon)?;
        self.egress.count_delivered(bytes);
        Some(arrival)
    }

    /// Enqueues a packet. A packet that is not accepted is among the [discarded](Self::take_discarded) ones.
    #[inline(always)]
    pub fn enqueue(&mut self, now: Instant, packet: P) -> Verdict {
        match self.enqueue_plain(now, packet) {
            Ok(_) => Verdict::Accepted,
            Err(packet) => self.enqueue_any(now, packet),
        }
    }

    /// As [`enqueue`](Self::enqueue), for a packet that is only delayed. Returns whether it is the first in flight, by which
    /// alone [`next_event_at`](Self::next_event_at) changes.
    ///
    /// # Errors
    /// If there is more to decide, it returns the packet and changes nothing.
    #[inline(always)]
    pub fn enqueue_plain(&mut self, now: Instant, packet: P) -> Result<bool, P> {
        match self.transmit_plain(now, packet.bytes(), Instant::NEVER) {
            Some((departure, arrival)) => Ok(self.egress.wire.push(departure, arrival, Some(packet))),
            None => Err(packet),
        }
    }

    /// As [`enqueue`](Self::enqueue), without its fast path for plain pipes.
    #[inline(never)]
    pub fn enqueue_any(&mut self, now: Instant, packet: P) -> Verdict {
        match self.admit(now, packet) {
            Ok((packet, size)) => match &mut self.queue {
                Queue::EnqueueAqm(queue) => queue.enqueue(now, packet, size, &mut self.egress),
                Queue::DequeueAqm(queue) => queue.enqueue(now, packet, size, &mut self.egress),
            },
            Err(verdict) => verdict,
        }
    }

    /// Whether the arrival of a packet is known when it is enqueued, and each packet arrives once and in order.
    #[must_use]
    pub fn forwards(&self) -> bool {
        self.decides_on_arrival() && !self.egress.is_impaired()
    }

    /// Time at which the last enqueued packet has been transmitted, if that is [decided on
    /// arrival](Self::decides_on_arrival).
    #[must_use]
    pub fn last_departure(&self) -> Option<Instant> {
        self.decides_on_arrival().then(|| self.egress.transmitter.idle_at())
    }

    /// Whether packets may be enqueued ahead of time, as soon as their time is known, because nothing happens in the
    /// queue between them.
    #[must_use]
    pub fn decides_on_arrival(&self) -> bool {
        matches!(self.queue, Queue::EnqueueAqm(_))
    }

    /// As [`enqueue`](Self::enqueue), for a pipe that [forwards](Self::forwards). A packet that arrives at the far end
    /// before `horizon` leaves the pipe now, and its arrival time is returned. Before that time, only methods that
    /// enqueue may be called, and `horizon` must not decrease.
    pub fn forward(&mut self, now: Instant, packet: P, horizon: Instant) -> Forwarded<P> {
        match self.admit(now, packet) {
            Ok((packet, size)) => match &mut self.queue {
                Queue::EnqueueAqm(queue) => queue.forward(now, packet, size, horizon, &mut self.egress),
                Queue::DequeueAqm(queue) => Forwarded::Enqueued(queue.enqueue(now, packet, size, &mut self.egress)),
            },
            Err(verdict) => Forwarded::Enqueued(verdict),
        }
    }

    /// Removes the first packet in flight that arrives before `horizon` from a pipe that [forwards](Self::forwards).
    /// Returns it with its arrival time.
    pub fn forward_first(&mut self, horizon: Instant) -> Option<(P, Instant)> {
        self.egress.forward_first(horizon)
    }

    /// The packet and its size with the link's overhead, if the link is up and the policer lets it pass.
    #[inline]
    fn admit(&mut self, now: Instant, packet: P) -> Result<(P, u64), Verdict> {
        self.egress.counters.offered += 1;
        if !self.is_up {
            return Err(self.egress.discard_lost(packet));
        }
        let size = u64::from(packet.bytes()) + self.overhead;
        if self.policer.as_mut().is_some_and(|policer| !policer.conforms(now, size)) {
            return Err(self.egress.discard_dropped(packet));
        }
        Ok((packet, size))
    }

    /// Time at which to call [`dequeue_arrived`](Self::dequeue_arrived); [`Instant::NEVER`] if the pipe is empty.
    #[inline]
    #[must_use]
    pub fn next_event_at(&self) -> Instant {
        match &self.queue {
            Queue::DequeueAqm(queue) => self.next_departure_or_arrival(queue),
            _ => self.egress.wire.next_arrival(),
        }
    }

    fn next_departure_or_arrival(&self, queue: &DequeueAqm<P>) -> Instant {
        let arrival = self.egress.wire.next_arrival();
        if self.egress.reorders() || arrival == Instant::NEVER {
            return queue.next_dequeue_at(&self.egress).min(arrival);
        }
        arrival
    }

    /// Removes a packet that has arrived at the far end by `now`. There may be another one if
    /// [`next_event_at`](Self::next_event_at) is still `now`. There is none if the event was that of a lost packet, or
    /// of a packet that left the queue while the wire was empty.
    #[inline]
    pub fn dequeue_arrived(&mut self, now: Instant) -> Option<P> {
        if let Queue::DequeueAqm(queue) = &mut self.queue {
            queue.dequeue_until(now, &mut self.egress);
        }
        self.egress.receive(now)
    }

    /// Whether [`take_discarded`](Self::take_discarded) has a packet.
    #[inline]
    #[must_use]
    pub fn has_discarded(&self) -> bool {
        !self.egress.discarded.is_empty()
    }

    /// A packet that was [dropped](Verdict::Dropped) or [lost](Verdict::Lost) and has not been taken yet. Every method with a `now` may discard packets.
    #[inline]
    pub fn take_discarded(&mut self) -> Option<(P, Verdict)> {
        self.egress.discarded.pop()
    }

    /// Changes the rate, also of a link that had a trace, grants or no limit. The packet in transmission keeps the
    /// previous rate. The decisions which waiting packets are lost, on the wire or at a full delay stage, do not
    /// change.
    pub fn set_rate(&mut self, now: Instant, rate: Rate) {
        self.settle_busy_time(now);
        match &mut self.queue {
            Queue::EnqueueAqm(queue) => queue.set_rate(now, rate, &mut self.egress),
            Queue::DequeueAqm(queue) => queue.set_rate(now, rate, &mut self.egress),
        }
        self.find_plain();
    }

    /// Sets the rate to zero until `until`, inclusive, or until the next [`set_rate`](Self::set_rate). The packet in
    /// transmission leaves. The others wait, and arriving packets join them while the queue has room.
    pub fn pause(&mut self, now: Instant, until: Instant) {
        let until = until + Span(1);
        self.settle_busy_time(now);
        match &mut self.queue {
            Queue::EnqueueAqm(queue) => queue.pause(now, until, &mut self.egress),
            Queue::DequeueAqm(queue) => queue.pause(now, until, &mut self.egress),
        }
        self.find_plain();
    }

    /// Converts busy time at a trace's mean rate to real time: the elapsed time times the used fraction of the capacity
    /// so far.
    fn settle_busy_time(&mut self, now: Instant) {
        let full = self.egress.transmitter.full_busy_time(now).0.max(1);
        let busy = self.busy_time(now).0;
        let elapsed = now.since(Instant::ZERO).0;
        let time = u128::from(busy.min(full)) * u128::from(elapsed) / u128::from(full);
        self.egress.counters.busy_ns = self.egress.counters.busy_ns - busy + time as u64;
    }

    /// Changes the propagation delay of packets that have not left the transmitter yet. Packets stay in order.
    pub fn set_delay(&mut self, now: Instant, delay: Span) {
        self.dequeue_until(now);
        self.egress.wire.set_delay(now, delay, &mut self.egress.rng);
    }

    /// Changes the loss model for packets whose loss has not been decided yet.
    pub fn set_loss(&mut self, now: Instant, loss: LossModel) {
        self.dequeue_until(now);
        self.egress.loss = LossState::new(loss);
        self.find_plain();
    }

    /// Takes the link down, which loses all packets in it, or up.
    pub fn set_up(&mut self, now: Instant, up: bool) {
        if self.is_up && !up {
            match &mut self.queue {
                Queue::EnqueueAqm(queue) => queue.take_down(now, &mut self.egress),
                Queue::DequeueAqm(queue) => queue.take_down(now, &mut self.egress),
            }
        }
        self.is_up = up;
        self.find_plain();
    }

    /// Packets in the queue, without the one in transmission.
    pub fn queued_packets(&mut self, now: Instant) -> u64 {
        self.dequeue_until(now);
        self.backlog().packets
    }

    /// Time at which the queue will be shorter than `limit` packets: now, or when enough transmissions have begun. If
    /// their number is not known yet, it is the time of the next one.
    pub fn queue_room_at(&mut self, now: Instant, limit: u64) -> Instant {
        self.dequeue_until(now);
        if self.backlog().packets < limit {
            return now;
        }
        match &self.queue {
            Queue::EnqueueAqm(queue) => queue.start_of_nth_last(limit),
            Queue::DequeueAqm(queue) => queue.next_dequeue_at(&self.egress).max(now + Span(1)),
        }
    }

    /// Bytes in the queue, with the link's overhead.
    #[cfg(test)]
    pub fn queued_bytes(&mut self, now: Instant) -> u64 {
        self.dequeue_until(now);
        self.backlog().bytes
    }

    /// Queueing delay of a packet that arrives now behind all packets of the queue (also with a queue for each flow),
    /// if none of them is dropped. On a link with a trace or grants it is the time to the opportunity of the last
    /// packet in the queue. If that is not known yet (a queue that decides at departure), it is the time that the queue
    /// takes at the mean rate.
    pub fn queue_delay(&mut self, now: Instant) -> Span {
        self.dequeue_until(now);
        let transmitter_backlog = self.egress.transmitter.idle_at().since(now);
        match (&self.queue, self.egress.transmitter.rate()) {
            (Queue::DequeueAqm(queue), Some(rate)) => transmitter_backlog + rate.time_for(queue.backlog().bytes),
            _ => transmitter_backlog,
        }
    }

    /// Utilisation until `end`, 0 to 1: the fraction of time in which the transmitter was busy. On a link with a trace
    /// or grants, it is the bytes that left divided by the bytes that could have left.
    pub fn utilisation(&mut self, end: Instant) -> f64 {
        let full = self.egress.transmitter.full_busy_time(end);
        // A packet that has partly left counts in full.
        (self.busy_time(end).0 as f64 / full.0.max(1) as f64).min(1.0)
    }

    /// Total time that the transmitter was busy until `now`. On a link with a trace or grants, it is the time that the
    /// bytes would have taken at the mean rate.
    pub fn busy_time(&mut self, now: Instant) -> Span {
        self.dequeue_until(now);
        let remaining = match &self.queue {
            Queue::EnqueueAqm(queue) => self.egress.transmitter.remaining_busy_time(now, queue.sizes()),
            Queue::DequeueAqm(_) => self.egress.transmitter.remaining_busy_time(now, std::iter::empty()),
        };
        Span(self.egress.counters.busy_ns).saturating_sub(remaining)
    }

    /// Bytes, including link overhead, that could be transmitted after `from` and until `to` if the link does not
    /// change; `None` for a link without a limit.
    pub fn bytes_between(&self, from: Instant, to: Instant) -> Option<u64> {
        if self.is_up { self.egress.transmitter.bytes_between(from, to) } else { Some(0) }
    }

    /// Packets in the pipe: enqueued, and neither delivered, dropped nor lost. Takes time in proportion to their
    /// number.
    #[must_use]
    pub fn packets_inside(&self) -> u64 {
        let waiting = if let Queue::DequeueAqm(queue) = &self.queue { queue.backlog().packets } else { 0 };
        self.egress.wire.packets_in_flight() + waiting
    }

    /// Totals since the beginning of the run.
    #[must_use]
    pub fn counters(&self) -> &LinkCounters {
        &self.egress.counters
    }

    #[inline]
    fn dequeue_until(&mut self, now: Instant) {
        match &mut self.queue {
            Queue::EnqueueAqm(queue) => queue.dequeue_until(now),
            Queue::DequeueAqm(queue) => queue.dequeue_until(now, &mut self.egress),
        }
    }

    fn backlog(&self) -> Backlog {
        match &self.queue {
            Queue::EnqueueAqm(queue) => queue.backlog(),
            Queue::DequeueAqm(queue) => queue.backlog(),
        }
    }
}
