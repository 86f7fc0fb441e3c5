//! `ropewalk fit --to`: links fitted to measurements. Without `--to`, the constants of a scenario are checked.

use super::budget::{self, Budget};
use super::fit::{self, Constants};
use super::probe;
use crate::{Failure, output};
use ::fit::{Fit as Fitted, Model, Options, Progress};
use clap::Args;
use measured::Measured;
use scenario::Free;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};

/// The probes that are held out if `--hold` names none: calls next to a download.
const HELD_OUT: &str = "call";

#[derive(Args, Debug)]
pub(crate) struct Fit {
    /// The scenario: a TOML file, or a name of `ropewalk list scenarios`. With --to, a file of links whose `[free]` names what
    /// is unknown [default with --to: links as the measurement has them]
    #[arg(required_unless_present = "to")]
    pub(crate) file: Option<PathBuf>,
    /// Fit links to these measurements: a document of `ropewalk probe`, or any file that its --import reads; NAME=FILE names the
    /// path of a file
    #[arg(long, value_name = "[NAME=]FILE", num_args = 1..)]
    pub(crate) to: Vec<PathBuf>,
    /// An unknown key with its range: --free path.lte.rate=3mbit..60mbit
    #[arg(long, value_name = "KEY=RANGE", requires = "to", value_parser = free)]
    pub(crate) free: Vec<Free>,
    /// Observables to hold out of the fit, by the beginning of their names: --hold call --hold 'tcp.bbr.*.rtt p95' [default: call]
    #[arg(long, value_name = "NAME", requires = "to")]
    pub(crate) hold: Vec<String>,
    /// Members of the ensemble, each of a resampled measurement
    #[arg(long, alias = "starts", value_name = "N", requires = "to", default_value_t = 8, value_parser = clap::value_parser!(u16).range(1..=64))]
    pub(crate) members: u16,
    /// The time for the search, such as 90s or 2m; or a number of evaluations, which gives the same fit everywhere
    #[arg(long, value_name = "TIME|N", requires = "to", default_value = "2m", value_parser = budget::parse)]
    pub(crate) budget: Budget,
    /// Seed of the searches
    #[arg(long, value_name = "S", requires = "to", default_value_t = 1)]
    pub(crate) seed: u64,
    /// The folder for the fit: the links as scenarios, a page and a document [default: results/fit]
    #[arg(long, value_name = "DIR", requires = "to")]
    pub(crate) out: Option<PathBuf>,
    /// Print the fit as one JSON document instead of the tables
    #[arg(long, requires = "to")]
    pub(crate) json: bool,
    /// Number of parallel runs; the results do not depend on it [default: one per core]
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) jobs: Option<u16>,
}

/// Fits links to measurements, or checks the fitted constants of the scenario.
pub(crate) fn run(arguments: &Fit) -> Result<(), Failure> {
    match (&arguments.file, arguments.to.is_empty()) {
        (Some(file), true) => fit::fit(&Constants { file: file.clone(), jobs: arguments.jobs }),
        (file, _) => calibrate(arguments, file.as_deref()),
    }
}

fn calibrate(arguments: &Fit, file: Option<&Path>) -> Result<(), Failure> {
    let measured = probe::read_all(&arguments.to)?;
    let model = match file {
        Some(file) => Model::of_scenario(file, &measured, &arguments.free)?,
        None => Model::of_measurement(&measured, &arguments.free)?,
    };
    let hold = if arguments.hold.is_empty() { vec![HELD_OUT.to_owned()] } else { arguments.hold.clone() };
    let threads = threads(arguments.jobs);
    let options = Options { members: usize::from(arguments.members), hold, threads, seed: arguments.seed };
    let fitted = fit_within(&model, &measured, &options, &arguments.budget)?;
    let folder = arguments.out.clone().unwrap_or_else(|| Path::new("results").join("fit"));
    let page = fitted.write(&folder)?;
    if arguments.json {
        return output::json(&fitted);
    }
    output::print(&format!("{}\n{}\n", fitted.text(), page.display()))
}

/// The fit of a model within a budget, with its progress on a terminal.
pub(super) fn fit_within(
    model: &Model,
    measured: &Measured,
    options: &Options,
    budget: &Budget,
) -> Result<Fitted, Failure> {
    let clock = budget.start();
    let shown = std::io::stderr().is_terminal();
    let mut watch = |progress: &Progress| {
        if shown {
            let Progress { evaluations, error } = progress;
            output::warn(&format!("{evaluations} evaluations: {:.0} % off", 100.0 * (error.exp() - 1.0)));
        }
        clock.left(progress.evaluations)
    };
    Ok(::fit::fit(model, measured, options, &mut watch)?)
}

pub(super) fn threads(jobs: Option<u16>) -> usize {
    jobs.map_or_else(runner::available_cores, usize::from)
}

fn free(text: &str) -> Result<Free, String> {
    let (key, range) = text.split_once('=').ok_or("expected KEY=RANGE, such as path.lte.rate=3mbit..60mbit")?;
    Free::new(key.trim(), range.trim())
}

impl From<::fit::Error> for Failure {
    fn from(error: ::fit::Error) -> Self {
        match error {
            ::fit::Error::Run(error) => error.into(),
            ::fit::Error::Input(message) => Self::Script(message),
            ::fit::Error::Output(message) => Self::Environment(message),
        }
    }
}
