//! The engine: takes the component that is due first and lets it act.
//!
//! This file has the loop, the changes of links and the samples; `hosts` has what reaches the hosts, `relay` the steps
//! between hosts and the tunnel's relay.

mod hosts;
mod relay;

use crate::error::Error;
use crate::flow::FlowState;
use crate::meter::FairnessMeter;
use crate::network::{Component, Network};
use crate::protocol::End;
use crate::series::Sampler;
use crate::tunnel;
use ::relay::ConnectionId;
use record::Digest;
use scenario::model::{Change, Experiment};
use std::collections::BTreeMap;
use units::{Instant, Span};
use world::Due;

/// The state of a run.
#[derive(Debug)]
pub(crate) struct Engine {
    pub end: Instant,
    pub network: Network,
    /// The experiment's flows, and the far connections of relayed ones.
    pub flows: Vec<FlowState>,
    pub sampler: Option<Sampler>,
    next_sample: Instant,
    pub meter: Option<FairnessMeter>,
    /// Pending changes of links, the next one last.
    changes: Vec<Change>,
    /// The flow of a relayed connection, at the end of the tunnel that sends in each direction.
    relayed: [BTreeMap<ConnectionId, u16>; 2],
    /// Digest of the arrivals: flow and time of each.
    pub digest: Digest,
}

impl Engine {
    pub(crate) fn new(experiment: &Experiment, seed: u64) -> Result<Self, Error> {
        let flows = FlowState::all(experiment, seed)?;
        let tunnel = experiment.tunnel.as_ref().map(|model| tunnel::new(model, &experiment.paths, seed));
        let mut engine = Self {
            end: Instant::ZERO + experiment.duration,
            network: Network::new(experiment, flows.len(), tunnel.transpose()?, seed),
            meter: FairnessMeter::new(&flows),
            flows,
            sampler: experiment.sample.map(|interval| Sampler::new(experiment, interval)),
            next_sample: experiment.sample.map_or(Instant::NEVER, |interval| Instant::ZERO + interval),
            changes: experiment.events.iter().rev().cloned().collect(),
            relayed: Default::default(),
            digest: Digest::default(),
        };
        engine.schedule_first();
        Ok(engine)
    }

    /// Schedules the first event of each component.
    fn schedule_first(&mut self) {
        for (flow, endpoint) in (0..).zip(&self.flows) {
            self.network.schedule(Component::Source(flow), endpoint.start);
        }
        if let Some(change) = self.changes.last() {
            self.network.schedule(Component::Changes, change.at);
        }
        if self.sampler.is_some() {
            self.network.schedule(Component::Sampler, self.next_sample);
        }
        self.extend_horizon();
        if let Some(meter) = &self.meter {
            self.network.schedule(Component::Meter, meter.due());
        }
        self.network.with_tunnel(|tunnel, network| tunnel.start(network));
    }

    /// Handles all events that are due by `until`, but none after the end of the run.
    pub(crate) fn run_until(&mut self, until: Instant) {
        let until = until.min(self.end);
        while let Some(due) = self.network.next(until) {
            let timer = match due {
                Due::Pipe(pipe) => {
                    self.serve(pipe);
                    continue;
                }
                Due::Timer(timer) => timer,
            };
            match self.network.component(timer) {
                Component::Source(flow) => self.wake(flow, End::Sender),
                Component::Sink(flow) => self.wake(flow, End::Receiver),
                component @ (Component::Ingress(_) | Component::Egress(_) | Component::Stray(_)) => {
                    self.network.with_tunnel(|tunnel, network| tunnel.wake(component, network));
                    self.deliver_all();
                    self.poll_relay();
                }
                Component::Changes => self.apply_changes(),
                Component::Sampler => self.sample(),
                Component::Meter => self.sample_meter(),
            }
        }
    }

    /// Takes the packet that is due from a pipe, and delivers it if it has crossed its path.
    fn serve(&mut self, pipe: u32) {
        let Some(descriptor) = self.network.world.serve(pipe) else { return };
        match self.network.world.slab.get(descriptor.slot()).content.tunnel_seq {
            None => self.deliver(descriptor),
            Some(_) => {
                self.network.with_tunnel(|tunnel, network| tunnel.receive(descriptor, network));
                self.deliver_all();
            }
        }
    }

    /// Applies the changes of links that are due.
    fn apply_changes(&mut self) {
        while let Some(change) = self.changes.pop_if(|change| change.at <= self.network.world.now) {
            self.network.change(&change, &self.changes);
        }
        if let Some(change) = self.changes.last() {
            self.network.schedule(Component::Changes, change.at);
        }
        self.extend_horizon();
    }

    fn sample_meter(&mut self) {
        if let Some(meter) = &mut self.meter {
            meter.take(&self.flows);
            self.network.schedule(Component::Meter, meter.due());
        }
    }

    fn sample(&mut self) {
        if let Some(sampler) = &mut self.sampler {
            sampler.take(&mut self.network, &self.flows);
            self.next_sample = self.network.world.now + sampler.interval;
            self.network.schedule(Component::Sampler, self.next_sample);
        }
        self.extend_horizon();
    }

    /// Sets the time up to which packets may be forwarded: the next change or sample of links, or the end of the run.
    fn extend_horizon(&mut self) {
        let change = self.changes.last().map_or(Instant::NEVER, |change| change.at);
        self.network.world.extend_horizon(change.min(self.next_sample).min(self.end + Span(1)));
    }
}
