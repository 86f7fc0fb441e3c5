//! Who carries a scenario out: the simulator, or real kernels.

use crate::Failure;
use crate::arguments::On;
use lab::Lab;
use record::Run;
use scenario::Scenario;
use scenario::model::Experiment;
use std::thread::available_parallelism;

/// The word by which a guest's init calls this program.
const AGENT: &str = "lab-agent";

/// One experiment and one seed in, one record out.
#[derive(Debug)]
pub(crate) enum Driver {
    Simulator,
    Kernel(Box<Lab>),
}

impl Driver {
    pub(crate) fn find(on: On) -> Result<Self, Failure> {
        if on == On::Sim {
            return Ok(Self::Simulator);
        }
        let program = std::env::current_exe().map_err(|why| Failure::Environment(why.to_string()))?;
        let lab = Lab::find(&[&program.to_string_lossy(), AGENT]);
        lab.map(|lab| Self::Kernel(Box::new(lab))).map_err(|why| Failure::Environment(why.to_string()))
    }

    /// What the manifest calls it.
    pub(crate) fn describe(&self) -> String {
        match self {
            Self::Simulator => "simulator".to_owned(),
            Self::Kernel(lab) => lab.describe(),
        }
    }

    /// What only a driver knows that it cannot do is told before anything runs.
    pub(crate) fn check(on: On, scenario: &Scenario) -> Result<(), Failure> {
        if on == On::Sim {
            return Ok(());
        }
        scenario.cells.iter().enumerate().try_for_each(|(index, cell)| match lab::check(&cell.experiment) {
            Err(lab::Error::Lacks { key, what }) => {
                let help = "`--on sim` runs it in the simulator";
                Err(scenario.error_in(index, &key, &format!("the lab has no {what}"), help).into())
            }
            _ => Ok(()),
        })
    }

    /// Runs side by side if nobody says how many: one a core, but one in all where load would disturb them.
    pub(crate) fn jobs(&self) -> usize {
        match self {
            Self::Kernel(lab) if !lab.is_virtual() => 1,
            _ => available_parallelism().map_or(1, usize::from),
        }
    }

    pub(crate) fn run(&self, experiment: &Experiment, seed: u64) -> Result<Run, String> {
        match self {
            Self::Simulator => sim::run(experiment, seed).map_err(|why| why.to_string()),
            Self::Kernel(lab) => lab.run(experiment, seed).map_err(|why| why.to_string()),
        }
    }

    /// How the experiments were set up, for whoever wants to do it again by hand; nothing for the simulator.
    pub(crate) fn setup(&self, scenario: &Scenario) -> Option<String> {
        let Self::Kernel(lab) = self else { return None };
        Some(lab.script(scenario.cells.iter().map(|cell| &cell.experiment)))
    }
}
