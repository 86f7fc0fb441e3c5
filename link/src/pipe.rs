//! One direction of a link: a queue, a transmitter, a wire.
//!
//! ```text
//! offer -> queue -> transmitter -> wire -> take
//!          (drops)  (rate, trace)  (delay, jitter, loss)
//! ```
//!
//! A pipe has at most one pending instant, [`Pipe::next`], however many packets are in it; whoever runs it asks after
//! each call, and calls [`Pipe::take`] then. Each packet comes out once: from [`Pipe::take`] at the far end, or from
//! [`Pipe::take_discarded`]. Fates and times are decided as early as they can be: for a queue that
//! decides on arrival a packet costs one event, whether it waits, is transmitted, or flies.
//!
//! All chance of a pipe comes from one stream: the seed of the flows' hash, where there is one, then in the order of the
//! packets early drop, wire loss, jitter.

use crate::counters::Counters;
use crate::fused::Fused;
use crate::loss::Losses;
use crate::outlet::Outlet;
use crate::serviced::Serviced;
use scenario::model::{self, Discipline, Loss};
use std::fmt::Debug;
use units::{Instant, Rate, Span, Stream};

/// What a pipe has to know of a packet.
pub trait Packet: Debug + 'static {
    /// Its bytes, from the IP header on.
    fn bytes(&self) -> u32;
    /// What tells flows apart: the same for all packets of a flow.
    fn flow(&self) -> u16;
    /// Its sender understands marks (ECT).
    fn ecn_capable(&self) -> bool;
    /// Sets CE.
    fn mark(&mut self);
}

/// What became of a packet offered to a pipe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is in the pipe. A queue that decides at departure, and the wire behind it, may still drop it.
    Accepted,
    /// The queue dropped it, or the delay stage's limit.
    Dropped,
    /// The wire lost it, or the link is down.
    Lost,
}

/// One direction of a link.
#[derive(Debug)]
pub struct Pipe<P> {
    up: bool,
    overhead: u64,
    queue: Queue<P>,
    outlet: Outlet<P>,
}

#[derive(Debug)]
enum Queue<P> {
    Fused(Fused),
    Serviced(Serviced<P>),
}

impl<P: Packet> Pipe<P> {
    /// An empty pipe with its own source of chance. Rates must not be zero (such a link is down), nor traces empty.
    #[must_use]
    pub fn new(config: &model::Pipe, random: Stream) -> Self {
        let mut outlet = Outlet::new(config, random);
        let queue = match config.queue.discipline {
            Discipline::DropTail | Discipline::Red { .. } => {
                Queue::Fused(Fused::new(config.queue, outlet.transmitter.rate()))
            }
            _ => Queue::Serviced(Serviced::new(config.queue, &mut outlet)),
        };
        Self { up: true, overhead: u64::from(config.overhead), queue, outlet }
    }

    /// Hands a packet in. One that is refused is among the [discarded](Self::take_discarded).
    #[inline]
    pub fn offer(&mut self, now: Instant, packet: P) -> Verdict {
        self.outlet.counters.offered += 1;
        if !self.up {
            return self.outlet.lose_packet(packet);
        }
        let size = u64::from(packet.bytes()) + self.overhead;
        match &mut self.queue {
            Queue::Fused(queue) => queue.offer(now, packet, size, &mut self.outlet),
            Queue::Serviced(queue) => queue.offer(now, packet, size, &mut self.outlet),
        }
    }

    /// When to call [`take`](Self::take); [`Instant::NEVER`] if the pipe is empty.
    #[inline]
    #[must_use]
    pub fn next(&self) -> Instant {
        match &self.queue {
            Queue::Serviced(queue) if self.outlet.wire.next() == Instant::NEVER => queue.next(&self.outlet),
            _ => self.outlet.wire.next(),
        }
    }

    /// The packet that arrives at the far end by `now`. There may be another one, if [`next`](Self::next) is still
    /// `now`; there may be none: a lost packet had its turn, or a packet left the queue for an empty wire.
    #[inline]
    pub fn take(&mut self, now: Instant) -> Option<P> {
        if let Queue::Serviced(queue) = &mut self.queue {
            queue.settle(now, &mut self.outlet);
        }
        self.outlet.take(now)
    }

    /// Is any packet left that was dropped or lost?
    #[inline]
    #[must_use]
    pub fn has_discarded(&self) -> bool {
        !self.outlet.discarded.is_empty()
    }

    /// A packet that was dropped or lost, if any is left. Any call that takes the time may discard some.
    #[inline]
    pub fn take_discarded(&mut self) -> Option<P> {
        self.outlet.discarded.pop()
    }

    /// Changes the rate, also of a link that had a trace or no limit. The packet in transmission keeps the old rate.
    /// The wire's decisions about waiting packets (loss, delay stage full) stand.
    pub fn set_rate(&mut self, now: Instant, rate: Rate) {
        match &mut self.queue {
            Queue::Fused(queue) => queue.set_rate(now, rate, &mut self.outlet),
            Queue::Serviced(queue) => queue.set_rate(now, rate, &mut self.outlet),
        }
    }

    /// Changes the propagation delay of what has not left the transmitter yet. Packets stay in order.
    pub fn set_delay(&mut self, now: Instant, delay: Span) {
        self.settle(now);
        self.outlet.wire.set_delay(now, delay, &mut self.outlet.random);
    }

    /// Changes the loss model for packets whose fate is not decided yet.
    pub fn set_loss(&mut self, now: Instant, loss: Loss) {
        self.settle(now);
        self.outlet.losses = Losses::new(loss);
    }

    /// Takes the link down, which loses everything in it, or up.
    pub fn set_up(&mut self, now: Instant, up: bool) {
        if self.up && !up {
            match &mut self.queue {
                Queue::Fused(queue) => queue.cut(now, &mut self.outlet),
                Queue::Serviced(queue) => queue.cut(now, &mut self.outlet),
            }
        }
        self.up = up;
    }

    /// Packets waiting; the one in transmission is not.
    pub fn queued_packets(&mut self, now: Instant) -> u64 {
        self.settle(now);
        self.waiting().0
    }

    /// When fewer than `limit` packets will be waiting: now, or when enough of them have begun their transmission.
    pub fn room_at(&mut self, now: Instant, limit: u64) -> Instant {
        self.settle(now);
        if self.waiting().0 < limit {
            return now;
        }
        match &self.queue {
            Queue::Fused(queue) => queue.start_of_waiting_from_last(limit),
            Queue::Serviced(_) => self.outlet.transmitter.free_at().max(now + Span(1)),
        }
    }

    /// Bytes waiting, with the link's overhead.
    #[cfg(test)]
    pub fn queued_bytes(&mut self, now: Instant) -> u64 {
        self.settle(now);
        self.waiting().1
    }

    /// How long a packet that comes now would wait, were nothing ahead of it dropped any more. On a trace link: until
    /// the opportunity of the last packet waiting, or at the mean rate where that is not known yet (a queue that decides
    /// at departure). With lanes for flows: were it the last of all.
    pub fn queue_delay(&mut self, now: Instant) -> Span {
        self.settle(now);
        let scheduled = self.outlet.transmitter.free_at().since(now);
        match (&self.queue, self.outlet.transmitter.rate()) {
            (Queue::Serviced(queue), Some(rate)) => scheduled + rate.time_for(queue.waiting().1),
            _ => scheduled,
        }
    }

    /// How long the transmitter has been busy until `now`; on a trace link the time the bytes would have taken at the
    /// trace's mean rate.
    pub fn busy(&mut self, now: Instant) -> Span {
        self.settle(now);
        let outstanding = match &self.queue {
            Queue::Fused(queue) => self.outlet.transmitter.outstanding(now, queue.sizes()),
            Queue::Serviced(_) => self.outlet.transmitter.outstanding(now, std::iter::empty()),
        };
        Span(self.outlet.counters.busy_ns).saturating_sub(outstanding)
    }

    /// Bytes, link overhead included, that could leave after `from`, until `to`, if it is all that time as it is now;
    /// `None`: any number.
    pub fn capacity(&self, from: Instant, to: Instant) -> Option<u64> {
        if self.up { self.outlet.transmitter.capacity(from, to) } else { Some(0) }
    }

    /// Packets in the pipe that have neither been delivered, dropped nor lost. Counts them one by one.
    #[must_use]
    pub fn inside(&self) -> u64 {
        let waiting = if let Queue::Serviced(queue) = &self.queue { queue.waiting().0 } else { 0 };
        self.outlet.wire.live() + waiting
    }

    /// The books.
    #[must_use]
    pub fn counters(&self) -> &Counters {
        &self.outlet.counters
    }

    #[inline]
    fn settle(&mut self, now: Instant) {
        match &mut self.queue {
            Queue::Fused(queue) => queue.settle(now),
            Queue::Serviced(queue) => queue.settle(now, &mut self.outlet),
        }
    }

    fn waiting(&self) -> (u64, u64) {
        match &self.queue {
            Queue::Fused(queue) => queue.waiting(),
            Queue::Serviced(queue) => queue.waiting(),
        }
    }
}
