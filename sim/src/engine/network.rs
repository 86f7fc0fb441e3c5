//! Packets on their way: from a host into a path or the tunnel, from pipe to pipe, to the path's far end.

use super::component::{Component, Roster};
use crate::Error;
use crate::agenda::Agenda;
use crate::packet::{Body, Packet, Parcel, Slab};
use crate::topology::Topology;
use crate::tunnel::Tunnel;
use link::{Pipe, Verdict};
use record::Work;
use scenario::model::{Change, Experiment, Flow, FlowKind, Route};
use units::Instant;

/// Everything between the hosts, the clock included.
#[derive(Debug)]
pub(crate) struct Network {
    pub now: Instant,
    pub topology: Topology,
    pub tunnel: Option<Tunnel>,
    pub slab: Slab,
    pub work: Work,
    /// Data packets that were dropped or lost, of each flow, by subflow.
    pub dropped: Vec<Vec<u64>>,
    agenda: Agenda,
    roster: Roster,
}

impl Network {
    pub(super) fn new(experiment: &Experiment, seed: u64) -> Result<Self, Error> {
        let topology = Topology::new(experiment, seed);
        let roster = Roster::new(topology.pipes.len() as u32, experiment.flows.len() as u16);
        let tunnel = experiment.tunnel.as_ref().map(|tunnel| Tunnel::new(tunnel, &experiment.paths, seed));
        Ok(Self {
            now: Instant::ZERO,
            topology,
            tunnel: tunnel.transpose()?,
            slab: Slab::default(),
            work: Work::default(),
            dropped: experiment.flows.iter().map(|flow| vec![0; subflows(flow)]).collect(),
            agenda: Agenda::new(roster.len()),
            roster,
        })
    }

    /// Who is due next; the clock moves there. `None` if nobody is before `end`.
    #[inline]
    pub(super) fn next(&mut self, end: Instant) -> Option<Component> {
        let (at, id) = self.agenda.pop().filter(|(at, _)| *at <= end)?;
        debug_assert!(at >= self.now, "time runs forward");
        self.now = at;
        self.work.events += 1;
        Some(self.roster.component(id))
    }

    /// Makes sure that a component is called no later than `at`.
    #[inline]
    pub(super) fn arm(&mut self, component: Component, at: Instant) {
        self.agenda.arm(self.roster.id(component), at);
    }

    /// A host sends a packet. False if the host's own interface refused it.
    #[inline]
    pub(super) fn send(&mut self, route: Route, packet: Packet, bytes: u32, capable: bool) -> bool {
        let (direction, flow) = (packet.direction, packet.label());
        let parcel = Parcel { slot: self.slab.insert(packet), bytes, flow, capable, marked: false };
        match route {
            Route::Path(path) => self.start_path(path as u16, parcel),
            Route::Subflows => unreachable!("each packet has its subflow's path"),
            Route::Tunnel => {
                self.enter_tunnel(direction, parcel);
                true
            }
        }
    }

    /// False if the queue that refused the packet stands in the sending host.
    #[inline]
    pub(super) fn start_path(&mut self, path: u16, parcel: Parcel) -> bool {
        let packet = self.slab.get_mut(parcel.slot);
        packet.path = path;
        let pipe = self.topology.first(path, packet.direction);
        self.offer(pipe, parcel) != Verdict::Dropped || !self.topology.is_local(pipe)
    }

    /// A pipe's head is due: it goes on to the next pipe, or has crossed its path and is handed out.
    #[inline]
    pub(super) fn serve(&mut self, pipe: u32) -> Option<Parcel> {
        let taken = self.topology.pipes[pipe as usize].take(self.now);
        self.settle(pipe);
        let parcel = taken?;
        let packet = self.slab.get_mut(parcel.slot);
        packet.hop += 1;
        self.work.packet_hops += 1;
        self.work.data_packet_hops += u64::from(packet.is_data());
        match self.topology.hop(packet.path, packet.direction, packet.hop) {
            Some(next) => {
                self.offer(next, parcel);
                None
            }
            None => Some(parcel),
        }
    }

    pub(super) fn change(&mut self, change: &Change) {
        for pipe in self.topology.apply(self.now, change) {
            self.settle(pipe);
        }
    }

    /// At the end: takes back what the pipes have discarded since they were last looked at.
    pub(crate) fn settle_all(&mut self) {
        (0..self.topology.pipes.len() as u32).for_each(|pipe| self.settle(pipe));
    }

    /// Packets in pipes and in the tunnel.
    pub(crate) fn inside(&self) -> u64 {
        let pipes: u64 = self.topology.pipes.iter().map(Pipe::inside).sum();
        pipes + self.tunnel.as_ref().map_or(0, Tunnel::inside)
    }

    #[inline]
    fn offer(&mut self, pipe: u32, parcel: Parcel) -> Verdict {
        let verdict = self.topology.pipes[pipe as usize].offer(self.now, parcel);
        self.settle(pipe);
        verdict
    }

    /// After each call of a pipe: it may be due earlier, and it may have discarded packets.
    #[inline(always)]
    fn settle(&mut self, pipe: u32) {
        let state = &mut self.topology.pipes[pipe as usize];
        if state.has_discarded() {
            reclaim(state, &mut self.slab, &mut self.tunnel, &mut self.dropped);
        }
        let next = state.next();
        self.arm(Component::Pipe(pipe), next);
    }
}

#[cold]
fn reclaim(pipe: &mut Pipe<Parcel>, slab: &mut Slab, tunnel: &mut Option<Tunnel>, dropped: &mut [Vec<u64>]) {
    while let Some(parcel) = pipe.take_discarded() {
        let packet = slab.remove(parcel.slot);
        if let (Body::Tunnelled(datagram), Some(Tunnel::Ropewalk(tunnel))) = (packet.body, &mut *tunnel) {
            tunnel.forget(datagram);
        } else if packet.is_data() && !matches!(packet.body, Body::Stray) {
            let of_flow = &mut dropped[usize::from(packet.flow)];
            let subflow = usize::from(packet.connection).min(of_flow.len() - 1);
            of_flow[subflow] += 1;
        }
    }
}

/// What a flow's drops are told apart by.
fn subflows(flow: &Flow) -> usize {
    match &flow.kind {
        FlowKind::Tcp { multipath: Some(multipath), .. } => multipath.subflows.len(),
        _ => 1,
    }
}
