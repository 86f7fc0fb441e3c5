//! `ropewalk kernel`: congestion control for the running kernel, as eBPF programs.

mod check;

use crate::{Failure, output};
use clap::Subcommand;
use kernel::{Error, PROGRAMS, Program};
use std::fmt::Write;

/// What to do with the programs.
#[derive(Debug, Subcommand)]
pub(crate) enum KernelVerb {
    /// Load programs: each is then a congestion control of this kernel, until it is unloaded or the machine restarts
    Load {
        /// Names, as `ropewalk kernel list` prints them
        #[arg(required = true)]
        names: Vec<String>,
    },
    /// Unload programs: connections that use one keep it until they end
    Unload {
        /// Names, as `ropewalk kernel list` prints them
        #[arg(required = true)]
        names: Vec<String>,
    },
    /// Show which programs there are, and which are loaded
    List,
    /// Say whether this kernel can load programs, what it lacks, and the remedy; exit code 4 if it cannot
    Check {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

/// Does what the command line says.
pub(crate) fn dispatch(verb: &KernelVerb) -> Result<(), Failure> {
    match verb {
        KernelVerb::Load { names } => each(names, |program| {
            let loaded = kernel::load(program)?;
            Ok(format!("{} is loaded, id {}\n", program.kernel_name, loaded.id))
        }),
        KernelVerb::Unload { names } => each(names, |program| {
            kernel::unload(program)?;
            Ok(format!("{} is unloaded\n", program.kernel_name))
        }),
        KernelVerb::List => list(),
        KernelVerb::Check { json } => check::check(*json),
    }
}

/// Looks all programs up before the first is touched.
fn each(names: &[String], act: impl Fn(&'static Program) -> Result<String, Error>) -> Result<(), Failure> {
    let programs = names.iter().map(|name| find(name)).collect::<Result<Vec<_>, _>>()?;
    programs.into_iter().try_for_each(|program| output::print(&act(program)?))
}

fn find(name: &str) -> Result<&'static Program, Failure> {
    let known: Vec<&str> = PROGRAMS.iter().map(|program| program.name).collect();
    kernel::program(name)
        .ok_or_else(|| Failure::Usage(format!("no program `{name}`\n  help: there are {}", known.join(", "))))
}

fn list() -> Result<(), Failure> {
    let registered = kernel::registered();
    let mut text = String::new();
    for program in PROGRAMS {
        let is_loaded = registered.contains(program.kernel_name);
        let _ = writeln!(text, "{:16} {}", program.kernel_name, if is_loaded { "loaded" } else { "" });
    }
    output::print(&text)
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Environment(error.to_string())
    }
}
