//! Where packets come from and go to: senders, receivers, constant-rate sources.

use super::Engine;
use super::component::Component;
use crate::connection::Wish;
use crate::endpoint::{Endpoint, Kind};
use crate::packet::{Body, Direction, Packet, Parcel};
use crate::tcp::Tcp;
use scenario::model::Route;
use units::Instant;

impl Engine {
    /// A packet has reached its host.
    pub(super) fn deliver(&mut self, parcel: Parcel) {
        let packet = self.network.slab.remove(parcel.slot);
        self.digest.add(self.network.now.0 ^ (u64::from(packet.flow) << 48));
        match packet.body {
            Body::Segment(segment) => {
                self.on_segment(&packet, |tcp, now| tcp.on_segment(now, &segment, parcel.marked));
            }
            Body::Ack(ack) => self.on_ack(&packet, |tcp, now| tcp.on_ack(now, &ack)),
            Body::DataSegment(segment) => {
                self.on_segment(&packet, |tcp, now| tcp.on_data_segment(now, &segment, parcel.marked));
            }
            Body::DataAck(ack) => self.on_ack(&packet, |tcp, now| tcp.on_data_ack(now, &ack)),
            Body::Request(number) => self.on_request(&packet, number),
            Body::Datagram { sent } => self.on_datagram(packet.flow, sent),
            Body::Stray => {}
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
        let mut wish = tcp.connection.wake_receiver(self.network.now);
        while let Wish::Send(..) = wish {
            self.answer(flow, wish);
            let Kind::Tcp(tcp) = &mut self.flows[usize::from(flow)].kind else { return };
            wish = tcp.connection.wake_receiver(self.network.now);
        }
        self.answer(flow, Wish::Until(Instant::NEVER));
        self.ask(flow);
    }

    /// A client's request leaves, if it is time.
    fn ask(&mut self, flow: u16) {
        let Kind::Tcp(tcp) = &mut self.flows[usize::from(flow)].kind else { return };
        if let Some(number) = tcp.ask(self.network.now) {
            self.answer(flow, Wish::Send(Body::Request(number), 0));
        }
    }

    fn on_segment(&mut self, packet: &Packet, handle: impl FnOnce(&mut Tcp, Instant) -> Wish) {
        let now = self.network.now;
        let Some(tcp) = self.tcp(packet) else { return };
        let wish = handle(tcp, now);
        self.network.work.delivered_data_packets += 1;
        self.answer(packet.flow, wish);
    }

    /// The receiving host has acted: what it sends leaves, and it is called again in time.
    fn answer(&mut self, flow: u16, wish: Wish) {
        let Endpoint { route, kind: Kind::Tcp(tcp), .. } = &self.flows[usize::from(flow)] else { return };
        self.network.arm(Component::Sink(flow), tcp.sink_deadline());
        if let Wish::Send(body, subflow) = wish {
            let packet = Packet::new(body, flow, tcp.label_of(subflow), Direction::Reverse);
            let (bytes, capable) = tcp.packet_bytes(&body);
            self.network.send(tcp.path_of(subflow).map_or(*route, Route::Path), packet, bytes, capable);
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
                Wish::Send(body, subflow) => {
                    let packet = Packet::new(body, flow, tcp.label_of(subflow), Direction::Forward);
                    let (bytes, capable) = tcp.packet_bytes(&body);
                    let route = tcp.path_of(subflow).map_or(*route, Route::Path);
                    if !self.network.send(route, packet, bytes, capable) {
                        tcp.connection.refuse(now, &body);
                    }
                }
                Wish::Until(deadline) => {
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
