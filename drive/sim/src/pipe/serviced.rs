//! A queue that decides at departure (CoDel): packets wait until the transmitter is free for them.
//!
//! Nobody sees a packet leave the queue, only arrive at the far end, later and in order. So departures are brought
//! up to date whenever something happens in the pipe, each with its own instant, and the pipe needs an event for a
//! departure only while the wire is empty. At an instant at which a packet leaves the queue and another arrives, the
//! departure comes first.

use super::bound::Bound;
use super::codel::{Law, Strike};
use super::outlet::Outlet;
use super::{Packet, Verdict};
use scenario::model;
use std::collections::VecDeque;
use units::{Instant, Rate, Span};

/// The queue in front of a transmitter.
#[derive(Debug)]
pub(super) struct Serviced<P> {
    config: model::Queue,
    bound: Bound,
    law: Law,
    waiting: VecDeque<Waiting<P>>,
    bytes: u64,
    /// The largest packet so far, bytes: what CoDel leaves in the queue \[`maxpacket_`\].
    largest: u64,
}

#[derive(Debug)]
struct Waiting<P> {
    arrived: Instant,
    size: u64,
    packet: P,
}

impl<P: Packet> Serviced<P> {
    /// CoDel with this target and interval.
    pub(super) fn new(config: model::Queue, rate: Option<Rate>, target: Span, interval: Span) -> Self {
        let bound = Bound::new(config.limit, rate);
        Self { config, bound, law: Law::new(target, interval), waiting: VecDeque::new(), bytes: 0, largest: 0 }
    }

    pub(super) fn offer(&mut self, now: Instant, packet: P, size: u64, outlet: &mut Outlet<P>) -> Verdict {
        self.settle(now, outlet);
        self.largest = self.largest.max(size);
        let free = self.waiting.is_empty() && outlet.transmitter.free_at() <= now;
        if !free && !self.bound.admits(self.waiting.len(), self.bytes, size) {
            return outlet.drop_packet(packet);
        }
        self.waiting.push_back(Waiting { arrived: now, size, packet });
        self.bytes += size;
        self.settle(now, outlet);
        Verdict::Accepted
    }

    /// When the next packet leaves the queue.
    pub(super) fn next(&self, outlet: &Outlet<P>) -> Instant {
        self.waiting.front().map_or(Instant::NEVER, |first| outlet.transmitter.start(first.arrived))
    }

    /// Transmits what the transmitter was free for by `now`.
    pub(super) fn settle(&mut self, now: Instant, outlet: &mut Outlet<P>) {
        while self.next(outlet) <= now {
            let Some(head) = self.dequeue(self.next(outlet), outlet) else { return };
            outlet.send(head.arrived, head.packet, head.size);
        }
    }

    /// Waiting packets and bytes, as of the last `settle`.
    pub(super) fn waiting(&self) -> (u64, u64) {
        (self.waiting.len() as u64, self.bytes)
    }

    pub(super) fn set_rate(&mut self, now: Instant, rate: Rate, outlet: &mut Outlet<P>) {
        self.settle(now, outlet);
        let begin = outlet.wire.departure_before(0).map_or(now, |departure| departure.max(now));
        outlet.transmitter.set_rate(rate, begin);
        self.bound = Bound::new(self.config.limit, Some(rate));
    }

    /// The link goes down. Those that wait have waited until now.
    pub(super) fn cut(&mut self, now: Instant, outlet: &mut Outlet<P>) {
        self.settle(now, outlet);
        let waited: u64 = self.waiting.iter().map(|waiting| now.since(waiting.arrived).0).sum();
        outlet.counters.queue_delay_total_ns += waited;
        for waiting in self.waiting.drain(..) {
            outlet.lose_packet(waiting.packet);
        }
        outlet.cut(now, std::iter::empty());
        self.bytes = 0;
    }

    /// The packet that leaves at `now`, after CoDel has dropped or marked what it wants to.
    fn dequeue(&mut self, now: Instant, outlet: &mut Outlet<P>) -> Option<Waiting<P>> {
        let (mut head, mut late) = self.pull(now)?;
        loop {
            let strike = self.law.strike(now, late);
            if strike == Strike::No {
                return Some(head);
            }
            if self.config.ecn && head.packet.ecn_capable() {
                self.reschedule(strike);
                head.packet.mark();
                outlet.counters.marked += 1;
                return Some(head);
            }
            outlet.drop_packet(head.packet);
            (head, late) = self.pull(now)?;
            if late {
                self.reschedule(strike);
            }
        }
    }

    fn reschedule(&mut self, strike: Strike) {
        if strike == Strike::Again {
            self.law.go_on();
        }
    }

    /// Takes the head off, and tells whether it is late.
    fn pull(&mut self, now: Instant) -> Option<(Waiting<P>, bool)> {
        let head = self.waiting.pop_front()?;
        self.bytes -= head.size;
        let late = self.law.is_late(now, now.since(head.arrived), self.bytes <= self.largest);
        Some((head, late))
    }
}
