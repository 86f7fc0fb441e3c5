//! A queue that decides on arrival (drop-tail, RED): transmission and propagation in one event.
//!
//! A packet's departure and its arrival at the far end are known when it is accepted, so it goes to the wire at once,
//! and the one pending event is the arrival of the wire's head. What is waiting is kept as start times and sizes
//! only, and brought up to date when somebody asks. At an instant at which a transmission starts and a packet
//! arrives, the start comes first and leaves its place to the packet.

use super::bound::Bound;
use super::outlet::Outlet;
use super::red::{Early, Red};
use super::{Packet, Verdict};
use scenario::model::{self, Discipline};
use std::collections::VecDeque;
use units::{Instant, Rate};

/// The queue in front of a transmitter.
#[derive(Debug)]
pub(super) struct Fused {
    config: model::Queue,
    bound: Bound,
    early: Option<Red>,
    waiting: VecDeque<Waiting>,
    bytes: u64,
}

/// A packet whose transmission has not started.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    start: Instant,
    size: u64,
}

impl Fused {
    pub(super) fn new(config: model::Queue, rate: Option<Rate>) -> Self {
        let early = match config.discipline {
            Discipline::Red { least, most, probability, weight } => Some(Red::new(least, most, probability, weight)),
            _ => None,
        };
        Self { config, bound: Bound::new(config.limit, rate), early, waiting: VecDeque::new(), bytes: 0 }
    }

    #[inline]
    pub(super) fn offer<P: Packet>(
        &mut self,
        now: Instant,
        mut packet: P,
        size: u64,
        outlet: &mut Outlet<P>,
    ) -> Verdict {
        self.settle(now);
        if !self.keeps_early(now, &mut packet, outlet) || !self.has_room(now, size, outlet) {
            return outlet.drop_packet(packet);
        }
        let (start, verdict) = outlet.send(now, packet, size);
        if start > now {
            self.waiting.push_back(Waiting { start, size });
            self.bytes += size;
        }
        verdict
    }

    /// Lets go of what has started by `now`.
    #[inline]
    pub(super) fn settle(&mut self, now: Instant) {
        while let Some(first) = self.waiting.front().filter(|first| first.start <= now) {
            self.bytes -= first.size;
            self.waiting.pop_front();
        }
    }

    /// Waiting packets and bytes, as of the last `settle`.
    pub(super) fn waiting(&self) -> (u64, u64) {
        (self.waiting.len() as u64, self.bytes)
    }

    /// When the packet begins its transmission that is the `count`-th from the end.
    pub(super) fn start_of_waiting_from_last(&self, count: u64) -> Instant {
        self.waiting[self.waiting.len() - count as usize].start
    }

    /// The sizes of the waiting packets, as of the last `settle`.
    pub(super) fn sizes(&self) -> impl Iterator<Item = u64> {
        self.waiting.iter().map(|waiting| waiting.size)
    }

    /// Sends what has not started yet at a new rate. The packet in transmission is not touched.
    pub(super) fn set_rate<P: Packet>(&mut self, now: Instant, rate: Rate, outlet: &mut Outlet<P>) {
        self.settle(now);
        let (old, counters) = (outlet.transmitter.rate(), &mut outlet.counters);
        let begin = outlet.wire.departure_before(self.waiting.len()).map_or(now, |departure| departure.max(now));
        outlet.transmitter.set_rate(rate, begin);
        let mut departures = Vec::with_capacity(self.waiting.len());
        for waiting in &mut self.waiting {
            let new = outlet.transmitter.send(now, waiting.size);
            counters.queue_delay_total_ns = counters.queue_delay_total_ns + new.start.0 - waiting.start.0;
            counters.busy_ns = counters.busy_ns + new.busy.0 - old.map_or(0, |old| old.time_for(waiting.size).0);
            waiting.start = new.start;
            departures.push(new.departure);
        }
        outlet.wire.reschedule(now, &departures, &mut outlet.random);
        self.bound = Bound::new(self.config.limit, Some(rate));
    }

    /// The link goes down. Those that wait have waited until now.
    pub(super) fn cut<P: Packet>(&mut self, now: Instant, outlet: &mut Outlet<P>) {
        self.settle(now);
        let spared: u64 = self.waiting.iter().map(|waiting| waiting.start.since(now).0).sum();
        outlet.counters.queue_delay_total_ns -= spared;
        outlet.cut(now, self.sizes());
        self.waiting.clear();
        self.bytes = 0;
    }

    /// A packet that finds the transmitter free does not need room.
    #[inline]
    fn has_room<P: Packet>(&self, now: Instant, size: u64, outlet: &Outlet<P>) -> bool {
        outlet.transmitter.free_at() <= now || self.bound.admits(self.waiting.len(), self.bytes, size)
    }

    #[inline]
    fn keeps_early<P: Packet>(&mut self, now: Instant, packet: &mut P, outlet: &mut Outlet<P>) -> bool {
        let Some(red) = &mut self.early else { return true };
        let free_at = outlet.transmitter.free_at();
        let idle = (free_at <= now).then(|| (now.since(free_at), outlet.transmitter.rate()));
        match red.judge(self.bytes, idle, &mut outlet.random) {
            Early::Keep => true,
            Early::Signal if self.config.ecn && packet.ecn_capable() => {
                outlet.mark(packet);
                true
            }
            Early::Signal | Early::Drop => false,
        }
    }
}
