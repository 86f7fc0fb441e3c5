//! An MPTCP connection over the test network: a path for each subflow, with a one-way delay and a transmission time of
//! a segment, and a filter that drops, delays or duplicates packets.

use crate::tcp_connection::{self, MSS};
use conformance::scheduler::CheckedScheduler;
use ropewalk_transport::mptcp::{
    Ack, ConnectionConfig, Input, MptcpStack, Output, Receiver, Segment, SendBufferRule, Sender, SubflowConfig,
};
use ropewalk_transport::tcp::{SegmentKind, receiver, sender};
use std::collections::BTreeMap;
use testnet::{LinkConfig, Network};
use units::{Instant, Rate, RngStream, Span};

/// A path with this one-way delay and this transmission time of a segment.
pub(crate) fn path(delay_ms: u64, transmission_us: u64) -> [LinkConfig; 2] {
    let reverse = LinkConfig { delay: Span::from_millis(delay_ms), ..LinkConfig::ideal() };
    [LinkConfig { rate: Some(Rate::from_mbit(8)), overhead: transmission_us as u32, ..reverse }, reverse]
}

/// Options of a connection.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    pub(crate) segments: u64,
    pub(crate) subflows: Vec<SubflowConfig>,
    pub(crate) scheduler: &'static str,
    pub(crate) congestion: &'static str,
    pub(crate) stack: MptcpStack,
    pub(crate) opportunistic: bool,
    /// Receive buffer, bytes: twice the window.
    pub(crate) buffer: u64,
    pub(crate) send_buffer: u64,
    pub(crate) send_buffer_rule: SendBufferRule,
    /// Maximum packets in flight on a subflow.
    pub(crate) window: u32,
    pub(crate) mss: u32,
    pub(crate) option_bytes: u32,
}

impl Options {
    pub(crate) fn with_subflows(subflows: usize) -> Self {
        Self {
            segments: 1000,
            subflows: vec![SubflowConfig::default(); subflows],
            scheduler: "minrtt",
            congestion: "reno",
            stack: MptcpStack::OutOfTree,
            opportunistic: false,
            buffer: 1 << 22,
            send_buffer: 10_000,
            send_buffer_rule: SendBufferRule::Sum,
            window: 200,
            mss: MSS,
            option_bytes: 0,
        }
    }
}

/// The outcome of a filter for a packet: the extra delay of each copy that arrives.
pub(crate) type Copies = Vec<Span>;
pub(crate) type SegmentFilter = Box<dyn FnMut(Instant, &Segment) -> Copies>;
pub(crate) type AckFilter = Box<dyn FnMut(Instant, &Ack) -> Copies>;

pub(crate) fn pass() -> Copies {
    vec![Span::ZERO]
}

pub(crate) struct Connection {
    pub(crate) sender: Sender,
    pub(crate) receiver: Receiver,
    pub(crate) now: Instant,
    pub(crate) sent: Vec<(Instant, Segment)>,
    pub(crate) delays: Vec<(Span, Span)>,
    pub(crate) reassembly_delays: Vec<Span>,
    segment_filter: SegmentFilter,
    ack_filter: AckFilter,
    network: Network<Packet>,
    /// The data sequence number of each subflow's sequence number.
    mappings: BTreeMap<(u16, u64), u64>,
}

#[derive(Clone, Copy, Debug)]
enum Packet {
    Segment(Segment),
    Ack(Ack),
}

pub(crate) fn new_sender(options: &Options) -> Sender {
    let tcp = sender::SenderConfig {
        mss: options.mss,
        packet_bytes: options.mss + 72,
        send_buffer: options.send_buffer * (u64::from(options.mss) + sender::SENT_OVERHEAD),
        window_clamp: options.window,
        ..tcp_connection::sender_config(tcp_connection::Options::default())
    };
    let config = ConnectionConfig {
        tcp,
        subflows: options.subflows.clone(),
        stack: options.stack,
        send_buffer: options.send_buffer_rule,
        opportunistic_retransmission: options.opportunistic,
        penalisation: options.opportunistic,
    };
    let entry = control::registry::find(options.congestion).expect("registered");
    let controller = entry.controller(&BTreeMap::new()).expect("no parameters");
    let entry = schedule::find(options.scheduler).expect("registered");
    let scheduler = CheckedScheduler::new(entry, |violation| panic!("{violation}")).expect("no parameters");
    let mut sender = Sender::new(config, controller, RngStream::named(1, "paths"), Box::new(scheduler), entry.fill);
    sender.handle(Instant::ZERO, Input::Write(options.segments));
    sender
}

pub(crate) fn new_receiver(options: &Options) -> Receiver {
    let tcp = tcp_connection::receiver_config(tcp_connection::Options::default());
    let Options { mss, option_bytes, .. } = *options;
    let config = receiver::ReceiverConfig { mss, option_bytes, buffer: [options.buffer; 2], ..tcp };
    Receiver::new(config, options.subflows.len(), options.stack)
}

impl Connection {
    pub(crate) fn new(
        options: &Options,
        paths: &[[LinkConfig; 2]],
        segment_filter: SegmentFilter,
        ack_filter: AckFilter,
    ) -> Self {
        Self {
            sender: new_sender(options),
            receiver: new_receiver(options),
            now: Instant::ZERO + Span::from_secs(1),
            sent: Vec::new(),
            delays: Vec::new(),
            reassembly_delays: Vec::new(),
            segment_filter,
            ack_filter,
            network: Network::new(1, paths.to_vec()),
            mappings: BTreeMap::new(),
        }
    }

    /// A connection whose acknowledgements all arrive.
    pub(crate) fn with_segment_filter(
        options: &Options,
        paths: &[[LinkConfig; 2]],
        segment_filter: impl FnMut(Instant, &Segment) -> Copies + 'static,
    ) -> Self {
        Self::new(options, paths, Box::new(segment_filter), Box::new(|_, _| pass()))
    }

    /// Runs until everything is delivered and acknowledged, or `limit` has passed. Returns whether everything was.
    pub(crate) fn run(&mut self, segments: u64, limit: Span) -> bool {
        let end = self.now + limit;
        self.sender.handle(self.now, Input::Connect);
        while self.now < end {
            let deadline = self.poll_sender();
            if self.sender.acknowledged() >= segments {
                return true;
            }
            let timer = deadline.min(self.receiver.deadline());
            let next = timer.min(self.network.next_event_time());
            assert!(next < Instant::NEVER, "it stalls at {} of {segments}", self.sender.acknowledged());
            self.now = self.now.max(next);
            self.advance(timer);
        }
        false
    }

    /// Data segments sent on a subflow, retransmissions included.
    pub(crate) fn sent_on(&self, subflow: u16) -> impl Iterator<Item = (Instant, Segment)> {
        self.sent
            .iter()
            .copied()
            .filter(move |(_, segment)| segment.subflow == subflow && segment.tcp.kind == SegmentKind::Data)
    }

    fn poll_sender(&mut self) -> Instant {
        loop {
            match self.sender.poll(self.now) {
                Output::Transmit(segment) => self.send(segment),
                Output::WaitUntil(deadline) => return deadline,
            }
        }
    }

    fn send(&mut self, segment: Segment) {
        self.sent.push((self.now, segment));
        if segment.tcp.kind == SegmentKind::Data {
            let mapping = self.mappings.entry((segment.subflow, segment.tcp.seq)).or_insert(segment.data_seq);
            assert_eq!(*mapping, segment.data_seq, "a retransmission on the same subflow has the same mapping");
        }
        let copies = (self.segment_filter)(self.now, &segment);
        self.network.send_copies(self.now, (0, usize::from(segment.subflow)), 0, Packet::Segment(segment), copies);
    }

    fn send_ack(&mut self, ack: Option<Ack>) {
        let Some(ack) = ack else { return };
        let copies = (self.ack_filter)(self.now, &ack);
        self.network.send_copies(self.now, (1, usize::from(ack.subflow)), 0, Packet::Ack(ack), copies);
    }

    fn advance(&mut self, timer: Instant) {
        match self.network.receive(self.now).map(|arrival| arrival.datagram) {
            Some(Packet::Segment(segment)) => self.receive(&segment),
            Some(Packet::Ack(ack)) => {
                self.sender.handle(self.now, Input::Ack(&ack));
                let delays = &mut self.delays;
                self.sender.drain_delays(|delay, excess| delays.push((delay, excess)));
            }
            None if timer <= self.now => {
                self.sender.handle(self.now, Input::Timeout);
                while let Some(ack) = self.receiver.on_timeout(self.now) {
                    self.send_ack(Some(ack));
                }
            }
            None => {}
        }
        assert!(self.sender.acknowledged() <= self.receiver.delivered());
    }

    fn receive(&mut self, segment: &Segment) {
        let prior_delivered = self.receiver.delivered();
        let ack = self.receiver.handle(self.now, segment, false);
        assert!(self.receiver.delivered() >= prior_delivered);
        let reassembly_delays = &mut self.reassembly_delays;
        self.receiver.drain_reassembly_delays(|delay| reassembly_delays.push(delay));
        assert_eq!(
            self.reassembly_delays.len() as u64,
            self.receiver.delivered(),
            "each segment of data is delivered once"
        );
        self.send_ack(ack);
    }
}
