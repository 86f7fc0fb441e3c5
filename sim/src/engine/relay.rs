//! The exchange between the hosts and the relay's ends. Connections are opened end to end before data flows. The near end
//! reads the data of the senders, and the far end sends it on to the receivers.

use super::Engine;
use crate::packet::{
    Body,
    Direction::{self, Forward, Reverse},
};
use crate::protocol::{Arrival, End, Host};
use crate::split_connection::SplitConnection;
use crate::stream::TcpFlow;
use crate::tunnel::relay::{RelayEnd, SocketEvent};
use relay::{Addresses, ConnectionId, Event, ResetReason};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use transport::tcp::{Segment, SegmentKind};

/// The addresses of a flow's connection: the sender's port is the flow's number.
fn addresses(flow: u16) -> Addresses {
    let address = |host, port| SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 0, 0, host)), port);
    Addresses { source: address(1, flow), destination: address(2, 80) }
}

impl Engine {
    /// Hands a packet to an end of one of a relay's two connections.
    #[inline(never)]
    pub(super) fn deliver_to_leg(&mut self, flow: u16, arrival: Arrival) {
        let body = self.network.world.slab.get(arrival.slot).content.body;
        let (end, is_syn_ack) = match body {
            Body::TcpPacket(packet) if packet.first.kind == SegmentKind::Syn && self.hold_syn(flow, &packet.first) => {
                return;
            }
            Body::TcpAck(ack) => (End::Sender, ack.syn),
            _ => (End::Receiver, false),
        };
        let state = &mut self.flows[usize::from(flow)];
        state.call(flow, &mut self.network, |protocol, host| protocol.receive(end, arrival, host));
        match end {
            End::Sender => self.on_leg_ack(flow, is_syn_ack),
            End::Receiver => self.on_leg_segment(flow),
        }
    }

    /// Calls the TCP of a flow, which may use the network.
    fn with_tcp(&mut self, flow: u16, call: impl FnOnce(&mut TcpFlow, &mut Host<'_>)) {
        self.flows[usize::from(flow)].call_tcp(flow, &mut self.network, call);
    }

    /// Keeps a near connection's SYN until the receiver's host has accepted, and opens the relay's connection by it.
    /// Returns whether it is kept.
    fn hold_syn(&mut self, flow: u16, segment: &Segment) -> bool {
        let Some(split) = self.flows[usize::from(flow)].near_connection() else { return false };
        let (now, is_first) = (self.network.world.now, split.id.is_none());
        if !is_first && split.held_syn.is_none() {
            return false;
        }
        split.held_syn = Some(*segment);
        if is_first && let Some(relay) = self.network.relay(Forward) {
            let id = relay.open(now, addresses(flow));
            if let (Some(id), Some(split)) = (id, self.flows[usize::from(flow)].near_connection()) {
                split.id = Some(id);
                self.relayed[Forward as usize].insert(id, flow);
            }
            self.network.transmit(Forward);
        }
        true
    }

    /// If the flow is a near connection, reports to the near relay the data that its socket has received. If it is a far
    /// connection, measures the delay of the data that the flow's receiver has received.
    fn on_leg_segment(&mut self, flow: u16) {
        let now = self.network.world.now;
        let state = &mut self.flows[usize::from(flow)];
        let Some(delivered) = state.tcp().map(|tcp| tcp.receiver.machine.delivered()) else { return };
        if let Some(near) = state.far_connection().map(|split| split.near) {
            let times = self.flows[usize::from(near)].tcp().and_then(|tcp| tcp.delivery_times.as_mut());
            times.into_iter().for_each(|times| times.on_delivered(now, delivered));
            return;
        }
        let (Some(split), Some(relay)) = (state.near_connection(), self.network.relay(Forward)) else { return };
        let (Some(id), has_ended) = (split.id, split.end == Some(delivered)) else { return };
        let Some(bytes) = state.tcp().map(|tcp| tcp.bytes_below(delivered)) else { return };
        relay.on_received(id, bytes, has_ended);
        self.network.transmit(Forward);
        self.poll_relay();
    }

    /// If the flow is a far connection, reports to the far relay that the connection is established, or the data that the
    /// receiver has acknowledged.
    fn on_leg_ack(&mut self, flow: u16, is_syn_ack: bool) {
        let now = self.network.world.now;
        let Some(split) = self.flows[usize::from(flow)].far_connection() else { return };
        let (Some(id), Some(relay)) = (split.id, self.network.relay(Reverse)) else { return };
        if is_syn_ack {
            relay.accept(now, id);
        }
        self.consume(flow);
        self.poll_relay();
    }

    /// Consumes the data that a far connection's receiver has acknowledged.
    fn consume(&mut self, far: u16) {
        let now = self.network.world.now;
        let state = &mut self.flows[usize::from(far)];
        let Some((acknowledged, mss)) = state.tcp().map(|tcp| (tcp.sender.machine.acknowledged(), tcp.mss())) else {
            return;
        };
        let Some(split) = state.far_connection() else { return };
        let Some(id) = split.id else { return };
        let freed = split.consume(acknowledged, u64::from(mss));
        let Some(relay) = self.network.relay(Reverse) else { return };
        if freed > 0 {
            relay.consume(now, id, freed);
        }
        if relay.is_finished(id) {
            relay.finish(id); // the receiver's host closes too
        }
        self.network.transmit(Reverse);
    }

    /// Handles the events of both ends until there are none.
    pub(super) fn poll_relay(&mut self) {
        for direction in [Forward, Reverse] {
            while let Some(event) = self.network.relay(direction).and_then(RelayEnd::poll_event) {
                self.on_socket_event(direction, event);
                self.network.transmit(direction);
            }
        }
    }

    fn on_socket_event(&mut self, direction: Direction, event: SocketEvent) {
        match event {
            SocketEvent::Read { id, bytes } => self.on_read(id, bytes),
            SocketEvent::Connection(Event::Opened { id, addresses }) => self.on_opened(id, addresses.source.port()),
            SocketEvent::Connection(Event::Accepted(id)) => self.answer_syn(id),
            SocketEvent::Connection(Event::Readable(id)) if direction == Reverse => self.write_far(id),
            SocketEvent::Connection(Event::Readable(_) | Event::Writable(_)) => {}
            SocketEvent::Connection(Event::Closed { id, reason }) => self.on_closed(direction, id, reason),
        }
    }

    /// The flow of a relayed connection at this end.
    fn flow_of(&self, direction: Direction, id: ConnectionId) -> Option<u16> {
        self.relayed[direction as usize].get(&id).copied()
    }

    /// The near relay has read the first `bytes` that arrived from a flow's sender.
    fn on_read(&mut self, id: ConnectionId, bytes: u64) {
        let Some(flow) = self.flow_of(Forward, id) else { return };
        self.with_tcp(flow, |tcp, host| tcp.read(bytes, host));
    }

    /// The near end has asked for a connection to the receiver of the flow with this number.
    fn on_opened(&mut self, id: ConnectionId, number: u16) {
        let Some(far) = self.flows[usize::from(number)].near_connection().map(|split| split.far) else { return };
        if let Some(split) = self.flows[usize::from(far)].far_connection() {
            split.id = Some(id);
        }
        self.relayed[Reverse as usize].insert(id, far);
        self.with_tcp(far, TcpFlow::connect);
    }

    /// The receiver's host has accepted: the near relay's answers the sender's SYN.
    fn answer_syn(&mut self, id: ConnectionId) {
        let Some(flow) = self.flow_of(Forward, id) else { return };
        let split = self.flows[usize::from(flow)].near_connection();
        let Some(syn) = split.and_then(|split| split.held_syn.take()) else { return };
        self.with_tcp(flow, |tcp, host| tcp.accept(syn, host));
    }

    /// Writes what has arrived at the far end to the connection to the flow's receiver.
    fn write_far(&mut self, id: ConnectionId) {
        let Some(far) = self.flow_of(Reverse, id) else { return };
        let end = self.end_of(far);
        let state = &mut self.flows[usize::from(far)];
        let Some(mss) = state.tcp().map(|tcp| u64::from(tcp.mss())) else { return };
        let (Some(split), Some(relay)) = (state.far_connection(), self.network.relay(Reverse)) else { return };
        let arrived = relay.arrived(id, split.consumed);
        let segments = split.write(arrived, end == Some(arrived), mss);
        self.with_tcp(far, |tcp, host| tcp.write(segments, host));
        self.consume(far);
    }

    /// Number of bytes that a far connection will carry; known once the flow's sender has closed.
    fn end_of(&mut self, far: u16) -> Option<u64> {
        let near = self.flows[usize::from(far)].far_connection()?.near;
        let state = &mut self.flows[usize::from(near)];
        let end = state.near_connection()?.end?;
        state.tcp().map(|tcp| tcp.bytes_below(end))
    }

    /// Called when a connection no longer exists. One that was not accepted in time is opened again by the sender's next
    /// SYN.
    fn on_closed(&mut self, direction: Direction, id: ConnectionId, reason: Option<ResetReason>) {
        let now = self.network.world.now;
        let Some(flow) = self.relayed[direction as usize].remove(&id) else { return };
        if let Some(relay) = self.network.relay(direction) {
            relay.close(id);
        }
        let state = &mut self.flows[usize::from(flow)];
        if let Some(SplitConnection::Near(split)) = &mut state.split
            && split.held_syn.take().is_some()
        {
            split.id = None;
        } else if reason.is_some()
            && let Some(tcp) = state.tcp()
        {
            tcp.stop(now);
        }
    }

    /// Wakes an end of one of a relay's two connections. Once the flow's sender has closed, nothing follows the data sent so
    /// far.
    pub(super) fn wake_leg(&mut self, flow: u16, end: End) {
        let state = &mut self.flows[usize::from(flow)];
        let was_open = state.tcp().is_some_and(|tcp| !tcp.stopped);
        state.call(flow, &mut self.network, |protocol, host| protocol.wake(end, host));
        let closed = state.tcp().filter(|tcp| was_open && tcp.stopped);
        let Some(sent) = closed.map(|tcp| tcp.sent_segments()) else { return };
        let Some(split) = state.near_connection() else { return };
        split.end = split.end.or(Some(sent));
        self.on_leg_segment(flow);
    }
}
