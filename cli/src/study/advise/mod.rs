//! `ropewalk advise`: which algorithm, scheduler and mode to use over links, and the commands that put it into effect.

mod apply;
mod check;
mod commands;

use super::budget::{self, Budget};
use super::calibrate::{fit_within, read_all, threads};
use crate::{Failure, output};
use ::fit::{Advice, AdviseOptions, Candidate, Fit, Goal, Links, Model, Options};
use clap::{Args, ValueEnum};
use measured::Measured;
use std::path::{Path, PathBuf};

/// Of a time that has to suffice for a fit and for advice, the share of the fit.
const FIT_SHARE: f64 = 0.5;
/// Searches of such a fit.
const STARTS: usize = 6;
/// The algorithms that the running kernel can use now.
const AVAILABLE: &str = "/proc/sys/net/ipv4/tcp_available_congestion_control";
/// The beginning of the names of Ropewalk's programs in the kernel.
const PROGRAM: &str = "rw_";

#[derive(Args, Debug)]
pub(crate) struct Advise {
    /// A folder of `ropewalk fit`, a measurement, or a TOML file of links
    pub(crate) links: PathBuf,
    /// What the connection is for
    #[arg(long = "for", value_enum, default_value_t = Purpose::Throughput)]
    pub(crate) purpose: Purpose,
    /// The time for it, such as 90s or 2m; or a number: a fit of so many evaluations, and all candidates, whatever the time
    #[arg(long, value_name = "TIME|N", default_value = "2m", value_parser = budget::parse)]
    pub(crate) budget: Budget,
    /// Only what the kernel of this machine has now
    #[arg(long, conflicts_with = "tunnel")]
    pub(crate) kernel: bool,
    /// Only what this tunnel can do: its file, or NAME for /etc/ropewalk/NAME.toml
    #[arg(long, value_name = "FILE|NAME")]
    pub(crate) tunnel: Option<PathBuf>,
    /// Write the advice into the tunnel's file
    #[arg(long, requires = "tunnel")]
    pub(crate) apply: bool,
    /// Say whether the advice of this folder came true, by a measurement through the connection that it advised
    #[arg(long, value_name = "FILE", conflicts_with_all = ["apply", "kernel", "tunnel"])]
    pub(crate) check: Option<PathBuf>,
    /// Print the advice as one JSON document
    #[arg(long)]
    pub(crate) json: bool,
    /// Number of parallel runs; the results do not depend on it [default: one per core]
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) jobs: Option<u16>,
}

/// The use of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Purpose {
    /// The most goodput
    Throughput,
    /// The least delay, of what carries at least half of the best goodput
    Calls,
    /// The shortest time of an answer of 200 kB
    Web,
    /// Goodput that leaves downloads next to it their share
    Fair,
}

impl From<Purpose> for Goal {
    fn from(purpose: Purpose) -> Self {
        match purpose {
            Purpose::Throughput => Self::Throughput,
            Purpose::Calls => Self::Calls,
            Purpose::Web => Self::Web,
            Purpose::Fair => Self::Fair,
        }
    }
}

/// The links to advise on.
struct Subject {
    ensemble: Vec<Links>,
    paths: Vec<String>,
    /// Where they were fitted.
    fit: Option<Fit>,
    /// The source address or device of each path, if the measurement has it.
    sources: Vec<Option<String>>,
}

/// Advises, or says whether advice came true.
pub(crate) fn advise(arguments: &Advise) -> Result<(), Failure> {
    if let Some(measurement) = &arguments.check {
        return check::check(&arguments.links, arguments.purpose.into(), measurement);
    }
    let tunnel = arguments.tunnel.as_deref().map(apply::file);
    let edit = tunnel.as_deref().map(apply::read).transpose()?;
    let clock = arguments.budget.start();
    let subject = subject(arguments)?;
    let kernel = arguments.kernel.then(available).transpose()?;
    let candidates = ::fit::candidates(&subject.paths, kernel.as_deref(), tunnel.is_some());
    let mut advice = contest(arguments, &subject, &candidates, &mut |share| clock.is_within(share))?;
    advice.measure = subject.fit.as_ref().map_or(Vec::new(), Fit::to_measure);
    if arguments.links.is_dir() {
        check::keep(&arguments.links, &advice)?;
    }
    if arguments.json {
        output::json(&advice)?;
    } else {
        let commands = commands::text(&advice, &subject.paths, &subject.sources);
        output::print(&format!("{}{commands}", advice.text()))?;
    }
    match (tunnel, edit) {
        (Some(file), Some(text)) if arguments.apply => apply::apply(&file, &text, &advice),
        _ => Ok(()),
    }
}

fn contest(
    arguments: &Advise,
    subject: &Subject,
    candidates: &[Candidate],
    is_within: &mut dyn FnMut(f64) -> bool,
) -> Result<Advice, Failure> {
    if candidates.is_empty() {
        return Err(Failure::Usage("there is nothing to choose from: a tunnel needs two paths".to_owned()));
    }
    let error = subject.fit.as_ref().map_or(0.0, Fit::model_error);
    let options = AdviseOptions { goal: arguments.purpose.into(), threads: threads(arguments.jobs), error };
    Ok(::fit::advise(&subject.ensemble, &subject.paths, candidates, &options, is_within)?)
}

fn subject(arguments: &Advise) -> Result<Subject, Failure> {
    let path = &arguments.links;
    if path.is_dir() {
        let fit = Fit::read(path)?;
        return of_fit(fit, None);
    }
    if path.extension().is_some_and(|extension| extension == "toml") {
        return of_scenario(path);
    }
    let measured = read_all(std::slice::from_ref(path))?;
    let model = Model::of_measurement(&measured, &[])?;
    let threads = threads(arguments.jobs);
    let options = Options { starts: STARTS, hold: vec!["call".to_owned()], threads, seed: 1 };
    let fit = fit_within(&model, &measured, &options, &arguments.budget.share(FIT_SHARE))?;
    output::warn(&fit.headline());
    of_fit(fit, Some(&measured))
}

fn of_fit(fit: Fit, measured: Option<&Measured>) -> Result<Subject, Failure> {
    let ensemble: Vec<Links> = fit.members.iter().map(|member| member.links.clone()).collect();
    let first = ensemble.first().ok_or_else(|| Failure::Script("the fit has no member".to_owned()))?;
    let paths = first.path_names()?;
    let source = |name: &String| measured?.paths.iter().find(|path| path.name == *name)?.source.clone();
    let sources = paths.iter().map(source).collect();
    Ok(Subject { ensemble, paths, fit: Some(fit), sources })
}

fn of_scenario(file: &Path) -> Result<Subject, Failure> {
    let links = Links::of_file(file)?;
    let paths = links.path_names()?;
    Ok(Subject { sources: vec![None; paths.len()], ensemble: vec![links], paths, fit: None })
}

/// The algorithms of the running kernel, by their names in the registry.
fn available() -> Result<Vec<String>, Failure> {
    let text =
        std::fs::read_to_string(AVAILABLE).map_err(|error| Failure::Environment(format!("{AVAILABLE}: {error}")))?;
    let name = |word: &str| word.strip_prefix(PROGRAM).map_or(word.to_owned(), |program| program.replace('_', "-"));
    Ok(text.split_whitespace().map(name).collect())
}
