//! MPT's tunnel: packets get a sequence number and a path, and are delivered in sequence.

mod egress;
mod ingress;

use crate::daemon::{Sleeper, StrayTimes};
use crate::error::Error;
use crate::network::{Component, Network, Tunnel};
use crate::packet::{Body, Content, Direction, Packet, PacketDescriptor, Route};
use egress::Egress;
use ingress::{Device, Ingress};
use link::EcnField;
use record::Distribution;
use scenario::model;

/// Size of a stray packet, bytes.
const STRAY_BYTES: u32 = 100;
/// The flow number of packets of no flow.
const NO_FLOW: u16 = u16::MAX;

/// Both ends of the tunnel, by direction.
#[derive(Debug)]
pub(crate) struct Mpt {
    ingress: [Ingress; 2],
    egress: [Egress; 2],
    /// By end: that of the forward direction's ingress first.
    daemons: [Sleeper; 2],
    /// By direction.
    strays: [StrayTimes; 2],
    /// Packets of no flow that are sent in each direction at the start.
    stray_packets: u32,
}

impl Mpt {
    /// # Errors
    /// The scheduler, or one of its parameters.
    pub(crate) fn new(tunnel: &model::Tunnel, seed: u64) -> Result<Self, Error> {
        let ingress = |direction| Ingress::new(tunnel, seed, direction);
        Ok(Self {
            ingress: [ingress(Direction::Forward)?, ingress(Direction::Reverse)?],
            egress: [Egress::new(tunnel), Egress::new(tunnel)],
            daemons: [0, 1].map(|end| Sleeper::new(tunnel.nuisances.wake_up, seed, &format!("tunnel daemon {end}"))),
            strays: [0, 1].map(|direction| StrayTimes::new(tunnel.nuisances.stray_interval, seed, direction)),
            stray_packets: tunnel.stray_packets,
        })
    }

    /// Schedules the next background packet, if there are any.
    fn schedule_stray(&mut self, direction: Direction, network: &mut Network) {
        let time = self.strays[direction as usize].next(network.world.now);
        network.schedule(Component::Stray(direction), time);
    }

    /// Sends a packet of no flow.
    fn send_stray(&mut self, direction: Direction, network: &mut Network) {
        let packet = Packet::new(Content::new(Body::Stray), NO_FLOW, 0, direction);
        let descriptor =
            network.make(Route::Tunnel, packet, STRAY_BYTES, EcnField::NotEct, direction == Direction::Forward);
        self.enter(direction, descriptor, network);
    }

    /// The tunnel's thread: reads a packet, picks a path, sends; blocks while that path's socket is full.
    fn run_thread(&mut self, direction: Direction, network: &mut Network) {
        let ingress = &mut self.ingress[direction as usize];
        while let Some(next) = ingress.read(network.world.now, &mut network.world.slab) {
            let Some(device) = &mut ingress.device else { return };
            let (descriptor, path) = next;
            let (now, pipe) = (network.world.now, network.world.topology().first(path, direction));
            let room_time = network.world.pipe_mut(pipe).queue_room_at(now, device.socket);
            if room_time > now {
                device.blocked = Some(next);
                return network.schedule(Component::Ingress(direction), room_time);
            }
            network.world.enter(path, descriptor);
        }
    }

    fn deliver(&mut self, direction: Direction, seq: u64, descriptor: PacketDescriptor, network: &mut Network) {
        let egress = &mut self.egress[direction as usize];
        if !egress.handle(network.world.now, seq, descriptor, &mut network.delivered) {
            network.world.slab.remove(descriptor.slot());
        }
    }

    /// Called when the daemon of the end that receives in `direction` runs, or when its reorder timeout has expired.
    fn wake_egress(&mut self, direction: Direction, network: &mut Network) {
        if !self.daemons[direction.other() as usize].is_asleep(network.world.now) {
            let mut inbox = std::mem::take(&mut self.egress[direction as usize].inbox);
            inbox.drain(..).for_each(|(seq, descriptor)| self.deliver(direction, seq, descriptor, network));
            self.egress[direction as usize].inbox = inbox;
        }
        let egress = &mut self.egress[direction as usize];
        egress.on_timeout(network.world.now, &mut network.delivered);
        let due = match egress.inbox.is_empty() {
            true => egress.deadline(),
            false => self.daemons[direction.other() as usize].wake(network.world.now),
        };
        network.schedule(Component::Egress(direction), due);
    }
}

impl Tunnel for Mpt {
    fn start(&mut self, network: &mut Network) {
        let directions = [Direction::Forward, Direction::Reverse];
        for _ in 0..self.stray_packets {
            directions.into_iter().for_each(|direction| self.send_stray(direction, network));
        }
        directions.into_iter().for_each(|direction| self.schedule_stray(direction, network));
    }

    fn enter(&mut self, direction: Direction, descriptor: PacketDescriptor, network: &mut Network) {
        let now = network.world.now;
        let ingress = &mut self.ingress[direction as usize];
        let Some(device) = &mut ingress.device else {
            let (descriptor, path) = ingress.encapsulate(now, descriptor, &mut network.world.slab);
            network.world.enter(path, descriptor);
            return;
        };
        if !device.push(descriptor) {
            network.world.slab.remove(descriptor.slot());
        } else if device.blocked.is_none() {
            match self.daemons[direction as usize].wake(now) {
                runs_at if runs_at > now => network.schedule(Component::Ingress(direction), runs_at),
                _ => self.run_thread(direction, network),
            }
        }
    }

    fn receive(&mut self, descriptor: PacketDescriptor, network: &mut Network) {
        let &Packet { content, direction, .. } = network.world.slab.get(descriptor.slot());
        let (Some(seq), now) = (content.tunnel_seq, network.world.now) else { return };
        let runs_at = self.daemons[direction.other() as usize].wake(now);
        let inbox = &mut self.egress[direction as usize].inbox;
        if runs_at > now || !inbox.is_empty() {
            inbox.push((seq, descriptor));
            return network.schedule(Component::Egress(direction), runs_at);
        }
        self.deliver(direction, seq, descriptor, network);
        network.schedule(Component::Egress(direction), self.egress[direction as usize].deadline());
    }

    fn wake(&mut self, timer: Component, network: &mut Network) {
        match timer {
            Component::Ingress(direction) => self.run_thread(direction, network),
            Component::Egress(direction) => self.wake_egress(direction, network),
            Component::Stray(direction) => {
                self.send_stray(direction, network);
                self.schedule_stray(direction, network);
            }
            _ => {}
        }
    }

    fn queued(&self) -> u64 {
        let waiting = self.ingress.iter().filter_map(|ingress| ingress.device.as_ref()).map(Device::queued);
        waiting.chain(self.egress.iter().map(Egress::queued)).sum()
    }

    fn record(&self) -> record::Tunnel {
        let forward = Direction::Forward as usize;
        let dropped_packets = self.ingress[forward].device.as_ref().map_or(0, |device| device.dropped);
        record::Tunnel { dropped_packets, ..self.egress[forward].record() }
    }

    fn distributions(&self) -> Vec<(&'static str, &Distribution)> {
        vec![("reorder_delay_ms", &self.egress[Direction::Forward as usize].reorder_delay)]
    }
}
