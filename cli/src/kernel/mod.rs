//! `ropewalk kernel`: congestion control for the running kernel, as eBPF programs.

mod alone;
mod check;
mod metrics;
mod namespaces;
mod run;
mod status;

pub(crate) use alone::{alone, is_called_alone};

use crate::{Failure, output};
use clap::{Args, Subcommand};
use control::registry;
use kernel::{Audience, Error, PROGRAMS, Program};
use serde::Serialize;
use std::collections::HashSet;
use std::fs;
use std::path::PathBuf;

/// The congestion control of new sockets in the caller's network namespace. Unloading does not change it.
const DEFAULT: &str = "/proc/sys/net/ipv4/tcp_congestion_control";

/// What to do with the programs.
#[derive(Debug, Subcommand)]
pub(crate) enum KernelVerb {
    /// Load programs: each is then a congestion control of this kernel, until it is unloaded or the machine restarts
    Load {
        #[command(flatten)]
        choice: Choice,
        /// Let every process choose them, also those that may be more aggressive than Reno and CUBIC
        #[arg(long)]
        for_everybody: bool,
    },
    /// Unload programs: connections that use one keep it until they end
    Unload(Choice),
    /// Show which programs there are, and which are loaded
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Show which sockets of this network namespace use which program, and the subflows of each connection
    Status {
        /// Only connections that use one of these
        names: Vec<String>,
        /// Draw it anew every second, with rates and shares of that second
        #[arg(long, conflicts_with = "json")]
        watch: bool,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Run a program: its TCP sockets, and its children's, have a congestion control without asking for it
    Run(run::Options),
    /// Holds what `run` has attached: not for people
    #[command(hide = true)]
    KeepGroup {
        /// The group's folder
        group: PathBuf,
        /// The program
        name: String,
        /// Whether TCP becomes MPTCP
        #[arg(long)]
        mptcp: bool,
        /// The process that stays
        #[arg(long)]
        second: bool,
    },
    /// Print metrics of all network namespaces for Prometheus: programs, connections, windows, round-trip times, shares
    Metrics(metrics::Options),
    /// Say whether this kernel can load programs, what it lacks, and the remedy; exit code 4 if it cannot
    Check {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

/// Some programs, or all.
#[derive(Args, Debug)]
pub(crate) struct Choice {
    /// Names, as the verb `list` prints them
    #[arg(required_unless_present = "all")]
    names: Vec<String>,
    /// All: of `load` those that are not loaded, of `unload` those that are
    #[arg(long, conflicts_with = "names")]
    all: bool,
}

/// Does what the command line says.
pub(crate) fn dispatch(verb: &KernelVerb) -> Result<(), Failure> {
    match verb {
        KernelVerb::Load { choice, for_everybody } => each(choice, false, |program| {
            let audience = if *for_everybody { Audience::Everybody } else { Audience::AsCatalogued };
            let loaded = kernel::load_for(program, audience)?;
            Ok(format!("{} is loaded, id {}\n", program.kernel_name, loaded.id))
        }),
        KernelVerb::Unload(choice) => each(choice, true, |program| {
            kernel::unload(program)?;
            Ok(format!("{} is unloaded\n{}", program.kernel_name, kept(program)))
        }),
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

/// Acts on each of the programs, also after one has failed. All names are looked up before the first is touched.
/// `--all` are those that are loaded, or those that are not.
fn each(choice: &Choice, loaded: bool, act: impl Fn(&'static Program) -> Result<String, Error>) -> Result<(), Failure> {
    let registered = kernel::registered();
    let programs = match choice {
        Choice { all: true, .. } => {
            PROGRAMS.iter().filter(|program| registered.contains(program.kernel_name) == loaded).collect()
        }
        Choice { names, .. } => names.iter().map(|name| find(name)).collect::<Result<Vec<_>, _>>()?,
    };
    if programs.is_empty() {
        output::print(if loaded { "none is loaded\n" } else { "all are loaded\n" })?;
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

/// What of this namespace still uses a program that is unloaded.
fn kept(program: &Program) -> String {
    let mut text = match status::users(program) {
        Ok(0) | Err(_) => String::new(),
        Ok(users) => format!("  sockets of this namespace that keep it until they close: {users}\n"),
    };
    if fs::read_to_string(DEFAULT).is_ok_and(|name| name.trim() == program.kernel_name) {
        text.push_str("  it is still this namespace's default: sysctl net.ipv4.tcp_congestion_control=reno\n");
    }
    text
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
    /// Whether the kernel has this algorithm of its own.
    in_kernel: bool,
}

impl Entry {
    fn new(program: &Program, registered: &HashSet<String>) -> Self {
        let Program { name, kernel_name, coupled, restricted, .. } = *program;
        let title = match (registry::find(name), name.strip_suffix("-bbr").and_then(registry::find)) {
            (Some(entry), _) => entry.title.to_owned(),
            (None, Some(coupling)) => format!("{} over BBR v1: {}", coupling.name, coupling.title),
            (None, None) => String::new(),
        };
        let (loaded, in_kernel) = (registered.contains(kernel_name), registered.contains(name));
        Self { name, kernel_name, title, coupled, restricted, loaded, in_kernel }
    }

    fn text(&self) -> String {
        let state = if self.loaded { "loaded" } else { "" };
        let own = if self.in_kernel { " (this kernel has its own)" } else { "" };
        let restricted = if self.restricted { " (restricted)" } else { "" };
        format!("  {:14} {state:7} {}{restricted}{own}\n", self.kernel_name, self.title)
    }
}

fn list(json: bool) -> Result<(), Failure> {
    let registered = kernel::registered();
    let entries: Vec<Entry> = PROGRAMS.iter().map(|program| Entry::new(program, &registered)).collect();
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
