//! MPTCP.

use crate::error::Error;
use crate::packet::Body;
use crate::stream::config::{ConfigSource, MultipathConfig, StreamConfig, tcp_header};
use crate::stream::multipath::{self, ReceiverStats, SenderStats};
use crate::stream::transport::{self as stream, Command, Content, Output, PacketInfo, SenderStatus, Transport};
use control::Controller;
use link::EcnField;
use record::{Flow, Protocol};
use scenario::model;
use schedule::{Choices, Scheduler};
use transport::mptcp::{self, Ack, Segment, SendBufferRule, SubflowState};
use transport::path::{Limit, LimitTimes, LimitedTimes};
use transport::tcp::SegmentKind;
use units::{Instant, Span};

/// Bytes of the DSS option on an acknowledgement (RFC 8684 section 3.3): a Data ACK of 32 bits.
const DATA_ACK_OPTION: u32 = 8;

/// MPTCP, as a flow is configured.
#[derive(Debug)]
pub(crate) struct Mptcp {
    config: StreamConfig,
    multipath: MultipathConfig,
    options: model::Mptcp,
    /// How large the send buffer of a connection is.
    send_buffer: SendBufferRule,
}

/// The sender of a connection, and its measurements.
#[derive(Debug)]
pub(crate) struct Sender {
    machine: mptcp::Sender,
    stats: SenderStats,
}

/// The receiver of a connection, and its measurements.
#[derive(Debug)]
pub(crate) struct Receiver {
    machine: mptcp::Receiver,
    stats: ReceiverStats,
}

impl Mptcp {
    /// # Errors
    /// As of [`StreamConfig::new`] and [`MultipathConfig::new`].
    pub(crate) fn new(
        source: ConfigSource<'_>,
        multipath: &model::Multipath,
        options: model::Mptcp,
    ) -> Result<Self, Error> {
        Ok(Self {
            config: StreamConfig::new(source, [tcp_header(source.host), options.dss_option_bytes])?,
            multipath: MultipathConfig::new(source.name, multipath)?,
            options,
            send_buffer: source.host.mptcp_send_buffer,
        })
    }

    fn connection_config(&self) -> mptcp::ConnectionConfig {
        let subflow = |it: &model::Subflow| mptcp::SubflowConfig { backup: it.backup, join: it.join, leave: it.leave };
        mptcp::ConnectionConfig {
            tcp: self.config.sender,
            subflows: self.multipath.subflows.iter().map(subflow).collect(),
            stack: self.options.stack,
            send_buffer: self.send_buffer,
            opportunistic_retransmission: self.options.opportunistic_retransmission,
            penalisation: self.options.penalisation,
        }
    }
}

impl Transport for Mptcp {
    type Sender = Sender;
    type Receiver = Receiver;

    fn config(&self) -> &StreamConfig {
        &self.config
    }

    fn ends(&self, number: u16) -> (Sender, Receiver) {
        let (controller, rng) = self.config.controller(number);
        let (scheduler, controller) = self.multipath.scheduler(controller);
        let config = self.connection_config();
        let subflows = self.paths().len();
        let receiver = mptcp::Receiver::new(self.config.receiver, subflows, config.stack);
        let sender = mptcp::Sender::new(config, controller, rng, scheduler, self.multipath.entry.fill);
        (
            Sender { machine: sender, stats: SenderStats::new(subflows) },
            Receiver { machine: receiver, stats: ReceiverStats::new(subflows) },
        )
    }

    fn paths(&self) -> &[usize] {
        &self.multipath.paths
    }

    /// (The options of a handshake are left out.)
    fn packet_size(&self, segment: &Segment, payload: impl Fn(u64) -> u32) -> (u32, EcnField) {
        let (bytes, ecn) = self.config.segment_size(&segment.tcp, || payload(segment.data_seq));
        let is_data = segment.tcp.kind == SegmentKind::Data;
        (bytes + if is_data { self.options.dss_option_bytes } else { 0 }, ecn)
    }

    fn reply_size(&self, ack: &Ack) -> (u32, EcnField) {
        (self.config.ack_bytes(&ack.tcp) + DATA_ACK_OPTION, self.config.control_ecn())
    }

    #[inline]
    fn packet_info(segment: &Segment) -> PacketInfo {
        let kind = segment.tcp.kind;
        PacketInfo {
            subflow: Some(segment.subflow),
            has_data: kind == SegmentKind::Data,
            packets: 1,
            last: Some((kind, segment.data_seq)),
        }
    }

    fn reply_subflow(ack: &Ack) -> Option<u16> {
        Some(ack.subflow)
    }

    fn packet_body(segment: Segment) -> Body {
        Body::MptcpSegment(segment)
    }

    fn reply_body(ack: Ack) -> Body {
        Body::MptcpAck(ack)
    }

    fn content(body: &Body) -> Option<Content<&Segment, &Ack>> {
        match body {
            Body::MptcpSegment(segment) => Some(Content::Packet(segment)),
            Body::MptcpAck(ack) => Some(Content::Reply(ack)),
            Body::Request(number) => Some(Content::Request(*number)),
            _ => None,
        }
    }
}

multipath::commands_are_inputs!(mptcp::Input<'_>);

impl stream::Sender for Sender {
    type Packet = Segment;
    type Reply = Ack;

    stream::sender_methods!();
    multipath::multipath_sender_methods!();

    fn on_reply(&mut self, now: Instant, ack: &Ack) -> Option<(u16, Span)> {
        self.machine.handle(now, mptcp::Input::Ack(ack));
        let (tcp, state) = self
            .machine
            .subflows()
            .nth(usize::from(ack.subflow))
            .expect("the acknowledgement names a subflow of the connection");
        // A removed subflow ignores acknowledgements: its latest sample is an old one.
        let sample = tcp.last_rtt().filter(|_| state != SubflowState::Removed);
        if let Some(rtt) = sample {
            self.stats.add_rtt(ack.subflow, rtt, tcp.srtt());
        }
        self.machine.drain_delays(|delay, degree| self.stats.add_delays(delay, degree));
        sample.map(|rtt| (ack.subflow, rtt))
    }

    #[inline]
    fn poll(&mut self, now: Instant, _payload: impl Fn(u64) -> u32) -> Output<Segment> {
        match self.machine.poll(now) {
            mptcp::Output::Transmit(segment) => Output::Transmit(segment),
            mptcp::Output::WaitUntil(deadline) => Output::WaitUntil(deadline),
        }
    }

    fn refuse(&mut self, now: Instant, segment: Segment) {
        self.machine.handle(now, mptcp::Input::LocalDrop(segment));
    }

    fn wait_in_host_queue(&mut self, segment: &Segment, departure: Instant) {
        self.machine.wait_in_host_queue(segment.subflow, departure);
    }

    /// The first subflow that is up, and the next one after each retransmission. If none is up, the first one, which opens
    /// the connection.
    fn request_subflow(&self, retransmissions: u32) -> u16 {
        let states = self.machine.subflows().zip(0..);
        let up: Vec<u16> =
            states.filter(|((_, state), _)| *state == SubflowState::Up).map(|(_, subflow)| subflow).collect();
        (retransmissions as usize).checked_rem(up.len()).map_or(0, |turn| up[turn])
    }

    fn senders(&self) -> impl Iterator<Item = SenderStatus> {
        let subflows = self.machine.subflows().enumerate();
        subflows.map(|(index, (sender, _))| SenderStatus::of_tcp(sender, self.machine.failures(index)))
    }

    fn record(&self, flow: Flow) -> Flow {
        let counters = self.machine.counters();
        let multipath = self.stats.record(counters.copies, counters.reinjected);
        Flow { protocol: Protocol::Mptcp, multipath: Some(multipath), ..flow }
    }

    fn subflow_limit_times(&self, now: Instant) -> impl Iterator<Item = LimitTimes> {
        self.machine.subflows().map(move |(sender, _)| sender.limit_times(now))
    }
}

impl stream::Receiver for Receiver {
    type Packet = Segment;
    type Reply = Ack;

    stream::receiver_methods!();
    multipath::multipath_receiver_methods!();

    fn on_packet(&mut self, now: Instant, segment: &Segment, data_bytes: u32, is_marked: bool) -> Option<Ack> {
        self.stats.add_arrival(segment.subflow, data_bytes);
        let ack = self.machine.handle(now, segment, is_marked);
        self.machine.drain_reassembly_delays(|wait| self.stats.head_of_line.add(wait));
        ack
    }

    fn piggyback(&mut self, now: Instant, subflow: u16) -> Option<Ack> {
        Some(self.machine.piggyback(now, subflow))
    }
}
