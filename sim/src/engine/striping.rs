//! An MPT tunnel's two ends: packets get a number and a path, and leave in the order of their numbers.

use super::component::Component;
use super::network::Network;
use crate::packet::{Body, Direction, Packet, Parcel};
use crate::tunnel::{Mpt, Tunnel};
use scenario::model::Route;

/// A stray packet, bytes.
const STRAY: u32 = 100;
/// The flow number of packets that belong to nobody.
const NOBODY: u16 = u16::MAX;

impl Network {
    /// One packet each way that belongs to no flow.
    pub(super) fn send_strays(&mut self) {
        for direction in [Direction::Forward, Direction::Reverse] {
            self.send(Route::Tunnel, Packet::new(Body::Stray, NOBODY, 0, direction), STRAY, false);
        }
    }

    pub(super) fn enter_tunnel(&mut self, direction: Direction, parcel: Parcel) {
        if let Some(Tunnel::Ropewalk(_)) = &self.tunnel {
            return self.enter(direction, parcel);
        }
        let ingress = &mut mpt(&mut self.tunnel).ingress[direction as usize];
        let Some(device) = &mut ingress.device else {
            let (parcel, path) = ingress.stripe(self.now, parcel, &mut self.slab);
            self.start_path(path, parcel);
            return;
        };
        if !device.push(parcel) {
            self.slab.remove(parcel.slot);
        } else if device.blocked.is_none() {
            self.pump(direction);
        }
    }

    /// The tunnel's thread: reads, picks a path, sends; blocks while that path's socket is full.
    pub(super) fn pump(&mut self, direction: Direction) {
        loop {
            let ingress = &mut mpt(&mut self.tunnel).ingress[direction as usize];
            let Some(next) = ingress.read(self.now, &mut self.slab) else { return };
            let Some(device) = &mut ingress.device else { return };
            let (parcel, path) = next;
            let pipe = self.topology.first(path, direction);
            let room = self.topology.pipes[pipe as usize].room_at(self.now, device.socket);
            if room > self.now {
                device.blocked = Some(next);
                return self.arm(Component::Ingress(direction), room);
            }
            self.start_path(path, parcel);
        }
    }

    /// A packet has crossed its path; what the resequencer lets go is added to `up`.
    pub(super) fn leave_tunnel(&mut self, seq: u64, parcel: Parcel, up: &mut Vec<Parcel>) {
        let direction = self.slab.get(parcel.slot).direction;
        let egress = &mut mpt(&mut self.tunnel).egress[direction as usize];
        if !egress.handle(self.now, seq, parcel, up) {
            self.slab.remove(parcel.slot);
        }
        let deadline = egress.deadline();
        self.arm(Component::Egress(direction), deadline);
    }

    pub(super) fn wake_egress(&mut self, direction: Direction, up: &mut Vec<Parcel>) {
        let egress = &mut mpt(&mut self.tunnel).egress[direction as usize];
        egress.on_timeout(self.now, up);
        let deadline = egress.deadline();
        self.arm(Component::Egress(direction), deadline);
    }
}

fn mpt(tunnel: &mut Option<Tunnel>) -> &mut Mpt {
    match tunnel {
        Some(Tunnel::Mpt(mpt)) => mpt,
        _ => unreachable!("packets are routed into a tunnel only where there is one, and each mode has its own way"),
    }
}
