//! The commands of studies: they run scenarios in the simulator or on kernels, and show results folders.

mod advise;
mod budget;
mod calibrate;
mod claims;
mod compare;
mod document;
mod drill;
mod driver;
mod evaluate;
#[cfg(feature = "explore")]
mod explore;
mod figures;
mod fit;
mod interrupt;
#[cfg(feature = "lab")]
pub(crate) mod lab_driver;
mod list;
mod new;
mod probe;
mod progress;
mod report;
mod run;
mod trace;
mod worlds;

use crate::arguments::AFTER_HELP;
use crate::{Failure, output};
use ::probe::PathSource;
use clap::{ArgGroup, Args, Subcommand, ValueEnum};
use std::net::SocketAddr;
use std::ops::Range;
use std::path::PathBuf;
use store::Shard;
use units::Span;

/// A command of studies.
#[derive(Debug, Subcommand)]
pub(crate) enum StudyVerb {
    /// Run a scenario: every cell of its sweep with every seed
    #[command(after_help = AFTER_HELP)]
    Run(Run),
    /// Evaluate a congestion control by the questions of RFC 9743, next to CUBIC and Reno, or in worlds drawn by seed
    #[command(after_help = AFTER_HELP)]
    Evaluate(Evaluate),
    /// Fit links to measurements; without them, check whether the fitted constants of a scenario still meet their targets
    #[command(after_help = AFTER_HELP)]
    Fit(calibrate::Fit),
    /// Advise on links: which congestion control, scheduler and mode, with what to expect of them
    #[command(after_help = AFTER_HELP)]
    Advise(advise::Advise),
    /// Measure the paths to another host, alone and together: RTT, loss, jitter, TCP flows, policers, shared bottlenecks
    #[command(after_help = AFTER_HELP)]
    Probe(Probe),
    /// Run scripts of packetdrill against the simulator's TCP, in virtual time
    #[command(after_help = AFTER_HELP)]
    Drill(Drill),
    /// Repeat one run and write its packets for Wireshark and its events as a table
    #[command(after_help = AFTER_HELP)]
    Trace(Trace),
    /// Open a page on which a scenario's keys are moved and its figures follow
    #[cfg(feature = "explore")]
    #[command(after_help = AFTER_HELP)]
    Explore(Explore),
    /// List algorithms, schedulers, stacks and scenarios
    #[command(after_help = AFTER_HELP)]
    List(List),
    /// Print the tables of a results folder and write its report.html again
    #[command(after_help = AFTER_HELP)]
    Report {
        /// A folder that `ropewalk run` has filled
        dir: PathBuf,
        /// Also write each figure as SVG, PDF and CSV, and each table as CSV, into this folder
        #[arg(long, value_name = "OUT")]
        figures: Option<PathBuf>,
        /// Print the runs as one JSON document instead of the table
        #[arg(long)]
        json: bool,
    },
    /// Merge all shards of a study into one results folder, identical to that of a single machine
    #[command(after_help = AFTER_HELP)]
    Merge {
        /// Folders that `ropewalk run --shard` has filled: all shards
        #[arg(required = true, value_name = "DIR")]
        dirs: Vec<PathBuf>,
        /// The results folder of the whole study
        #[arg(long, value_name = "DIR")]
        out: PathBuf,
        /// Print the runs as one JSON document instead of the table
        #[arg(long)]
        json: bool,
    },
    /// Compare pairs of results folders side by side: tables, and a page with errors and overlays; or two captures
    #[command(after_help = AFTER_HELP)]
    Compare {
        /// Folders that `ropewalk run` has filled: A B, or several pairs A1 B1 A2 B2 ...; with --trace two captures
        #[arg(required = true, num_args = 2.., value_name = "DIR")]
        dirs: Vec<PathBuf>,
        /// Compare two captures (pcap, pcapng) of one side, flow by flow: the first packet that differs
        #[arg(long, conflicts_with_all = ["out", "json"])]
        trace: bool,
        /// With --trace: by how much the times of equal packets may differ
        #[arg(long, value_name = "TIME", default_value = "1ms", requires = "trace", value_parser = time)]
        within: Span,
        /// The page [default: compare.html in the first folder]
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
        /// Print all the runs as one JSON document instead of the table
        #[arg(long)]
        json: bool,
    },
    /// Show the verdicts of several results folders of one scenario side by side, and those of all runs together
    #[command(after_help = AFTER_HELP)]
    Claims {
        /// Folders that `ropewalk run` has filled, with different seeds
        #[arg(required = true, num_args = 2.., value_name = "DIR")]
        dirs: Vec<PathBuf>,
    },
    /// Print the JSON schema of scenario files, for editors, or of documents of measurements
    #[command(after_help = AFTER_HELP)]
    Schema {
        /// What it describes
        #[arg(value_enum, default_value_t = SchemaKind::Scenario)]
        of: SchemaKind,
    },
    /// Write a scenario with comments, as a starting point
    #[command(after_help = AFTER_HELP)]
    New {
        /// Name of the scenario, and with .toml of the file
        #[arg(default_value = "my-scenario")]
        name: String,
        /// Path from a profile of iBoxNet, with its other traffic; repeatable. NAME=FILE names the path
        #[arg(long, value_name = "FILE")]
        ibox: Vec<PathBuf>,
    },
}

#[derive(Args, Debug)]
pub(crate) struct Run {
    /// The scenario: a TOML file, or a name of `ropewalk list scenarios`
    pub(crate) file: PathBuf,
    /// The simulator or a kernel
    #[arg(long, value_enum, default_value_t = DriverChoice::Sim)]
    pub(crate) on: DriverChoice,
    /// On a kernel: the program that makes the traffic [default: agent]
    #[arg(long, value_enum)]
    pub(crate) traffic: Option<Traffic>,
    /// Set a key of the scenario, as a sweep would: --set flow.tcp.congestion=reno
    #[arg(long, value_name = "KEY=VALUE", value_parser = key_and_value)]
    pub(crate) set: Vec<String>,
    /// Run the scenario's short form, its `[quick]` table; without one, in full
    #[arg(long)]
    pub(crate) quick: bool,
    /// Refuse a scenario that names files outside its folder: for a service that runs strangers' scenarios
    #[arg(long)]
    pub(crate) own_files: bool,
    /// Number of parallel runs; the results do not depend on it [default: one per core]
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) jobs: Option<u16>,
    /// Use this one seed instead of the scenario's
    #[arg(long, value_name = "S", allow_negative_numbers = true, value_parser = seed)]
    pub(crate) seed: Option<u64>,
    /// Make only the runs of shard I of N, for `ropewalk merge`; runs are divided by their estimated cost
    #[arg(long, value_name = "I/N")]
    pub(crate) shard: Option<Shard>,
    /// The results folder; an unfinished one is resumed [default: results/NAME]
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Write nothing to disk: print the tables, or with --json the document
    #[arg(long, conflicts_with_all = ["out", "shard", "capture"])]
    pub(crate) no_store: bool,
    /// On a kernel: leave out the cells that it cannot run
    #[arg(long)]
    pub(crate) partial: bool,
    /// On a kernel: keep every host's packets, without payload, below the results folder
    #[arg(long)]
    pub(crate) capture: bool,
    /// Print the runs as one JSON document instead of the table
    #[arg(long)]
    pub(crate) json: bool,
    /// Print no progress and no notes on standard error
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

#[derive(Args, Debug)]
pub(crate) struct Evaluate {
    /// Names of `ropewalk list algorithms`, with parameters `{ name = "cubic", beta = 0.8 }`, or ONNX files of policies;
    /// with several, the verdicts are printed side by side
    #[arg(value_name = "NAME|FILE.onnx", required = true)]
    pub(crate) algorithms: Vec<String>,
    /// Only this case of rfc9743.toml, such as `reordering`; may be repeated
    #[arg(long = "case", value_name = "NAME")]
    pub(crate) cases: Vec<String>,
    /// Make short runs
    #[arg(long)]
    pub(crate) quick: bool,
    /// Instead of the questions: judge it against CUBIC in the worlds drawn from these seeds
    #[arg(long, value_name = "FROM..TO", value_parser = worlds::range, conflicts_with = "quick")]
    pub(crate) worlds: Option<Range<u64>>,
    /// Only the worlds for choosing parameters (even seeds), or only those that judge (odd seeds)
    #[arg(long, value_enum, requires = "worlds")]
    pub(crate) part: Option<PartChoice>,
    /// Number of the worst kinds of worlds, and of the worst worlds per measure, to print
    #[arg(long, value_name = "N", default_value_t = 10, requires = "worlds")]
    pub(crate) worst: usize,
    /// Print the world of this seed as a scenario, and run nothing
    #[arg(long, value_name = "SEED", value_parser = seed, conflicts_with_all = ["worlds", "quick", "out", "no_store", "json"])]
    pub(crate) show: Option<u64>,
    /// Number of parallel runs; the results do not depend on it [default: one per core]
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) jobs: Option<u16>,
    /// The results folder; an unfinished one is resumed. With several algorithms it has one folder per algorithm [default:
    /// results/rfc9743-NAME; for worlds results/worlds]
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Write nothing to disk: print the tables, or with --json the document
    #[arg(long, conflicts_with = "out")]
    pub(crate) no_store: bool,
    /// Print the runs as one JSON document instead of the tables
    #[arg(long)]
    pub(crate) json: bool,
    /// Print no progress and no notes on standard error
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

/// What only a measurement takes.
const MEASURING: [&str; 9] = ["host", "paths", "repeats", "seconds", "congestion", "budget", "seed", "yes", "quiet"];

#[derive(Args, Debug)]
pub(crate) struct Probe {
    /// The other end, which runs `ropewalk probe --serve`
    #[arg(value_name = "HOST[:PORT]", required_unless_present_any = ["serve", "import"])]
    pub(crate) host: Option<String>,
    /// Be the other end: answer those who know the token
    #[arg(long, conflicts_with_all = MEASURING)]
    pub(crate) serve: bool,
    /// With --serve: the address [default: port 4756 of all addresses]
    #[arg(long, value_name = "ADDR:PORT", requires = "serve")]
    pub(crate) listen: Option<SocketAddr>,
    /// A secret of both ends, at least 16 characters [default: the environment's ROPEWALK_PROBE_TOKEN; with --serve a new one,
    /// which is printed]
    #[arg(long, value_name = "TEXT")]
    pub(crate) token: Option<String>,
    /// A path, by the source address or the device of its packets; may be repeated [default: as the host routes]
    #[arg(long = "path", value_name = "NAME=SOURCE")]
    pub(crate) paths: Vec<PathSource>,
    /// Number of repetitions of each stage
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub(crate) repeats: u32,
    /// Longest time of a TCP flow
    #[arg(long, value_name = "S", default_value_t = 8, value_parser = clap::value_parser!(u64).range(1..=60))]
    pub(crate) seconds: u64,
    /// Congestion controls of the TCP flows; the first one is that of parallel flows, calls and paths together
    #[arg(long, value_name = "NAME", value_delimiter = ',', default_value = "cubic,bbr")]
    pub(crate) congestion: Vec<String>,
    /// The most that may pass in both directions
    #[arg(long, value_name = "SIZE", default_value = "500MB", value_parser = size)]
    pub(crate) budget: u64,
    /// The seed of the order of stages [default: a random one, which is printed]
    #[arg(long, value_name = "S", value_parser = seed)]
    pub(crate) seed: Option<u64>,
    /// Write the measurements as one JSON document; `-` is standard output
    #[arg(long, value_name = "FILE", conflicts_with = "serve")]
    pub(crate) json: Option<PathBuf>,
    /// Measure metered links, too
    #[arg(long)]
    pub(crate) yes: bool,
    /// Print no progress on standard error
    #[arg(long, short)]
    pub(crate) quiet: bool,
    /// Instead of measuring: read files of measurements, and make one document of them; NAME=FILE names the path of a file
    #[arg(long, value_name = "[NAME=]FILE", num_args = 1.., conflicts_with_all = MEASURING, conflicts_with_all = ["serve", "token"])]
    pub(crate) import: Vec<PathBuf>,
}

/// Parts of the worlds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum PartChoice {
    /// Even seeds: parameters may be chosen by them
    Tune,
    /// Odd seeds: no parameter is chosen by them
    Judge,
}

impl From<PartChoice> for ::worlds::Part {
    fn from(part: PartChoice) -> Self {
        match part {
            PartChoice::Tune => Self::Tune,
            PartChoice::Judge => Self::Judge,
        }
    }
}

/// The drivers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum DriverChoice {
    /// The simulator
    Sim,
    /// Real Linux: for each run, the first of the following two that supports it
    Kernel,
    /// A User-Mode Linux kernel for each run
    Uml,
    /// This machine's kernel, in network namespaces (needs root)
    Netns,
}

/// The program that makes the traffic on a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Traffic {
    /// Ropewalk's own program
    Agent,
    /// iperf3
    Iperf3,
    /// Files by FTP: vsftpd and wget
    Ftp,
}

#[derive(Args, Debug)]
pub(crate) struct Drill {
    /// The scripts
    #[arg(required = true, value_name = "SCRIPT")]
    pub(crate) scripts: Vec<PathBuf>,
    /// The congestion control, instead of the script's own [default: cubic]
    #[arg(long, value_name = "NAME")]
    pub(crate) congestion: Option<String>,
    /// The timer tick of the host (Linux: 1/HZ), milliseconds
    #[arg(long, value_name = "MS", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=10))]
    pub(crate) tick_ms: u64,
    /// The Linux series whose rules apply, by the hosts' profiles: linux-6.1, linux-6.12 or linux-6.18
    #[arg(long, value_name = "PROFILE", default_value = "linux-6.1", value_parser = drill_profile)]
    pub(crate) profile: control::LinuxRelease,
    /// Also print the packets that arrive and leave, and the state after each acknowledgement
    #[arg(short, long)]
    pub(crate) verbose: bool,
}

fn drill_profile(name: &str) -> Result<control::LinuxRelease, String> {
    match name {
        "linux-6.1" => Ok(control::LinuxRelease::V6_1),
        "linux-6.12" => Ok(control::LinuxRelease::V6_12),
        "linux-6.18" => Ok(control::LinuxRelease::V6_18),
        _ => Err("expected linux-6.1, linux-6.12 or linux-6.18".to_owned()),
    }
}

#[derive(Args, Debug)]
#[group(skip)]
#[command(group = ArgGroup::new("outputs").required(true).multiple(true).args(["page", "pcap", "events", "qlog"]))]
pub(crate) struct Trace {
    /// The scenario: a TOML file, a name of `ropewalk list scenarios`, or a folder that `ropewalk run` has filled; or a capture
    /// (pcap, pcapng) of a kernel's run
    pub(crate) scenario: PathBuf,
    /// The cell of the sweep, by the values of swept keys: --cell flow.tcp.congestion=olia --cell path.lte.loss=1%
    #[arg(long = "cell", value_name = "KEY=VALUE", value_delimiter = ',', value_parser = key_and_value)]
    pub(crate) cells: Vec<String>,
    /// The seed [default: the scenario's first]
    #[arg(long, value_name = "S", allow_negative_numbers = true, value_parser = seed)]
    pub(crate) seed: Option<u64>,
    /// Set a key of the scenario, as a sweep would: --set flow.tcp.congestion=reno
    #[arg(long, value_name = "KEY=VALUE", value_parser = key_and_value)]
    pub(crate) set: Vec<String>,
    /// Run the scenario's short form, its `[quick]` table
    #[arg(long)]
    pub(crate) quick: bool,
    /// Write the packets at one place, as pcapng for Wireshark and tcpdump
    #[arg(long, value_name = "FILE")]
    pub(crate) pcap: Option<PathBuf>,
    /// The place: near or far for the hosts at an end of the paths, LINK for packets that enter a link, LINK:out for packets
    /// that leave it [default: near]. Of a capture, near or far: it was made at the host that opens connections, or at the
    /// one that accepts them [default: what the first handshake tells]
    #[arg(long, value_name = "PLACE")]
    pub(crate) at: Option<String>,
    /// Write packets with their payload, which is zeros, instead of their headers alone
    #[arg(long, requires = "pcap")]
    pub(crate) payload: bool,
    /// Write each packet sent, delivered or lost and each change of a sender's state, as Parquet
    #[arg(long, value_name = "FILE")]
    pub(crate) events: Option<PathBuf>,
    /// Write packets and recovery of QUIC flows, and the recovery of TCP flows, as qlog
    #[arg(long, value_name = "FILE")]
    pub(crate) qlog: Option<PathBuf>,
    /// The version of that qlog
    #[arg(long, value_enum, default_value_t = QlogVersion::Quic12, requires = "qlog")]
    pub(crate) qlog_version: QlogVersion,
    /// Write a page that draws sequence numbers, windows, RTTs and queues over time, as HTML
    #[arg(long, value_name = "FILE")]
    pub(crate) page: Option<PathBuf>,
}

/// The page of a scenario.
#[cfg(feature = "explore")]
#[derive(Args, Debug)]
pub(crate) struct Explore {
    /// The scenario: a TOML file, or a name of `ropewalk list scenarios` [default: the page lists the built-in ones]
    pub(crate) scenario: Option<PathBuf>,
    /// The port on loopback [default: a free one]
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    pub(crate) port: u16,
    /// Print the page's address, and open no browser
    #[arg(long)]
    pub(crate) no_browser: bool,
}

/// A version of qlog.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum QlogVersion {
    /// The schema of draft-ietf-quic-qlog-quic-events-12
    #[value(name = "quic-12")]
    Quic12,
    /// The version that qvis reads
    #[value(name = "0.3")]
    V03,
}

#[derive(Args, Debug)]
pub(crate) struct List {
    /// The list to print; without it, the available lists
    pub(crate) what: Option<ListKind>,
    /// Only this entry, in full
    pub(crate) name: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// What a schema describes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum SchemaKind {
    /// Scenario files
    Scenario,
    /// Documents of measurements
    Measurements,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum ListKind {
    /// Congestion controls
    Algorithms,
    /// Schedulers, which choose the path of the next packet
    Schedulers,
    /// Transport stacks of others that this program contains
    Stacks,
    /// Scenario files below ./scenarios, and built-in ones
    Scenarios,
}

/// Carries out the command.
pub(crate) fn dispatch(verb: &StudyVerb) -> Result<(), Failure> {
    match verb {
        StudyVerb::Run(arguments) => run::run(arguments),
        StudyVerb::Evaluate(arguments) => evaluate::evaluate(arguments),
        StudyVerb::Fit(arguments) => calibrate::run(arguments),
        StudyVerb::Advise(arguments) => advise::advise(arguments),
        StudyVerb::Drill(arguments) => drill::drill(arguments),
        StudyVerb::Probe(arguments) => probe::probe(arguments),
        StudyVerb::Trace(arguments) => trace::trace(arguments),
        #[cfg(feature = "explore")]
        StudyVerb::Explore(arguments) => explore::explore(arguments),
        StudyVerb::List(arguments) => list::list(arguments),
        StudyVerb::Report { dir, figures, json } => report::report(dir, figures.as_deref(), *json),
        StudyVerb::Merge { dirs, out, json } => report::merge(dirs, out, *json),
        StudyVerb::Compare { dirs, trace: true, within, .. } => compare::captures(dirs, *within),
        StudyVerb::Compare { dirs, out, json, .. } => compare::compare(dirs, out.as_deref(), *json),
        StudyVerb::Claims { dirs } => claims::claims(dirs),
        StudyVerb::New { name, ibox } => new::new(name, ibox),
        StudyVerb::Schema { of: SchemaKind::Scenario } => output::json(&::report::schema()),
        StudyVerb::Schema { of: SchemaKind::Measurements } => output::json(&measured::schema()),
    }
}

fn seed(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("expected a whole number from 0 to {}", u64::MAX))
}

fn time(text: &str) -> Result<Span, String> {
    <parse::Time as parse::Quantity>::parse(text).map(|time| time.0)
}

fn size(text: &str) -> Result<u64, String> {
    <parse::Size as parse::Quantity>::parse(text).map(|size| size.0)
}

fn key_and_value(text: &str) -> Result<String, String> {
    match text.split_once('=') {
        Some((key, _)) if !key.trim().is_empty() => Ok(text.to_owned()),
        _ => Err("expected KEY=VALUE, for example flow.tcp.congestion=reno".to_owned()),
    }
}
