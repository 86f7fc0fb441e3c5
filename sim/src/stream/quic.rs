//! Multipath QUIC.

use crate::error::Error;
use crate::packet::Body;
use crate::stream::config::{ConfigSource, MultipathConfig, StreamConfig};
use crate::stream::multipath::{self, ReceiverStats, SenderStats};
use crate::stream::transport::{self as stream, Command, Content, Output, PacketInfo, SenderStatus, Transport};
use control::{Controller, Ecn};
use link::EcnField;
use record::{Flow, Protocol, QuicLosses};
use scenario::model;
use schedule::{Choices, Scheduler};
use transport::path::{Limit, LimitTimes, LimitedTimes};
use transport::quic::{self, DeclaredLost, Packet, PathState, PathStatus, Reply, ReplyContent, STREAM_PACKET_OVERHEAD};
use transport::tcp::sender::SenderCounters;
use units::{Instant, Span};

/// Multipath QUIC, as a flow is configured.
#[derive(Debug)]
pub(crate) struct Quic {
    config: StreamConfig,
    multipath: MultipathConfig,
    options: model::Quic,
}

/// The sender of a connection, and its measurements.
#[derive(Debug)]
pub(crate) struct Sender {
    machine: quic::Sender,
    stats: SenderStats,
}

/// The receiver of a connection, and its measurements.
#[derive(Debug)]
pub(crate) struct Receiver {
    machine: quic::Receiver,
    stats: ReceiverStats,
}

impl Quic {
    /// # Errors
    /// As of [`StreamConfig::new`] and [`MultipathConfig::new`].
    pub(crate) fn new(
        source: ConfigSource<'_>,
        multipath: &model::Multipath,
        options: model::Quic,
    ) -> Result<Self, Error> {
        Ok(Self {
            config: StreamConfig::new(source, [STREAM_PACKET_OVERHEAD, 0])?,
            multipath: MultipathConfig::new(source.name, multipath)?,
            options,
        })
    }

    /// The flow-control window is half of the largest receive buffer, the size that TCP's window grows to.
    fn receiver_config(&self) -> quic::ReceiverConfig {
        let StreamConfig { sender, receiver, .. } = &self.config;
        quic::ReceiverConfig {
            paths: self.paths().len() as u16,
            streams: self.options.streams,
            window: (receiver.buffer[1] / 2 / u64::from(sender.mss)).max(1),
            quick_ack: receiver.quick_ack,
        }
    }

    fn connection_config(&self, window: u64) -> quic::ConnectionConfig {
        let path = |it: &model::Subflow| quic::PathConfig { backup: it.backup, join: it.join, leave: it.leave };
        let sender = &self.config.sender;
        quic::ConnectionConfig {
            paths: self.multipath.subflows.iter().map(path).collect(),
            chunk_bytes: sender.mss,
            packet_bytes: sender.packet_bytes,
            initial_window: sender.initial_window,
            cwnd_clamp: sender.window_clamp,
            pacing: sender.pacing,
            handshake: sender.handshake,
            tick: sender.tick,
            adaptive_loss_thresholds: self.options.adaptive_loss_thresholds,
            undo: self.options.undo,
            initial_max_data: window,
        }
    }

    /// The ECN field of every packet, acknowledgements included (RFC 9000 section 13.4.1).
    fn ecn(&self) -> EcnField {
        match self.config.ecn {
            None => EcnField::NotEct,
            Some(Ecn::Classic | Ecn::PerPacket) => EcnField::Ect0,
            Some(Ecn::L4s) => EcnField::Ect1,
        }
    }
}

impl Transport for Quic {
    type Sender = Sender;
    type Receiver = Receiver;

    fn config(&self) -> &StreamConfig {
        &self.config
    }

    fn ends(&self, number: u16) -> (Sender, Receiver) {
        let (controller, rng) = self.config.controller(number);
        let (scheduler, controller) = self.multipath.scheduler(controller);
        let receiver = self.receiver_config();
        let config = self.connection_config(receiver.window);
        let sender = quic::Sender::new(config, controller, rng, scheduler);
        let paths = self.paths().len();
        (
            Sender { machine: sender, stats: SenderStats::new(paths) },
            Receiver { machine: quic::Receiver::new(receiver), stats: ReceiverStats::new(paths) },
        )
    }

    fn paths(&self) -> &[usize] {
        &self.multipath.paths
    }

    fn packet_size(&self, packet: &Packet, payload: impl Fn(u64) -> u32) -> (u32, EcnField) {
        let chunk_bytes = match packet.content {
            quic::Content::Stream { chunk, .. } => payload(chunk),
            _ => 0,
        };
        (packet.bytes(self.config.ip_header, chunk_bytes), self.ecn())
    }

    fn reply_size(&self, reply: &Reply) -> (u32, EcnField) {
        (reply.bytes(self.config.ip_header, self.config.mss()), self.ecn())
    }

    #[inline]
    fn packet_info(packet: &Packet) -> PacketInfo {
        PacketInfo { subflow: Some(packet.path), has_data: packet.has_data(), packets: 1, last: None }
    }

    fn reply_subflow(reply: &Reply) -> Option<u16> {
        Some(reply.path)
    }

    fn packet_body(packet: Packet) -> Body {
        Body::QuicPacket(packet)
    }

    fn reply_body(reply: Reply) -> Body {
        Body::QuicReply(reply)
    }

    fn content(body: &Body) -> Option<Content<&Packet, &Reply>> {
        match body {
            Body::QuicPacket(packet) => Some(Content::Packet(packet)),
            Body::QuicReply(reply) => Some(Content::Reply(reply)),
            _ => None,
        }
    }
}

multipath::commands_are_inputs!(quic::Input<'_>);

impl stream::Sender for Sender {
    type Packet = Packet;
    type Reply = Reply;

    stream::sender_methods!();
    multipath::multipath_sender_methods!();

    fn on_reply(&mut self, now: Instant, reply: &Reply) -> Option<(u16, Span)> {
        self.machine.handle(now, quic::Input::Reply(reply));
        let ReplyContent::Ack(ack) = &reply.content else { return None };
        let mut paths = self.machine.paths();
        let path = paths.nth(usize::from(ack.path)).expect("the acknowledgement names a path of the connection");
        let sample = path.latest_sample.filter(|_| path.state == PathState::Up);
        drop(paths);
        if let Some(rtt) = sample {
            self.stats.add_rtt(ack.path, rtt, path.smoothed_rtt);
        }
        self.machine.drain_delays(|delay, degree| self.stats.add_delays(delay, degree));
        sample.map(|rtt| (ack.path, rtt))
    }

    /// A datagram that the host's own queue drops is lost like any other: UDP does not report it.
    #[inline]
    fn poll(&mut self, now: Instant, _payload: impl Fn(u64) -> u32) -> Output<Packet> {
        match self.machine.poll(now) {
            quic::Output::Transmit(packet) => Output::Transmit(packet),
            quic::Output::WaitUntil(deadline) => Output::WaitUntil(deadline),
        }
    }

    fn senders(&self) -> impl Iterator<Item = SenderStatus> {
        self.machine.paths().map(|path| status(&path))
    }

    fn record(&self, flow: Flow) -> Flow {
        let counters = self.machine.counters();
        let multipath = self.stats.record(counters.copies, counters.reinjected);
        let total = |count: fn(&PathStatus) -> u64| self.machine.paths().map(|path| count(&path)).sum();
        let losses = QuicLosses {
            declared_lost_packets: total(|path| path.counters.lost),
            spurious_losses: total(|path| path.counters.spurious_losses),
        };
        Flow { protocol: Protocol::Mpquic, multipath: Some(multipath), quic: Some(losses), ..flow }
    }

    fn subflow_limit_times(&self, now: Instant) -> impl Iterator<Item = LimitTimes> {
        self.machine.path_limit_times(now)
    }

    fn declared_lost(&self) -> &[DeclaredLost] {
        self.machine.declared_lost()
    }
}

impl stream::Receiver for Receiver {
    type Packet = Packet;
    type Reply = Reply;

    stream::receiver_methods!();
    multipath::multipath_receiver_methods!();

    fn on_packet(&mut self, now: Instant, packet: &Packet, data_bytes: u32, is_marked: bool) -> Option<Reply> {
        self.stats.add_arrival(packet.path, data_bytes);
        let reply = self.machine.handle(now, packet, is_marked);
        self.machine.drain_reassembly_delays(|wait| self.stats.head_of_line.add(wait));
        reply
    }

    fn piggyback(&mut self, _now: Instant, _subflow: u16) -> Option<Reply> {
        None
    }
}

fn status(path: &PathStatus) -> SenderStatus {
    let counters = path.counters;
    SenderStatus {
        counters: SenderCounters {
            sent: counters.sent,
            retransmitted: counters.retransmitted,
            lost: counters.lost,
            recoveries: counters.recoveries,
            undone: counters.undone,
            timeouts: counters.probe_timeouts,
            ..SenderCounters::default()
        },
        decision: path.decision,
        // Before the first sample it is a guess.
        srtt: if path.state == PathState::Up { path.smoothed_rtt } else { Span::ZERO },
        in_flight: path.in_flight,
        ca_state: path.ca_state,
        limit: path.limit,
        failures: counters.failures,
        quic: Some(QuicLosses { declared_lost_packets: counters.lost, spurious_losses: counters.spurious_losses }),
    }
}
