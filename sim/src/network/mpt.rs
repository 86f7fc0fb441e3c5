//! Both ends of an MPT tunnel: packets get a sequence number and a path, and are delivered in sequence.

use super::Component;
use super::Network;
use crate::packet::{Body, Direction, Packet, PacketDescriptor};
use crate::tunnel::{Mpt, Tunnel};
use link::EcnField;
use scenario::model::Route;

/// Size of a stray packet, bytes.
const STRAY_BYTES: u32 = 100;
/// The flow number of packets of no flow.
const NO_FLOW: u16 = u16::MAX;

impl Network {
    /// Sends one packet of no flow in each direction.
    pub(crate) fn send_strays(&mut self) {
        for direction in [Direction::Forward, Direction::Reverse] {
            self.send(Route::Tunnel, Packet::new(Body::Stray, NO_FLOW, 0, direction), STRAY_BYTES, EcnField::NotEct);
        }
    }

    /// A packet enters the tunnel.
    pub(crate) fn enter_tunnel(&mut self, direction: Direction, descriptor: PacketDescriptor) {
        if let Some(Tunnel::Ropewalk(_)) = &self.tunnel {
            return self.enter_ropewalk(direction, descriptor);
        }
        let ingress = &mut expect_mpt(&mut self.tunnel).ingress[direction as usize];
        let Some(device) = &mut ingress.device else {
            let (descriptor, path) = ingress.encapsulate(self.now, descriptor, &mut self.slab);
            self.enter_path(path, descriptor);
            return;
        };
        if !device.push(descriptor) {
            self.slab.remove(descriptor.slot());
        } else if device.blocked.is_none() {
            self.run_tunnel_thread(direction);
        }
    }

    /// The tunnel's thread: reads a packet, picks a path, sends; blocks while that path's socket is full.
    pub(crate) fn run_tunnel_thread(&mut self, direction: Direction) {
        loop {
            let ingress = &mut expect_mpt(&mut self.tunnel).ingress[direction as usize];
            let Some(next) = ingress.read(self.now, &mut self.slab) else { return };
            let Some(device) = &mut ingress.device else { return };
            let (descriptor, path) = next;
            let pipe = self.topology.first(path, direction);
            let room_time = self.topology.pipes[pipe as usize].queue_room_at(self.now, device.socket);
            if room_time > self.now {
                device.blocked = Some(next);
                return self.schedule(Component::Ingress(direction), room_time);
            }
            self.enter_path(path, descriptor);
        }
    }

    /// A packet has crossed its path; packets that are delivered are added to `delivered`.
    pub(crate) fn leave_tunnel(
        &mut self,
        seq: u64,
        descriptor: PacketDescriptor,
        delivered: &mut Vec<PacketDescriptor>,
    ) {
        let direction = self.slab.get(descriptor.slot()).direction;
        let egress = &mut expect_mpt(&mut self.tunnel).egress[direction as usize];
        if !egress.handle(self.now, seq, descriptor, delivered) {
            self.slab.remove(descriptor.slot());
        }
        let deadline = egress.deadline();
        self.schedule(Component::Egress(direction), deadline);
    }

    /// The reorder timeout of the end that receives in `direction` has expired.
    pub(crate) fn wake_egress(&mut self, direction: Direction, delivered: &mut Vec<PacketDescriptor>) {
        let egress = &mut expect_mpt(&mut self.tunnel).egress[direction as usize];
        egress.on_timeout(self.now, delivered);
        let deadline = egress.deadline();
        self.schedule(Component::Egress(direction), deadline);
    }
}

fn expect_mpt(tunnel: &mut Option<Tunnel>) -> &mut Mpt {
    match tunnel {
        Some(Tunnel::Mpt(mpt)) => mpt,
        _ => unreachable!("only an MPT tunnel's packets get here"),
    }
}
