//! The driver of a scenario: the simulator, or real kernels.

use crate::Error;
use control::AlgorithmError;
use record::Run;
use scenario::Scenario;
use scenario::model::Experiment;
use sim::Simulation;
use std::fmt::Debug;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::available_parallelism;
use units::Span;

/// Virtual time between two checks whether a run is cancelled.
const SLICE: Span = Span::from_millis(100);

/// The simulator's name in a manifest.
const SIMULATOR: &str = "simulator";

/// Whether a manifest's driver is a real kernel; older manifests have an empty name for the simulator.
#[must_use]
pub fn is_kernel(description: &str) -> bool {
    !["", SIMULATOR].contains(&description)
}

/// Runs an experiment with a seed and returns its record.
pub trait Driver: Debug + Sync {
    /// The name of the driver in the manifest.
    fn describe(&self, scenario: &Scenario) -> String;

    /// The cells that the driver runs: all of them, or with `partial` those that it supports.
    ///
    /// # Errors
    /// A cell has a feature that the driver does not support, and `partial` is not set.
    fn check(&self, scenario: &Scenario, partial: bool) -> Result<Checked, Error>;

    /// Whether runs are made in random order, because the time at which a run is made can change its result. False where
    /// time is virtual.
    fn is_in_random_order(&self, _: &Scenario) -> bool {
        false
    }

    /// The default number of parallel runs.
    fn jobs(&self, scenario: &Scenario) -> usize;

    /// Runs one experiment; `None` if it was cancelled.
    ///
    /// # Errors
    /// The reason why the run failed.
    fn run(&self, job: &Job<'_>) -> Result<Option<Run>, String>;

    /// The commands that set up the experiments, for repeating them by hand.
    fn setup(&self, scenario: &Scenario) -> Option<String>;
}

/// One run that a driver makes.
#[derive(Clone, Copy, Debug)]
pub struct Job<'a> {
    /// The experiment.
    pub experiment: &'a Experiment,
    /// The seed.
    pub seed: u64,
    /// The folder for a kernel's logs and captures, if they are kept.
    pub raw_folder: Option<&'a Path>,
    /// Set when the run's result is no longer wanted.
    pub cancelled: &'a AtomicBool,
    /// The virtual time that the run has reached, nanoseconds: a driver in virtual time stores it.
    pub reached: &'a AtomicU64,
}

impl Job<'_> {
    /// Whether the run's result is no longer wanted.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }
}

/// The result of a driver's check of a scenario before it runs.
#[derive(Debug)]
pub struct Checked {
    /// Indices of the cells that the driver runs.
    pub cells: Vec<usize>,
    /// Notes to print.
    pub notes: Vec<String>,
}

/// The processors that this process may use.
#[must_use]
pub fn available_cores() -> usize {
    available_parallelism().map_or(1, usize::from)
}

/// The packet simulator, in virtual time.
#[derive(Clone, Copy, Debug, Default)]
pub struct Simulator;

impl Driver for Simulator {
    fn describe(&self, _: &Scenario) -> String {
        SIMULATOR.to_owned()
    }

    fn check(&self, scenario: &Scenario, _: bool) -> Result<Checked, Error> {
        Ok(Checked { cells: (0..scenario.cells.len()).collect(), notes: Vec::new() })
    }

    fn jobs(&self, _: &Scenario) -> usize {
        available_cores()
    }

    fn run(&self, job: &Job<'_>) -> Result<Option<Run>, String> {
        AlgorithmError::catch(|| simulate(job)).map_err(|error| error.to_string())?
    }

    fn setup(&self, _: &Scenario) -> Option<String> {
        None
    }
}

fn simulate(job: &Job<'_>) -> Result<Option<Run>, String> {
    let mut simulation = Simulation::new(job.experiment, job.seed).map_err(|error| error.to_string())?;
    while simulation.now() < simulation.end() {
        if job.is_cancelled() {
            return Ok(None);
        }
        simulation.run_until(simulation.now() + SLICE);
        job.reached.store(simulation.now().0, Ordering::Relaxed);
    }
    Ok(Some(simulation.finish()))
}
