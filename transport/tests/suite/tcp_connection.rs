//! A TCP connection over the test network with a filter that drops, delays, duplicates or marks packets. The one-way
//! delay is 10 ms by default; each segment takes 20 us to transmit.

use control::{Controller, Ecn};
use ropewalk_transport::tcp::sender::{Input, LossRecovery, Output};
use ropewalk_transport::tcp::{Ack, Receiver, Segment, SegmentKind, SinglePathSender, receiver, sender};
use std::collections::BTreeMap;
use testnet::{LinkConfig, Network};
use units::{Instant, Rate, RngStream, Span};

pub(crate) const MSS: u32 = 1000;
pub(crate) const ONE_WAY_DELAY: Span = Span::from_millis(10);
/// A segment takes 20 us to transmit, so that no two arrive at the same instant. The filter adds the delay.
const LINK: LinkConfig = LinkConfig { rate: Some(Rate::from_mbit(8)), overhead: 20, ..LinkConfig::ideal() };

/// The outcome of a filter for a packet: the delay of each copy that arrives, and whether they are marked.
#[derive(Clone, Debug, Default)]
pub(crate) struct FilterOutcome {
    pub(crate) copies: Vec<Span>,
    pub(crate) marked: bool,
}

pub(crate) fn pass() -> FilterOutcome {
    delayed(ONE_WAY_DELAY)
}

pub(crate) fn lost() -> FilterOutcome {
    FilterOutcome::default()
}

pub(crate) fn delayed(delay: Span) -> FilterOutcome {
    FilterOutcome { copies: vec![delay], marked: false }
}

pub(crate) type SegmentFilter = Box<dyn FnMut(Instant, &Segment) -> FilterOutcome>;
pub(crate) type AckFilter = Box<dyn FnMut(Instant, &mut Ack) -> FilterOutcome>;

#[derive(Clone, Copy, Debug)]
enum Packet {
    Segment(Segment, bool),
    Ack(Ack),
}

/// A sender and its receiver.
pub(crate) struct Connection {
    pub(crate) sender: SinglePathSender,
    pub(crate) receiver: Receiver,
    pub(crate) now: Instant,
    /// Every segment that was sent.
    pub(crate) sent: Vec<(Instant, Segment)>,
    segment_filter: SegmentFilter,
    ack_filter: AckFilter,
    network: Network<Packet>,
}

/// Options of both ends, and the number of segments to send; the algorithm is Reno.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Options {
    pub(crate) segments: u64,
    pub(crate) sack: bool,
    pub(crate) timestamps: bool,
    pub(crate) ecn: bool,
    pub(crate) echo: Ecn,
    pub(crate) send_buffer: u64,
    pub(crate) tso: bool,
    pub(crate) offload: bool,
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
            tso: true,
            offload: false,
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
    sender.handle(Instant::ZERO, Input::Write { segments: options.segments, lacking: 1 });
    sender
}

/// A sender that has nothing to send yet.
pub(crate) fn sender_with(options: Options, controller: Box<dyn Controller>) -> SinglePathSender {
    SinglePathSender::new(sender_config(options), controller, RngStream::named(1, "lockstep"))
}

pub(crate) fn sender_config(options: Options) -> sender::SenderConfig {
    sender::SenderConfig {
        release: control::LinuxRelease::V6_1,
        mss: MSS,
        packet_bytes: MSS + 52,
        max_header: sender::SenderConfig::MAX_HEADER,
        initial_window: 10,
        timestamps: options.timestamps,
        sack: options.sack,
        ecn: options.ecn && options.echo != control::Ecn::L4s,
        accurate_ecn: options.echo == control::Ecn::L4s,
        pacing: false,
        tso: options.tso,
        small_queues: true,
        offload: options.offload,
        send_buffer: options.send_buffer * (u64::from(MSS) + sender::SENT_OVERHEAD),
        initial_send_buffer: 16 << 10,
        notsent_lowat: u64::MAX,
        slow_start_after_idle: true,
        early_retrans: true,
        reordering: 3,
        max_reordering: 300,
        tick: Span::from_millis(1),
        recovery: options.recovery,
        handshake: options.handshake,
        initial_rto: Span::from_secs(1),
        window_clamp: u32::MAX,
    }
}

pub(crate) fn new_receiver(options: Options) -> Receiver {
    Receiver::new(receiver_config(options))
}

pub(crate) fn receiver_config(options: Options) -> receiver::ReceiverConfig {
    receiver::ReceiverConfig {
        mss: MSS,
        option_bytes: 0,
        timestamps: options.timestamps,
        sack: options.sack,
        quick_ack: options.quick_ack,
        gro: 1,
        buffer: [1 << 17, 1 << 22],
        release: control::LinuxRelease::default(),
        ecn: options.echo,
        tick: Span::from_millis(1),
    }
}

/// A receiver as on Linux 6.1 in virtual time, whose captures are of a tunnel's device; its SYN, with timestamp `tsval`,
/// comes at `syn`. Returns it with the SYN.
pub(crate) fn captured_receiver(syn: Instant, tsval: u32) -> (Receiver, Segment) {
    let config = receiver::ReceiverConfig {
        mss: 1388,
        buffer: [131_072, 6_291_456],
        tick: Span::from_millis(10),
        ..receiver_config(Options::default())
    };
    let mut receiver = Receiver::new(config);
    let kind = SegmentKind::Syn;
    let handshake = Segment { kind, seq: 0, tsval, tsecr: 0, cwr: false, retransmission: false, psh: false };
    receiver.handle(syn, &handshake, false);
    (receiver, handshake)
}

impl Connection {
    pub(crate) fn new(options: Options, segment_filter: SegmentFilter, ack_filter: AckFilter) -> Self {
        Self {
            sender: new_sender(options),
            receiver: new_receiver(options),
            now: Instant::ZERO + Span::from_secs(1),
            sent: Vec::new(),
            segment_filter,
            ack_filter,
            network: Network::new(1, vec![[LINK, LinkConfig::ideal()]]),
        }
    }

    /// A connection whose acknowledgements all arrive.
    pub(crate) fn with_segment_filter(
        options: Options,
        segment_filter: impl FnMut(Instant, &Segment) -> FilterOutcome + 'static,
    ) -> Self {
        Self::new(options, Box::new(segment_filter), Box::new(|_, _| pass()))
    }

    /// Runs until everything is delivered and acknowledged, or `limit` has passed. Returns whether everything was.
    pub(crate) fn run(&mut self, limit: Span) -> bool {
        let end = self.now + limit;
        self.sender.handle(self.now, Input::Connect);
        while self.now < end {
            let deadline = self.poll_sender();
            let timer = deadline.min(self.receiver.deadline());
            let next = timer.min(self.network.next_event_time());
            if next == Instant::NEVER {
                return true;
            }
            self.now = self.now.max(next);
            self.advance(timer);
            self.check();
        }
        false
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
        let outcome = (self.segment_filter)(self.now, &segment);
        let packet = Packet::Segment(segment, outcome.marked);
        self.network.send_copies(self.now, (0, 0), 0, packet, outcome.copies);
    }

    fn send_ack(&mut self, ack: Option<Ack>) {
        let Some(mut ack) = ack else { return };
        let outcome = (self.ack_filter)(self.now, &mut ack);
        self.network.send_copies(self.now, (1, 0), 0, Packet::Ack(ack), outcome.copies);
    }

    fn advance(&mut self, timer: Instant) {
        match self.network.receive(self.now).map(|arrival| arrival.datagram) {
            Some(Packet::Segment(segment, marked)) => {
                let ack = self.receiver.handle(self.now, &segment, marked);
                self.send_ack(ack);
            }
            Some(Packet::Ack(ack)) => self.sender.handle(self.now, Input::Ack(&ack)),
            None if timer <= self.now => {
                self.sender.handle(self.now, Input::Timeout);
                let ack = self.receiver.on_timeout(self.now);
                self.send_ack(ack);
            }
            None => {}
        }
    }

    /// Checks that the packet counts are consistent, and that nothing is acknowledged before it is delivered.
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
pub(crate) fn losing(lost: &'static [u64], times: usize) -> impl FnMut(Instant, &Segment) -> FilterOutcome + 'static {
    let mut remaining: BTreeMap<u64, usize> = lost.iter().map(|seq| (*seq, times)).collect();
    move |_, segment| match remaining.get_mut(&segment.seq) {
        Some(count) if *count > 0 && segment.kind == ropewalk_transport::tcp::SegmentKind::Data => {
            *count -= 1;
            self::lost()
        }
        _ => pass(),
    }
}
