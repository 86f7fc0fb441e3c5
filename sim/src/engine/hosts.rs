//! The hosts: senders and receivers of TCP, MPTCP and multipath QUIC, clients, and UDP sources.

use super::Engine;
use crate::connection::{Connection, SenderOutput};
use crate::flow::{FlowProtocol, FlowState};
use crate::network::{Component, Sent};
use crate::packet::{Body, Packet, PacketDescriptor};
use crate::split_connection::SplitConnection;
use crate::super_segment::SuperSegment;
use crate::tcp::TcpFlow;
use link::EcnField;
use transport::tcp::{Ack, Segment, SegmentKind};
use transport::{mptcp, quic};
use units::Instant;

impl Engine {
    /// Hands a packet to the host that it has reached.
    pub(super) fn deliver(&mut self, descriptor: PacketDescriptor) {
        let packet = self.network.slab.remove(descriptor.slot);
        self.digest.add(self.network.now.0 ^ (u64::from(packet.flow) << 48));
        match &packet.body {
            Body::TcpSegment(segment) => self.on_segment(&packet, segment, descriptor.ecn == EcnField::Ce),
            Body::TcpSuperSegment(whole) => {
                self.on_super_segment(&packet, whole, descriptor.ecn == EcnField::Ce);
            }
            Body::TcpAck(ack) => {
                self.on_ack(&packet, |tcp, now| tcp.on_ack(now, ack));
                self.on_leg_ack(packet.flow, ack);
            }
            Body::MptcpSegment(segment) => self.on_mptcp_segment(&packet, segment, descriptor.ecn == EcnField::Ce),
            Body::MptcpAck(ack) => self.on_ack(&packet, |tcp, now| tcp.on_mptcp_ack(now, ack)),
            Body::QuicPacket(quic) => self.on_quic_packet(&packet, quic, descriptor.ecn == EcnField::Ce),
            Body::QuicReply(reply) => self.on_ack(&packet, |tcp, now| tcp.on_quic_reply(now, reply)),
            &Body::Request(number) => self.on_request(&packet, number),
            &Body::Udp { sent, number } => self.on_datagram(packet.flow, number, sent),
            Body::Stray => {}
            &Body::TunnelDatagram(datagram) => {
                self.network.arrive(packet.direction, datagram, descriptor.ecn == EcnField::Ce);
            }
        }
    }

    /// The TCP flow that a packet belongs to; none if its connection is closed.
    #[inline]
    fn tcp(&mut self, packet: &Packet) -> Option<&mut TcpFlow> {
        match &mut self.flows[usize::from(packet.flow)].protocol {
            FlowProtocol::Tcp(tcp) if tcp.accepts(packet.connection) => Some(tcp),
            _ => None,
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
        let FlowProtocol::Tcp(tcp) = protocol else { return self.send_datagram(flow) };
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
        let FlowProtocol::Tcp(tcp) = &mut self.flows[usize::from(flow)].protocol else { return };
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

    fn on_segment(&mut self, packet: &Packet, segment: &Segment, marked: bool) {
        let now = self.network.now;
        if segment.kind == SegmentKind::Syn && self.hold_syn(packet.flow, segment) {
            return;
        }
        let Some(tcp) = self.tcp(packet) else { return };
        let ack = tcp.on_segment(now, segment, marked);
        self.network.work.delivered_data_packets += 1;
        self.send_ack(packet.flow, ack);
        self.on_leg_segment(packet.flow);
    }

    fn on_super_segment(&mut self, packet: &Packet, whole: &SuperSegment, marked: bool) {
        let now = self.network.now;
        let Some(tcp) = self.tcp(packet) else { return };
        let ack = tcp.on_super_segment(now, whole, marked);
        self.network.work.delivered_data_packets += u64::from(whole.segments);
        self.send_ack(packet.flow, ack);
    }

    fn on_mptcp_segment(&mut self, packet: &Packet, segment: &mptcp::Segment, marked: bool) {
        let now = self.network.now;
        let Some(tcp) = self.tcp(packet) else { return };
        let ack = tcp.on_mptcp_segment(now, segment, marked);
        self.network.work.delivered_data_packets += 1;
        self.send_mptcp_ack(packet.flow, ack);
    }

    fn on_quic_packet(&mut self, packet: &Packet, quic: &quic::Packet, marked: bool) {
        let now = self.network.now;
        let Some(tcp) = self.tcp(packet) else { return };
        let reply = tcp.on_quic_packet(now, quic, marked);
        self.network.work.delivered_data_packets += 1;
        self.send_quic_reply(packet.flow, reply);
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

    fn on_ack(&mut self, packet: &Packet, handle: impl FnOnce(&mut TcpFlow, Instant)) {
        let now = self.network.now;
        let Some(tcp) = self.tcp(packet) else { return };
        handle(tcp, now);
        self.poll_sender(packet.flow);
    }

    fn on_request(&mut self, packet: &Packet, number: u32) {
        let now = self.network.now;
        let Some(tcp) = self.tcp(packet) else { return };
        tcp.on_request(now, number);
        self.poll_sender(packet.flow);
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
            match tcp.poll(now) {
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
                    // A datagram that the host's own queue drops is lost like any other: UDP tells nobody.
                    let (bytes, ecn) = tcp.quic_packet_bytes(&quic);
                    let packet = Packet::new(Body::QuicPacket(quic), flow, quic.path, *direction);
                    self.network.send(tcp.route_of(quic.path), packet, bytes, ecn);
                }
                SenderOutput::WaitUntil(deadline) => {
                    let deadline =
                        if tcp.stopped { deadline } else { deadline.min(*stop).min(tcp.next_write()).max(now) };
                    return self.network.schedule(Component::Source(flow), deadline);
                }
            }
        }
    }

    fn send_datagram(&mut self, flow: u16) {
        let FlowState { route, direction, stop, protocol: FlowProtocol::Udp(source), .. } =
            &mut self.flows[usize::from(flow)]
        else {
            return;
        };
        if self.network.now >= *stop {
            return;
        }
        let packet = Packet::new(Body::Udp { sent: self.network.now, number: source.sent }, flow, 0, *direction);
        source.sent += 1;
        self.network.send(*route, packet, source.packet, EcnField::NotEct);
        self.network.schedule(Component::Source(flow), self.network.now + source.interval);
    }

    fn on_datagram(&mut self, flow: u16, number: u64, sent: Instant) {
        self.network.work.delivered_data_packets += 1;
        if let FlowProtocol::Udp(source) = &mut self.flows[usize::from(flow)].protocol {
            source.on_datagram(self.network.now, number, sent);
        }
    }
}
