//! Where packets come from and go to: senders, receivers, constant-rate sources.

use super::Engine;
use super::component::Component;
use crate::connection::{Connection, Polled};
use crate::endpoint::{Endpoint, Kind};
use crate::packet::{Body, Direction, Packet, Parcel};
use crate::tcp::Tcp;
use transport::mptcp;
use transport::tcp::{Ack, Segment};
use units::Instant;

impl Engine {
    /// A packet has reached its host.
    pub(super) fn deliver(&mut self, parcel: Parcel) {
        let packet = self.network.slab.remove(parcel.slot);
        self.digest.add(self.network.now.0 ^ (u64::from(packet.flow) << 48));
        match packet.body {
            Body::Segment(segment) => self.on_segment(&packet, &segment, parcel.marked),
            Body::Ack(ack) => self.on_ack(&packet, |tcp, now| tcp.on_ack(now, &ack)),
            Body::DataSegment(segment) => self.on_data_segment(&packet, &segment, parcel.marked),
            Body::DataAck(ack) => self.on_ack(&packet, |tcp, now| tcp.on_data_ack(now, &ack)),
            Body::Request(number) => self.on_request(&packet, number),
            Body::Datagram { sent } => self.on_datagram(packet.flow, sent),
            Body::Stray => {}
            Body::Tunnelled(datagram) => {
                self.network.arrive(packet.direction, datagram, parcel.marked, &mut self.up);
                self.deliver_all();
            }
        }
    }

    /// The TCP flow that a packet is for, unless it comes from a connection that is no more.
    #[inline]
    fn tcp(&mut self, packet: &Packet) -> Option<&mut Tcp> {
        match &mut self.flows[usize::from(packet.flow)].kind {
            Kind::Tcp(tcp) if tcp.knows(packet.connection) => Some(tcp),
            _ => None,
        }
    }

    /// So have the packets that the tunnel handed up.
    pub(super) fn deliver_all(&mut self) {
        let mut up = std::mem::take(&mut self.up);
        up.drain(..).for_each(|parcel| self.deliver(parcel));
        self.up = up;
    }

    /// A flow's source is to start, to send or to stop, or one of its timers has run out.
    pub(super) fn wake_source(&mut self, flow: u16) {
        let now = self.network.now;
        let Endpoint { start, stop, kind, .. } = &mut self.flows[usize::from(flow)];
        let Kind::Tcp(tcp) = kind else { return self.send_datagram(flow) };
        if now == *start {
            tcp.start(now);
            self.network.arm(Component::Sink(flow), tcp.sink_deadline());
        }
        if now >= *stop && !tcp.stopped {
            tcp.stop(now);
        }
        tcp.wake_source(now);
        self.drive(flow);
    }

    pub(super) fn wake_sink(&mut self, flow: u16) {
        let Kind::Tcp(tcp) = &mut self.flows[usize::from(flow)].kind else { return };
        let now = self.network.now;
        match &mut tcp.connection {
            Connection::Single(single) => {
                let ack = single.receiver.on_timeout(now);
                self.acknowledge(flow, ack);
            }
            Connection::Multi(multi) => {
                let ack = multi.receiver.on_timeout(now);
                self.acknowledge_data(flow, ack);
            }
        }
        self.ask(flow);
    }

    /// A client's request leaves, if it is time.
    fn ask(&mut self, flow: u16) {
        let Endpoint { route, kind: Kind::Tcp(tcp), .. } = &mut self.flows[usize::from(flow)] else { return };
        if let Some(number) = tcp.ask(self.network.now) {
            let packet = Packet::new(Body::Request(number), flow, tcp.number, Direction::Reverse);
            self.network.arm(Component::Sink(flow), tcp.sink_deadline());
            self.network.send(*route, packet, tcp.request_bytes(), tcp.marks_all());
        }
    }

    fn on_segment(&mut self, packet: &Packet, segment: &Segment, marked: bool) {
        let now = self.network.now;
        let Some(tcp) = self.tcp(packet) else { return };
        let ack = tcp.on_segment(now, segment, marked);
        self.network.work.delivered_data_packets += 1;
        self.acknowledge(packet.flow, ack);
    }

    fn on_data_segment(&mut self, packet: &Packet, segment: &mptcp::Segment, marked: bool) {
        let now = self.network.now;
        let Some(tcp) = self.tcp(packet) else { return };
        let ack = tcp.on_data_segment(now, segment, marked);
        self.network.work.delivered_data_packets += 1;
        self.acknowledge_data(packet.flow, ack);
    }

    /// The receiving host has acted: it is called again in time, and its acknowledgement leaves.
    fn acknowledge(&mut self, flow: u16, ack: Option<Ack>) {
        let Endpoint { route, kind: Kind::Tcp(tcp), .. } = &self.flows[usize::from(flow)] else { return };
        self.network.arm(Component::Sink(flow), tcp.sink_deadline());
        if let Some(ack) = ack {
            let packet = Packet::new(Body::Ack(ack), flow, tcp.number, Direction::Reverse);
            self.network.send(*route, packet, tcp.ack_bytes(&ack), tcp.marks_all());
        }
    }

    /// The same on a subflow.
    fn acknowledge_data(&mut self, flow: u16, ack: Option<mptcp::Ack>) {
        let Kind::Tcp(tcp) = &self.flows[usize::from(flow)].kind else { return };
        self.network.arm(Component::Sink(flow), tcp.sink_deadline());
        if let Some(ack) = ack {
            let packet = Packet::new(Body::DataAck(ack), flow, ack.subflow, Direction::Reverse);
            self.network.send(tcp.route_of(ack.subflow), packet, tcp.data_ack_bytes(&ack), tcp.marks_all());
        }
    }

    fn on_ack(&mut self, packet: &Packet, handle: impl FnOnce(&mut Tcp, Instant)) {
        let now = self.network.now;
        let Some(tcp) = self.tcp(packet) else { return };
        handle(tcp, now);
        self.drive(packet.flow);
    }

    fn on_request(&mut self, packet: &Packet, number: u32) {
        let now = self.network.now;
        let Some(tcp) = self.tcp(packet) else { return };
        tcp.serve(now, number);
        self.drive(packet.flow);
    }

    /// Polls a sender until it has nothing more to send now.
    fn drive(&mut self, flow: u16) {
        let Endpoint { route, stop, kind: Kind::Tcp(tcp), .. } = &mut self.flows[usize::from(flow)] else { return };
        let now = self.network.now;
        loop {
            match tcp.connection.poll(now) {
                Polled::Segment(segment) => {
                    let (bytes, capable) = tcp.segment_bytes(&segment);
                    let packet = Packet::new(Body::Segment(segment), flow, tcp.number, Direction::Forward);
                    if !self.network.send(*route, packet, bytes, capable) {
                        tcp.connection.refuse(now, segment);
                    }
                }
                Polled::DataSegment(segment) => {
                    let (bytes, capable) = tcp.data_segment_bytes(&segment);
                    let packet = Packet::new(Body::DataSegment(segment), flow, segment.subflow, Direction::Forward);
                    if !self.network.send(tcp.route_of(segment.subflow), packet, bytes, capable) {
                        tcp.connection.refuse_data(now, segment);
                    }
                }
                Polled::Until(deadline) => {
                    let deadline =
                        if tcp.stopped { deadline } else { deadline.min(*stop).min(tcp.next_write()).max(now) };
                    return self.network.arm(Component::Source(flow), deadline);
                }
            }
        }
    }

    fn send_datagram(&mut self, flow: u16) {
        let Endpoint { route, stop, kind: Kind::Datagrams(source), .. } = &mut self.flows[usize::from(flow)] else {
            return;
        };
        if self.network.now >= *stop {
            return;
        }
        source.sent += 1;
        let packet = Packet::new(Body::Datagram { sent: self.network.now }, flow, 0, Direction::Forward);
        self.network.send(*route, packet, source.packet, false);
        self.network.arm(Component::Source(flow), self.network.now + source.interval);
    }

    fn on_datagram(&mut self, flow: u16, sent: Instant) {
        self.network.work.delivered_data_packets += 1;
        if let Kind::Datagrams(source) = &mut self.flows[usize::from(flow)].kind {
            source.received += 1;
            source.delay.add(self.network.now.since(sent));
        }
    }
}
