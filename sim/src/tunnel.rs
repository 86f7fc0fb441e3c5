//! The tunnel: MPT's, with one ingress and one egress per direction, or [Ropewalk's own](crate::ropewalk).

use crate::Error;
use crate::distribution::Distribution;
use crate::packet::{Parcel, Slab};
use crate::ropewalk::Ropewalk;
use machine::{Resequencer, Striper};
use scenario::model;
use std::collections::{BTreeMap, VecDeque};
use units::{Instant, PathId};

/// Where packets enter: the striper, and the device they may have to wait in.
#[derive(Debug)]
pub(crate) struct Ingress {
    striper: Striper,
    paths: Vec<u16>,
    /// Bytes of the tunnel's headers.
    overhead: u32,
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
    pub(crate) fn new(tunnel: &model::Tunnel) -> Result<Self, Error> {
        let entry = schedule::find(&tunnel.stripe);
        let entry = entry.ok_or_else(|| Error::UnknownScheduler { name: tunnel.stripe.clone() })?;
        let scheduler = entry.scheduler(&tunnel.weights, tunnel.first, &BTreeMap::new());
        let striper = Striper::new(scheduler.expect("every scheduler has defaults"), tunnel.paths.len());
        let device = tunnel.device.map(|device| Device {
            ring: VecDeque::with_capacity(device.ring as usize),
            ring_limit: device.ring as usize,
            socket: u64::from(device.socket),
            blocked: None,
            dropped: 0,
        });
        let paths = tunnel.paths.iter().map(|path| *path as u16).collect();
        Ok(Self { striper, paths, overhead: tunnel.overhead, device })
    }

    /// Numbers the next packet, puts the tunnel's headers around it and picks its path. The ECN field is copied out, and
    /// a mark back in at the far end (RFC 6040, normal mode): the parcel keeps both.
    pub(crate) fn stripe(&mut self, now: Instant, parcel: Parcel, slab: &mut Slab) -> (Parcel, u16) {
        // Every path counts as usable: MPT's sender learns of a dead path only after seconds, which a later issue models.
        let (seq, chosen) = self.striper.assign(now, parcel.bytes).unwrap_or((0, PathId(0)));
        slab.get_mut(parcel.slot).tunnel_seq = Some(seq);
        let path = self.paths[chosen.index()];
        (Parcel { bytes: parcel.bytes + self.overhead, flow: u16::MAX - path, ..parcel }, path)
    }

    /// What the thread has to send next: the packet that it holds, or one from the device.
    pub(crate) fn read(&mut self, now: Instant, slab: &mut Slab) -> Option<(Parcel, u16)> {
        let device = self.device.as_mut()?;
        if let Some(blocked) = device.blocked.take() {
            return Some(blocked);
        }
        let parcel = device.ring.pop_front()?;
        Some(self.stripe(now, parcel, slab))
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

    fn inside(&self) -> u64 {
        self.ring.len() as u64 + u64::from(self.blocked.is_some())
    }
}

/// Where packets leave: put back into order, or as they come.
#[derive(Debug)]
pub(crate) struct Egress {
    pub resequencer: Option<Resequencer<Parcel>>,
    pub hold: Distribution,
    pub passed: u64,
}

impl Egress {
    pub(crate) fn new(tunnel: &model::Tunnel) -> Self {
        let resequencer =
            tunnel.resequence.map(|config| Resequencer::new(config.window, config.timeout, config.deliver_late));
        Self { resequencer, hold: Distribution::default(), passed: 0 }
    }

    /// A packet has come; what may go up is added to `up`. False if this one came too late and is dropped.
    pub(crate) fn handle(&mut self, now: Instant, seq: u64, parcel: Parcel, up: &mut Vec<Parcel>) -> bool {
        let Some(resequencer) = &mut self.resequencer else {
            self.passed += 1;
            up.push(parcel);
            return true;
        };
        let (late, before) = (resequencer.counters().late, up.len());
        resequencer.handle(now, seq, parcel, |release| {
            self.hold.add(release.held);
            up.push(release.packet);
        });
        resequencer.counters().late == late || up.len() > before
    }

    pub(crate) fn on_timeout(&mut self, now: Instant, up: &mut Vec<Parcel>) {
        let Some(resequencer) = &mut self.resequencer else { return };
        resequencer.on_timeout(now, |release| {
            self.hold.add(release.held);
            up.push(release.packet);
        });
    }

    /// When [`on_timeout`](Self::on_timeout) is due.
    pub(crate) fn deadline(&self) -> Instant {
        self.resequencer.as_ref().map_or(Instant::NEVER, Resequencer::deadline)
    }
}

/// Both ends of MPT's, by direction.
#[derive(Debug)]
pub(crate) struct Mpt {
    pub ingress: [Ingress; 2],
    pub egress: [Egress; 2],
}

impl Mpt {
    fn new(tunnel: &model::Tunnel) -> Result<Self, Error> {
        Ok(Self {
            ingress: [Ingress::new(tunnel)?, Ingress::new(tunnel)?],
            egress: [Egress::new(tunnel), Egress::new(tunnel)],
        })
    }

    /// Packets that wait in it, at either end.
    fn inside(&self) -> u64 {
        let waiting = self.ingress.iter().filter_map(|ingress| ingress.device.as_ref()).map(Device::inside);
        let held = self.egress.iter().filter_map(|egress| egress.resequencer.as_ref()).map(Resequencer::held);
        waiting.chain(held).sum()
    }
}

/// Either tunnel.
#[derive(Debug)]
pub(crate) enum Tunnel {
    Mpt(Box<Mpt>),
    Ropewalk(Box<Ropewalk>),
}

impl Tunnel {
    pub(crate) fn new(tunnel: &model::Tunnel, paths: &[model::Path], seed: u64) -> Result<Self, Error> {
        Ok(match &tunnel.ropewalk {
            None => Self::Mpt(Box::new(Mpt::new(tunnel)?)),
            Some(settings) => Self::Ropewalk(Box::new(Ropewalk::new(tunnel, settings, paths, seed)?)),
        })
    }

    /// Packets of the slab that wait in it. (Ropewalk's takes packets out of the slab.)
    pub(crate) fn inside(&self) -> u64 {
        match self {
            Self::Mpt(mpt) => mpt.inside(),
            Self::Ropewalk(_) => 0,
        }
    }
}
