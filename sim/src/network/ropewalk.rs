//! Both ends of Ropewalk's own tunnel: inner packets enter, cross the paths as datagrams, and are delivered.

use super::Component;
use super::Network;
use crate::packet::{Body, Direction, Packet, PacketDescriptor};
use crate::ropewalk::{OutgoingDatagram, Ropewalk};
use crate::tunnel::Tunnel;

/// The flow number of packets of no flow.
const NO_FLOW: u16 = u16::MAX;

impl Network {
    /// An inner packet enters the tunnel.
    pub(crate) fn enter_ropewalk(&mut self, direction: Direction, descriptor: PacketDescriptor) {
        let packet = self.slab.remove(descriptor.slot);
        ropewalk(&mut self.tunnel).offer(self.now, packet, descriptor);
        self.transmit(direction);
    }

    /// A datagram sent in `direction` has crossed its path; inner packets that are delivered are added to `delivered`.
    pub(crate) fn arrive(
        &mut self,
        direction: Direction,
        datagram: u32,
        marked: bool,
        delivered: &mut Vec<PacketDescriptor>,
    ) {
        ropewalk(&mut self.tunnel).arrive(self.now, direction, datagram, marked);
        self.poll(direction.other(), delivered);
    }

    /// A timer of an end has expired, or an MPT tunnel's thread resumes.
    pub(crate) fn wake_ingress(&mut self, direction: Direction, delivered: &mut Vec<PacketDescriptor>) {
        let Some(Tunnel::Ropewalk(ropewalk)) = &mut self.tunnel else { return self.pump(direction) };
        ropewalk.on_timeout(self.now, direction);
        self.poll(direction, delivered);
    }

    /// Delivers and transmits what an end has ready after an input.
    fn poll(&mut self, direction: Direction, delivered: &mut Vec<PacketDescriptor>) {
        while let Some((packet, descriptor)) = ropewalk(&mut self.tunnel).deliver(direction) {
            let slot = self.slab.insert(packet);
            delivered.push(PacketDescriptor { slot, ..descriptor });
        }
        self.transmit(direction);
    }

    fn transmit(&mut self, direction: Direction) {
        while let Some(outgoing) = ropewalk(&mut self.tunnel).transmit(self.now, direction) {
            let OutgoingDatagram { path, datagram, bytes, ecn_capable } = outgoing;
            let packet = Packet::new(Body::TunnelDatagram(datagram), NO_FLOW, 0, direction);
            let slot = self.slab.insert(packet);
            self.start_path(path, PacketDescriptor { slot, bytes, flow: NO_FLOW - path, ecn_capable, marked: false });
        }
        let deadline = ropewalk(&mut self.tunnel).deadline(self.now, direction);
        self.schedule(Component::Ingress(direction), deadline.max(self.now));
    }
}

fn ropewalk(tunnel: &mut Option<Tunnel>) -> &mut Ropewalk {
    match tunnel {
        Some(Tunnel::Ropewalk(ropewalk)) => ropewalk,
        _ => unreachable!("only a Ropewalk tunnel's packets get here"),
    }
}
