//! The hosts: senders and receivers of TCP, MPTCP and multipath QUIC, clients, and the ends of other protocols.

use super::Engine;
use crate::connection::{Connection, SenderOutput};
use crate::flow::{FlowProtocol, FlowState};
use crate::network::{Component, Sent};
use crate::packet::{Body, Packet, PacketDescriptor};
use crate::protocol::{Arrival, End, Host, Protocol};
use crate::split_connection::SplitConnection;
use crate::super_segment::SuperSegment;
use crate::tcp::TcpFlow;
use crate::trace::{self, Traced};
use link::{EcnField, Packet as _};
use transport::tcp::{Ack, Segment, SegmentKind};
use transport::{mptcp, quic};

impl Engine {
    /// Hands a packet to the host that it has reached.
    pub(super) fn deliver(&mut self, descriptor: PacketDescriptor) {
        let (now, marked) = (self.network.now, descriptor.ecn() == EcnField::Ce);
        self.network.trace_delivery(descriptor);
        let &Packet { ref body, flow, connection, direction, .. } = self.network.slab.remove(descriptor.slot());
        self.digest.add(now.0 ^ (u64::from(flow) << 48));
        match *body {
            Body::TcpSegment(segment) => self.on_segment(flow, connection, &segment, marked),
            Body::TcpAck(ref ack) => {
                let Some(tcp) = tcp(&mut self.flows, flow, connection) else { return };
                let is_syn_ack = ack.syn;
                tcp.on_ack(now, ack);
                self.poll_sender(flow);
                if self.is_leg(flow) {
                    self.on_leg_ack(flow, is_syn_ack);
                }
            }
            Body::TcpSuperSegment(whole) => self.on_super_segment(flow, connection, &whole, marked),
            Body::MptcpSegment(segment) => self.on_mptcp_segment(flow, connection, &segment, marked),
            Body::MptcpAck(ref ack) => {
                let Some(tcp) = tcp(&mut self.flows, flow, connection) else { return };
                tcp.on_mptcp_ack(now, ack);
                self.poll_sender(flow);
            }
            Body::QuicPacket(quic) => self.on_quic_packet(flow, connection, &quic, marked),
            Body::QuicReply(ref reply) => {
                let Some(tcp) = tcp(&mut self.flows, flow, connection) else { return };
                tcp.on_quic_reply(now, reply);
                self.poll_sender(flow);
            }
            Body::Request(number) => self.on_request(flow, connection, number),
            body @ (Body::Udp { .. } | Body::Datagram { .. }) => {
                let arrival = Arrival { body, path: connection, ecn: descriptor.ecn(), bytes: descriptor.bytes() };
                let is_data = direction == self.flows[usize::from(flow)].direction;
                let end = if is_data { End::Receiver } else { End::Sender };
                self.call(flow, |protocol, host| protocol.receive(end, arrival, host));
            }
            Body::Stray => {}
            Body::TunnelDatagram(datagram) => self.network.arrive(direction, datagram, marked),
        }
    }

    /// Hands the packets that the tunnel has delivered to their hosts.
    pub(super) fn deliver_all(&mut self) {
        let mut delivered = std::mem::take(&mut self.delivered);
        delivered.drain(..).for_each(|descriptor| self.deliver(descriptor));
        self.delivered = delivered;
    }

    /// Wakes a flow's source: at its start and its stop, when it sends, and when one of its timers has expired.
    pub(super) fn wake_source(&mut self, flow: u16) {
        let now = self.network.now;
        let FlowState { start, stop, protocol, .. } = &mut self.flows[usize::from(flow)];
        let FlowProtocol::Tcp(tcp) = protocol else { return self.wake_end(flow, End::Sender) };
        if now == *start {
            tcp.start(now);
            self.network.schedule(Component::Sink(flow), tcp.sink_deadline());
        }
        let stops = now >= *stop && !tcp.stopped;
        if stops {
            tcp.stop(now);
        }
        tcp.wake_source(now);
        self.poll_sender(flow);
        if stops {
            self.close_leg(flow);
        }
    }

    /// Called when a timer of a flow's receiving host has expired.
    pub(super) fn wake_sink(&mut self, flow: u16) {
        let FlowProtocol::Tcp(tcp) = &mut self.flows[usize::from(flow)].protocol else {
            return self.wake_end(flow, End::Receiver);
        };
        let now = self.network.now;
        match &mut tcp.connection {
            Connection::Single(single) => {
                let ack = single.receiver.on_timeout(now);
                self.send_ack(flow, ack);
            }
            Connection::Multi(multi) => {
                let ack = multi.receiver.on_timeout(now);
                self.send_mptcp_ack(flow, ack);
            }
            Connection::Quic(quic) => {
                let reply = quic.receiver.on_timeout(now);
                self.send_quic_reply(flow, reply);
            }
        }
        self.send_request(flow);
    }

    /// Sends a client's request, if one is due.
    fn send_request(&mut self, flow: u16) {
        let FlowState { route, direction, protocol: FlowProtocol::Tcp(tcp), .. } = &mut self.flows[usize::from(flow)]
        else {
            return;
        };
        if let Some(number) = tcp.next_request(self.network.now) {
            let subflow = tcp.request_subflow();
            let connection = subflow.unwrap_or(tcp.connection_number);
            let packet = Packet::new(Body::Request(number), flow, connection, direction.other());
            self.network.schedule(Component::Sink(flow), tcp.sink_deadline());
            let route = subflow.map_or(*route, |subflow| tcp.route_of(subflow));
            self.network.send(route, packet, tcp.request_bytes(), tcp.control_ecn());
        }
    }

    fn on_segment(&mut self, flow: u16, connection: u16, segment: &Segment, marked: bool) {
        let now = self.network.now;
        if segment.kind == SegmentKind::Syn && self.hold_syn(flow, segment) {
            return;
        }
        let Some(tcp) = tcp(&mut self.flows, flow, connection) else { return };
        let ack = tcp.on_segment(now, segment, marked);
        self.network.work.delivered_data_packets += 1;
        self.send_ack(flow, ack);
        if self.is_leg(flow) {
            self.on_leg_segment(flow);
        }
    }

    fn on_super_segment(&mut self, flow: u16, connection: u16, whole: &SuperSegment, marked: bool) {
        let now = self.network.now;
        let Some(tcp) = tcp(&mut self.flows, flow, connection) else { return };
        let ack = tcp.on_super_segment(now, whole, marked);
        self.network.work.delivered_data_packets += u64::from(whole.segments);
        self.send_ack(flow, ack);
    }

    fn on_mptcp_segment(&mut self, flow: u16, connection: u16, segment: &mptcp::Segment, marked: bool) {
        let now = self.network.now;
        let Some(tcp) = tcp(&mut self.flows, flow, connection) else { return };
        let ack = tcp.on_mptcp_segment(now, segment, marked);
        self.network.work.delivered_data_packets += 1;
        self.send_mptcp_ack(flow, ack);
    }

    fn on_quic_packet(&mut self, flow: u16, connection: u16, quic: &quic::Packet, marked: bool) {
        let now = self.network.now;
        let Some(tcp) = tcp(&mut self.flows, flow, connection) else { return };
        let reply = tcp.on_quic_packet(now, quic, marked);
        self.network.work.delivered_data_packets += 1;
        self.send_quic_reply(flow, reply);
    }

    /// Schedules the receiving host's next timer and sends its acknowledgement, if there is one.
    pub(super) fn send_ack(&mut self, flow: u16, ack: Option<Ack>) {
        let FlowState { route, direction, protocol: FlowProtocol::Tcp(tcp), .. } = &self.flows[usize::from(flow)]
        else {
            return;
        };
        self.network.schedule(Component::Sink(flow), tcp.sink_deadline());
        if let Some(ack) = ack {
            let packet = Packet::new(Body::TcpAck(ack), flow, tcp.connection_number, direction.other());
            self.network.send(*route, packet, tcp.ack_bytes(&ack), tcp.control_ecn());
        }
    }

    /// Schedules the receiving host's next timer and sends a subflow's acknowledgement, if there is one.
    fn send_mptcp_ack(&mut self, flow: u16, ack: Option<mptcp::Ack>) {
        let FlowState { direction, protocol: FlowProtocol::Tcp(tcp), .. } = &self.flows[usize::from(flow)] else {
            return;
        };
        self.network.schedule(Component::Sink(flow), tcp.sink_deadline());
        if let Some(ack) = ack {
            let packet = Packet::new(Body::MptcpAck(ack), flow, ack.subflow, direction.other());
            self.network.send(tcp.route_of(ack.subflow), packet, tcp.mptcp_ack_bytes(&ack), tcp.control_ecn());
        }
    }

    /// Schedules the receiving host's next timer and sends a QUIC packet of the receiver, if there is one.
    fn send_quic_reply(&mut self, flow: u16, reply: Option<quic::Reply>) {
        let FlowState { direction, protocol: FlowProtocol::Tcp(tcp), .. } = &self.flows[usize::from(flow)] else {
            return;
        };
        self.network.schedule(Component::Sink(flow), tcp.sink_deadline());
        if let Some(reply) = reply {
            let packet = Packet::new(Body::QuicReply(reply), flow, reply.path, direction.other());
            self.network.send(tcp.route_of(reply.path), packet, tcp.quic_reply_bytes(&reply), tcp.quic_ecn());
        }
    }

    fn on_request(&mut self, flow: u16, connection: u16, number: u32) {
        let now = self.network.now;
        let Some(tcp) = tcp(&mut self.flows, flow, connection) else { return };
        tcp.on_request(now, number);
        self.poll_sender(flow);
    }

    /// Sends until the sender has nothing more to send now.
    pub(super) fn poll_sender(&mut self, flow: u16) {
        let FlowState { route, direction, stop, protocol: FlowProtocol::Tcp(tcp), split, .. } =
            &mut self.flows[usize::from(flow)]
        else {
            return;
        };
        let now = self.network.now;
        loop {
            let output = tcp.poll(now);
            if self.network.trace.is_some() {
                trace::rtt(flow, tcp).for_each(|rtt| self.network.push_trace(rtt));
                trace::choices(flow, tcp).for_each(|choice| self.network.push_trace(choice));
            }
            match output {
                SenderOutput::Tcp(segment) => {
                    if let Some(SplitConnection::Near(split)) = split {
                        split.on_sent(now, &segment);
                    }
                    let (bytes, ecn) = tcp.segment_bytes(&segment);
                    let packet = Packet::new(Body::TcpSegment(segment), flow, tcp.connection_number, *direction);
                    match self.network.send(*route, packet, bytes, ecn) {
                        Sent::Away => {}
                        Sent::Queued(departure) => tcp.connection.wait_in_host_queue(0, departure),
                        Sent::Dropped => tcp.connection.refuse(now, segment),
                    }
                }
                SenderOutput::TcpSuper(whole) => {
                    let (bytes, ecn) = tcp.super_segment_bytes(&whole);
                    let packet = Packet::new(Body::TcpSuperSegment(whole), flow, tcp.connection_number, *direction);
                    self.network.send(*route, packet, bytes, ecn);
                }
                SenderOutput::Mptcp(segment) => {
                    let (bytes, ecn) = tcp.mptcp_segment_bytes(&segment);
                    let packet = Packet::new(Body::MptcpSegment(segment), flow, segment.subflow, *direction);
                    match self.network.send(tcp.route_of(segment.subflow), packet, bytes, ecn) {
                        Sent::Away => {}
                        Sent::Queued(departure) => tcp.connection.wait_in_host_queue(segment.subflow, departure),
                        Sent::Dropped => tcp.connection.refuse_mptcp(now, segment),
                    }
                }
                SenderOutput::Quic(quic) => {
                    // A datagram that the host's own queue drops is lost like any other: UDP does not report it.
                    let (bytes, ecn) = tcp.quic_packet_bytes(&quic);
                    let packet = Packet::new(Body::QuicPacket(quic), flow, quic.path, *direction);
                    self.network.send(tcp.route_of(quic.path), packet, bytes, ecn);
                }
                SenderOutput::WaitUntil(deadline) => {
                    let deadline =
                        if tcp.stopped { deadline } else { deadline.min(*stop).min(tcp.next_write()).max(now) };
                    if self.network.trace.is_some() {
                        trace::declared_lost(flow, tcp).for_each(|lost| self.network.push_trace(lost));
                        trace::senders(flow, tcp).for_each(|state| self.network.push_trace(Traced::Sender(state)));
                        trace::limits(flow, tcp).for_each(|limit| self.network.push_trace(limit));
                    }
                    return self.network.schedule(Component::Source(flow), deadline);
                }
            }
        }
    }

    fn wake_end(&mut self, flow: u16, end: End) {
        self.call(flow, |protocol, host| protocol.wake(end, host));
    }

    /// Calls the protocol of a flow that is not TCP's.
    fn call(&mut self, flow: u16, call: impl FnOnce(&mut dyn Protocol, &mut Host<'_>)) {
        let &mut FlowState { route, direction, start, stop, ref mut protocol, .. } = &mut self.flows[usize::from(flow)];
        if let FlowProtocol::Other(protocol) = protocol {
            let network = &mut self.network;
            call(&mut **protocol, &mut Host { network, flow, route, direction, start, stop });
        }
    }
}

/// The TCP flow that a packet of this flow and connection belongs to; none if the connection is closed.
#[inline(always)]
fn tcp(flows: &mut [FlowState], flow: u16, connection: u16) -> Option<&mut TcpFlow> {
    match &mut flows[usize::from(flow)].protocol {
        FlowProtocol::Tcp(tcp) if tcp.accepts(connection) => Some(tcp),
        _ => None,
    }
}
