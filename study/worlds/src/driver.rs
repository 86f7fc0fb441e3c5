//! Running in worlds: a driver for the runner, in which the seed of a run determines its world.

use crate::World;
use runner::{Checked, Driver, Error, Job, Simulator};
use scenario::model::{AlgorithmChoice, Experiment, FlowKind};
use scenario::{Overrides, Scenario};
use std::path::Path;

/// Name of the flows under test, in worlds and in the study that runs in them.
pub(crate) const TEST: &str = "test";

/// The simulator, in the world of the seed. From the given experiment it takes only the congestion control of the first
/// flow.
#[derive(Clone, Copy, Debug, Default)]
pub struct Worlds {
    /// Whether the random events of the run (losses, jitter, starts) are drawn from another seed.
    pub has_other_luck: bool,
}

/// The number added to a run's seed for other random events.
const OTHER_LUCK: u64 = 1 << 32;

impl Driver for Worlds {
    fn describe(&self, _: &Scenario) -> String {
        "simulator, in drawn worlds".to_owned()
    }

    fn check(&self, scenario: &Scenario, _: bool) -> Result<Checked, Error> {
        Simulator.check(scenario, false)
    }

    fn jobs(&self, scenario: &Scenario) -> usize {
        Simulator.jobs(scenario)
    }

    fn run(&self, job: &Job<'_>) -> Result<Option<record::Run>, String> {
        let FlowKind::Tcp { congestion, .. } = &job.experiment.flows[0].kind else {
            return Err("the flow under test is not TCP".to_owned());
        };
        let experiment = crate::draw(job.seed).experiment(congestion)?;
        let seed = if self.has_other_luck { job.seed.wrapping_add(OTHER_LUCK) } else { job.seed };
        Simulator.run(&Job { experiment: &experiment, seed, ..*job })
    }

    fn setup(&self, _: &Scenario) -> Option<String> {
        None
    }
}

impl World {
    /// The experiment with `congestion` under test.
    ///
    /// # Errors
    /// The scenario file cannot be read, which is a fault in the drawing of worlds.
    pub fn experiment(&self, congestion: &AlgorithmChoice) -> Result<Experiment, String> {
        let origin = format!("world-{}.toml", self.seed);
        let read = scenario::parse(&origin, &self.text, Path::new(""), &Overrides::default());
        let mut scenario = read.map_err(|error| error.to_string())?;
        let mut experiment = scenario.cells.remove(0).experiment;
        for flow in experiment.flows.iter_mut().filter(|flow| is_of(&flow.name, TEST)) {
            if let FlowKind::Tcp { congestion: under_test, .. } = &mut flow.kind {
                under_test.clone_from(congestion);
            }
        }
        Ok(experiment)
    }

    /// The world as a scenario file that sweeps these congestion controls under test; each is a TOML value.
    #[must_use]
    pub fn scenario_text(&self, congestions: &[&str]) -> String {
        format!("{}[sweep]\n\"flow.{TEST}.congestion\" = [{}]\n", self.text, congestions.join(", "))
    }
}

/// Whether a flow is called `name`, or is a numbered copy of the flow with that name.
pub(crate) fn is_of(flow: &str, name: &str) -> bool {
    flow.strip_prefix(name).is_some_and(|rest| {
        let number = rest.strip_prefix('-');
        rest.is_empty() || number.is_some_and(|number| number.bytes().all(|byte| byte.is_ascii_digit()))
    })
}
