//! Runs an experiment from start to record, at once or step by step.

use crate::engine::Engine;
use crate::error::Error;
use crate::network::Tracer;
use crate::summary::summarise;
use crate::trace::{HeaderSizes, TraceEvent};
use control::Controller;
use scenario::model::Experiment;
use schedule::Scheduler;
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
    Ok(Simulation::new(experiment, seed)?.finish())
}

/// A run that is advanced step by step. However it is cut into steps, its record is that of [`run`].
#[derive(Debug)]
pub struct Simulation {
    engine: Engine,
    experiment: Experiment,
    seed: u64,
    now: Instant,
}

impl Simulation {
    /// A run of an experiment with a seed, at time zero: nothing has happened yet.
    ///
    /// # Errors
    /// As of [`run`].
    ///
    /// # Panics
    /// As [`run`], if the experiment names a link, path or tunnel that it does not have.
    pub fn new(experiment: &Experiment, seed: u64) -> Result<Self, Error> {
        policy::register();
        let experiment = experiment.with_seed(seed).into_owned();
        let engine = Engine::new(&experiment, seed)?;
        Ok(Self { engine, experiment, seed, now: Instant::ZERO })
    }

    /// Handles every event up to and including `until`, but none after the [end](Self::end) of the experiment.
    pub fn run_until(&mut self, until: Instant) {
        self.engine.run_until(until);
        self.now = self.now.max(until.min(self.engine.end));
    }

    /// Handles every event before `until`, but none after the [end](Self::end) of the experiment.
    pub fn run_before(&mut self, until: Instant) {
        if let Some(last) = until.0.checked_sub(1) {
            self.engine.run_until(Instant(last));
        }
        self.now = self.now.max(until.min(self.engine.end));
    }

    /// The time up to which the run has been advanced.
    #[must_use]
    pub fn now(&self) -> Instant {
        self.now
    }

    /// The end of the experiment.
    #[must_use]
    pub fn end(&self) -> Instant {
        self.engine.end
    }

    /// The controller of the current connection of a flow, by its index in the experiment; `None` for protocols other than TCP, MPTCP and QUIC. It may be
    /// replaced until the flow's start.
    pub fn controller(&mut self, flow: usize) -> Option<&mut Box<dyn Controller>> {
        self.engine.flows.get_mut(flow)?.protocol.controller_mut()
    }

    /// The scheduler of a flow's MPTCP connection, by its index in the experiment; `None` for other flows. It may be
    /// replaced until the flow's start.
    pub fn scheduler(&mut self, flow: usize) -> Option<&mut Box<dyn Scheduler>> {
        self.engine.flows.get_mut(flow)?.protocol.scheduler_mut()
    }

    /// Leaves distributions of times out of the record from now on, for a driver that does not need them: histograms take
    /// most of the memory of a short run. Everything else, the digest included, stays the same.
    pub fn leave_out_distributions(&mut self) {
        self.engine.flows.iter_mut().for_each(|flow| flow.protocol.leave_out_distributions());
    }

    /// Traces the run from now on, which must be its beginning. Its record stays the same.
    pub fn trace(&mut self) {
        debug_assert_eq!(self.now, Instant::ZERO);
        self.engine.network.start_trace();
        self.engine.flows.iter_mut().for_each(|flow| flow.protocol.start_trace());
    }

    /// Also traces each packet of a link, by its number in the experiment: as it enters, and as it leaves or is lost.
    pub fn watch(&mut self, link: usize) {
        self.engine.network.watch(link);
    }

    /// The events since the last call, in the order in which they happened; none if the run is not [traced](Self::trace).
    pub fn take_trace(&mut self) -> Vec<TraceEvent> {
        self.engine.network.world.tap().map(Tracer::take).unwrap_or_default()
    }

    /// The sizes of the headers of a flow, by its index in the experiment; none for protocols other than TCP, MPTCP and QUIC.
    #[must_use]
    pub fn header_sizes(&self, flow: usize) -> Option<HeaderSizes> {
        self.engine.flows.get(flow)?.protocol.header_sizes()
    }

    /// The work done so far: counts of events and packets.
    #[must_use]
    pub fn work(&self) -> record::Work {
        self.engine.network.work()
    }

    /// Runs to the end of the experiment and makes the record.
    ///
    /// # Panics
    /// If packets are not conserved: a mistake in the simulator.
    #[must_use]
    pub fn finish(mut self) -> record::Run {
        self.engine.run_until(self.engine.end);
        summarise(self.engine, &self.experiment, self.seed)
    }
}
