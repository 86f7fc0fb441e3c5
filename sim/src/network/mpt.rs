//! Both ends of an MPT tunnel: packets get a sequence number and a path, and are delivered in sequence.

use super::Component;
use super::Network;
use crate::packet::{Body, Direction, Packet, PacketDescriptor, Route};
use crate::tunnel::{Mpt, Tunnel};
use link::EcnField;

/// Size of a stray packet, bytes.
const STRAY_BYTES: u32 = 100;
/// The flow number of packets of no flow.
const NO_FLOW: u16 = u16::MAX;

impl Network {
    /// Sends one packet of no flow in each direction.
    pub(crate) fn send_strays(&mut self) {
        [Direction::Forward, Direction::Reverse].into_iter().for_each(|direction| self.send_stray(direction));
    }

    /// Called when a background packet enters the tunnel.
    pub(crate) fn on_stray(&mut self, direction: Direction) {
        self.send_stray(direction);
        self.schedule_stray(direction);
    }

    /// Schedules the next background packet, if there are any.
    pub(crate) fn schedule_stray(&mut self, direction: Direction) {
        let Some(Tunnel::Mpt(mpt)) = &mut self.tunnel else { return };
        let time = mpt.strays[direction as usize].next(self.now);
        self.schedule(Component::Stray(direction), time);
    }

    fn send_stray(&mut self, direction: Direction) {
        self.send(Route::Tunnel, Packet::new(Body::Stray, NO_FLOW, 0, direction), STRAY_BYTES, EcnField::NotEct);
    }

    /// Called when a packet enters the tunnel.
    pub(crate) fn enter_tunnel(&mut self, direction: Direction, descriptor: PacketDescriptor) {
        if let Some(Tunnel::Ropewalk(_)) = &self.tunnel {
            return self.enter_ropewalk(direction, descriptor);
        }
        let now = self.now;
        let mpt = expect_mpt(&mut self.tunnel);
        let ingress = &mut mpt.ingress[direction as usize];
        let Some(device) = &mut ingress.device else {
            let (descriptor, path) = ingress.encapsulate(self.now, descriptor, &mut self.slab);
            self.enter_path(path, descriptor);
            return;
        };
        if !device.push(descriptor) {
            self.slab.remove(descriptor.slot());
        } else if device.blocked.is_none() {
            match mpt.daemons[direction as usize].wake(now) {
                runs_at if runs_at > now => self.schedule(Component::Ingress(direction), runs_at),
                _ => self.run_tunnel_thread(direction),
            }
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

    /// Called when a packet has crossed its path. Packets that are delivered are added to `delivered`.
    pub(crate) fn leave_tunnel(
        &mut self,
        seq: u64,
        descriptor: PacketDescriptor,
        delivered: &mut Vec<PacketDescriptor>,
    ) {
        let (now, direction) = (self.now, self.slab.get(descriptor.slot()).direction);
        let mpt = expect_mpt(&mut self.tunnel);
        let runs_at = mpt.daemons[direction.other() as usize].wake(now);
        let inbox = &mut mpt.egress[direction as usize].inbox;
        if runs_at > now || !inbox.is_empty() {
            inbox.push((seq, descriptor));
            return self.schedule(Component::Egress(direction), runs_at);
        }
        self.receive(direction, seq, descriptor, delivered);
        let deadline = expect_mpt(&mut self.tunnel).egress[direction as usize].deadline();
        self.schedule(Component::Egress(direction), deadline);
    }

    fn receive(
        &mut self,
        direction: Direction,
        seq: u64,
        descriptor: PacketDescriptor,
        delivered: &mut Vec<PacketDescriptor>,
    ) {
        let egress = &mut expect_mpt(&mut self.tunnel).egress[direction as usize];
        if !egress.handle(self.now, seq, descriptor, delivered) {
            self.slab.remove(descriptor.slot());
        }
    }

    /// Called when the daemon of the end that receives in `direction` runs, or when its reorder timeout has expired.
    pub(crate) fn wake_egress(&mut self, direction: Direction, delivered: &mut Vec<PacketDescriptor>) {
        let mpt = expect_mpt(&mut self.tunnel);
        if !mpt.daemons[direction.other() as usize].is_asleep(self.now) {
            let mut inbox = std::mem::take(&mut mpt.egress[direction as usize].inbox);
            inbox.drain(..).for_each(|(seq, descriptor)| self.receive(direction, seq, descriptor, delivered));
            expect_mpt(&mut self.tunnel).egress[direction as usize].inbox = inbox;
        }
        let mpt = expect_mpt(&mut self.tunnel);
        let egress = &mut mpt.egress[direction as usize];
        egress.on_timeout(self.now, delivered);
        let due = match egress.inbox.is_empty() {
            true => egress.deadline(),
            false => mpt.daemons[direction.other() as usize].wake(self.now),
        };
        self.schedule(Component::Egress(direction), due);
    }
}

fn expect_mpt(tunnel: &mut Option<Tunnel>) -> &mut Mpt {
    match tunnel {
        Some(Tunnel::Mpt(mpt)) => mpt,
        _ => unreachable!("only an MPT tunnel's packets get here"),
    }
}
