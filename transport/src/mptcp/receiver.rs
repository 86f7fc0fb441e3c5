//! The receiving half: subflows deliver in their order, data waits until it is complete, one window is offered.
//!
//! RFC 8684 section 3.3: a segment of data counts once its subflow has delivered it in order; the first copy of it wins;
//! the window of every subflow is the connection's, relative to DATA_ACK.

use super::{Ack, Segment};
use crate::tcp::receiver::{MAX_AHEAD, ReceiverConfig, reassembly::Reassembly, receive_window::ReceiveWindow};
use crate::tcp::{self, SegmentKind};
use std::collections::VecDeque;
use units::{Instant, Span};

/// SACK blocks that fit into a TCP header beside timestamps and DATA_ACK.
const MAX_SACK_BLOCKS: usize = 2;

/// With room for so few segments the window counts as shut.
const NEARLY_SHUT: u64 = 2;

/// What a receiver has counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReceiverCounters {
    /// Segments of data that arrived on one subflow after they had arrived on another.
    pub duplicates: u64,
    /// Segments of data of which a copy arrived first.
    pub rescued: u64,
    /// Segments of data beyond the window that was offered; they were dropped.
    pub beyond_window: u64,
    /// Most segments that waited for earlier ones, on subflows and in the connection together.
    pub most_waiting: u64,
}

/// The receiving half of a connection.
#[derive(Clone, Debug)]
pub struct Receiver {
    subflows: Vec<Subflow>,
    mss: u64,
    data: Reassembly,
    /// When each segment from `data.next()` on arrived first; never, if it has not.
    arrivals: VecDeque<Instant>,
    window: ReceiveWindow,
    /// Data below this was offered room.
    edge: u64,
    /// When the window opened again, and the subflows that have still to tell of it, a bit each.
    opened: Instant,
    to_tell: u32,
    /// How long the segments delivered since the last drain had waited.
    waits: Vec<Span>,
    counters: ReceiverCounters,
}

/// A subflow's receiver, and the data in the segments that it has not delivered.
#[derive(Clone, Debug)]
struct Subflow {
    tcp: tcp::Receiver,
    /// The data in segment `delivered + i`, once it is there.
    data: VecDeque<Option<u64>>,
}

impl Receiver {
    /// A receiver of so many subflows that has seen nothing.
    #[must_use]
    pub fn new(config: ReceiverConfig, subflows: usize) -> Self {
        let subflow = Subflow { tcp: tcp::Receiver::new(config), data: VecDeque::new() };
        Self {
            subflows: vec![subflow; subflows],
            mss: u64::from(config.mss),
            data: Reassembly::default(),
            arrivals: VecDeque::new(),
            window: ReceiveWindow::new(config.mss, config.buffer),
            edge: config.buffer[1] / u64::from(config.mss), // the most that it may offer first
            opened: Instant::NEVER,
            to_tell: 0,
            waits: Vec::new(),
            counters: ReceiverCounters::default(),
        }
    }

    /// A segment arrived; `marked` if it carries a CE mark. Returns the acknowledgement that must leave at once. A segment of
    /// a subflow that does not exist says nothing.
    pub fn handle(&mut self, now: Instant, segment: &Segment, marked: bool) -> Option<Ack> {
        let subflow = self.subflows.get_mut(usize::from(segment.subflow))?;
        let before = subflow.tcp.delivered();
        let ack = subflow.tcp.handle(now, &segment.tcp, marked);
        if segment.tcp.kind == SegmentKind::Data {
            self.note_arrival(now, segment);
            self.deliver(now, segment, before);
        }
        ack.map(|ack| self.acknowledgement(segment.subflow, ack))
    }

    /// When [`Receiver::on_timeout`] is due.
    #[must_use]
    pub fn deadline(&self) -> Instant {
        let deadlines = self.subflows.iter().map(|subflow| subflow.tcp.deadline());
        deadlines.min().unwrap_or(Instant::NEVER).min(self.opened)
    }

    /// A deadline passed: a delayed or compressed acknowledgement leaves. Call until there is none.
    pub fn on_timeout(&mut self, now: Instant) -> Option<Ack> {
        if self.to_tell != 0 {
            let index = self.to_tell.trailing_zeros() as u16;
            self.to_tell &= self.to_tell - 1;
            let ack = self.subflows[usize::from(index)].tcp.piggyback(now);
            return Some(self.acknowledgement(index, ack));
        }
        self.opened = Instant::NEVER;
        for index in 0..self.subflows.len() {
            if let Some(ack) = self.subflows[index].tcp.on_timeout(now) {
                return Some(self.acknowledgement(index as u16, ack));
            }
        }
        None
    }

    /// The acknowledgement that a packet which leaves for the sender anyway carries along.
    pub fn piggyback(&mut self, now: Instant, subflow: u16) -> Ack {
        let ack = self.subflows[usize::from(subflow)].tcp.piggyback(now);
        self.acknowledgement(subflow, ack)
    }

    /// Segments delivered in order to the application.
    #[must_use]
    pub fn delivered(&self) -> u64 {
        self.data.next()
    }

    /// How long each segment delivered since the last call waited for earlier ones, from its arrival at this host.
    pub fn drain_waits(&mut self, to: impl FnMut(Span)) {
        self.waits.drain(..).for_each(to);
    }

    /// What was counted.
    #[must_use]
    pub fn counters(&self) -> &ReceiverCounters {
        &self.counters
    }

    /// Which copy came first, and when.
    fn note_arrival(&mut self, now: Instant, segment: &Segment) {
        if (self.data.next()..self.edge).contains(&segment.data) {
            let arrival = self.arrival(segment.data);
            if *arrival == Instant::NEVER {
                *arrival = now;
                self.counters.rescued += u64::from(segment.copy);
            }
        }
    }

    fn arrival(&mut self, data: u64) -> &mut Instant {
        let place = (data - self.data.next()) as usize;
        if place >= self.arrivals.len() {
            self.arrivals.resize(place + 1, Instant::NEVER);
        }
        &mut self.arrivals[place]
    }

    /// The subflow has filed the segment away: what it now delivers goes into the connection's reassembly.
    fn deliver(&mut self, now: Instant, segment: &Segment, before: u64) {
        let subflow = &mut self.subflows[usize::from(segment.subflow)];
        let delivered = subflow.tcp.delivered();
        if (before..before + MAX_AHEAD).contains(&segment.tcp.seq) {
            let place = (segment.tcp.seq - before) as usize;
            if place >= subflow.data.len() {
                subflow.data.resize(place + 1, None);
            }
            // What PAWS refused is overwritten when it comes again, with the same mapping.
            subflow.data[place] = Some(segment.data);
        }
        let next = self.data.next();
        for _ in before..delivered {
            let data = self.subflows[usize::from(segment.subflow)].data.pop_front().flatten();
            self.take_in(now, data.expect("a segment that was delivered has arrived"));
        }
        if self.data.next() > next && self.edge <= next + NEARLY_SHUT {
            self.tell_all(now);
        }
        let waiting = self.data.waiting() + self.subflows.iter().map(|subflow| subflow.tcp.waiting()).sum::<u64>();
        self.counters.most_waiting = self.counters.most_waiting.max(waiting);
    }

    /// The window opens again after it was shut. Told on every subflow that has been heard of (Linux
    /// `mptcp_cleanup_rbuf`): the one that brought the data may be dead on the way back, and on the others nothing is
    /// outstanding that would be acknowledged.
    fn tell_all(&mut self, now: Instant) {
        self.opened = now;
        let heard = self.subflows.iter().enumerate().filter(|(_, subflow)| subflow.tcp.delivered() > 0);
        self.to_tell = heard.fold(0, |all, (index, _)| all | 1 << index);
    }

    fn take_in(&mut self, now: Instant, data: u64) {
        let before = self.data.next();
        if data >= self.edge {
            self.counters.beyond_window += 1;
        } else if data < before {
            self.counters.duplicates += 1;
        } else {
            let arrival = self.arrival(data);
            *arrival = now.min(*arrival);
            self.counters.duplicates += u64::from(!self.data.insert(data));
        }
        for _ in before..self.data.next() {
            let arrival = self.arrivals.pop_front().expect("what is delivered has arrived");
            self.waits.push(now.since(arrival));
        }
        if self.data.next() > before {
            let rtt = self.subflows.iter().map(|subflow| subflow.tcp.rtt()).max().unwrap_or(Span::ZERO);
            self.window.on_data_of_subflows(now, self.data.next(), rtt);
        }
    }

    fn acknowledgement(&mut self, subflow: u16, mut tcp: tcp::Ack) -> Ack {
        // What a subflow holds out of its own order is charged to that subflow (Linux `__mptcp_space`): were it charged to the
        // connection, a dead subflow could keep the window shut for ever.
        tcp.receive_window = self.window.offer(self.data.next(), self.data.waiting());
        tcp.sack_blocks.truncate(MAX_SACK_BLOCKS);
        self.edge = self.data.next() + tcp.receive_window / self.mss;
        Ack { subflow, tcp, data: self.data.next() }
    }
}
