//! The network around both ends of a Ropewalk tunnel: inner packets enter, cross the paths as datagrams, and are
//! delivered.

use super::Component;
use super::Network;
use crate::packet::{Body, Direction, Packet, PacketDescriptor};
use crate::relay::RelayEnd;
use crate::ropewalk::{OutgoingDatagram, Ropewalk};
use crate::tunnel::Tunnel;

/// The flow id of the tunnel's datagrams, which belong to no flow of the scenario.
const TUNNEL_FLOW_ID: u16 = u16::MAX;

/// The id that queues hash for the tunnel's datagrams on a path: one UDP flow per path.
fn tunnel_flow_hash(path: u16) -> u16 {
    TUNNEL_FLOW_ID - path
}

impl Network {
    /// Gives an inner packet to the tunnel's end that sends in `direction`.
    pub(crate) fn enter_ropewalk(&mut self, direction: Direction, descriptor: PacketDescriptor) {
        let packet = self.slab.remove(descriptor.slot());
        expect_ropewalk(&mut self.tunnel).enqueue(*packet, descriptor);
        self.schedule_iteration(direction);
    }

    /// Gives a datagram sent in `direction`, which has crossed its path, to the receiving end. `ce` is its ECN mark.
    pub(crate) fn arrive(&mut self, direction: Direction, datagram_id: u32, ce: bool) {
        expect_ropewalk(&mut self.tunnel).arrive(direction, datagram_id, ce);
        self.schedule_iteration(direction.other());
    }

    /// Handles [`Component::Ingress`]: an iteration of a Ropewalk end's event loop, whose inner packets are appended to
    /// `delivered`, or an MPT tunnel's thread that resumes.
    pub(crate) fn on_ingress_timeout(&mut self, direction: Direction, delivered: &mut Vec<PacketDescriptor>) {
        let Some(Tunnel::Ropewalk(ropewalk)) = &mut self.tunnel else { return self.run_tunnel_thread(direction) };
        if let Some(iteration) = ropewalk.begin_iteration(self.now, direction) {
            while let Some((packet, descriptor)) = expect_ropewalk(&mut self.tunnel).deliver(self.now, direction) {
                let slot = self.slab.insert(packet);
                delivered.push(descriptor.moved(slot));
            }
            self.transmit_all(direction);
            self.trace_tunnel(direction);
            expect_ropewalk(&mut self.tunnel).finish_iteration(self.now, direction, iteration);
        }
        self.schedule_iteration(direction);
    }

    /// Transmits what the relay has offered at an end, unless its event loop pauses.
    pub(crate) fn transmit(&mut self, direction: Direction) {
        if !expect_ropewalk(&mut self.tunnel).is_paused(self.now, direction) {
            self.transmit_all(direction);
            self.trace_tunnel(direction);
            expect_ropewalk(&mut self.tunnel).set_timer(self.now, direction);
        }
        self.schedule_iteration(direction);
    }

    /// Transmits the datagrams that an end may send now.
    fn transmit_all(&mut self, direction: Direction) {
        while let Some(outgoing) = expect_ropewalk(&mut self.tunnel).transmit(self.now, direction) {
            let OutgoingDatagram { path, datagram_id, bytes, ecn } = outgoing;
            let packet = Packet::new(Body::TunnelDatagram(datagram_id), TUNNEL_FLOW_ID, 0, direction);
            let is_data = packet.is_data();
            let slot = self.slab.insert(packet);
            self.enter_path(path, PacketDescriptor::new(slot, bytes, tunnel_flow_hash(path), ecn, is_data));
        }
    }

    /// Traces an end after it has transmitted.
    fn trace_tunnel(&mut self, direction: Direction) {
        if self.trace.is_some() {
            let traced = expect_ropewalk(&mut self.tunnel).traced(direction);
            traced.for_each(|traced| self.push_trace(traced));
        }
    }

    /// Schedules the next iteration of an end's event loop.
    fn schedule_iteration(&mut self, direction: Direction) {
        let time = expect_ropewalk(&mut self.tunnel).next_iteration(direction);
        self.schedule(Component::Ingress(direction), time.max(self.now));
    }
}

impl Network {
    /// The relay of the tunnel's end that sends in `direction`, if there is one.
    pub(crate) fn relay(&mut self, direction: Direction) -> Option<&mut RelayEnd> {
        match &mut self.tunnel {
            Some(Tunnel::Ropewalk(ropewalk)) => ropewalk.relay(direction),
            _ => None,
        }
    }
}

/// The Ropewalk tunnel; callers hold a packet or a datagram of it.
fn expect_ropewalk(tunnel: &mut Option<Tunnel>) -> &mut Ropewalk {
    match tunnel {
        Some(Tunnel::Ropewalk(ropewalk)) => ropewalk,
        _ => unreachable!("only a Ropewalk tunnel's packets get here"),
    }
}
