//! The network between the hosts: the world's pipes and paths, and a tunnel over them.
//!
//! `component`: the timers; `contents`: what packets carry; `tunnel`: what stands between hosts and paths; `trace`: what
//! of it is traced.

mod component;
mod contents;
mod trace;
mod tunnel;

pub(crate) use component::Component;
pub(crate) use trace::Tracer;
pub(crate) use tunnel::Tunnel;
pub(crate) use world::Sent;

use crate::packet::{Packet, PacketDescriptor, Route};
use crate::topology;
use component::IdMap;
use contents::Contents;
use link::EcnField;
use record::Work;
use scenario::model::{Change, Experiment};
use units::Instant;
use world::{Due, World};

/// Everything between the hosts, the clock included.
#[derive(Debug)]
pub(crate) struct Network {
    pub world: World<Contents, Tracer>,
    pub tunnel: Option<Box<dyn Tunnel>>,
    /// The packets that the tunnel has delivered in one step, for their hosts.
    pub delivered: Vec<PacketDescriptor>,
    /// Data packets delivered to receivers.
    pub delivered_data_packets: u64,
    ids: IdMap,
    /// The end of the run.
    end: Instant,
}

impl Network {
    /// A network for the experiment's flows and for further ones of one subflow each.
    pub(crate) fn new(experiment: &Experiment, flows: usize, tunnel: Option<Box<dyn Tunnel>>, seed: u64) -> Self {
        let topology = topology::new(experiment, seed);
        let ids = IdMap::new(flows as u16);
        let contents = Contents::new(experiment, flows, topology.paths());
        Self {
            world: World::new(topology, ids.len(), contents),
            tunnel,
            delivered: Vec::new(),
            delivered_data_packets: 0,
            ids,
            end: Instant::ZERO + experiment.duration,
        }
    }

    /// The component with a timer of the world.
    #[inline]
    pub(crate) fn component(&self, timer: u32) -> Component {
        self.ids.component(timer)
    }

    /// Advances the clock to what is due next and returns it; none if nothing is due by `end`.
    #[inline]
    pub(crate) fn next(&mut self, end: Instant) -> Option<Due> {
        self.world.next(end)
    }

    /// Schedules a component for `time`, unless it is due earlier.
    #[inline]
    pub(crate) fn schedule(&mut self, component: Component, time: Instant) {
        self.world.schedule(self.ids.id(component), time);
    }

    /// Sends a host's packet, which counts as a data packet or not.
    #[inline(always)]
    pub(crate) fn send(&mut self, route: Route, packet: Packet, bytes: u32, ecn: EcnField, is_data: bool) -> Sent {
        let direction = packet.direction;
        let descriptor = self.make(route, packet, bytes, ecn, is_data);
        match route {
            Route::Path(path) => self.world.enter(path, descriptor),
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
        let descriptor = self.world.make(packet, bytes, ecn, is_data);
        if self.world.is_tapped() {
            self.trace_sent(route, descriptor);
        }
        descriptor
    }

    /// Applies a change of a link, which the changes `later` follow, the next one last.
    pub(crate) fn change(&mut self, change: &Change, later: &[Change]) {
        for pipe in topology::pipes_of_change(change) {
            let pause_end = topology::next_rate_at(pipe, later).unwrap_or(self.end);
            self.world.change(pipe, |state, now| topology::apply(state, now, change, pause_end));
        }
    }

    /// The work done so far.
    pub(crate) fn work(&self) -> Work {
        let world::Work { events, packet_hops, data_packet_hops } = self.world.work;
        let delivered_data_packets = self.delivered_data_packets;
        Work { events, packet_hops, data_packet_hops, delivered_data_packets }
    }

    /// Checks that packets are conserved: each offered packet was delivered, dropped or lost, or is still in a pipe; and
    /// that the slab has exactly the packets that are in pipes and tunnel.
    ///
    /// # Panics
    /// If they are not: a mistake in the simulator.
    pub(crate) fn assert_conserved(&mut self) {
        self.world.assert_conserved(self.tunnel.as_ref().map_or(0, |tunnel| tunnel.queued()));
        self.world.store.assert_conserved(&self.world.slab);
    }
}
