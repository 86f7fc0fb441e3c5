//! A sender and a receiver in lock step, with a network between them that does what a rule says. No randomness of its
//! own, and no bottleneck but the 20 us that each segment takes to leave: 10 ms each way unless the rule says otherwise.

use control::{Controller, Ecn};
use ropewalk_transport::tcp::sender::{Input, LossRecovery, Output};
use ropewalk_transport::tcp::{Ack, Receiver, Segment, SinglePathSender, receiver, sender};
use std::collections::BTreeMap;
use units::{Instant, Span, Stream};

pub(crate) const MSS: u32 = 1000;
pub(crate) const ONE_WAY: Span = Span::from_millis(10);
/// What a segment takes to leave: no two arrive at the same instant.
const SERIALISATION: Span = Span::from_micros(20);

/// What happens to one packet: each entry is a copy that arrives after so long.
#[derive(Clone, Debug, Default)]
pub(crate) struct Fate {
    pub(crate) copies: Vec<Span>,
    pub(crate) marked: bool,
}

pub(crate) fn pass() -> Fate {
    after(ONE_WAY)
}

pub(crate) fn drop() -> Fate {
    Fate::default()
}

pub(crate) fn after(delay: Span) -> Fate {
    Fate { copies: vec![delay], marked: false }
}

pub(crate) type DataRule = Box<dyn FnMut(Instant, &Segment) -> Fate>;
pub(crate) type AckRule = Box<dyn FnMut(Instant, &mut Ack) -> Fate>;

enum Parcel {
    Segment(Segment, bool),
    Ack(Ack),
}

pub(crate) struct World {
    pub(crate) sender: SinglePathSender,
    pub(crate) receiver: Receiver,
    pub(crate) now: Instant,
    /// Every segment that was sent.
    pub(crate) sent: Vec<(Instant, Segment)>,
    data: DataRule,
    acks: AckRule,
    flying: BTreeMap<(Instant, u64), Parcel>,
    launched: u64,
    link_free: Instant,
}

/// Both ends with these options, TCP Reno, and so many segments to send.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Options {
    pub(crate) segments: u64,
    pub(crate) sack: bool,
    pub(crate) timestamps: bool,
    pub(crate) ecn: bool,
    pub(crate) echo: Ecn,
    pub(crate) send_buffer: u64,
    pub(crate) recovery: LossRecovery,
    pub(crate) handshake: bool,
    pub(crate) quick_ack: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            segments: 400,
            sack: true,
            timestamps: true,
            ecn: false,
            echo: Ecn::Classic,
            send_buffer: 10_000,
            recovery: LossRecovery::Rack,
            handshake: true,
            quick_ack: false,
        }
    }
}

pub(crate) fn new_sender(options: Options) -> SinglePathSender {
    let reno = control::registry::find("reno").expect("reno is registered");
    let controller = reno.controller(&BTreeMap::new()).expect("reno needs no parameters");
    let mut sender = sender_with(options, controller);
    sender.handle(Instant::ZERO, Input::Write { segments: options.segments, runt: true });
    sender
}

/// A sender that has nothing to send yet.
pub(crate) fn sender_with(options: Options, controller: Box<dyn Controller>) -> SinglePathSender {
    let config = sender::SenderConfig {
        mss: MSS,
        packet_bytes: MSS + 52,
        initial_window: 10,
        timestamps: options.timestamps,
        sack: options.sack,
        ecn: options.ecn,
        pacing: false,
        send_buffer: options.send_buffer,
        reordering: 3,
        max_reordering: 300,
        tick: Span::from_millis(1),
        recovery: options.recovery,
        handshake: options.handshake,
        initial_rto: Span::from_secs(1),
        max_window: u32::MAX,
    };
    SinglePathSender::new(config, controller, Stream::named(1, "lockstep"))
}

pub(crate) fn new_receiver(options: Options) -> Receiver {
    Receiver::new(receiver::ReceiverConfig {
        mss: MSS,
        timestamps: options.timestamps,
        sack: options.sack,
        quick_ack: options.quick_ack,
        gro: 1,
        buffer: [1 << 22, 1 << 22],
        ecn: options.echo,
        tick: Span::from_millis(1),
    })
}

impl World {
    pub(crate) fn new(options: Options, data: DataRule, acks: AckRule) -> Self {
        Self {
            sender: new_sender(options),
            receiver: new_receiver(options),
            now: Instant::ZERO + Span::from_secs(1),
            sent: Vec::new(),
            data,
            acks,
            flying: BTreeMap::new(),
            launched: 0,
            link_free: Instant::ZERO,
        }
    }

    /// A world whose acknowledgements all arrive.
    pub(crate) fn with(options: Options, data: impl FnMut(Instant, &Segment) -> Fate + 'static) -> Self {
        Self::new(options, Box::new(data), Box::new(|_, _| pass()))
    }

    /// Runs until everything is delivered and acknowledged, or `limit` has passed. True if it was.
    pub(crate) fn run(&mut self, limit: Span) -> bool {
        let end = self.now + limit;
        self.sender.handle(self.now, Input::Connect);
        while self.now < end {
            let deadline = self.drive();
            let first = self.flying.keys().next().map_or(Instant::NEVER, |(at, _)| *at);
            let next = deadline.min(first).min(self.receiver.deadline());
            if next == Instant::NEVER {
                return true;
            }
            self.now = self.now.max(next);
            self.advance();
            self.check();
        }
        false
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
        let fate = (self.data)(self.now, &segment);
        self.link_free = self.link_free.max(self.now) + SERIALISATION;
        let queued = self.link_free.since(self.now);
        for delay in fate.copies {
            self.launch(queued + delay, Parcel::Segment(segment, fate.marked));
        }
    }

    fn answer(&mut self, ack: Option<Ack>) {
        let Some(mut ack) = ack else { return };
        let fate = (self.acks)(self.now, &mut ack);
        for delay in fate.copies {
            self.launch(delay, Parcel::Ack(ack));
        }
    }

    fn launch(&mut self, delay: Span, parcel: Parcel) {
        self.launched += 1;
        self.flying.insert((self.now + delay, self.launched), parcel);
    }

    fn advance(&mut self) {
        match self.flying.first_entry() {
            Some(entry) if entry.key().0 <= self.now => match entry.remove() {
                Parcel::Segment(segment, marked) => {
                    let ack = self.receiver.handle(self.now, &segment, marked);
                    self.answer(ack);
                }
                Parcel::Ack(ack) => self.sender.handle(self.now, Input::Ack(&ack)),
            },
            _ => {
                self.sender.handle(self.now, Input::Timeout);
                let ack = self.receiver.on_timeout(self.now);
                self.answer(ack);
            }
        }
    }

    /// The pipe never runs dry below zero, and nobody acknowledges what has not been delivered.
    fn check(&self) {
        let pipe = self.sender.pipe();
        assert!(pipe.sacked_out + pipe.lost_out <= pipe.packets_out + pipe.retrans_out, "{pipe:?}");
        assert!(
            pipe.sacked_out + pipe.lost_out <= pipe.packets_out && pipe.retrans_out <= pipe.packets_out,
            "{pipe:?}"
        );
        assert!(self.sender.acknowledged() <= self.receiver.delivered());
        assert!(self.sender.decision().cwnd >= 1);
    }
}

/// Drops the first `times` transmissions of each of these segments.
pub(crate) fn losing(lost: &'static [u64], times: usize) -> impl FnMut(Instant, &Segment) -> Fate + 'static {
    let mut left: BTreeMap<u64, usize> = lost.iter().map(|seq| (*seq, times)).collect();
    move |_, segment| match left.get_mut(&segment.seq) {
        Some(left) if *left > 0 && segment.kind == ropewalk_transport::tcp::SegmentKind::Data => {
            *left -= 1;
            drop()
        }
        _ => pass(),
    }
}
