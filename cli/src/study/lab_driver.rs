//! Real kernels as the driver of a scenario.

use super::{DriverChoice, Run as Arguments, Traffic};
use crate::Failure;
use lab::{BackendChoice, Generator, Lab};
use record::Run;
use runner::{Checked, Driver, Error, Job, available_cores};
use scenario::Scenario;
use scenario::model::Experiment;
use std::collections::{BTreeMap, BTreeSet};

/// The subcommand with which the lab starts this program as its agent.
pub(crate) const AGENT_SUBCOMMAND: &str = "lab-agent";

/// Finds the kernel that the command line selects.
pub(crate) fn find(arguments: &Arguments) -> Result<Box<dyn Driver>, Failure> {
    let choice = match arguments.on {
        DriverChoice::Uml => BackendChoice::Uml,
        DriverChoice::Netns => BackendChoice::Netns,
        _ => BackendChoice::Any,
    };
    let program = std::env::current_exe().map_err(|error| Failure::Environment(error.to_string()))?;
    let lab = Lab::find(choice, &program.to_string_lossy(), AGENT_SUBCOMMAND);
    let lab = lab.and_then(|lab| lab.traffic(generator(arguments.traffic)));
    let lab = lab.and_then(|lab| if arguments.capture { lab.capture() } else { Ok(lab) });
    lab.map(|lab| Box::new(Kernel(lab)) as Box<dyn Driver>).map_err(|error| Failure::Environment(error.to_string()))
}

/// The lab as a driver.
#[derive(Debug)]
struct Kernel(Lab);

impl Driver for Kernel {
    fn describe(&self, scenario: &Scenario) -> String {
        self.0.describe(experiments(scenario))
    }

    fn check(&self, scenario: &Scenario, partial: bool) -> Result<Checked, Error> {
        let (mut cells, mut unsupported) = (Vec::new(), Vec::new());
        for (index, cell) in scenario.cells.iter().enumerate() {
            match self.0.check(&cell.experiment) {
                Err(lab::Error::Unsupported { key, feature }) => unsupported.push((index, key, feature)),
                _ => cells.push(index),
            }
        }
        let cell_count = scenario.cells.len();
        if let Some((index, key, what)) = unsupported.first().filter(|_| !partial || cells.is_empty()) {
            let count = unsupported.len();
            let hint = format!("; `--partial` leaves out the {count} of {cell_count} cells that the lab cannot run");
            let hint = if cells.is_empty() { "" } else { &hint };
            let help = format!("`--on sim` runs it in the simulator{hint}");
            return Err(scenario.error_in(*index, key, &format!("the lab has no {what}"), &help).into());
        }
        let mut notes: BTreeSet<String> =
            cells.iter().flat_map(|cell| self.0.notes(&scenario.cells[*cell].experiment)).collect();
        let mut reasons: BTreeMap<String, usize> = BTreeMap::new();
        for (_, key, what) in &unsupported {
            *reasons.entry(format!("{key}: the lab has no {what}")).or_default() += 1;
        }
        let left_out = |(reason, count)| format!("left out, {count} of {cell_count} cells: {reason}");
        notes.extend(reasons.into_iter().map(left_out));
        Ok(Checked { cells, notes: notes.into_iter().collect() })
    }

    fn is_in_random_order(&self, scenario: &Scenario) -> bool {
        !self.0.is_virtual(experiments(scenario))
    }

    fn jobs(&self, scenario: &Scenario) -> usize {
        if self.0.is_virtual(experiments(scenario)) { available_cores() } else { 1 }
    }

    fn run(&self, job: &Job<'_>) -> Result<Option<Run>, String> {
        self.0.run(job.experiment, job.seed, job.raw_folder).map(Some).map_err(|error| error.to_string())
    }

    fn setup(&self, scenario: &Scenario) -> Option<String> {
        Some(self.0.script(experiments(scenario)))
    }
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
