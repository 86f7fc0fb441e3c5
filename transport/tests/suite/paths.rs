//! An MPTCP sender and its receiver, with a path for each subflow between them: a delay each way and the time that a
//! segment takes to leave, and what a rule says. No randomness of its own.

use ropewalk_transport::mptcp::{
    Ack, ConnectionConfig, Input, MptcpStack, Output, Receiver, Segment, Sender, SubflowConfig,
};
use ropewalk_transport::tcp::{SegmentKind, receiver, sender};
use std::collections::BTreeMap;
use units::{Instant, Span, Stream};

pub(crate) const MSS: u32 = 1000;

/// A path: one way, and the time that a segment takes to leave.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Way {
    pub(crate) delay: Span,
    pub(crate) serialisation: Span,
}

pub(crate) fn way(delay_ms: u64, serialisation_us: u64) -> Way {
    Way { delay: Span::from_millis(delay_ms), serialisation: Span::from_micros(serialisation_us) }
}

/// A connection's set-up.
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
    /// Most packets in flight on a subflow.
    pub(crate) window: u32,
}

impl Options {
    pub(crate) fn over(subflows: usize) -> Self {
        Self {
            segments: 1000,
            subflows: vec![SubflowConfig::default(); subflows],
            scheduler: "minrtt",
            congestion: "reno",
            stack: MptcpStack::OutOfTree,
            opportunistic: false,
            buffer: 1 << 22,
            send_buffer: 10_000,
            window: 200,
        }
    }
}

/// What happens to one packet: each entry is a copy that arrives so much later than it would.
pub(crate) type Fate = Vec<Span>;
pub(crate) type DataRule = Box<dyn FnMut(Instant, &Segment) -> Fate>;
pub(crate) type AckRule = Box<dyn FnMut(Instant, &Ack) -> Fate>;

pub(crate) fn pass() -> Fate {
    vec![Span::ZERO]
}

pub(crate) struct World {
    pub(crate) sender: Sender,
    pub(crate) receiver: Receiver,
    pub(crate) now: Instant,
    pub(crate) sent: Vec<(Instant, Segment)>,
    pub(crate) delays: Vec<(Span, Span)>,
    pub(crate) waits: Vec<Span>,
    ways: Vec<Way>,
    free: Vec<Instant>,
    data: DataRule,
    acks: AckRule,
    flying: BTreeMap<(Instant, u64), Parcel>,
    launched: u64,
    mappings: BTreeMap<(u16, u64), u64>,
}

enum Parcel {
    Segment(Segment),
    Ack(Ack),
}

pub(crate) fn new_sender(options: &Options) -> Sender {
    let tcp = sender::SenderConfig {
        mss: MSS,
        packet_bytes: MSS + 72,
        initial_window: 10,
        timestamps: true,
        sack: true,
        ecn: false,
        pacing: false,
        send_buffer: options.send_buffer,
        reordering: 3,
        max_reordering: 300,
        tick: Span::from_millis(1),
        recovery: sender::LossRecovery::Rack,
        handshake: true,
        initial_rto: Span::from_secs(1),
        max_window: options.window,
    };
    let config = ConnectionConfig {
        tcp,
        subflows: options.subflows.clone(),
        stack: options.stack,
        opportunistic_retransmission: options.opportunistic,
        penalisation: options.opportunistic,
    };
    let control = control::registry::find(options.congestion).expect("registered");
    let control = control.controller(&BTreeMap::new()).expect("no parameters");
    let entry = schedule::find(options.scheduler).expect("registered");
    let scheduler = entry.scheduler(&[], 0, &BTreeMap::new()).expect("no parameters");
    let mut sender = Sender::new(config, control, Stream::named(1, "paths"), scheduler, entry.fill);
    sender.handle(Instant::ZERO, Input::Write(options.segments));
    sender
}

pub(crate) fn new_receiver(options: &Options) -> Receiver {
    let config = receiver::ReceiverConfig {
        mss: MSS,
        timestamps: true,
        sack: true,
        quick_ack: false,
        gro: 1,
        buffer: [options.buffer; 2],
        ecn: control::Ecn::Classic,
        tick: Span::from_millis(1),
    };
    Receiver::new(config, options.subflows.len())
}

impl World {
    pub(crate) fn new(options: &Options, ways: &[Way], data: DataRule, acks: AckRule) -> Self {
        Self {
            sender: new_sender(options),
            receiver: new_receiver(options),
            now: Instant::ZERO + Span::from_secs(1),
            sent: Vec::new(),
            delays: Vec::new(),
            waits: Vec::new(),
            ways: ways.to_vec(),
            free: vec![Instant::ZERO; ways.len()],
            data,
            acks,
            flying: BTreeMap::new(),
            launched: 0,
            mappings: BTreeMap::new(),
        }
    }

    /// A world whose acknowledgements all arrive.
    pub(crate) fn with(options: &Options, ways: &[Way], data: impl FnMut(Instant, &Segment) -> Fate + 'static) -> Self {
        Self::new(options, ways, Box::new(data), Box::new(|_, _| pass()))
    }

    /// Runs until everything is delivered and acknowledged, or `limit` has passed. True if it was.
    pub(crate) fn run(&mut self, segments: u64, limit: Span) -> bool {
        let end = self.now + limit;
        self.sender.handle(self.now, Input::Connect);
        while self.now < end {
            let deadline = self.drive();
            if self.sender.acknowledged() >= segments {
                return true;
            }
            let first = self.flying.keys().next().map_or(Instant::NEVER, |(at, _)| *at);
            let next = deadline.min(first).min(self.receiver.deadline());
            assert!(next < Instant::NEVER, "it stands still at {} of {segments}", self.sender.acknowledged());
            self.now = self.now.max(next);
            self.advance();
        }
        false
    }

    /// What was sent on a subflow, first time or again, without its handshake.
    pub(crate) fn on(&self, subflow: u16) -> impl Iterator<Item = (Instant, Segment)> {
        self.sent.iter().copied().filter(move |(_, it)| it.subflow == subflow && it.tcp.kind == SegmentKind::Data)
    }

    fn drive(&mut self) -> Instant {
        loop {
            match self.sender.poll(self.now) {
                Output::Transmit(segment) => self.send(segment),
                Output::Until(deadline) => return deadline,
            }
        }
    }

    fn send(&mut self, segment: Segment) {
        self.sent.push((self.now, segment));
        if segment.tcp.kind == SegmentKind::Data {
            let mapped = self.mappings.entry((segment.subflow, segment.tcp.seq)).or_insert(segment.data_seq);
            assert_eq!(*mapped, segment.data_seq, "a retransmission on the same subflow has the same mapping");
        }
        let index = usize::from(segment.subflow);
        self.free[index] = self.free[index].max(self.now) + self.ways[index].serialisation;
        let delay = self.free[index].since(self.now) + self.ways[index].delay;
        for later in (self.data)(self.now, &segment) {
            self.launch(delay + later, Parcel::Segment(segment));
        }
    }

    fn answer(&mut self, ack: Option<Ack>) {
        let Some(ack) = ack else { return };
        let delay = self.ways[usize::from(ack.subflow)].delay;
        for later in (self.acks)(self.now, &ack) {
            self.launch(delay + later, Parcel::Ack(ack));
        }
    }

    fn launch(&mut self, delay: Span, parcel: Parcel) {
        self.launched += 1;
        self.flying.insert((self.now + delay, self.launched), parcel);
    }

    fn advance(&mut self) {
        match self.flying.first_entry() {
            Some(entry) if entry.key().0 <= self.now => match entry.remove() {
                Parcel::Segment(segment) => self.arrive(&segment),
                Parcel::Ack(ack) => {
                    self.sender.handle(self.now, Input::Ack(&ack));
                    let delays = &mut self.delays;
                    self.sender.drain_delays(|delay, beyond| delays.push((delay, beyond)));
                }
            },
            _ => {
                self.sender.handle(self.now, Input::Timeout);
                while let Some(ack) = self.receiver.on_timeout(self.now) {
                    self.answer(Some(ack));
                }
            }
        }
        assert!(self.sender.acknowledged() <= self.receiver.delivered());
    }

    fn arrive(&mut self, segment: &Segment) {
        let before = self.receiver.delivered();
        let ack = self.receiver.handle(self.now, segment, false);
        assert!(self.receiver.delivered() >= before);
        let waits = &mut self.waits;
        self.receiver.drain_waits(|wait| waits.push(wait));
        assert_eq!(self.waits.len() as u64, self.receiver.delivered(), "each segment of data goes up once");
        self.answer(ack);
    }
}
