//! The results of a flow and of its subflows.

use crate::columns::record;
use crate::{Column, ColumnVisitor, LimitTimes, Summary};
use serde::{Deserialize, Serialize};

/// The protocol of a flow, with its name in a scenario.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Protocol {
    /// TCP over one path.
    #[default]
    Tcp,
    /// Multipath TCP.
    Mptcp,
    /// Multipath QUIC.
    Mpquic,
    /// UDP.
    Udp,
    /// That of a hosted stack.
    Hosted,
}

impl Protocol {
    const ALL: [Self; 5] = [Self::Tcp, Self::Mptcp, Self::Mpquic, Self::Udp, Self::Hosted];

    /// The name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Tcp => "tcp",
            Self::Mptcp => "mptcp",
            Self::Mpquic => "mpquic",
            Self::Udp => "udp",
            Self::Hosted => "hosted",
        }
    }
}

impl Column for Protocol {
    fn visit(&mut self, name: &str, visitor: &mut dyn ColumnVisitor) {
        let mut text = self.name().to_owned();
        visitor.visit_string(name, &mut text);
        *self = Self::ALL.into_iter().find(|protocol| protocol.name() == text).unwrap_or_default();
    }
}

record! {
/// The results of a flow.
pub struct Flow {
    /// The flow's name.
    name: String = "flow",
    /// The protocol. Folders of version 0.1.0 do not have it.
    #[serde(default)]
    protocol: Protocol,
    /// The congestion control; empty for UDP.
    congestion_control: String,
    /// Payload delivered in order to the application, over the time the flow was on, Mbit/s.
    goodput_mbps: f64,
    /// Payload delivered in order, bytes.
    delivered_bytes: u64,
    /// Packets that reached the receiving host, first time or again, with their headers from IP on; over the time the
    /// flow was on, Mbit/s.
    throughput_mbps: f64,
    /// Data packets sent, first time or again.
    sent_packets: u64,
    /// Data packets sent again.
    retransmitted_packets: u64,
    /// Data packets that queues dropped, links lost or checksums discarded.
    dropped_packets: u64,
    /// Episodes of loss recovery.
    recoveries: u64,
    /// Episodes that proved spurious and were undone.
    spurious_recoveries: u64,
    /// Retransmission timeouts.
    timeouts: u64,
    /// Time the sender was held back by the receive window, seconds.
    receive_window_limited_s: f64,
    /// Time the sender was held back by its send buffer, seconds.
    send_buffer_limited_s: f64,
    /// For how long each limit held back the sender; none if it was not measured.
    #[serde(default)]
    limited_s: Option<LimitTimes>,
    /// Time at which a flow of fixed size was done, seconds after its start.
    completion_s: Option<f64>,
    /// Share of the goodput of all flows that compete, 0 to 1, over the time of [`Run::jain`](crate::Run::jain); none if this
    /// one does not.
    #[serde(default)]
    share: Option<f64>,
    /// RTT samples. Of a hosted stack: the smoothed RTT at each datagram that reaches its sender.
    rtt_ms: Summary,
    /// UDP: from sender to receiver, of each datagram that arrived. TCP through a relay: from the first transmission by
    /// the flow's sender to delivery in order at its receiver, of each segment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    one_way_delay_ms: Option<Summary>,
    /// TCP: the maximum goodput in any half second of the run's clock, Mbit/s; none if the samples are too far apart.
    #[serde(default)]
    peak_mbps: Option<f64>,
    /// MPTCP and QUIC: payload that arrived on one subflow after it had arrived on another, bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    duplicate_bytes: Option<u64>,
}
parts {
    /// The requests of a flow that makes some.
    requests: Requests,
    /// The video of a flow that carries one.
    video: Video,
    /// UDP in the simulator: its gaps.
    gaps: Gaps,
    /// MPTCP and QUIC in the simulator: the data of the connection.
    multipath: Multipath,
    /// QUIC: losses as the sender sees them.
    quic: QuicLosses,
    /// The hosted stack.
    stack: Stack,
}
}

record! {
/// A hosted stack at the end of the run.
pub struct Stack {
    /// Its name.
    stack: String,
    /// Why it has lost the connection; empty if it has not.
    stack_error: String,
}
}

record! {
/// The requests of a flow.
#[derive(Copy)]
pub struct Requests {
    /// Requests answered in full.
    requests: u64,
    /// Times from each request to the last byte of its response.
    response_time_ms: Summary,
}
}

record! {
/// The video of a flow.
#[derive(Copy)]
pub struct Video {
    /// From the flow's start to the first frame played, seconds; none if none was.
    startup_s: Option<f64>,
    /// Stored video: the number of stalls, when the player had no more frames.
    stalls: u64,
    /// Stored video: the time of all stalls, without the startup, seconds.
    stall_s: f64,
    /// Frames whose playback time has come, played or late.
    frames: u64,
    /// Live video: frames that were incomplete at their playback time, and were skipped.
    late_frames: u64,
    /// From the moment at which a frame was written to its last byte's delivery, of each frame that arrived.
    frame_delay_ms: Summary,
    /// Mean rate of the frames that were played, over the time that they show, Mbit/s.
    video_mbps: f64,
    /// Changes from one rate of its ladder to another.
    rate_switches: u64,
}
}

record! {
/// The gaps of a UDP flow.
#[derive(Copy)]
pub struct Gaps {
    /// The longest time between two arrivals, or from the latest to the flow's end.
    longest_gap_ms: f64,
    /// The greatest number of datagrams in a row that had not arrived when a later one did.
    longest_loss_packets: u64,
}
}

record! {
/// The data of a connection over several paths.
#[derive(Copy)]
pub struct Multipath {
    /// From the moment at which a packet of data is taken from the send buffer to its DATA_ACK (Łuczak, Ignaciuk,
    /// Morawski 2023, equation 2).
    protocol_delay_ms: Summary,
    /// By how much `protocol_delay_ms` exceeds the maximum smoothed RTT of the subflows at that moment, at least
    /// zero (the same paper's head-of-line degree, equations 7 to 9).
    head_of_line_degree_ms: Summary,
    /// From a packet's arrival at the receiving host to its delivery in order.
    head_of_line_delay_ms: Summary,
    /// The maximum number of packets that waited for earlier packets at once: the length of the out-of-order queue.
    max_out_of_order_packets: u64,
    /// Packets sent as copies of what another subflow carries: the scheduler's redundancy.
    redundant_packets: u64,
    /// Packets sent again on another subflow because their subflow failed or blocked the window.
    reinjected_packets: u64,
    /// Packets of which a redundant copy or a reinjection arrived first.
    redundant_first_packets: u64,
}
}

record! {
/// Losses as a QUIC sender sees them.
#[derive(Copy)]
pub struct QuicLosses {
    /// Data packets that the sender declared lost.
    declared_lost_packets: u64,
    /// Of these, packets that arrived after all.
    spurious_losses: u64,
}
}

record! {
/// The results of a subflow of an MPTCP flow, or of a path of a QUIC flow.
pub struct Subflow {
    /// The flow that it belongs to.
    flow: String,
    /// Its path.
    path: String,
    /// Packets that reached the receiving host over it, first time or again, with their headers from IP on; over the
    /// time the flow was on, Mbit/s.
    throughput_mbps: f64,
    /// Data packets sent, first time or again.
    sent_packets: u64,
    /// Data packets sent again on it. None of a hosted stack.
    retransmitted_packets: Option<u64>,
    /// Data packets that queues dropped, links lost or checksums discarded.
    dropped_packets: u64,
    /// `dropped_packets` a second of the time that the flow was on.
    drops_per_s: f64,
    /// Episodes of loss recovery. None on a kernel.
    recoveries: Option<u64>,
    /// Retransmission timeouts. None on a kernel.
    timeouts: Option<u64>,
    /// The number of times that it was considered stale or failed. None on a kernel.
    failures: Option<u64>,
    /// RTT samples.
    rtt_ms: Summary,
    /// Smoothed RTT, at each acknowledgement that brings a sample.
    srtt_ms: Summary,
    /// For how long each limit held back its sender; none if it was not measured.
    #[serde(default)]
    limited_s: Option<LimitTimes>,
}
parts {
    /// QUIC: losses as the sender sees them.
    quic: QuicLosses,
}
}

impl Subflow {
    /// Events per second of a time in which a subflow could send; 0 if it had none.
    #[must_use]
    pub fn per_second(events: u64, time: units::Span) -> f64 {
        if time == units::Span::ZERO { 0.0 } else { events as f64 / time.as_secs_f64() }
    }

    /// A subflow with a value in every field, from which names are taken.
    #[must_use]
    pub fn complete() -> Self {
        let (count, limited_s) = (Some(0), Some(LimitTimes::default()));
        let quic = Some(QuicLosses::default());
        Self {
            retransmitted_packets: count,
            recoveries: count,
            timeouts: count,
            failures: count,
            limited_s,
            quic,
            ..Self::default()
        }
    }
}

impl Flow {
    /// A flow with a value in every field, from which names are taken.
    #[must_use]
    pub fn complete() -> Self {
        let number = Some(0.0);
        Self {
            limited_s: Some(LimitTimes::default()),
            completion_s: number,
            share: number,
            one_way_delay_ms: Some(Summary::default()),
            peak_mbps: number,
            duplicate_bytes: Some(0),
            requests: Some(Requests::default()),
            video: Some(Video { startup_s: number, ..Video::default() }),
            gaps: Some(Gaps::default()),
            multipath: Some(Multipath::default()),
            quic: Some(QuicLosses::default()),
            stack: Some(Stack::default()),
            ..Self::default()
        }
    }

    /// Sets the protocol of a flow whose record does not have it: of version 0.1.0, or made by hand.
    pub fn infer_protocol(&mut self) {
        self.protocol = match (self.congestion_control.is_empty(), &self.quic, &self.multipath) {
            (true, ..) => Protocol::Udp,
            (false, Some(_), _) => Protocol::Mpquic,
            (false, None, Some(_)) => Protocol::Mptcp,
            (false, None, None) => Protocol::Tcp,
        };
    }
}
