//! The two ends of Ropewalk's own tunnel: packets go in whole, cross as datagrams, and come out whole.

use super::component::Component;
use super::network::Network;
use crate::packet::{Body, Direction, Packet, Parcel};
use crate::ropewalk::{Leaving, Ropewalk};
use crate::tunnel::Tunnel;

/// The flow number of packets that belong to nobody.
const NOBODY: u16 = u16::MAX;

impl Network {
    /// A packet enters the tunnel.
    pub(super) fn enter(&mut self, direction: Direction, parcel: Parcel) {
        let packet = self.slab.remove(parcel.slot);
        ropewalk(&mut self.tunnel).offer(self.now, packet, parcel);
        self.transmit(direction);
    }

    /// A datagram that was sent in `direction` has crossed its path; packets that go up are added to `up`.
    pub(super) fn arrive(&mut self, direction: Direction, datagram: u32, marked: bool, up: &mut Vec<Parcel>) {
        ropewalk(&mut self.tunnel).arrive(self.now, direction, datagram, marked);
        self.poll(direction.other(), up);
    }

    /// An end's timer has run out, or an MPT tunnel's thread goes on.
    pub(super) fn wake_ingress(&mut self, direction: Direction, up: &mut Vec<Parcel>) {
        let Some(Tunnel::Ropewalk(ropewalk)) = &mut self.tunnel else { return self.pump(direction) };
        ropewalk.on_timeout(self.now, direction);
        self.poll(direction, up);
    }

    /// What an end has to do after an input.
    fn poll(&mut self, direction: Direction, up: &mut Vec<Parcel>) {
        while let Some((packet, parcel)) = ropewalk(&mut self.tunnel).deliver(direction) {
            let slot = self.slab.insert(packet);
            up.push(Parcel { slot, ..parcel });
        }
        self.transmit(direction);
    }

    fn transmit(&mut self, direction: Direction) {
        while let Some(leaving) = ropewalk(&mut self.tunnel).transmit(self.now, direction) {
            let Leaving { path, datagram, bytes, capable } = leaving;
            let packet = Packet::new(Body::Tunnelled(datagram), NOBODY, 0, direction);
            let slot = self.slab.insert(packet);
            self.start_path(path, Parcel { slot, bytes, flow: NOBODY - path, capable, marked: false });
        }
        let deadline = ropewalk(&mut self.tunnel).deadline(self.now, direction);
        self.arm(Component::Ingress(direction), deadline.max(self.now));
    }
}

fn ropewalk(tunnel: &mut Option<Tunnel>) -> &mut Ropewalk {
    match tunnel {
        Some(Tunnel::Ropewalk(ropewalk)) => ropewalk,
        _ => unreachable!("a datagram of the tunnel was sent by it"),
    }
}
