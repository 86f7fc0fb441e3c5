//! One direction of a link: a queue, a transmitter, a wire.
//!
//! ```text
//! offer -> queue -> transmitter -> wire -> take
//!          (drops)  (rate, trace)  (delay, jitter, loss)
//! ```
//!
//! A pipe has at most one pending event, at [`Pipe::next`], however many packets are in it; its owner asks after each
//! call, and calls [`Pipe::take`] then. Each packet comes out once: from [`Pipe::take`] at the far end, or from
//! [`Pipe::take_discarded`]. The fate of a packet is decided as early as possible: with a queue that decides on arrival a
//! packet costs one event, whether it waits, is transmitted, or is on the wire.
//!
//! A pipe draws from one random stream: the seed of the flows' hash, where there is one, then in the order of the
//! packets early drop, wire loss, jitter.

use crate::config::{LossModel, PipeConfig, QueueDiscipline};
use crate::counters::LinkCounters;
use crate::dequeue_managed::DequeueManaged;
use crate::egress::Egress;
use crate::enqueue_managed::EnqueueManaged;
use crate::loss::LossState;
use crate::packet::{Packet, Verdict};
use units::{Instant, Rate, RngStream, Span};

/// One direction of a link.
#[derive(Debug)]
pub struct Pipe<P> {
    up: bool,
    overhead: u64,
    queue: Queue<P>,
    egress: Egress<P>,
}

#[derive(Debug)]
enum Queue<P> {
    EnqueueManaged(EnqueueManaged),
    DequeueManaged(DequeueManaged<P>),
}

impl<P: Packet> Pipe<P> {
    /// An empty pipe with a random stream of its own. Rates must not be zero (such a link is down), nor traces empty.
    #[must_use]
    pub fn new(config: &PipeConfig, rng: RngStream) -> Self {
        let mut egress = Egress::new(config, rng);
        let queue = match config.queue.discipline {
            QueueDiscipline::DropTail | QueueDiscipline::Red(_) => {
                Queue::EnqueueManaged(EnqueueManaged::new(config.queue, egress.transmitter.rate()))
            }
            _ => Queue::DequeueManaged(DequeueManaged::new(config.queue, &mut egress)),
        };
        Self { up: true, overhead: u64::from(config.overhead), queue, egress }
    }

    /// Offers a packet to the queue. A packet that is not accepted is among the [discarded](Self::take_discarded).
    #[inline]
    pub fn offer(&mut self, now: Instant, packet: P) -> Verdict {
        self.egress.counters.offered += 1;
        if !self.up {
            return self.egress.lose_packet(packet);
        }
        let size = u64::from(packet.bytes()) + self.overhead;
        match &mut self.queue {
            Queue::EnqueueManaged(queue) => queue.offer(now, packet, size, &mut self.egress),
            Queue::DequeueManaged(queue) => queue.offer(now, packet, size, &mut self.egress),
        }
    }

    /// When to call [`take`](Self::take); [`Instant::NEVER`] if the pipe is empty.
    #[inline]
    #[must_use]
    pub fn next(&self) -> Instant {
        match &self.queue {
            Queue::DequeueManaged(queue) if self.egress.wire.next() == Instant::NEVER => queue.next(&self.egress),
            _ => self.egress.wire.next(),
        }
    }

    /// The packet that arrives at the far end by `now`. There may be another one, if [`next`](Self::next) is still
    /// `now`; there is none if the event was that of a lost packet, or of a packet that left the queue for an empty wire.
    #[inline]
    pub fn take(&mut self, now: Instant) -> Option<P> {
        if let Queue::DequeueManaged(queue) = &mut self.queue {
            queue.advance(now, &mut self.egress);
        }
        self.egress.receive(now)
    }

    /// Whether a packet is left that was dropped or lost.
    #[inline]
    #[must_use]
    pub fn has_discarded(&self) -> bool {
        !self.egress.discarded.is_empty()
    }

    /// A packet that was dropped or lost, if any is left. Any call with a `now` may discard some.
    #[inline]
    pub fn take_discarded(&mut self) -> Option<P> {
        self.egress.discarded.pop()
    }

    /// Changes the rate, also of a link that had a trace or no limit. The packet in transmission keeps the old rate.
    /// The wire's decisions about waiting packets (loss, delay stage full) stand.
    pub fn set_rate(&mut self, now: Instant, rate: Rate) {
        match &mut self.queue {
            Queue::EnqueueManaged(queue) => queue.set_rate(now, rate, &mut self.egress),
            Queue::DequeueManaged(queue) => queue.set_rate(now, rate, &mut self.egress),
        }
    }

    /// Changes the propagation delay of what has not left the transmitter yet. Packets stay in order.
    pub fn set_delay(&mut self, now: Instant, delay: Span) {
        self.advance(now);
        self.egress.wire.set_delay(now, delay, &mut self.egress.rng);
    }

    /// Changes the loss model for packets that are not yet known to be lost or not.
    pub fn set_loss(&mut self, now: Instant, loss: LossModel) {
        self.advance(now);
        self.egress.loss = LossState::new(loss);
    }

    /// Takes the link down, which loses everything in it, or up.
    pub fn set_up(&mut self, now: Instant, up: bool) {
        if self.up && !up {
            match &mut self.queue {
                Queue::EnqueueManaged(queue) => queue.take_down(now, &mut self.egress),
                Queue::DequeueManaged(queue) => queue.take_down(now, &mut self.egress),
            }
        }
        self.up = up;
    }

    /// Packets waiting; the one in transmission is not.
    pub fn queued_packets(&mut self, now: Instant) -> u64 {
        self.advance(now);
        self.backlog().0
    }

    /// When fewer than `limit` packets will be waiting: now, or when enough of them have begun their transmission.
    pub fn room_at(&mut self, now: Instant, limit: u64) -> Instant {
        self.advance(now);
        if self.backlog().0 < limit {
            return now;
        }
        match &self.queue {
            Queue::EnqueueManaged(queue) => queue.start_of_nth_last(limit),
            Queue::DequeueManaged(_) => self.egress.transmitter.free_at().max(now + Span(1)),
        }
    }

    /// Bytes waiting, with the link's overhead.
    #[cfg(test)]
    pub fn queued_bytes(&mut self, now: Instant) -> u64 {
        self.advance(now);
        self.backlog().1
    }

    /// Queueing delay of a packet that arrives now, if nothing ahead of it is dropped. On a trace link: until the
    /// opportunity of the last packet waiting, or at the mean rate where that is not known yet (a queue that decides at
    /// departure). With a queue for each flow: behind all packets.
    pub fn queue_delay(&mut self, now: Instant) -> Span {
        self.advance(now);
        let scheduled = self.egress.transmitter.free_at().since(now);
        match (&self.queue, self.egress.transmitter.rate()) {
            (Queue::DequeueManaged(queue), Some(rate)) => scheduled + rate.time_for(queue.backlog().1),
            _ => scheduled,
        }
    }

    /// How long the transmitter has been busy until `now`; on a trace link the time the bytes would have taken at the
    /// trace's mean rate.
    pub fn busy_time(&mut self, now: Instant) -> Span {
        self.advance(now);
        let remaining = match &self.queue {
            Queue::EnqueueManaged(queue) => self.egress.transmitter.remaining_busy_time(now, queue.sizes()),
            Queue::DequeueManaged(_) => self.egress.transmitter.remaining_busy_time(now, std::iter::empty()),
        };
        Span(self.egress.counters.busy_ns).saturating_sub(remaining)
    }

    /// Bytes, link overhead included, that could be transmitted after `from`, until `to`, if the link does not change;
    /// `None`: any number.
    pub fn bytes_between(&self, from: Instant, to: Instant) -> Option<u64> {
        if self.up { self.egress.transmitter.bytes_between(from, to) } else { Some(0) }
    }

    /// Packets in the pipe that have neither been delivered, dropped nor lost. Counts them one by one.
    #[must_use]
    pub fn packets_inside(&self) -> u64 {
        let waiting = if let Queue::DequeueManaged(queue) = &self.queue { queue.backlog().0 } else { 0 };
        self.egress.wire.arriving() + waiting
    }

    /// Totals since the beginning of the run.
    #[must_use]
    pub fn counters(&self) -> &LinkCounters {
        &self.egress.counters
    }

    #[inline]
    fn advance(&mut self, now: Instant) {
        match &mut self.queue {
            Queue::EnqueueManaged(queue) => queue.advance(now),
            Queue::DequeueManaged(queue) => queue.advance(now, &mut self.egress),
        }
    }

    fn backlog(&self) -> (u64, u64) {
        match &self.queue {
            Queue::EnqueueManaged(queue) => queue.backlog(),
            Queue::DequeueManaged(queue) => queue.backlog(),
        }
    }
}
