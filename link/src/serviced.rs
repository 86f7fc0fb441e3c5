//! A queue that decides at departure, or has several lanes: packets wait until the transmitter is free for them.
//!
//! Nobody sees a packet leave the queue, only arrive at the far end, later and in order. So departures are brought
//! up to date whenever something happens in the pipe, each with its own instant, and the pipe needs an event for a
//! departure only while the wire is empty. At an instant at which a packet leaves the queue and another arrives, the
//! departure comes first.
//!
//! What waits, and who is next, is the business of a [`Store`]: [`Fifo`] or [`Fair`].

use super::bound::Bound;
use super::cobalt::Cobalt;
use super::codel::CoDel;
use super::fair::{Fair, Plan};
use super::fifo::{End, Fifo};
use super::lane::Waiting;
use super::outlet::Outlet;
use super::pie::Pie;
use super::{Packet, Verdict};
use scenario::model::{self, Discipline, Limit};
use std::fmt::Debug;
use units::{Instant, Rate};

/// Packets that wait.
pub(super) trait Store<P: Packet>: Debug {
    /// Takes a packet in, unless it is to be dropped; others may be dropped for it. `bound` is `None` where the packet
    /// finds queue and transmitter idle, and so needs no room.
    fn push(&mut self, newcomer: Waiting<P>, bound: Option<&Bound>, outlet: &mut Outlet<P>) -> Verdict;

    /// The packet that leaves at `now`, after those before it that had to be dropped.
    fn pop(&mut self, now: Instant, outlet: &mut Outlet<P>) -> Option<Waiting<P>>;

    /// Any packet, without ceremony: the link is down.
    fn discard(&mut self) -> Option<Waiting<P>>;

    /// Waiting packets and bytes.
    fn waiting(&self) -> (u64, u64);

    /// When a packet that waits has arrived. (Any will do: none waits that the transmitter could have begun.)
    fn since(&self) -> Option<Instant>;

    /// Nothing waited at `now`, when the transmitter asked for the next packet.
    fn rest(&mut self, _now: Instant) {}

    /// The link has another rate.
    fn set_rate(&mut self, _rate: Rate) {}
}

/// The queue in front of a transmitter.
#[derive(Debug)]
pub(super) struct Serviced<P> {
    limit: Limit,
    bound: Bound,
    store: Box<dyn Store<P>>,
}

impl<P: Packet> Serviced<P> {
    /// The queue of `config` at the transmitter of `outlet`, which also gives it chance.
    ///
    /// # Panics
    /// If the discipline decides all on arrival; that is [`Fused`](super::fused::Fused)'s kind.
    pub(super) fn new(config: model::Queue, outlet: &mut Outlet<P>) -> Self {
        let rate = outlet.transmitter.rate();
        let store: Box<dyn Store<P>> = match config.discipline {
            Discipline::CoDel(codel) => Box::new(Fifo::new(End::CoDel(CoDel::new(codel, config.ecn)))),
            Discipline::Pie { target, tupdate, alpha, beta } => {
                Box::new(Fifo::new(End::Pie(Pie::new(target, tupdate, alpha, beta, config.ecn))))
            }
            Discipline::FqCodel { flows, quantum, codel } => {
                let plan = Plan::fq_codel(flows, quantum);
                Box::new(Fair::new(plan, &CoDel::new(codel, config.ecn), rate, outlet.random.bits()))
            }
            Discipline::Cake { rtt } => {
                Box::new(Fair::new(Plan::CAKE, &Cobalt::new(rtt, config.ecn), rate, outlet.random.bits()))
            }
            Discipline::DropTail | Discipline::Red { .. } => unreachable!("these decide on arrival"),
        };
        Self { limit: config.limit, bound: Bound::new(config.limit, rate), store }
    }

    pub(super) fn offer(&mut self, now: Instant, packet: P, size: u64, outlet: &mut Outlet<P>) -> Verdict {
        self.settle(now, outlet);
        let free_at = outlet.transmitter.free_at();
        let free = self.store.since().is_none() && free_at <= now;
        if free {
            self.store.rest(free_at);
        }
        let newcomer = Waiting { arrived: now, size, packet };
        let verdict = self.store.push(newcomer, (!free).then_some(&self.bound), outlet);
        self.settle(now, outlet);
        verdict
    }

    /// When the next packet leaves the queue.
    pub(super) fn next(&self, outlet: &Outlet<P>) -> Instant {
        self.store.since().map_or(Instant::NEVER, |arrived| outlet.transmitter.start(arrived))
    }

    /// Transmits what the transmitter was free for by `now`.
    pub(super) fn settle(&mut self, now: Instant, outlet: &mut Outlet<P>) {
        while self.next(outlet) <= now {
            let Some(head) = self.store.pop(self.next(outlet), outlet) else { return };
            outlet.send(head.arrived, head.packet, head.size);
        }
    }

    /// Waiting packets and bytes, as of the last `settle`.
    pub(super) fn waiting(&self) -> (u64, u64) {
        self.store.waiting()
    }

    pub(super) fn set_rate(&mut self, now: Instant, rate: Rate, outlet: &mut Outlet<P>) {
        self.settle(now, outlet);
        let begin = outlet.wire.departure_before(0).map_or(now, |departure| departure.max(now));
        outlet.transmitter.set_rate(rate, begin);
        self.bound = Bound::new(self.limit, Some(rate));
        self.store.set_rate(rate);
    }

    /// The link goes down. Those that wait have waited until now.
    pub(super) fn cut(&mut self, now: Instant, outlet: &mut Outlet<P>) {
        self.settle(now, outlet);
        while let Some(waiting) = self.store.discard() {
            outlet.counters.queue_delay_total_ns += now.since(waiting.arrived).0;
            outlet.lose_packet(waiting.packet);
        }
        outlet.cut(now, std::iter::empty());
    }
}
