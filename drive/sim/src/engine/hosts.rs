//! Where packets come from and go to: senders, receivers, constant-rate sources.

use super::Engine;
use super::component::Component;
use crate::endpoint::{Endpoint, Kind};
use crate::packet::{Body, Direction, Packet, Parcel};
use protocol::tcp::sender::{Input, Output};
use protocol::tcp::{Ack, Segment};
use units::Instant;

impl Engine {
    /// A packet has reached its host.
    pub(super) fn deliver(&mut self, parcel: Parcel) {
        let packet = self.network.slab.remove(parcel.slot);
        self.digest.add(self.network.now.0 ^ (u64::from(packet.flow) << 48));
        match packet.body {
            Body::Segment(segment) => self.on_segment(packet.flow, &segment, parcel.marked),
            Body::Ack(ack) => self.on_ack(packet.flow, &ack),
            Body::Datagram { sent } => self.on_datagram(packet.flow, sent),
            Body::Stray => {}
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
            tcp.sender.handle(now, Input::Connect);
        }
        if now >= *stop && !tcp.stopped {
            tcp.stopped = true;
            tcp.sender.handle(now, Input::Stop);
        }
        tcp.sender.handle(now, Input::Timeout);
        self.drive(flow);
    }

    pub(super) fn wake_sink(&mut self, flow: u16) {
        let Kind::Tcp(tcp) = &mut self.flows[usize::from(flow)].kind else { return };
        let ack = tcp.receiver.on_timeout(self.network.now);
        self.acknowledge(flow, ack);
    }

    fn on_segment(&mut self, flow: u16, segment: &Segment, marked: bool) {
        let Kind::Tcp(tcp) = &mut self.flows[usize::from(flow)].kind else { return };
        let now = self.network.now;
        tcp.arrived += u64::from(segment.kind == protocol::tcp::Kind::Data);
        let ack = tcp.receiver.handle(now, segment, marked);
        if tcp.done.is_none() && tcp.receiver.delivered() >= tcp.segments {
            tcp.done = Some(now);
        }
        self.network.work.delivered_data_packets += 1;
        self.acknowledge(flow, ack);
    }

    /// The receiver has acted.
    fn acknowledge(&mut self, flow: u16, ack: Option<Ack>) {
        let Endpoint { route, kind: Kind::Tcp(tcp), .. } = &self.flows[usize::from(flow)] else { return };
        self.network.arm(Component::Sink(flow), tcp.receiver.deadline());
        if let Some(ack) = ack {
            let packet = Packet::new(Body::Ack(ack), flow, Direction::Reverse);
            self.network.send(*route, packet, tcp.ack_bytes(&ack), tcp.marks_all());
        }
    }

    fn on_ack(&mut self, flow: u16, ack: &Ack) {
        let Kind::Tcp(tcp) = &mut self.flows[usize::from(flow)].kind else { return };
        tcp.sender.handle(self.network.now, Input::Ack(ack));
        if let Some(rtt) = tcp.sender.last_rtt() {
            tcp.rtt.add(rtt);
        }
        self.drive(flow);
    }

    /// Polls a sender until it has nothing more to send now.
    fn drive(&mut self, flow: u16) {
        let Endpoint { route, stop, kind: Kind::Tcp(tcp), .. } = &mut self.flows[usize::from(flow)] else { return };
        let now = self.network.now;
        loop {
            match tcp.sender.poll(now) {
                Output::Transmit(segment) => {
                    let packet = Packet::new(Body::Segment(segment), flow, Direction::Forward);
                    let (bytes, capable) = tcp.segment_bytes(&segment);
                    if !self.network.send(*route, packet, bytes, capable) {
                        tcp.sender.handle(now, Input::Refused(segment));
                    }
                }
                Output::Until(deadline) => {
                    let deadline = if tcp.stopped { deadline } else { deadline.min(*stop) };
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
        let packet = Packet::new(Body::Datagram { sent: self.network.now }, flow, Direction::Forward);
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
