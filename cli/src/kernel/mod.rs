//! `ropewalk kernel`: congestion control for the running kernel, as eBPF programs.

mod alone;
mod check;
mod load;
mod metrics;
mod namespaces;
mod run;
mod state;
mod status;

pub(crate) use alone::{alone, is_called_alone};

use crate::{Failure, output};
use clap::{Args, Subcommand};
use control::registry;
use kernel::{Error, Loaded, PROGRAMS, Program};
use serde::Serialize;
use std::collections::HashSet;
use std::path::PathBuf;

/// The commands for the programs.
#[derive(Debug, Subcommand)]
pub(crate) enum KernelVerb {
    /// Load programs: each is then a congestion control of this kernel, until it is unloaded or the machine restarts
    Load(load::Load),
    /// Unload programs: connections that use one keep it until they end
    Unload(load::Unload),
    /// List the programs, and show which are loaded
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Show which sockets use which program, in all network namespaces, and the subflows of each connection
    Status {
        /// Only connections that use one of these
        names: Vec<String>,
        /// Refresh every second, with the rates and shares of that second
        #[arg(long, conflicts_with = "json")]
        watch: bool,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Run a program whose TCP sockets, and its children's, have a congestion control without asking for it
    Run(run::Options),
    /// Holds the eBPF programs that `run` has attached: not for users
    #[command(hide = true)]
    KeepGroup {
        /// The group's folder
        group: PathBuf,
        /// The program
        name: String,
        /// Whether TCP is replaced by MPTCP
        #[arg(long)]
        mptcp: bool,
        /// The process to wait for
        #[arg(long)]
        second: bool,
    },
    /// Print metrics of all network namespaces for Prometheus: programs, connections, windows, round-trip times, shares
    Metrics(metrics::Options),
    /// Report whether this kernel can load programs, what it lacks, and how to fix that; exit code 4 if it cannot
    Check {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

/// Some programs, or all.
#[derive(Args, Debug)]
pub(crate) struct Choice {
    /// Names, as the command `list` prints them
    #[arg(required_unless_present = "all")]
    names: Vec<String>,
    /// All programs that are not loaded; with --ensure or --replace, all programs
    #[arg(long, conflicts_with = "names")]
    all: bool,
}

/// Carries out the command.
pub(crate) fn dispatch(verb: &KernelVerb) -> Result<(), Failure> {
    match verb {
        KernelVerb::Load(options) => load::load(options),
        KernelVerb::Unload(options) => load::unload(options),
        KernelVerb::List { json } => list(*json),
        KernelVerb::Status { names, watch, json } => {
            let names = names.iter().map(|name| Ok(find(name)?.kernel_name)).collect::<Result<Vec<_>, Failure>>()?;
            status::status(&names, *watch, *json)
        }
        KernelVerb::Run(options) => run::run(options),
        KernelVerb::KeepGroup { group, name, mptcp, second } => run::keep(group, name, *mptcp, *second),
        KernelVerb::Metrics(options) => metrics::metrics(options),
        KernelVerb::Check { json } => check::check(*json),
    }
}

/// The programs that `--all` means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Which {
    All,
    Loaded,
    NotLoaded,
}

/// Acts on each of the programs, even after one has failed. All names are looked up before the first program is touched.
fn each(choice: &Choice, all: Which, act: impl Fn(&'static Program) -> Result<String, Error>) -> Result<(), Failure> {
    let registered = kernel::registered();
    let programs = match choice {
        Choice { all: true, .. } => {
            let is_loaded = |program: &Program| registered.contains(program.kernel_name);
            let is_meant = |program: &&Program| all == Which::All || is_loaded(program) == (all == Which::Loaded);
            PROGRAMS.iter().filter(is_meant).collect()
        }
        Choice { names, .. } => names.iter().map(|name| find(name)).collect::<Result<Vec<_>, _>>()?,
    };
    if programs.is_empty() {
        output::print(if all == Which::Loaded { "none is loaded\n" } else { "all are loaded\n" })?;
    }
    let mut failures = Vec::new();
    for program in programs {
        match act(program) {
            Ok(text) => output::print(&text)?,
            Err(error) => failures.push(error.to_string()),
        }
    }
    if failures.is_empty() { Ok(()) } else { Err(Failure::Environment(failures.join("\nerror: "))) }
}

fn find(name: &str) -> Result<&'static Program, Failure> {
    let known: Vec<&str> = PROGRAMS.iter().map(|program| program.name).collect();
    kernel::program(name)
        .ok_or_else(|| Failure::Usage(format!("no program `{name}`\n  help: there are {}", known.join(", "))))
}

/// A program, as JSON.
#[derive(Serialize)]
struct Entry {
    name: &'static str,
    kernel_name: &'static str,
    title: String,
    coupled: bool,
    /// Whether only processes with CAP_NET_ADMIN may choose it.
    restricted: bool,
    loaded: bool,
    /// Id of its registration.
    id: Option<u32>,
    /// Whether the loaded program is that of this version of Ropewalk.
    this_version: Option<bool>,
    /// Whether the kernel has this algorithm of its own.
    in_kernel: bool,
}

impl Entry {
    fn new(program: &Program, registered: &HashSet<String>, present: &[Loaded]) -> Self {
        let Program { name, kernel_name, coupled, restricted, .. } = *program;
        let title = match (registry::find(name), name.strip_suffix("-bbr").and_then(registry::find)) {
            (Some(entry), _) => entry.title.to_owned(),
            (None, Some(coupling)) => format!("{} over BBR v1: {}", coupling.name, coupling.title),
            (None, None) => String::new(),
        };
        let (loaded, in_kernel) = (registered.contains(kernel_name), registered.contains(name));
        let present = present.iter().find(|loaded| loaded.program.kernel_name == kernel_name);
        let this_version = present.and_then(Loaded::is_of_this_version);
        let id = present.map(|loaded| loaded.id);
        Self { name, kernel_name, title, coupled, restricted, loaded, id, this_version, in_kernel }
    }

    fn text(&self) -> String {
        let state = if self.loaded { "loaded" } else { "" };
        let version = if self.this_version == Some(false) { ", of another version of Ropewalk" } else { "" };
        let id = self.id.map_or_else(String::new, |id| format!(" (id {id}{version})"));
        let own = if self.in_kernel { " (this kernel has its own)" } else { "" };
        let restricted = if self.restricted { " (restricted)" } else { "" };
        format!("  {:14} {state:7} {}{id}{restricted}{own}\n", self.kernel_name, self.title)
    }
}

fn list(json: bool) -> Result<(), Failure> {
    let registered = kernel::registered();
    let present = kernel::loaded();
    let entries: Vec<Entry> = PROGRAMS.iter().map(|program| Entry::new(program, &registered, &present)).collect();
    if json {
        return output::json(&entries);
    }
    let of =
        |coupled: bool| entries.iter().filter(|entry| entry.coupled == coupled).map(Entry::text).collect::<String>();
    output::print(&format!("coupled, for MPTCP:\n{}\neach path by itself:\n{}", of(true), of(false)))
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Environment(error.to_string())
    }
}
