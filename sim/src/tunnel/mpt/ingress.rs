//! The sending end of an MPT tunnel: packets get a sequence number and a path.

use crate::error::Error;
use crate::packet::{Content, Direction, PacketDescriptor};
use link::Packet as _;
use mpt::PathAssigner;
use scenario::model::{self, AlgorithmChoice};
use std::collections::VecDeque;
use units::{Instant, PathId, RngStream};
use world::Slab;

/// The sending end of one direction: the path assigner, and the device in whose queue packets wait.
#[derive(Debug)]
pub(crate) struct Ingress {
    path_assigner: PathAssigner,
    paths: Vec<u16>,
    /// Size of the tunnel's headers, bytes.
    overhead: u32,
    pub device: Option<Device>,
}

/// A user-space tunnel's TUN device: its ring of packets, and the packet that waits for room in its path's socket.
#[derive(Debug)]
pub(crate) struct Device {
    ring: VecDeque<PacketDescriptor>,
    ring_limit: usize,
    /// Packets that fit into the send buffer of one path's socket.
    pub socket: u64,
    /// The packet that the tunnel's thread is blocked on.
    pub blocked: Option<(PacketDescriptor, u16)>,
    pub dropped: u64,
}

impl Ingress {
    pub(crate) fn new(tunnel: &model::Tunnel, seed: u64, direction: Direction) -> Result<Self, Error> {
        let AlgorithmChoice { name, parameters } = &tunnel.mpt_scheduler;
        let entry = schedule::find(name).ok_or_else(|| Error::UnknownScheduler { name: name.clone() })?;
        let scheduler = entry.scheduler(&tunnel.weights, first(tunnel, seed, direction), parameters);
        let scheduler = scheduler.map_err(|error| Error::Tunnel { reason: format!("{name}: {error}") })?;
        let path_assigner = PathAssigner::new(scheduler, tunnel.paths.len());
        let device = tunnel.device.map(|device| Device {
            ring: VecDeque::with_capacity(device.ring as usize),
            ring_limit: device.ring as usize,
            socket: u64::from(device.socket),
            blocked: None,
            dropped: 0,
        });
        let paths = tunnel.paths.iter().map(|path| *path as u16).collect();
        Ok(Self { path_assigner, paths, overhead: tunnel.overhead, device })
    }

    /// Numbers the next packet, encapsulates it and picks its path. The ECN field is copied out, and a mark back in at
    /// the far end (RFC 6040, normal mode): the descriptor keeps both.
    pub(crate) fn encapsulate(
        &mut self,
        now: Instant,
        descriptor: PacketDescriptor,
        slab: &mut Slab<Content>,
    ) -> (PacketDescriptor, u16) {
        // Every path counts as usable: MPT's sender learns of a dead path only after seconds, which is not modelled.
        let (seq, path_id) = self.path_assigner.assign(now, descriptor.bytes()).unwrap_or((0, PathId(0)));
        slab.get_mut(descriptor.slot()).content.tunnel_seq = Some(seq);
        let path = self.paths[path_id.index()];
        (descriptor.encapsulated(self.overhead, u16::MAX - path), path)
    }

    /// The next packet to be sent: the one that the thread is blocked on, or one from the device.
    pub(crate) fn read(&mut self, now: Instant, slab: &mut Slab<Content>) -> Option<(PacketDescriptor, u16)> {
        let device = self.device.as_mut()?;
        if let Some(blocked) = device.blocked.take() {
            return Some(blocked);
        }
        let descriptor = device.ring.pop_front()?;
        Some(self.encapsulate(now, descriptor, slab))
    }
}

/// The place in the round-robin cycle of a direction's first packet.
fn first(tunnel: &model::Tunnel, seed: u64, direction: Direction) -> u32 {
    let cycle: u64 = tunnel.weights.iter().map(|weight| u64::from(*weight)).sum();
    match tunnel.nuisances.draw_first {
        true => RngStream::named(seed, &format!("tunnel first {}", direction as usize)).below(cycle) as u32,
        false => tunnel.first,
    }
}

impl Device {
    /// Queues a packet from the host. False if the ring is full and the packet is to be dropped.
    pub(crate) fn push(&mut self, descriptor: PacketDescriptor) -> bool {
        let has_room = self.ring.len() < self.ring_limit;
        if has_room {
            self.ring.push_back(descriptor);
        } else {
            self.dropped += 1;
        }
        has_room
    }

    pub(crate) fn queued(&self) -> u64 {
        self.ring.len() as u64 + u64::from(self.blocked.is_some())
    }
}
