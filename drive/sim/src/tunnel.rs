//! The striping tunnel: one ingress and one egress per direction.

use crate::packet::Parcel;
use protocol::tunnel::Resequencer;
use scenario::model::{self, Stripe};
use schedule::{ByteDeficit, PacketRoundRobin, Scheduler};
use std::collections::VecDeque;
use units::PathId;

/// Where packets enter: the scheduler, the sequence counter, and the device they may have to wait in.
#[derive(Debug)]
pub(crate) struct Ingress {
    scheduler: Box<dyn Scheduler>,
    paths: Vec<u16>,
    next_seq: u64,
    pub overhead: u32,
    pub device: Option<Device>,
}

/// A user-space tunnel's device: a ring of packets, and the one whose path's socket is full.
#[derive(Debug)]
pub(crate) struct Device {
    ring: VecDeque<Parcel>,
    ring_limit: usize,
    /// Packets that fit into one path's socket.
    pub socket: u64,
    /// The tunnel's thread blocks while it holds this packet.
    pub blocked: Option<(Parcel, u16)>,
    pub dropped: u64,
}

impl Ingress {
    pub(crate) fn new(tunnel: &model::Tunnel) -> Self {
        let scheduler: Box<dyn Scheduler> = match tunnel.stripe {
            Stripe::PacketRoundRobin => Box::new(PacketRoundRobin::new(&tunnel.weights, tunnel.first)),
            Stripe::ByteDeficit => Box::new(ByteDeficit::new(&tunnel.weights, tunnel.first)),
        };
        let device = tunnel.device.map(|device| Device {
            ring: VecDeque::with_capacity(device.ring as usize),
            ring_limit: device.ring as usize,
            socket: u64::from(device.socket),
            blocked: None,
            dropped: 0,
        });
        let paths = tunnel.paths.iter().map(|path| *path as u16).collect();
        Self { scheduler, paths, next_seq: 0, overhead: tunnel.overhead, device }
    }

    /// The next packet's number and path.
    pub(crate) fn assign(&mut self, bytes: u32) -> (u64, u16) {
        // Every path counts as usable: MPT's sender learns of a dead path only after seconds, which a later issue models.
        let chosen = self.scheduler.pick(bytes, &|_| true).unwrap_or(PathId(0));
        let seq = self.next_seq;
        self.next_seq += 1;
        (seq, self.paths[chosen.index()])
    }
}

impl Device {
    /// A packet comes from the host. False if the ring is full.
    pub(crate) fn push(&mut self, parcel: Parcel) -> bool {
        let room = self.ring.len() < self.ring_limit;
        if room {
            self.ring.push_back(parcel);
        } else {
            self.dropped += 1;
        }
        room
    }

    /// The thread reads the next packet.
    pub(crate) fn pop(&mut self) -> Option<Parcel> {
        self.ring.pop_front()
    }
}

/// Where packets leave: put back into order, or as they come.
#[derive(Debug)]
pub(crate) struct Egress {
    pub resequencer: Option<Resequencer<Parcel>>,
    pub hold: crate::summary::Distribution,
    pub passed: u64,
}

impl Egress {
    pub(crate) fn new(tunnel: &model::Tunnel) -> Self {
        let resequencer =
            tunnel.resequence.map(|config| Resequencer::new(config.window, config.timeout, config.deliver_late));
        Self { resequencer, hold: crate::summary::Distribution::default(), passed: 0 }
    }
}

/// Both ends, by direction.
#[derive(Debug)]
pub(crate) struct Tunnel {
    pub ingress: [Ingress; 2],
    pub egress: [Egress; 2],
}

impl Tunnel {
    pub(crate) fn new(tunnel: &model::Tunnel) -> Self {
        Self {
            ingress: [Ingress::new(tunnel), Ingress::new(tunnel)],
            egress: [Egress::new(tunnel), Egress::new(tunnel)],
        }
    }
}
