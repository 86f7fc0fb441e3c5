//! TCP over one path.

use crate::error::Error;
use crate::packet::{Body, TcpPacket};
use crate::stream::config::{ConfigSource, StreamConfig, tcp_header};
use crate::stream::transport::{self as stream, Command, Content, Output, PacketInfo, SenderStatus, Transport};
use control::Controller;
use link::EcnField;
use transport::path::{Limit, LimitTimes, LimitedTimes};
use transport::tcp::{self, Ack, Input, Segment, SegmentKind, SinglePathSender};
use units::{Instant, Span};

/// TCP, as a flow is configured.
#[derive(Debug)]
pub(crate) struct Tcp {
    pub config: StreamConfig,
    /// Whether the receiving application reads by [`TcpFlow::read`](crate::stream::TcpFlow::read), instead of at once.
    pub has_reader: bool,
    /// The acknowledgements after which the receiving program preempts the tunnel's daemon, if they are drawn.
    pub preemption: Option<u64>,
}

/// The sender of a connection.
#[derive(Debug)]
pub(crate) struct Sender {
    pub machine: SinglePathSender,
    /// Whether its device takes super-segments uncut.
    has_offload: bool,
    /// An output of the machine that was polled and is not yet sent.
    polled: Option<tcp::Output>,
}

/// The receiver of a connection.
#[derive(Debug)]
pub(crate) struct Receiver {
    pub machine: tcp::Receiver,
}

impl Tcp {
    /// # Errors
    /// As of [`StreamConfig::new`].
    pub(crate) fn new(source: ConfigSource<'_>) -> Result<Self, Error> {
        let config = StreamConfig::new(source, [tcp_header(source.host), 0])?;
        Ok(Self { config, has_reader: false, preemption: None })
    }
}

impl Transport for Tcp {
    type Sender = Sender;
    type Receiver = Receiver;

    #[inline]
    fn config(&self) -> &StreamConfig {
        &self.config
    }

    fn ends(&self, number: u16) -> (Sender, Receiver) {
        let (controller, rng) = self.config.controller(number);
        let machine = SinglePathSender::new(self.config.sender, controller, rng);
        let receiver = if self.has_reader { tcp::Receiver::with_reader } else { tcp::Receiver::new };
        let mut receiver = receiver(self.config.receiver);
        self.preemption.into_iter().for_each(|acks| receiver.set_preemption(acks));
        let has_offload = self.config.sender.offload;
        (Sender { machine, has_offload, polled: None }, Receiver { machine: receiver })
    }

    #[inline(always)]
    fn packet_size(&self, packet: &TcpPacket, payload: impl Fn(u64) -> u32) -> (u32, EcnField) {
        let first = packet.first.seq;
        let (bytes, ecn) = self.config.segment_size(&packet.first, || payload(first));
        if packet.segments == 1 { (bytes, ecn) } else { (bytes + payload_after_first(packet, payload), ecn) }
    }

    #[inline]
    fn reply_size(&self, ack: &Ack) -> (u32, EcnField) {
        (self.config.ack_bytes(ack), self.config.control_ecn())
    }

    #[inline]
    fn packet_info(packet: &TcpPacket) -> PacketInfo {
        PacketInfo {
            subflow: None,
            has_data: packet.first.kind == SegmentKind::Data,
            packets: packet.segments,
            last: Some((packet.first.kind, packet.end() - 1)),
        }
    }

    #[inline]
    fn reply_subflow(_ack: &Ack) -> Option<u16> {
        None
    }

    #[inline]
    fn packet_body(packet: TcpPacket) -> Body {
        Body::TcpPacket(packet)
    }

    #[inline]
    fn reply_body(ack: Ack) -> Body {
        Body::TcpAck(ack)
    }

    #[inline]
    fn content(body: &Body) -> Option<Content<&TcpPacket, &Ack>> {
        match body {
            Body::TcpPacket(packet) => Some(Content::Packet(packet)),
            Body::TcpAck(ack) => Some(Content::Reply(ack)),
            Body::Request(number) => Some(Content::Request(*number)),
            _ => None,
        }
    }
}

/// Payload of a super-segment's segments but the first, bytes.
#[inline(never)]
fn payload_after_first(packet: &TcpPacket, payload: impl Fn(u64) -> u32) -> u32 {
    (packet.first.seq + 1..packet.end()).map(payload).sum()
}

impl From<Command> for Input<'_> {
    #[inline]
    fn from(command: Command) -> Self {
        match command {
            Command::Connect => Self::Connect,
            Command::Write { segments, lacking } => Self::Write { segments, lacking },
            Command::Stop => Self::Stop,
            Command::Timeout => Self::Timeout,
        }
    }
}

impl Sender {
    /// The super-segment that `first` begins. An output of the machine that does not belong to it is kept for the next poll.
    fn super_segment(&mut self, now: Instant, first: Segment, payload: u32) -> TcpPacket {
        let mut whole = TcpPacket { first, segments: 1, payload };
        let mut last = first;
        while self.machine.continues_super_segment(&last, whole.segments) {
            match self.machine.poll(now) {
                tcp::Output::Transmit(next) if whole.is_continued_by(&next) => last = next,
                output => {
                    self.polled = Some(output);
                    break;
                }
            }
            whole.segments += 1;
        }
        if whole.segments == 1 { TcpPacket::new(first) } else { whole }
    }
}

impl stream::Sender for Sender {
    type Packet = TcpPacket;
    type Reply = Ack;

    stream::sender_methods!();

    #[inline]
    fn on_reply(&mut self, now: Instant, ack: &Ack) -> Option<(u16, Span)> {
        self.machine.handle(now, Input::Ack(ack));
        self.machine.last_rtt().map(|rtt| (0, rtt))
    }

    #[inline]
    fn poll(&mut self, now: Instant, payload: impl Fn(u64) -> u32) -> Output<TcpPacket> {
        let polled = if self.has_offload { self.polled.take() } else { None };
        match polled.unwrap_or_else(|| self.machine.poll(now)) {
            tcp::Output::Transmit(first) if self.has_offload && first.kind == SegmentKind::Data => {
                Output::Transmit(self.super_segment(now, first, payload(first.seq)))
            }
            tcp::Output::Transmit(segment) => Output::Transmit(TcpPacket::new(segment)),
            tcp::Output::WaitUntil(deadline) => Output::WaitUntil(deadline),
        }
    }

    fn refuse(&mut self, now: Instant, packet: TcpPacket) {
        self.machine.handle(now, Input::LocalDrop(packet.first));
    }

    fn wait_in_host_queue(&mut self, _packet: &TcpPacket, departure: Instant) {
        self.machine.wait_in_host_queue(departure);
    }

    fn senders(&self) -> impl Iterator<Item = SenderStatus> {
        std::iter::once(SenderStatus::of_tcp(&self.machine, 0))
    }
}

impl stream::Receiver for Receiver {
    type Packet = TcpPacket;
    type Reply = Ack;

    stream::receiver_methods!();

    /// TCP takes the segments of a super-segment together.
    #[inline]
    fn on_packet(&mut self, now: Instant, packet: &TcpPacket, _data_bytes: u32, is_marked: bool) -> Option<Ack> {
        match packet.segments {
            1 => self.machine.handle(now, &packet.first, is_marked),
            segments => self.machine.handle_super_segment(now, &packet.first, segments, is_marked),
        }
    }

    #[inline]
    fn piggyback(&mut self, now: Instant, _subflow: u16) -> Option<Ack> {
        Some(self.machine.piggyback(now))
    }

    fn set_next_read(&mut self, at: Instant) {
        self.machine.set_next_read(at);
    }
}
