//! The tunnel: MPT's, with one ingress and one egress per direction, or [Ropewalk's own](crate::ropewalk).

use crate::Error;
use crate::daemon::{Sleeper, StrayTimes};
use crate::packet::{Direction, PacketDescriptor, Slab};
use crate::ropewalk::Ropewalk;
use link::Packet as _;
use mpt::{PathAssigner, ReorderConfig, Resequencer};
use record::Distribution;
use scenario::model::{self, AlgorithmChoice};
use std::collections::VecDeque;
use units::{Instant, PathId, RngStream};

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
        slab: &mut Slab,
    ) -> (PacketDescriptor, u16) {
        // Every path counts as usable: MPT's sender learns of a dead path only after seconds, which is not modelled.
        let (seq, path_id) = self.path_assigner.assign(now, descriptor.bytes()).unwrap_or((0, PathId(0)));
        slab.get_mut(descriptor.slot()).tunnel_seq = Some(seq);
        let path = self.paths[path_id.index()];
        (descriptor.encapsulated(self.overhead, u16::MAX - path), path)
    }

    /// The next packet to be sent: the one that the thread is blocked on, or one from the device.
    pub(crate) fn read(&mut self, now: Instant, slab: &mut Slab) -> Option<(PacketDescriptor, u16)> {
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

    fn queued(&self) -> u64 {
        self.ring.len() as u64 + u64::from(self.blocked.is_some())
    }
}

/// The receiving end of one direction, which delivers packets in sequence or as they arrive.
#[derive(Debug)]
pub(crate) struct Egress {
    /// Packets that have arrived while the daemon sleeps, with their sequence numbers.
    pub inbox: Vec<(u64, PacketDescriptor)>,
    pub resequencer: Option<Resequencer<PacketDescriptor>>,
    /// The times that packets spent in the reorder buffer.
    pub reorder_delay: Distribution,
    /// Packets delivered without resequencing.
    pub delivered: u64,
}

impl Egress {
    pub(crate) fn new(tunnel: &model::Tunnel) -> Self {
        let resequencer = tunnel.resequence.map(|config| {
            let (window, timeout, deliver_late) = (config.window, config.timeout, config.deliver_late);
            Resequencer::new(ReorderConfig { window, timeout, deliver_late })
        });
        Self { inbox: Vec::new(), resequencer, reorder_delay: Distribution::default(), delivered: 0 }
    }

    /// Receives a packet; packets that are delivered are added to `delivered`. False if this one is too late and
    /// dropped.
    pub(crate) fn handle(
        &mut self,
        now: Instant,
        seq: u64,
        descriptor: PacketDescriptor,
        delivered: &mut Vec<PacketDescriptor>,
    ) -> bool {
        let Some(resequencer) = &mut self.resequencer else {
            self.delivered += 1;
            delivered.push(descriptor);
            return true;
        };
        let (prior_late, prior_delivered) = (resequencer.counters().late, delivered.len());
        resequencer.handle(now, seq, descriptor, |release| {
            self.reorder_delay.add(release.wait);
            delivered.push(release.packet);
        });
        resequencer.counters().late == prior_late || delivered.len() > prior_delivered
    }

    pub(crate) fn on_timeout(&mut self, now: Instant, delivered: &mut Vec<PacketDescriptor>) {
        let Some(resequencer) = &mut self.resequencer else { return };
        resequencer.on_timeout(now, |release| {
            self.reorder_delay.add(release.wait);
            delivered.push(release.packet);
        });
    }

    /// Time at which [`on_timeout`](Self::on_timeout) is due.
    pub(crate) fn deadline(&self) -> Instant {
        self.resequencer.as_ref().map_or(Instant::NEVER, Resequencer::deadline)
    }
}

/// Both ends of MPT's tunnel, by direction.
#[derive(Debug)]
pub(crate) struct Mpt {
    pub ingress: [Ingress; 2],
    pub egress: [Egress; 2],
    /// By end: that of the forward direction's ingress first.
    pub daemons: [Sleeper; 2],
    /// By direction.
    pub strays: [StrayTimes; 2],
}

impl Mpt {
    fn new(tunnel: &model::Tunnel, seed: u64) -> Result<Self, Error> {
        let ingress = |direction| Ingress::new(tunnel, seed, direction);
        Ok(Self {
            ingress: [ingress(Direction::Forward)?, ingress(Direction::Reverse)?],
            egress: [Egress::new(tunnel), Egress::new(tunnel)],
            daemons: [0, 1].map(|end| Sleeper::new(tunnel.nuisances.wake_up, seed, &format!("tunnel daemon {end}"))),
            strays: [0, 1].map(|direction| StrayTimes::new(tunnel.nuisances.stray_interval, seed, direction)),
        })
    }

    /// Packets queued at either end.
    fn queued(&self) -> u64 {
        let waiting = self.ingress.iter().filter_map(|ingress| ingress.device.as_ref()).map(Device::queued);
        let buffered =
            self.egress.iter().filter_map(|egress| egress.resequencer.as_ref()).map(Resequencer::buffered_packets);
        let received = self.egress.iter().map(|egress| egress.inbox.len() as u64);
        waiting.chain(buffered).chain(received).sum()
    }
}

/// The tunnel of an experiment.
#[derive(Debug)]
pub(crate) enum Tunnel {
    Mpt(Box<Mpt>),
    Ropewalk(Box<Ropewalk>),
}

impl Tunnel {
    pub(crate) fn new(tunnel: &model::Tunnel, paths: &[model::Path], seed: u64) -> Result<Self, Error> {
        Ok(match &tunnel.ropewalk {
            None => Self::Mpt(Box::new(Mpt::new(tunnel, seed)?)),
            Some(settings) => Self::Ropewalk(Box::new(Ropewalk::new(tunnel, settings, paths, seed)?)),
        })
    }

    /// Packets of the slab that are queued in the tunnel. (Ropewalk's takes packets out of the slab.)
    pub(crate) fn queued(&self) -> u64 {
        match self {
            Self::Mpt(mpt) => mpt.queued(),
            Self::Ropewalk(_) => 0,
        }
    }
}
