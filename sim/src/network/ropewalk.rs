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

/// The id that queues hash for the tunnel's datagrams on a path: one UDP flow a path.
fn tunnel_flow_hash(path: u16) -> u16 {
    TUNNEL_FLOW_ID - path
}

impl Network {
    /// Gives an inner packet to the tunnel's end that sends in `direction`.
    pub(crate) fn enter_ropewalk(&mut self, direction: Direction, descriptor: PacketDescriptor) {
        let packet = self.slab.remove(descriptor.slot);
        expect_ropewalk(&mut self.tunnel).enqueue(self.now, packet, descriptor);
        self.transmit(direction);
    }

    /// Gives a datagram sent in `direction`, which has crossed its path, to the receiving end. `ce` is its ECN mark.
    /// Inner packets that the end delivers are appended to `delivered`.
    pub(crate) fn arrive(
        &mut self,
        direction: Direction,
        datagram_id: u32,
        ce: bool,
        delivered: &mut Vec<PacketDescriptor>,
    ) {
        expect_ropewalk(&mut self.tunnel).arrive(self.now, direction, datagram_id, ce);
        self.poll(direction.other(), delivered);
    }

    /// Handles [`Component::Ingress`]: expired timers of a Ropewalk end, or an MPT tunnel's thread that resumes.
    pub(crate) fn on_ingress_timeout(&mut self, direction: Direction, delivered: &mut Vec<PacketDescriptor>) {
        let Some(Tunnel::Ropewalk(ropewalk)) = &mut self.tunnel else { return self.run_tunnel_thread(direction) };
        ropewalk.on_timeout(self.now, direction);
        self.poll(direction, delivered);
    }

    /// Appends the inner packets that an end has ready to `delivered`, and transmits its datagrams.
    fn poll(&mut self, direction: Direction, delivered: &mut Vec<PacketDescriptor>) {
        while let Some((packet, descriptor)) = expect_ropewalk(&mut self.tunnel).deliver(self.now, direction) {
            let slot = self.slab.insert(packet);
            delivered.push(PacketDescriptor { slot, ..descriptor });
        }
        self.transmit(direction);
    }

    /// Transmits the datagrams that an end may send now, and schedules its next timer.
    pub(crate) fn transmit(&mut self, direction: Direction) {
        while let Some(outgoing) = expect_ropewalk(&mut self.tunnel).transmit(self.now, direction) {
            let OutgoingDatagram { path, datagram_id, bytes, ecn } = outgoing;
            let packet = Packet::new(Body::TunnelDatagram(datagram_id), TUNNEL_FLOW_ID, 0, direction);
            let slot = self.slab.insert(packet);
            self.enter_path(path, PacketDescriptor::new(slot, bytes, tunnel_flow_hash(path), ecn));
        }
        let deadline = expect_ropewalk(&mut self.tunnel).deadline(self.now, direction);
        self.schedule(Component::Ingress(direction), deadline.max(self.now));
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
