//! The MPTCP receiver: each subflow delivers its segments in order, the connection reassembles the data, and one
//! receive window is advertised.
//!
//! RFC 8684 section 3.3: a segment of data counts once its subflow has delivered it in order, and the first copy is
//! kept. The receive window of every subflow is the connection's, relative to DATA_ACK.

use super::{Ack, MptcpStack, Segment};
use crate::tcp::receiver::{MAX_OUT_OF_ORDER, ReceiverConfig, reassembly::Reassembly, receive_window::ReceiveWindow};
use crate::tcp::{self, SegmentKind};
use std::collections::VecDeque;
use units::{Instant, Span};

/// SACK blocks that fit into a TCP header in addition to timestamps and DATA_ACK.
const MAX_SACK_BLOCKS: usize = 2;

/// Receive window up to which the window counts as closed, segments.
const NEARLY_CLOSED_WINDOW: u64 = 2;

/// Counters of an MPTCP receiver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReceiverCounters {
    /// Segments of data that arrived on one subflow after they had already arrived on another.
    pub duplicates: u64,
    /// Segments of data whose copy arrived first.
    pub copies_arrived_first: u64,
    /// Segments of data beyond the offered window; they were dropped.
    pub beyond_window: u64,
    /// Maximum number of segments that waited for earlier ones, on all subflows and in the connection together.
    pub max_out_of_order: u64,
}

/// The receiver of an MPTCP connection.
#[derive(Clone, Debug)]
pub struct Receiver {
    subflows: Vec<Subflow>,
    stack: MptcpStack,
    mss: u64,
    data: Reassembly,
    /// First arrival time of each segment from `data.next()` on; [`Instant::NEVER`] if it has not arrived.
    arrivals: VecDeque<Instant>,
    window: ReceiveWindow,
    /// Right edge of the offered receive window, bytes.
    window_edge: u64,
    /// Deadline of the earliest delayed or compressed acknowledgement of the subflows.
    ack_deadline: Instant,
    /// Time at which window updates are due, and the bit mask of the subflows that have to send one.
    window_update_deadline: Instant,
    window_updates: u32,
    /// Out-of-order segments on all subflows together.
    out_of_order_on_subflows: u64,
    /// Reassembly delays of the segments delivered since the last drain.
    reassembly_delays: Vec<Span>,
    counters: ReceiverCounters,
}

/// A subflow's receiver, and the data of the segments that it has not yet delivered.
#[derive(Clone, Debug)]
struct Subflow {
    tcp: tcp::Receiver,
    /// The data sequence number of segment `delivered + i`, if it has arrived.
    data: VecDeque<Option<u64>>,
}

/// The state of a subflow's receiver before a segment.
#[derive(Clone, Copy, Debug)]
struct Prior {
    delivered: u64,
    out_of_order: u64,
}

impl Receiver {
    /// A receiver with `subflows` subflows, which has received nothing.
    #[must_use]
    pub fn new(config: ReceiverConfig, subflows: usize, stack: MptcpStack) -> Self {
        let mut subflow = Subflow { tcp: tcp::Receiver::of_subflow(config), data: VecDeque::new() };
        let window = ReceiveWindow::new(&config);
        if stack == MptcpStack::Upstream {
            subflow.tcp.window_mut().share_buffer(&window);
        }
        Self {
            subflows: vec![subflow; subflows],
            mss: u64::from(config.mss),
            data: Reassembly::default(),
            arrivals: VecDeque::new(),
            window,
            stack,
            window_edge: config.buffer[1], // the maximum of the first offer
            ack_deadline: Instant::NEVER,
            window_update_deadline: Instant::NEVER,
            window_updates: 0,
            out_of_order_on_subflows: 0,
            reassembly_delays: Vec::new(),
            counters: ReceiverCounters::default(),
        }
    }

    /// Handles an arriving segment; `marked` if it carries a CE mark. Returns the acknowledgement that must be sent at
    /// once. A segment of a subflow that does not exist is ignored.
    pub fn handle(&mut self, now: Instant, segment: &Segment, marked: bool) -> Option<Ack> {
        let subflow = self.subflows.get_mut(usize::from(segment.subflow))?;
        let tcp = &mut subflow.tcp;
        let prior_deadline = tcp.deadline();
        let prior = Prior { delivered: tcp.delivered(), out_of_order: tcp.out_of_order() };
        let ack = tcp.handle(now, &segment.tcp, marked);
        if tcp.deadline() != prior_deadline {
            self.update_ack_deadline();
        }
        if segment.tcp.kind == SegmentKind::Data {
            self.record_arrival(now, segment);
            self.deliver(now, segment, prior);
        }
        // The third packet of a join has an answer (RFC 8684 section 3.2).
        let is_join = segment.tcp.kind == SegmentKind::HandshakeAck && segment.subflow > 0;
        if ack.is_none() && is_join && self.stack == MptcpStack::Upstream {
            return Some(self.piggyback(now, segment.subflow));
        }
        ack.map(|ack| self.acknowledgement(segment.subflow, ack))
    }

    /// Time at which [`Receiver::on_timeout`] is due.
    #[must_use]
    pub fn deadline(&self) -> Instant {
        self.ack_deadline.min(self.window_update_deadline)
    }

    /// Handles an expired deadline: a delayed or compressed acknowledgement is sent. Call it until it returns `None`.
    pub fn on_timeout(&mut self, now: Instant) -> Option<Ack> {
        if self.window_updates != 0 {
            let index = self.window_updates.trailing_zeros() as u16;
            self.window_updates &= self.window_updates - 1;
            return Some(self.piggyback(now, index));
        }
        self.window_update_deadline = Instant::NEVER;
        for index in 0..self.subflows.len() {
            if let Some(ack) = self.subflows[index].tcp.on_timeout(now) {
                self.update_ack_deadline();
                return Some(self.acknowledgement(index as u16, ack));
            }
        }
        None
    }

    /// The acknowledgement that a data packet to the sender carries.
    pub fn piggyback(&mut self, now: Instant, subflow: u16) -> Ack {
        let ack = self.subflows[usize::from(subflow)].tcp.piggyback(now);
        self.update_ack_deadline();
        self.acknowledgement(subflow, ack)
    }

    fn update_ack_deadline(&mut self) {
        let deadlines = self.subflows.iter().map(|subflow| subflow.tcp.deadline());
        self.ack_deadline = deadlines.min().unwrap_or(Instant::NEVER);
    }

    /// Segments delivered in order to the application.
    #[must_use]
    pub fn delivered(&self) -> u64 {
        self.data.next()
    }

    /// Drains the reassembly delay of each segment delivered since the last call: its wait for earlier segments.
    pub fn drain_reassembly_delays(&mut self, record: impl FnMut(Span)) {
        self.reassembly_delays.drain(..).for_each(record);
    }

    /// The counters.
    #[must_use]
    pub fn counters(&self) -> &ReceiverCounters {
        &self.counters
    }

    /// Records the arrival of the first copy.
    fn record_arrival(&mut self, now: Instant, segment: &Segment) {
        if segment.data_seq >= self.data.next() && self.is_within_window(segment.data_seq) {
            let arrival = self.arrival(segment.data_seq);
            if *arrival == Instant::NEVER {
                *arrival = now;
                self.counters.copies_arrived_first += u64::from(segment.copy);
            }
        }
    }

    fn is_within_window(&self, data: u64) -> bool {
        data.saturating_add(1).saturating_mul(self.mss) <= self.window_edge
    }

    fn arrival(&mut self, data: u64) -> &mut Instant {
        let index = (data - self.data.next()) as usize;
        if index >= self.arrivals.len() {
            self.arrivals.resize(index + 1, Instant::NEVER);
        }
        &mut self.arrivals[index]
    }

    /// Adds the segments that the subflow now delivers in order to the connection's reassembly.
    fn deliver(&mut self, now: Instant, segment: &Segment, prior: Prior) {
        let subflow = &mut self.subflows[usize::from(segment.subflow)];
        let delivered = subflow.tcp.delivered();
        self.out_of_order_on_subflows = self.out_of_order_on_subflows + subflow.tcp.out_of_order() - prior.out_of_order;
        if (prior.delivered..prior.delivered + MAX_OUT_OF_ORDER).contains(&segment.tcp.seq) {
            let index = (segment.tcp.seq - prior.delivered) as usize;
            if index >= subflow.data.len() {
                subflow.data.resize(index + 1, None);
            }
            // A segment that PAWS discarded is overwritten by its retransmission, which has the same mapping.
            subflow.data[index] = Some(segment.data_seq);
        }
        let next = self.data.next();
        for _ in prior.delivered..delivered {
            let data = self.subflows[usize::from(segment.subflow)].data.pop_front().flatten();
            self.on_data(now, data.expect("a segment that was delivered has arrived"));
        }
        if self.data.next() > next && self.window_edge < (next + NEARLY_CLOSED_WINDOW + 1) * self.mss {
            self.send_window_updates(now);
        }
        let out_of_order = self.data.out_of_order() + self.out_of_order_on_subflows;
        self.counters.max_out_of_order = self.counters.max_out_of_order.max(out_of_order);
    }

    /// The receive window has opened after it was shut. Window updates are sent on every subflow that has received data
    /// (Linux `mptcp_cleanup_rbuf`). The reverse path of one may be dead, and the others have nothing to acknowledge.
    fn send_window_updates(&mut self, now: Instant) {
        self.window_update_deadline = now;
        let receiving_subflows = self.subflows.iter().enumerate().filter(|(_, subflow)| subflow.tcp.delivered() > 0);
        self.window_updates = receiving_subflows.fold(0, |mask, (index, _)| mask | 1 << index);
    }

    fn on_data(&mut self, now: Instant, data: u64) {
        let prior_next = self.data.next();
        if !self.is_within_window(data) {
            self.counters.beyond_window += 1;
        } else if data < prior_next {
            self.counters.duplicates += 1;
        } else {
            let arrival = self.arrival(data);
            *arrival = now.min(*arrival);
            self.counters.duplicates += u64::from(!self.data.insert(data));
        }
        for _ in prior_next..self.data.next() {
            let arrival = self.arrivals.pop_front().expect("what is delivered has arrived");
            self.reassembly_delays.push(now.since(arrival));
        }
        if self.data.next() > prior_next {
            let rtt = self.subflows.iter().map(|subflow| subflow.tcp.rtt()).max().unwrap_or(Span::ZERO);
            self.window.on_data_of_subflows(now, self.data.next(), rtt);
        }
    }

    #[inline]
    fn acknowledgement(&mut self, subflow: u16, mut tcp: tcp::Ack) -> Ack {
        let (next, out_of_order) = (self.data.next(), self.data.out_of_order());
        if tcp.syn {
            return Ack { subflow, tcp, data_ack: next }; // its window is the subflow's own
        }
        // Out-of-order segments of a subflow are charged to that subflow (Linux `__mptcp_space`). If they were charged
        // to the connection, a dead subflow could keep the window shut for ever.
        tcp.receive_window = match self.stack {
            MptcpStack::OutOfTree => {
                let window = self.window.select(out_of_order, 0, false).window;
                self.window.advertise(next, window)
            }
            MptcpStack::Upstream => {
                let subflow = &mut self.subflows[usize::from(subflow)].tcp;
                let delivered = subflow.delivered();
                subflow.window_mut().advertise_subflow(&mut self.window, next, out_of_order, delivered)
            }
        };
        tcp.sack_blocks.truncate(MAX_SACK_BLOCKS);
        self.window_edge = next * self.mss + tcp.receive_window;
        Ack { subflow, tcp, data_ack: next }
    }
}
