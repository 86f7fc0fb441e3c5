//! The driver of a scenario: the simulator, or real kernels.

use crate::Failure;
use crate::arguments::{On, Run as Arguments, Traffic};
use lab::{BackendChoice, Generator, Lab};
use record::Run;
use scenario::Scenario;
use scenario::model::Experiment;
use std::collections::BTreeSet;
use std::path::Path;
use std::thread::available_parallelism;

/// The word by which the lab calls this program as its agent.
pub(crate) const AGENT: &str = "lab-agent";

/// The simulator's name in a manifest.
const SIMULATOR: &str = "simulator";

/// Whether a driver is a real kernel, by what the manifest calls it; older manifests have no name for the simulator.
pub(crate) fn is_kernel(description: &str) -> bool {
    !["", SIMULATOR].contains(&description)
}

/// One experiment and one seed in, one record out.
#[derive(Debug)]
pub(crate) enum Driver {
    Simulator,
    Kernel(Box<Lab>),
}

/// What a driver says to a scenario.
#[derive(Debug)]
pub(crate) struct Checked {
    /// The numbers of the cells that it runs.
    pub(crate) cells: Vec<usize>,
    /// What people should know.
    pub(crate) notes: Vec<String>,
}

impl Driver {
    pub(crate) fn find(arguments: &Arguments) -> Result<Self, Failure> {
        let choice = match arguments.on {
            On::Sim => return simulator(arguments),
            On::Kernel => BackendChoice::Any,
            On::Uml => BackendChoice::Uml,
            On::Netns => BackendChoice::Netns,
        };
        let program = std::env::current_exe().map_err(|why| Failure::Environment(why.to_string()))?;
        let lab = Lab::find(choice, &program.to_string_lossy(), AGENT);
        let lab = lab.and_then(|lab| lab.traffic(generator(arguments.traffic)));
        let lab = lab.and_then(|lab| if arguments.capture { lab.capture() } else { Ok(lab) });
        lab.map(|lab| Self::Kernel(Box::new(lab))).map_err(|why| Failure::Environment(why.to_string()))
    }

    /// What the manifest calls it.
    pub(crate) fn describe(&self, scenario: &Scenario) -> String {
        match self {
            Self::Simulator => SIMULATOR.to_owned(),
            Self::Kernel(lab) => lab.describe(experiments(scenario)),
        }
    }

    /// What only a driver knows that it cannot do is told before anything runs; and what it does in its own way. The cells
    /// that it runs: all, or with `partial` those that it can.
    pub(crate) fn check(&self, scenario: &Scenario, partial: bool) -> Result<Checked, Failure> {
        let all = 0..scenario.cells.len();
        let Self::Kernel(lab) = self else { return Ok(Checked { cells: all.collect(), notes: Vec::new() }) };
        let lacking = |index: &usize| match lab.check(&scenario.cells[*index].experiment) {
            Err(lab::Error::Lacks { key, what }) => Some((*index, key, what)),
            _ => None,
        };
        let lacks: Vec<(usize, String, String)> = all.clone().filter_map(|index| lacking(&index)).collect();
        let cells: Vec<usize> = all.filter(|index| lacks.iter().all(|(other, ..)| other != index)).collect();
        if let Some((index, key, what)) = lacks.first().filter(|_| !partial || cells.is_empty()) {
            let (count, of) = (lacks.len(), scenario.cells.len());
            let rest = format!("; `--partial` leaves out the {count} of {of} cells that the lab cannot run");
            let rest = if cells.is_empty() { "" } else { &rest };
            let help = format!("`--on sim` runs it in the simulator{rest}");
            return Err(scenario.error_in(*index, key, &format!("the lab has no {what}"), &help).into());
        }
        let mut notes: BTreeSet<String> =
            cells.iter().flat_map(|it| lab.notes(&scenario.cells[*it].experiment)).collect();
        let reasons: BTreeSet<String> =
            lacks.iter().map(|(_, key, what)| format!("{key}: the lab has no {what}")).collect();
        notes.extend(reasons.into_iter().map(|reason| {
            let count = lacks.iter().filter(|(_, key, what)| reason == format!("{key}: the lab has no {what}")).count();
            format!("left out, {count} of {} cells: {reason}", scenario.cells.len())
        }));
        Ok(Checked { cells, notes: notes.into_iter().collect() })
    }

    /// Runs side by side if nobody says how many: one a core, but one in all where load would disturb them.
    pub(crate) fn jobs(&self, scenario: &Scenario) -> usize {
        match self {
            Self::Kernel(lab) if !lab.is_virtual(experiments(scenario)) => 1,
            _ => available_parallelism().map_or(1, usize::from),
        }
    }

    /// Runs one; what a kernel leaves beside the record goes to the folder `keep`.
    pub(crate) fn run(&self, experiment: &Experiment, seed: u64, keep: &Path) -> Result<Run, String> {
        match self {
            Self::Simulator => sim::run(experiment, seed).map_err(|why| why.to_string()),
            Self::Kernel(lab) => lab.run(experiment, seed, Some(keep)).map_err(|why| why.to_string()),
        }
    }

    /// How the experiments were set up, for whoever wants to do it again by hand; nothing for the simulator.
    pub(crate) fn setup(&self, scenario: &Scenario) -> Option<String> {
        let Self::Kernel(lab) = self else { return None };
        Some(lab.script(experiments(scenario)))
    }
}

/// It has no packets to record, and traffic of its own.
fn simulator(arguments: &Arguments) -> Result<Driver, Failure> {
    let refused = match arguments {
        Arguments { capture: true, .. } => "--capture records packets: the simulator has none; add --on kernel",
        Arguments { traffic: Some(_), .. } => "--traffic names programs: the simulator runs none; add --on kernel",
        _ => return Ok(Driver::Simulator),
    };
    Err(Failure::Usage(refused.into()))
}

fn generator(traffic: Option<Traffic>) -> Generator {
    match traffic {
        None | Some(Traffic::Agent) => Generator::Agent,
        Some(Traffic::Iperf3) => Generator::Iperf3,
        Some(Traffic::Ftp) => Generator::Ftp,
    }
}

fn experiments(scenario: &Scenario) -> impl Iterator<Item = &Experiment> {
    scenario.cells.iter().map(|cell| &cell.experiment)
}
