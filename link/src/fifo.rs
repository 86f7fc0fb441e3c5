//! One lane, managed at one of its ends: CoDel at its head, PIE at its tail.

use super::bound::Bound;
use super::codel::CoDel;
use super::head::{Around, Head};
use super::lane::{Lane, Waiting};
use super::outlet::Outlet;
use super::pie::Pie;
use super::red::Early;
use super::serviced::Store;
use super::{Packet, Verdict};
use units::Instant;

/// A first-in, first-out queue with active management.
#[derive(Debug)]
pub(super) struct Fifo<P> {
    lane: Lane<P>,
    end: End,
    /// The largest packet so far, bytes.
    largest: u64,
}

/// Who manages a lane.
#[derive(Debug)]
pub(super) enum End {
    CoDel(CoDel),
    Pie(Pie),
}

impl<P> Fifo<P> {
    pub(super) fn new(end: End) -> Self {
        Self { lane: Lane::default(), end, largest: 0 }
    }
}

impl<P: Packet> Store<P> for Fifo<P> {
    fn push(&mut self, mut newcomer: Waiting<P>, bound: Option<&Bound>, outlet: &mut Outlet<P>) -> Verdict {
        let (packets, bytes) = self.waiting();
        self.largest = self.largest.max(newcomer.size);
        if bound.is_some_and(|bound| !bound.admits(packets as usize, bytes, newcomer.size)) {
            return outlet.drop_packet(newcomer.packet);
        }
        if let End::Pie(pie) = &mut self.end {
            match pie.judge(newcomer.arrived, bytes, newcomer.packet.ecn_capable(), &mut outlet.random) {
                Early::Keep => {}
                Early::Signal => outlet.mark(&mut newcomer.packet),
                Early::Drop => return outlet.drop_packet(newcomer.packet),
            }
        }
        self.lane.push(newcomer);
        Verdict::Accepted
    }

    fn pop(&mut self, now: Instant, outlet: &mut Outlet<P>) -> Option<Waiting<P>> {
        match &mut self.end {
            End::CoDel(codel) => codel.leave(now, &mut self.lane, Around { others: 0, largest: self.largest }, outlet),
            End::Pie(pie) => {
                let head = self.lane.pop()?;
                pie.on_departure(now, now.since(head.arrived), self.lane.is_empty());
                Some(head)
            }
        }
    }

    fn discard(&mut self) -> Option<Waiting<P>> {
        self.lane.pop()
    }

    fn waiting(&self) -> (u64, u64) {
        (self.lane.packets(), self.lane.bytes())
    }

    fn since(&self) -> Option<Instant> {
        self.lane.first().map(|first| first.arrived)
    }
}
