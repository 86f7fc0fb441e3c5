//! The driver of a scenario: the simulator, or real kernels.

use crate::Failure;
use crate::arguments::{DriverChoice, Run as Arguments};
use record::Run;
use scenario::Scenario;
use scenario::model::Experiment;
use std::fmt::Debug;
use std::path::Path;
use std::thread::available_parallelism;

/// The simulator's name in a manifest.
const SIMULATOR: &str = "simulator";

/// Whether a manifest's driver is a real kernel; older manifests have an empty name for the simulator.
pub(crate) fn is_kernel(description: &str) -> bool {
    !["", SIMULATOR].contains(&description)
}

/// Runs an experiment with a seed and returns its record.
pub(crate) trait Driver: Debug + Sync {
    /// The name of the driver in the manifest.
    fn describe(&self, scenario: &Scenario) -> String;

    /// The cells that the driver runs: all of them, or with `partial` those that it supports.
    ///
    /// # Errors
    /// A cell has a feature that the driver does not support, and `partial` is not set.
    fn check(&self, scenario: &Scenario, partial: bool) -> Result<Checked, Failure>;

    /// The default number of parallel runs.
    fn jobs(&self, scenario: &Scenario) -> usize;

    /// Runs one experiment; a kernel writes its logs and captures to `raw_folder`.
    fn run(&self, experiment: &Experiment, seed: u64, raw_folder: &Path) -> Result<Run, String>;

    /// The commands that set the experiments up, to repeat them by hand.
    fn setup(&self, scenario: &Scenario) -> Option<String>;
}

/// The result of a driver's check of a scenario before it runs.
#[derive(Debug)]
pub(crate) struct Checked {
    /// Indices of the cells that the driver runs.
    pub(crate) cells: Vec<usize>,
    /// Notes to print.
    pub(crate) notes: Vec<String>,
}

/// The driver that the command line selects.
pub(crate) fn find(arguments: &Arguments) -> Result<Box<dyn Driver>, Failure> {
    match arguments {
        Arguments { on: DriverChoice::Sim, capture: true, .. } => {
            Err(Failure::Usage("--capture records packets: the simulator has none; add --on kernel".into()))
        }
        Arguments { on: DriverChoice::Sim, traffic: Some(_), .. } => {
            Err(Failure::Usage("--traffic names programs: the simulator runs none; add --on kernel".into()))
        }
        Arguments { on: DriverChoice::Sim, .. } => Ok(Box::new(Simulator)),
        #[cfg(feature = "lab")]
        _ => crate::kernel::find(arguments),
        #[cfg(not(feature = "lab"))]
        _ => Err(Failure::Environment(format!("--on: {}", crate::features::build_hint("lab")))),
    }
}

/// The processors that this process may use.
pub(crate) fn available_cores() -> usize {
    available_parallelism().map_or(1, usize::from)
}

#[derive(Debug)]
struct Simulator;

impl Driver for Simulator {
    fn describe(&self, _: &Scenario) -> String {
        SIMULATOR.to_owned()
    }

    fn check(&self, scenario: &Scenario, _: bool) -> Result<Checked, Failure> {
        Ok(Checked { cells: (0..scenario.cells.len()).collect(), notes: Vec::new() })
    }

    fn jobs(&self, _: &Scenario) -> usize {
        available_cores()
    }

    fn run(&self, experiment: &Experiment, seed: u64, _: &Path) -> Result<Run, String> {
        sim::run(experiment, seed).map_err(|error| error.to_string())
    }

    fn setup(&self, _: &Scenario) -> Option<String> {
        None
    }
}
