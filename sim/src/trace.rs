//! The events of a traced run: each packet at its hosts, each packet that the network loses, each sender's state.
//!
//! A run without a trace pays one comparison per packet.

use crate::packet::{Body, Direction, Packet, TcpPacket};
use control::CaState;
use link::EcnField;
use machine::PathStatus;
use schedule::Choice;
use transport::path::Limit;
use transport::{mptcp, quic, tcp};
use units::{Instant, Rate, Span};
pub use world::LossCause;

/// Something that happened in a run.
#[derive(Clone, Debug, PartialEq)]
pub struct TraceEvent {
    /// Time of the event.
    pub at: Instant,
    /// The event.
    pub what: Traced,
}

/// What happened.
#[derive(Clone, Debug, PartialEq)]
pub enum Traced {
    /// A host sends a packet.
    Sent(TracedPacket),
    /// A packet reaches its host.
    Delivered(TracedPacket),
    /// The network discards a packet. `link` is the link by its number in the experiment and the direction; none if the
    /// receiving host discards it.
    Lost {
        /// The packet.
        packet: TracedPacket,
        /// The link and the direction, or none.
        link: Option<(usize, Direction)>,
        /// The cause.
        cause: LossCause,
    },
    /// The queue of a link has another length than at its last such event. The links of a path are
    /// looked at before a packet enters the path, and when one has crossed it.
    Queue {
        /// The link and the direction.
        link: (usize, Direction),
        /// Packets in the queue, without the one in transmission.
        packets: u64,
    },
    /// A packet enters or leaves the [watched](crate::Simulation::watch) link.
    Crossing(Crossing),
    /// The state of a sender, after each acknowledgement and timeout.
    Sender(TracedSender),
    /// The sender of a QUIC connection declares a packet lost.
    DeclaredLost {
        /// The number of the flow in the experiment.
        flow: u16,
        /// The packet.
        packet: quic::DeclaredLost,
    },
    /// An RTT sample, as it enters the record.
    Rtt {
        /// The number of the flow in the experiment.
        flow: u16,
        /// The subflow.
        subflow: u16,
        /// The sample.
        rtt: Span,
    },
    /// A decision of the scheduler of a connection over several paths.
    Choice {
        /// The number of the flow in the experiment.
        flow: u16,
        /// The decision. Its paths are the subflows.
        choice: Choice,
    },
    /// A decision of the scheduler of a Ropewalk tunnel's end. Its paths are the tunnel's, its data are fragments.
    TunnelChoice {
        /// The direction in which the end sends.
        direction: Direction,
        /// The decision.
        choice: Choice,
    },
    /// A path of a Ropewalk tunnel at an end, after each iteration of the end's event loop.
    TunnelPath {
        /// The direction in which the end sends.
        direction: Direction,
        /// The path, by its number in the tunnel.
        status: PathStatus,
    },
    /// Why a flow, or a subflow, sends nothing more now, after each input of its sender.
    Limit {
        /// The number of the flow in the experiment.
        flow: u16,
        /// The subflow; none for the flow as a whole.
        subflow: Option<u16>,
        /// The limit.
        limit: Limit,
    },
}

/// A step of a packet on the watched link.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Crossing {
    /// The packet. One in an MPT tunnel has the size with the outer headers, and the ECN field of the outer one.
    pub packet: TracedPacket,
    /// The number of the path that the packet travels; in a tunnel the datagram's.
    pub path: usize,
    /// The sequence number of a packet in an MPT tunnel.
    pub tunnel_seq: Option<u64>,
    /// The direction of the link in which it travels.
    pub direction: Direction,
    /// The packet's number among those that enter the link, from zero. A packet has another one each time that it enters.
    pub entry: u64,
    /// The step.
    pub step: CrossingStep,
    /// Whether a link has flipped a bit of it.
    pub is_corrupted: bool,
}

/// What a packet does on a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CrossingStep {
    /// It reaches the link, before its policer and queue.
    Enters,
    /// It reaches the link's far end.
    Leaves {
        /// Whether it is a copy that the link has made. The packet itself leaves after it.
        is_copy: bool,
    },
    /// The link discards it.
    Lost(LossCause),
}

/// A packet.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TracedPacket {
    /// The number of its flow in the experiment.
    pub flow: u16,
    /// The connection or subflow of the flow.
    pub connection: u16,
    /// The number of its path in the experiment; none if it enters a tunnel.
    pub path: Option<usize>,
    /// Direction: towards the flow's receiver, or towards its sender.
    pub direction: Direction,
    /// The size with all headers but the link layer's, bytes.
    pub bytes: u32,
    /// The ECN field.
    pub ecn: EcnField,
    /// The content.
    pub content: TracedContent,
}

/// The content of a packet.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum TracedContent {
    /// TCP, towards the receiver: consecutive segments in one packet.
    Tcp {
        /// The first segment.
        first: tcp::Segment,
        /// Number of segments.
        segments: u32,
        /// Payload of each segment but the last, bytes; 0 if there is one.
        payload: u32,
    },
    /// TCP, towards the sender.
    TcpAck(tcp::Ack),
    /// MPTCP, towards the receiver.
    Mptcp(mptcp::Segment),
    /// MPTCP, towards the sender.
    MptcpAck(mptcp::Ack),
    /// QUIC, towards the receiver.
    Quic(quic::Packet),
    /// QUIC, towards the sender.
    QuicReply(quic::Reply),
    /// A client's request, by its number.
    Request(u32),
    /// A UDP datagram, by its number.
    Udp(u64),
    /// A datagram of a hosted stack.
    Datagram {
        /// Its number among those of its end.
        number: u64,
        /// Whether the end that has data sends it.
        is_data: bool,
    },
    /// A datagram of Ropewalk's tunnel.
    Tunnel,
    /// A packet that belongs to no flow.
    Stray,
}

/// The sizes of a TCP flow's headers and payload, and the largest window that its receiver announces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeaderSizes {
    /// IP header, bytes.
    pub ip: u32,
    /// IP and TCP headers of a data packet, without the options of MPTCP, bytes.
    pub tcp: u32,
    /// MPTCP's option on a data packet, bytes.
    pub data_option: u32,
    /// Payload of a full data packet, bytes.
    pub payload: u32,
    /// The greatest receive buffer, bytes.
    pub max_receive_buffer: u64,
}

/// The state of a sender, or of a subflow's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TracedSender {
    /// The number of the flow in the experiment.
    pub flow: u16,
    /// The subflow.
    pub subflow: u16,
    /// Congestion window, packets.
    pub cwnd: u32,
    /// Slow-start threshold, packets; [`units::INFINITE_SSTHRESH`] if there is none.
    pub ssthresh: u32,
    /// Pacing rate, if the controller sets one.
    pub pacing_rate: Option<Rate>,
    /// Packets in flight.
    pub in_flight: u32,
    /// Smoothed RTT; zero before the first sample.
    pub srtt: Span,
    /// The congestion state.
    pub ca_state: CaState,
    /// Packets marked lost so far.
    pub lost: u64,
    /// Retransmission timeouts so far.
    pub timeouts: u64,
}

impl TracedPacket {
    pub(crate) fn new(packet: &Packet, path: Option<usize>, bytes: u32, ecn: EcnField) -> Self {
        let content = match packet.content.body {
            Body::TcpPacket(TcpPacket { first, segments, payload }) => TracedContent::Tcp { first, segments, payload },
            Body::TcpAck(ack) => TracedContent::TcpAck(ack),
            Body::MptcpSegment(segment) => TracedContent::Mptcp(segment),
            Body::MptcpAck(ack) => TracedContent::MptcpAck(ack),
            Body::QuicPacket(packet) => TracedContent::Quic(packet),
            Body::QuicReply(reply) => TracedContent::QuicReply(reply),
            Body::Request(number) => TracedContent::Request(number),
            Body::Udp { number, .. } => TracedContent::Udp(number),
            Body::Datagram { number, is_data, .. } => TracedContent::Datagram { number, is_data },
            Body::TunnelDatagram(_) => TracedContent::Tunnel,
            Body::Stray => TracedContent::Stray,
        };
        let &Packet { flow, connection, direction, .. } = packet;
        Self { flow, connection, path, direction, bytes, ecn, content }
    }
}
