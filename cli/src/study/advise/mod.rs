//! `ropewalk advise`: which algorithm, scheduler and mode to use over links, and the commands that put it into effect.

mod apply;
mod check;
mod commands;

use super::budget::{self, Budget};
use super::calibrate::{fit_within, threads};
use super::probe::read_all;
use crate::{Failure, output};
use ::fit::{Advice, AdviseOptions, Candidate, Fit, Goal, Links, Model, ModelError, Options};
use clap::{Args, ValueEnum};
use std::path::{Path, PathBuf};

/// Of a time that has to suffice for a fit and for advice, the share of the fit.
const FIT_SHARE: f64 = 0.5;
/// Searches of such a fit.
const MEMBERS: usize = 6;
/// The algorithms that the running kernel can use now.
const AVAILABLE: &str = "/proc/sys/net/ipv4/tcp_available_congestion_control";
/// The release of the running kernel.
const RELEASE: &str = "/proc/sys/kernel/osrelease";
/// The beginning of the names of Ropewalk's programs in the kernel.
const PROGRAM: &str = "rw_";

#[derive(Args, Debug)]
pub(crate) struct Advise {
    /// A folder of `ropewalk fit`, a measurement, a TOML file of links, or a tunnel that was measured: its file or its name
    #[arg(value_name = "LINKS|TUNNEL")]
    pub(crate) links: PathBuf,
    /// What the connection is for
    #[arg(long = "for", value_enum, default_value_t = Purpose::Throughput)]
    pub(crate) purpose: Purpose,
    /// The time for it, such as 90s or 2m; or a number: a fit of so many evaluations, and all candidates, whatever the time
    #[arg(long, value_name = "TIME|N", default_value = "2m", value_parser = budget::parse)]
    pub(crate) budget: Budget,
    /// Only what the kernel of this machine has now, between hosts with that kernel
    #[arg(long, conflicts_with = "tunnel")]
    pub(crate) kernel: bool,
    /// Only what this tunnel can do: its file, or NAME for /etc/ropewalk/NAME.toml
    #[arg(long, value_name = "FILE|NAME")]
    pub(crate) tunnel: Option<PathBuf>,
    /// Write the advice into the tunnel's file
    #[arg(long, conflicts_with = "json")]
    pub(crate) apply: bool,
    /// Say whether the advice of this folder came true, by a measurement through the connection that it advised
    #[arg(long, value_name = "FILE", conflicts_with_all = ["apply", "budget", "jobs", "json", "kernel", "tunnel"])]
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
    let (links, tunnel) = places(arguments)?;
    let edit = tunnel.as_deref().map(apply::read).transpose()?;
    let clock = arguments.budget.start();
    let mut subject = subject(arguments, &links)?;
    let kernel = arguments.kernel.then(Kernel::running).transpose()?;
    // A scenario of links says itself which hosts it has.
    if let (Some(kernel), Some(_)) = (&kernel, &subject.fit) {
        let host = format!("host.profile={}", kernel.profile);
        subject.ensemble.iter_mut().for_each(|links| links.sets.push(host.clone()));
    }
    let algorithms = kernel.as_ref().map(|kernel| &kernel.algorithms[..]);
    let candidates = ::fit::candidates(&subject.paths, algorithms, tunnel.is_some());
    let default = edit.as_deref().map_or_else(Candidate::default_of_linux, apply::configured);
    let mut advice = contest(arguments, &subject, &candidates, default, &mut |share| clock.is_within(share))?;
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

/// Where the links are, and the file of the tunnel: that of `--tunnel`, or the tunnel whose links are asked about.
fn places(arguments: &Advise) -> Result<(PathBuf, Option<PathBuf>), Failure> {
    let Advise { links, tunnel, apply, kernel, .. } = arguments;
    let named = apply::tunnel_of(links);
    let place = match (named, tunnel) {
        (Some(file), None) => (apply::measurement(&file)?, Some(file)),
        (Some(_), Some(_)) => {
            let message = format!("--tunnel: `{}` is a tunnel already", links.display());
            return Err(Failure::Usage(message));
        }
        (None, tunnel) => (links.clone(), tunnel.as_deref().map(apply::file)),
    };
    match place.1 {
        None if *apply => Err(Failure::Usage("--apply writes into a tunnel's file: name it with --tunnel".to_owned())),
        Some(_) if *kernel => Err(Failure::Usage("--kernel: a tunnel has its own algorithms".to_owned())),
        _ => Ok(place),
    }
}

fn contest(
    arguments: &Advise,
    subject: &Subject,
    candidates: &[Candidate],
    default: Candidate,
    is_within: &mut dyn FnMut(f64) -> bool,
) -> Result<Advice, Failure> {
    if candidates.is_empty() {
        return Err(Failure::Usage("there is nothing to choose from: a tunnel needs two paths".to_owned()));
    }
    let error = subject.fit.as_ref().map_or_else(ModelError::default, |fit| fit.model_error);
    let options = AdviseOptions { goal: arguments.purpose.into(), default, threads: threads(arguments.jobs), error };
    Ok(::fit::advise(&subject.ensemble, &subject.paths, candidates, &options, is_within)?)
}

fn subject(arguments: &Advise, path: &Path) -> Result<Subject, Failure> {
    if path.is_dir() {
        let fit = Fit::read(path)?;
        return of_fit(fit);
    }
    if path.extension().is_some_and(|extension| extension == "toml") {
        return of_scenario(path);
    }
    let measured = read_all(&[path.to_owned()])?;
    let model = Model::of_measurement(&measured, &[])?;
    let threads = threads(arguments.jobs);
    let options = Options { members: MEMBERS, hold: vec!["call".to_owned()], threads, seed: 1 };
    let fit = fit_within(&model, &measured, &options, &arguments.budget.share(FIT_SHARE))?;
    output::warn(&fit.headline());
    of_fit(fit)
}

fn of_fit(fit: Fit) -> Result<Subject, Failure> {
    let ensemble: Vec<Links> = fit.members.iter().map(|member| member.links.clone()).collect();
    let first = ensemble.first().ok_or_else(|| Failure::Script("the fit has no member".to_owned()))?;
    let paths = first.path_names()?;
    let sources = paths.iter().map(|name| fit.sources.get(name).cloned()).collect();
    Ok(Subject { ensemble, paths, fit: Some(fit), sources })
}

fn of_scenario(file: &Path) -> Result<Subject, Failure> {
    let links = Links::of_file(file)?;
    let paths = links.path_names()?;
    Ok(Subject { sources: vec![None; paths.len()], ensemble: vec![links], paths, fit: None })
}

/// What the running kernel has.
struct Kernel {
    /// Its algorithms, by their names in the registry.
    algorithms: Vec<String>,
    /// The profile of hosts that is nearest to it.
    profile: &'static str,
}

impl Kernel {
    fn running() -> Result<Self, Failure> {
        let read = |file: &str| {
            std::fs::read_to_string(file).map_err(|error| Failure::Environment(format!("{file}: {error}")))
        };
        let algorithms = read(AVAILABLE)?.split_whitespace().map(registry_name).collect();
        Ok(Self { algorithms, profile: profile(&read(RELEASE)?) })
    }
}

/// The profile for a release such as `6.1.0-18-amd64`: MPTCP's send buffer differs since 6.7, the receive buffer since 6.16
/// (docs/explanation/linux.md).
fn profile(release: &str) -> &'static str {
    let mut numbers = release.split(|character: char| !character.is_ascii_digit());
    let mut next = || numbers.next().and_then(|number| number.parse::<u32>().ok()).unwrap_or(0);
    match (next(), next()) {
        version if version < (6, 7) => "linux-6.1",
        version if version < (6, 16) => "linux-6.12",
        _ => "linux-6.18",
    }
}

/// The name in the registry of an algorithm that the kernel calls so.
fn registry_name(kernel: &str) -> String {
    kernel.strip_prefix(PROGRAM).map_or_else(|| kernel.to_owned(), |program| program.replace('_', "-"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_release_has_the_profile_with_its_rules_of_buffers() {
        let releases =
            ["5.15.0-91-generic", "6.1.0-18-amd64", "6.6.52", "6.7.0", "6.12.48+deb13", "6.16-rc1", "7.0", "unknown"];
        let profiles = ["6.1", "6.1", "6.1", "6.12", "6.12", "6.18", "6.18", "6.1"].map(|name| format!("linux-{name}"));
        assert_eq!(releases.map(profile).to_vec(), profiles);
    }
}
