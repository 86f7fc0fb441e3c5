//! The network between the hosts: packets enter a path or a tunnel, cross its pipes and leave at the far end.
//!
//! `chains`: pipes that forward without an event; `component`: the components that can be due; `tunnel`:
//! what stands between hosts and paths; `trace`: what of it is traced.

mod chains;
mod component;
mod trace;
mod tunnel;

pub(crate) use component::Component;
pub(crate) use tunnel::Tunnel;

use crate::datagrams::Datagrams;
use crate::event_queue::EventQueue;
use crate::packet::{Body, Packet, PacketDescriptor, Route, Slab};
use crate::topology::Topology;
use crate::trace::{LossCause, TraceEvent};
use crate::tunnel::in_flight::InFlight;
use chains::Chains;
use component::IdMap;
use link::{EcnField, Forwarded, Packet as _, Pipe, Verdict};
use record::Work;
use scenario::model::{Change, Experiment, Flow};
use std::collections::BTreeMap;
use trace::WatchedLink;
use units::Instant;

/// The outcome of sending a packet at its host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sent {
    /// The packet has left the host, or the time at which it will leave is unknown.
    Away,
    /// The packet leaves the host's own queue at this instant.
    Queued(Instant),
    /// The host's own queue dropped the packet.
    Dropped,
}

/// Everything between the hosts, the clock included.
#[derive(Debug)]
pub(crate) struct Network {
    pub now: Instant,
    pub topology: Topology,
    pub tunnel: Option<Box<dyn Tunnel>>,
    pub slab: Slab,
    /// The datagrams of hosted stacks.
    pub datagrams: Datagrams,
    /// The datagrams of a Ropewalk tunnel.
    pub tunnel_datagrams: InFlight,
    /// The packets that the tunnel has delivered in one step, for their hosts.
    pub delivered: Vec<PacketDescriptor>,
    pub work: Work,
    /// Data packets dropped, lost or corrupted: by flow, then by subflow.
    pub dropped: Vec<Vec<u64>>,
    /// Packets in the direction of the data that arrived corrupted, by path.
    pub corrupted: Vec<u64>,
    event_queue: EventQueue,
    ids: IdMap,
    chains: Chains,
    /// Packets are forwarded to times before this one.
    horizon: Instant,
    /// The events since they were last taken, if the run is traced. In a traced run no packet is forwarded, so that the
    /// events are in order.
    pub trace: Option<Vec<TraceEvent>>,
    /// The latest length of each pipe's queue in the trace, packets.
    traced_queues: BTreeMap<u32, u64>,
    /// The link whose packets are traced one by one.
    watched: Option<WatchedLink>,
}

impl Network {
    /// A network for the experiment's flows and for further ones of one subflow each.
    pub(crate) fn new(experiment: &Experiment, flows: usize, tunnel: Option<Box<dyn Tunnel>>, seed: u64) -> Self {
        let topology = Topology::new(experiment, seed);
        let ids = IdMap::new(topology.pipes.len() as u32, flows as u16);
        let mut dropped: Vec<Vec<u64>> = experiment.flows.iter().map(|flow| vec![0; subflows(flow)]).collect();
        dropped.resize(flows, vec![0]);
        Self {
            now: Instant::ZERO,
            corrupted: vec![0; topology.paths()],
            chains: Chains::new(&topology),
            event_queue: EventQueue::new(topology.pipes.len() as u32, ids.len()),
            horizon: Instant::ZERO,
            topology,
            tunnel,
            slab: Slab::default(),
            datagrams: Datagrams::default(),
            tunnel_datagrams: InFlight::default(),
            delivered: Vec::new(),
            work: Work::default(),
            dropped,
            ids,
            trace: None,
            traced_queues: BTreeMap::new(),
            watched: None,
        }
    }

    /// Advances the clock to the next due component and returns it; none if none is due by `end`.
    #[inline]
    pub(crate) fn next(&mut self, end: Instant) -> Option<Component> {
        let (time, id) = self.event_queue.pop_until(end)?;
        debug_assert!(time >= self.now, "time runs forward");
        self.now = time;
        self.work.events += 1;
        Some(self.ids.component(id))
    }

    /// Schedules a component for `time`, unless it is due earlier.
    #[inline]
    pub(crate) fn schedule(&mut self, component: Component, time: Instant) {
        self.event_queue.schedule(self.ids.id(component), time);
    }

    /// Sends a host's packet, which counts as a data packet or not.
    #[inline(always)]
    pub(crate) fn send(&mut self, route: Route, packet: Packet, bytes: u32, ecn: EcnField, is_data: bool) -> Sent {
        let direction = packet.direction;
        let descriptor = self.make(route, packet, bytes, ecn, is_data);
        match route {
            Route::Path(path) => self.enter_path(path, descriptor),
            Route::Tunnel => {
                self.with_tunnel(|tunnel, network| tunnel.enter(direction, descriptor, network));
                Sent::Away
            }
        }
    }

    /// A packet at its host, which sends it on a route now.
    #[inline(always)]
    pub(crate) fn make(
        &mut self,
        route: Route,
        packet: Packet,
        bytes: u32,
        ecn: EcnField,
        is_data: bool,
    ) -> PacketDescriptor {
        let flow = packet.flow_hash();
        let descriptor = PacketDescriptor::new(self.slab.insert(packet), bytes, flow, ecn, is_data);
        if self.trace.is_some() {
            self.trace_sent(route, descriptor);
        }
        descriptor
    }

    /// Offers a packet to the first pipe of a path.
    #[inline(never)]
    pub(crate) fn enter_path(&mut self, path: u16, descriptor: PacketDescriptor) -> Sent {
        let packet = self.slab.get_mut(descriptor.slot());
        packet.path = path;
        let pipe = self.topology.first(path, packet.direction);
        if self.trace.is_some() {
            self.trace_datagram(descriptor);
            self.trace_queues(descriptor);
            self.trace_entry(pipe, descriptor);
        }
        let verdict = self.offer_at(self.now, pipe, descriptor);
        match verdict {
            _ if !self.topology.is_local(pipe) => Sent::Away,
            Verdict::Dropped => Sent::Dropped,
            Verdict::Accepted | Verdict::Lost => {
                self.topology.pipes[pipe as usize].last_departure().map_or(Sent::Away, Sent::Queued)
            }
        }
    }

    /// Dequeues the packet that is due from a pipe and enqueues it at the next one; returns it if it has crossed its
    /// path.
    #[inline]
    pub(crate) fn serve(&mut self, pipe: u32) -> Option<PacketDescriptor> {
        let arrived = self.topology.pipes[pipe as usize].dequeue_arrived(self.now);
        self.settle(pipe);
        let mut descriptor = arrived?;
        if self.trace.is_some() {
            self.trace_exit(pipe, descriptor, None);
        }
        if descriptor.is_new_copy() {
            self.separate_copy(&mut descriptor);
        }
        match self.advance(descriptor) {
            Some(next) => {
                self.offer_next(next, descriptor);
                None
            }
            None if descriptor.is_corrupted() => {
                self.discard_corrupted(descriptor);
                None
            }
            None => Some(descriptor),
        }
    }

    /// Counts a packet that has crossed a pipe; returns the next one of its path.
    #[inline]
    fn advance(&mut self, descriptor: PacketDescriptor) -> Option<u32> {
        let &Packet { path, direction, hop, .. } = self.count_hops(descriptor, 1);
        self.topology.hop(path, direction, hop)
    }

    /// Gives a copy, whose original leaves the pipe next, a slot of its own.
    #[cold]
    fn separate_copy(&mut self, descriptor: &mut PacketDescriptor) {
        let mut packet = *self.slab.get(descriptor.slot());
        match &mut packet.body {
            Body::TunnelDatagram(id) => self.tunnel_datagrams.duplicate(*id),
            Body::Datagram { id, .. } => *id = self.datagrams.duplicate(*id),
            _ => {}
        }
        *descriptor = descriptor.separated(self.slab.insert(packet));
    }

    /// Discards a packet that has crossed its path, because its receiver's checksum is wrong.
    #[cold]
    fn discard_corrupted(&mut self, descriptor: PacketDescriptor) {
        let packet = self.slab.get(descriptor.slot());
        self.corrupted[usize::from(packet.path)] += u64::from(descriptor.is_data());
        self.trace_loss(descriptor, None, LossCause::Checksum);
        self.discard(descriptor);
    }

    /// Applies a change of a link, which the changes `later` follow, the next one last.
    pub(crate) fn change(&mut self, change: &Change, later: &[Change]) {
        for pipe in self.topology.apply(self.now, change, later) {
            self.settle(pipe);
        }
    }

    /// Reclaims the packets that any pipe has discarded, at the end of a run.
    pub(crate) fn settle_all(&mut self) {
        (0..self.topology.pipes.len() as u32).for_each(|pipe| self.settle(pipe));
    }

    /// Packets in pipes and in the tunnel.
    pub(crate) fn packets_inside(&self) -> u64 {
        let pipes: u64 = self.topology.pipes.iter().map(Pipe::packets_inside).sum();
        pipes + self.tunnel.as_ref().map_or(0, |tunnel| tunnel.queued())
    }

    /// Lets packets, including those in flight, be forwarded to times before `horizon`, which is later than the previous
    /// one.
    pub(crate) fn extend_horizon(&mut self, horizon: Instant) {
        if self.trace.is_some() {
            return;
        }
        self.horizon = horizon;
        for index in 0..self.chains.last_first().len() {
            let pipe = self.chains.last_first()[index];
            while let Some((descriptor, arrival)) = self.topology.pipes[pipe as usize].forward_first(horizon) {
                if let Some(next) = self.advance(descriptor) {
                    self.offer_at(arrival, next, descriptor);
                }
            }
        }
    }

    /// Offers a packet that has crossed a pipe to the next one.
    #[inline(never)]
    fn offer_next(&mut self, pipe: u32, descriptor: PacketDescriptor) {
        if self.trace.is_some() {
            self.trace_entry(pipe, descriptor);
        }
        self.offer_at(self.now, pipe, descriptor);
    }

    /// Offers a packet to a pipe at a time that may be later than now, and to the next ones as far as pipes forward.
    /// Returns the first pipe's verdict.
    #[inline(always)]
    fn offer_at(&mut self, time: Instant, pipe: u32, descriptor: PacketDescriptor) -> Verdict {
        if self.chains.forwards(pipe) {
            return self.forward(time, pipe, descriptor);
        }
        let verdict = self.topology.pipes[pipe as usize].enqueue(time, descriptor);
        self.settle(pipe);
        verdict
    }

    /// As [`offer_at`](Self::offer_at), to a pipe that forwards.
    #[inline(always)]
    fn forward(&mut self, mut time: Instant, mut pipe: u32, mut descriptor: PacketDescriptor) -> Verdict {
        let &Packet { path, direction, hop, .. } = self.slab.get(descriptor.slot());
        let (hops, pipes) = self.topology.hops_and_pipes(path, direction);
        let (bytes, horizon, mut crossed) = (descriptor.bytes(), self.horizon, 0);
        let verdict = loop {
            let state = &mut pipes[pipe as usize];
            time = match state.forward_plain(time, bytes, horizon) {
                Some(arrival) => arrival,
                None => match state.forward(time, descriptor, horizon) {
                    Forwarded::Arrives(packet, arrival) => {
                        descriptor = packet;
                        arrival
                    }
                    Forwarded::Enqueued(verdict) => break verdict,
                },
            };
            crossed += 1;
            pipe = hops[usize::from(hop + crossed)]; // a pipe that forwards has a next one on every path
            if !self.chains.forwards(pipe) {
                break pipes[pipe as usize].enqueue(time, descriptor);
            }
        };
        self.count_hops(descriptor, crossed);
        self.settle(pipe);
        if crossed == 0 { verdict } else { Verdict::Accepted }
    }

    /// Counts the pipes that a packet has crossed.
    #[inline]
    fn count_hops(&mut self, descriptor: PacketDescriptor, crossed: u8) -> &Packet {
        self.work.packet_hops += u64::from(crossed);
        self.work.data_packet_hops += if descriptor.is_data() { u64::from(crossed) } else { 0 };
        let packet = self.slab.get_mut(descriptor.slot());
        packet.hop += crossed;
        packet
    }

    /// Called after each call of a pipe: schedules it, and reclaims the packets that it has discarded.
    #[inline(always)]
    fn settle(&mut self, pipe: u32) {
        let state = &mut self.topology.pipes[pipe as usize];
        if state.has_discarded() {
            self.reclaim(pipe);
        }
        let next = self.topology.pipes[pipe as usize].next_event_at();
        self.schedule(Component::Pipe(pipe), next);
    }

    /// Reclaims the packets that a pipe has discarded.
    #[cold]
    fn reclaim(&mut self, pipe: u32) {
        while let Some((descriptor, verdict)) = self.topology.pipes[pipe as usize].take_discarded() {
            let cause = if verdict == Verdict::Dropped { LossCause::Queue } else { LossCause::Link };
            self.trace_loss(descriptor, Some(pipe), cause);
            self.discard(descriptor);
        }
    }

    /// Frees a packet that does not arrive, and counts it with its flow's.
    fn discard(&mut self, descriptor: PacketDescriptor) {
        let packet = self.slab.remove(descriptor.slot());
        match packet.body {
            Body::TunnelDatagram(id) => return self.tunnel_datagrams.discard(id),
            Body::Datagram { id, .. } => drop(self.datagrams.remove(id)),
            _ => {}
        }
        if descriptor.is_data() && !matches!(packet.body, Body::Stray) {
            let subflow_drops = &mut self.dropped[usize::from(packet.flow)];
            let subflow = usize::from(packet.connection).min(subflow_drops.len() - 1);
            subflow_drops[subflow] += 1;
        }
    }
}

/// Number of a flow's subflows; 1 for a flow over one path.
fn subflows(flow: &Flow) -> usize {
    flow.kind.subflows().len().max(1)
}
