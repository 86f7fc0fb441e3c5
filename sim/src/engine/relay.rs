//! The exchange between the hosts and the relay's ends. Connections are opened end to end before data flows. The near end
//! reads the data of the senders, and the far end sends it on to the receivers.

use super::Engine;
use crate::flow::{FlowProtocol, FlowState};
use crate::packet::Direction::{self, Forward, Reverse};
use crate::relay::SocketEvent;
use crate::split_connection::SplitConnection;
use relay::{Addresses, ConnectionId, Event, ResetReason};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use transport::tcp::Segment;

/// The addresses of a flow's connection: the sender's port is the flow's number.
fn addresses(flow: u16) -> Addresses {
    let address = |host, port| SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 0, 0, host)), port);
    Addresses { source: address(1, flow), destination: address(2, 80) }
}

impl Engine {
    /// Whether a flow's connection is one of a relay's two.
    #[inline]
    pub(super) fn is_leg(&self, flow: u16) -> bool {
        self.flows[usize::from(flow)].split.is_some()
    }

    /// Keeps a near connection's SYN until the receiver's host has accepted, and opens the relay's connection by it.
    /// Returns whether it is kept.
    pub(super) fn hold_syn(&mut self, flow: u16, segment: &Segment) -> bool {
        let Some((split, _)) = self.flows[usize::from(flow)].near_connection() else { return false };
        let (now, is_first) = (self.network.now, split.id.is_none());
        if !is_first && split.held_syn.is_none() {
            return false;
        }
        split.held_syn = Some(*segment);
        if is_first && let Some(relay) = self.network.relay(Forward) {
            let id = relay.open(now, addresses(flow));
            if let (Some(id), Some((split, _))) = (id, self.flows[usize::from(flow)].near_connection()) {
                split.id = Some(id);
                self.relayed[Forward as usize].insert(id, flow);
            }
            self.network.transmit(Forward);
        }
        true
    }

    /// If the flow is a near connection, reports to the near relay the data that its socket has received. If it is a far
    /// connection, measures the delay of the data that the flow's receiver has received.
    pub(super) fn on_leg_segment(&mut self, flow: u16) {
        if let Some((split, tcp)) = self.flows[usize::from(flow)].far_connection() {
            let (near, delivered) = (split.near, tcp.connection.delivered());
            if let Some((split, _)) = self.flows[usize::from(near)].near_connection() {
                split.on_delivered(self.network.now, delivered);
            }
            return;
        }
        let Some((split, tcp)) = self.flows[usize::from(flow)].near_connection() else { return };
        let (Some(id), segments) = (split.id, tcp.connection.delivered()) else { return };
        let (bytes, has_ended) = (tcp.bytes_below(segments), split.end == Some(segments));
        let Some(relay) = self.network.relay(Forward) else { return };
        relay.on_received(id, bytes, has_ended);
        self.network.transmit(Forward);
        self.poll_relay();
    }

    /// If the flow is a far connection, reports to the far relay that the connection is established, or the data that the
    /// receiver has acknowledged.
    pub(super) fn on_leg_ack(&mut self, flow: u16, is_syn_ack: bool) {
        let now = self.network.now;
        let Some((split, _)) = self.flows[usize::from(flow)].far_connection() else { return };
        let (Some(id), Some(relay)) = (split.id, self.network.relay(Reverse)) else { return };
        if is_syn_ack {
            relay.accept(now, id);
        }
        self.consume(flow);
        self.poll_relay();
    }

    /// Consumes the data that a far connection's receiver has acknowledged.
    fn consume(&mut self, far: u16) {
        let now = self.network.now;
        let Some((split, tcp)) = self.flows[usize::from(far)].far_connection() else { return };
        let (Some(id), Some(acknowledged)) = (split.id, tcp.connection.acknowledged()) else { return };
        let freed = split.consume(acknowledged, u64::from(tcp.mss()));
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
            while let Some(event) = self.network.relay(direction).and_then(crate::relay::RelayEnd::poll_event) {
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
        let now = self.network.now;
        let Some(flow) = self.flow_of(Forward, id) else { return };
        let Some((_, tcp)) = self.flows[usize::from(flow)].near_connection() else { return };
        let ack = tcp.read(now, bytes);
        self.send_ack(flow, ack);
    }

    /// The near end has asked for a connection to the receiver of the flow with this number.
    fn on_opened(&mut self, id: ConnectionId, number: u16) {
        let now = self.network.now;
        let far = match self.flows[usize::from(number)].near_connection() {
            Some((split, _)) => split.far,
            None => return,
        };
        if let Some((split, tcp)) = self.flows[usize::from(far)].far_connection() {
            split.id = Some(id);
            tcp.connection.connect(now);
        }
        self.relayed[Reverse as usize].insert(id, far);
        self.poll_sender(far);
    }

    /// The receiver's host has accepted: the near relay's answers the sender's SYN.
    fn answer_syn(&mut self, id: ConnectionId) {
        let now = self.network.now;
        let Some(flow) = self.flow_of(Forward, id) else { return };
        let Some((split, tcp)) = self.flows[usize::from(flow)].near_connection() else { return };
        let Some(syn) = split.held_syn.take() else { return };
        let ack = tcp.on_segment(now, &syn, false);
        self.send_ack(flow, ack);
    }

    /// Writes what has arrived at the far end to the connection to the flow's receiver.
    fn write_far(&mut self, id: ConnectionId) {
        let now = self.network.now;
        let Some(far) = self.flow_of(Reverse, id) else { return };
        let end = self.end_of(far);
        let Some((split, tcp)) = self.flows[usize::from(far)].far_connection() else { return };
        let Some(relay) = self.network.relay(Reverse) else { return };
        let arrived = relay.arrived(id, split.consumed);
        if let Some((segments, lacking)) = split.write(arrived, end == Some(arrived), u64::from(tcp.mss())) {
            tcp.connection.write(now, segments, lacking);
        }
        self.poll_sender(far);
        self.consume(far);
    }

    /// Number of bytes that a far connection will carry; known once the flow's sender has closed.
    fn end_of(&mut self, far: u16) -> Option<u64> {
        let near = self.flows[usize::from(far)].far_connection()?.0.near;
        let (split, tcp) = self.flows[usize::from(near)].near_connection()?;
        split.end.map(|end| tcp.bytes_below(end))
    }

    /// Called when a connection no longer exists. One that was not accepted in time is opened again by the sender's next
    /// SYN.
    fn on_closed(&mut self, direction: Direction, id: ConnectionId, reason: Option<ResetReason>) {
        let now = self.network.now;
        let Some(flow) = self.relayed[direction as usize].remove(&id) else { return };
        if let Some(relay) = self.network.relay(direction) {
            relay.close(id);
        }
        let FlowState { split, protocol: FlowProtocol::Tcp(tcp), .. } = &mut self.flows[usize::from(flow)] else {
            return;
        };
        if let Some(SplitConnection::Near(split)) = split
            && split.held_syn.take().is_some()
        {
            split.id = None;
        } else if reason.is_some() {
            tcp.stop(now);
        }
    }

    /// Called when a flow's sender closes: nothing follows the data sent so far.
    pub(super) fn close_leg(&mut self, flow: u16) {
        let Some((split, tcp)) = self.flows[usize::from(flow)].near_connection() else { return };
        split.end = split.end.or(tcp.connection.sent_segments());
        self.on_leg_segment(flow);
    }
}
