//! The engine: takes the component that is due first and lets it act.
//!
//! - this file: the loop, and what happens to the network from outside (changes, samples);
//! - [`component`]: who can be due;
//! - [`network`]: packets on their way; `striping`: an MPT tunnel's two ends; `tunnelling`: those of Ropewalk's own;
//! - `hosts`: where packets come from and go to.

mod component;
mod hosts;
mod network;
mod striping;
mod tunnelling;

use crate::endpoint::Endpoint;
use crate::error::Error;
use crate::meter::Meter;
use crate::packet::{Direction, Parcel};
use crate::series::Sampler;
use component::Component;
use network::Network;
use record::Digest;
use scenario::model::{Change, Experiment};
use units::Instant;

/// Runs an experiment with a seed.
///
/// # Errors
/// An algorithm or a parameter that the registry does not know.
///
/// # Panics
/// If packets are not conserved: a mistake in the simulator. If the experiment names a link, path or tunnel that it
/// does not have: the scenario reader gives no such experiment.
pub fn run(experiment: &Experiment, seed: u64) -> Result<record::Run, Error> {
    let mut engine = Engine::new(experiment, seed)?;
    engine.run();
    Ok(crate::summary::summarise(engine, experiment, seed))
}

/// The state of a run.
#[derive(Debug)]
pub(crate) struct Engine {
    pub end: Instant,
    pub network: Network,
    pub flows: Vec<Endpoint>,
    pub sampler: Option<Sampler>,
    pub meter: Option<Meter>,
    /// Changes to come, the next one last.
    changes: Vec<Change>,
    /// Packets that the tunnel hands up, for a moment.
    up: Vec<Parcel>,
    /// Of what arrived, and when.
    pub digest: Digest,
}

impl Engine {
    fn new(experiment: &Experiment, seed: u64) -> Result<Self, Error> {
        let flows = experiment.flows.iter().map(|flow| Endpoint::new(experiment, flow, seed));
        let flows: Vec<Endpoint> = flows.collect::<Result<_, _>>()?;
        let mut engine = Self {
            end: Instant::ZERO + experiment.duration,
            network: Network::new(experiment, seed)?,
            meter: Meter::new(&flows),
            flows,
            sampler: experiment.sample.map(|interval| Sampler::new(experiment, interval)),
            changes: experiment.events.iter().rev().cloned().collect(),
            up: Vec::new(),
            digest: Digest::default(),
        };
        engine.begin(experiment);
        Ok(engine)
    }

    fn begin(&mut self, experiment: &Experiment) {
        for (flow, endpoint) in (0..).zip(&self.flows) {
            self.network.arm(Component::Source(flow), endpoint.start);
        }
        if let Some(change) = self.changes.last() {
            self.network.arm(Component::Changes, change.at);
        }
        if let Some(sampler) = &self.sampler {
            self.network.arm(Component::Sampler, Instant::ZERO + sampler.interval);
        }
        if let Some(meter) = &self.meter {
            self.network.arm(Component::Meter, meter.due());
        }
        if experiment.tunnel.as_ref().is_some_and(|tunnel| tunnel.ropewalk.is_some()) {
            // Its ends ask each other at once whether the paths are there.
            for end in [Direction::Forward, Direction::Reverse] {
                self.network.arm(Component::Ingress(end), Instant::ZERO);
            }
        }
        for _ in 0..experiment.tunnel.as_ref().map_or(0, |tunnel| tunnel.stray_packets) {
            self.network.send_strays();
        }
    }

    fn run(&mut self) {
        while let Some(component) = self.network.next(self.end) {
            match component {
                Component::Pipe(pipe) => self.serve(pipe),
                Component::Source(flow) => self.wake_source(flow),
                Component::Sink(flow) => self.wake_sink(flow),
                Component::Ingress(direction) => {
                    self.network.wake_ingress(direction, &mut self.up);
                    self.deliver_all();
                }
                Component::Egress(direction) => {
                    self.network.wake_egress(direction, &mut self.up);
                    self.deliver_all();
                }
                Component::Changes => self.change(),
                Component::Sampler => self.sample(),
                Component::Meter => self.meter(),
            }
        }
    }

    /// A pipe's head is due.
    fn serve(&mut self, pipe: u32) {
        let Some(parcel) = self.network.serve(pipe) else { return };
        match self.network.slab.get(parcel.slot).tunnel_seq {
            None => self.deliver(parcel),
            Some(seq) => {
                self.network.leave_tunnel(seq, parcel, &mut self.up);
                self.deliver_all();
            }
        }
    }

    fn change(&mut self) {
        while let Some(change) = self.changes.pop_if(|change| change.at <= self.network.now) {
            self.network.change(&change);
        }
        if let Some(next) = self.changes.last() {
            self.network.arm(Component::Changes, next.at);
        }
    }

    fn meter(&mut self) {
        if let Some(meter) = &mut self.meter {
            meter.take(&self.flows);
            self.network.arm(Component::Meter, meter.due());
        }
    }

    fn sample(&mut self) {
        let Some(mut sampler) = self.sampler.take() else { return };
        sampler.take(self);
        self.network.arm(Component::Sampler, self.network.now + sampler.interval);
        self.sampler = Some(sampler);
    }
}
