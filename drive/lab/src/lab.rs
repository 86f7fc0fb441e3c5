//! The lab: a kernel, and experiments run on it.

use crate::guest::Guest;
use crate::kernel::Kernel;
use crate::plan::{Observed, Plan, Traffic};
use crate::script::script;
use crate::{Error, layout, summary, support};
use record::Run;
use scenario::model::{Experiment, Flow};
use units::{Instant, Span, Stream};

/// The share of a run's time, one part in so many, that a guest may lack the CPU: the shaper's timers then fire late, and
/// its token bucket gives only little of the capacity back.
const STOLEN: u64 = 100;
/// So often a run that was disturbed is made again.
const ATTEMPTS: usize = 3;
/// Time between samples where the experiment asks for no series: the RTT is taken from them.
const SAMPLE: Span = Span::from_millis(100);

/// A kernel, and the program that can be its agent.
#[derive(Clone, Debug)]
pub struct Lab {
    kernel: Kernel,
    agent: Vec<String>,
}

impl Lab {
    /// The lab of this machine. `agent` is a command that calls [`crate::agent`] with the words that follow.
    ///
    /// # Errors
    /// There is no User-Mode Linux.
    pub fn find(agent: &[&str]) -> Result<Self, Error> {
        Ok(Self { kernel: Kernel::find()?, agent: agent.iter().map(|word| (*word).to_owned()).collect() })
    }

    /// The kernel in words, for a record of what was run.
    #[must_use]
    pub fn describe(&self) -> String {
        let clock = if self.kernel.is_virtual { "virtual" } else { "real" };
        format!("Linux {} (User-Mode Linux, {clock} time)", self.kernel.version)
    }

    /// Guests may run side by side without disturbing each other: their time is virtual.
    #[must_use]
    pub fn is_virtual(&self) -> bool {
        self.kernel.is_virtual
    }

    /// Room in the path's token bucket, packets. A timer that fires late costs capacity that only a deeper bucket gives
    /// back; in virtual time none does.
    fn burst(&self) -> u32 {
        if self.kernel.is_virtual { 1 } else { 2 }
    }

    /// How the cells of a study are set up in the guest: the commands, in order. What only some cells have is preceded
    /// by their numbers, what an event does by its instant.
    #[must_use]
    pub fn script<'a>(&self, cells: impl IntoIterator<Item = &'a Experiment>) -> String {
        let lines = |experiment: &Experiment| {
            let (setup, events) = layout::commands(experiment, self.burst());
            let events = events.into_iter().map(|(at, line)| format!("at {} s: {line}", at.as_secs_f64()));
            setup.into_iter().chain(events).collect()
        };
        let cells: Vec<Vec<String>> = cells.into_iter().map(lines).collect();
        format!("# {}\n{}", self.describe(), script(&cells))
    }

    /// Runs `experiment`. A kernel draws its own luck: `seed` only numbers the run.
    ///
    /// # Errors
    /// The lab cannot do what the experiment asks for, or the guest failed.
    pub fn run(&self, experiment: &Experiment, seed: u64) -> Result<Run, Error> {
        support::check(experiment)?;
        let starts: Vec<Instant> = experiment.flows.iter().map(|flow| start(flow, seed)).collect();
        let mut least = Span::MAX;
        for _ in 0..ATTEMPTS {
            let observed = self.observe(experiment, &starts)?;
            if self.kernel.is_virtual || observed.stolen.0 <= experiment.duration.0 / STOLEN {
                return summary::summarise(experiment, seed, &starts, &observed);
            }
            least = least.min(observed.stolen);
        }
        let (least, duration) = (least.as_millis(), experiment.duration.as_millis());
        Err(Error::NoCpu(format!(
            "the guest lacked the CPU for {least} of {duration} ms: run fewer side by side (--jobs 1), or on a machine \
             with less to do"
        )))
    }

    /// One guest's life.
    fn observe(&self, experiment: &Experiment, starts: &[Instant]) -> Result<Observed, Error> {
        let (setup, events) = layout::commands(experiment, self.burst());
        let span = |at: Instant| at.since(Instant::ZERO);
        let traffic = |(flow, start): (&Flow, &Instant)| Traffic { start: span(*start), stop: flow.stop.map(span) };
        let plan = Plan {
            duration: experiment.duration,
            sample: experiment.sample.unwrap_or(SAMPLE),
            flows: experiment.flows.iter().zip(starts).map(traffic).collect(),
            events,
            counters: layout::counters(experiment),
            silence: layout::silence(experiment),
            drain: layout::drain(experiment),
            totals: layout::totals(experiment),
        };
        Guest::new(&self.kernel)?.run(&self.agent, &setup, &plan)
    }
}

/// When a flow begins: drawn as the simulator draws it.
fn start(flow: &Flow, seed: u64) -> Instant {
    flow.start + Span(Stream::named(seed, &format!("flow {} start", flow.name)).below(flow.start_within.0 + 1))
}
