//! The program `ropewalk-kernel`, which has only the commands of `ropewalk kernel`. Any build with the feature `kernel`
//! becomes this program if it is called by this name.

use super::KernelVerb;
use crate::arguments::AFTER_HELP;
use crate::{Failure, manual};
use clap::{CommandFactory, Parser, Subcommand};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// The name by which it is called.
const NAME: &str = "ropewalk-kernel";

/// Coupled congestion control for the running kernel's MPTCP, and algorithms that a kernel lacks, as eBPF programs.
#[derive(Debug, Parser)]
#[command(name = NAME, version = crate::VERSION, after_help = AFTER_HELP)]
struct Arguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    #[command(flatten)]
    Kernel(KernelVerb),
    /// Print the completions for a shell: bash, elvish, fish, powershell or zsh
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Write the manual pages, one per command
    Man {
        /// An existing folder, such as /usr/share/man/man8
        dir: PathBuf,
    },
}

/// Whether this process was started as `ropewalk-kernel`.
pub(crate) fn is_called_alone() -> bool {
    let called = std::env::args_os().next();
    called.is_some_and(|path| Path::new(&path).file_name() == Some(OsStr::new(NAME)))
}

/// The words before a command, as a user types them.
pub(super) fn words() -> &'static str {
    if is_called_alone() { NAME } else { "ropewalk kernel" }
}

/// Reads and carries out the command line.
pub(crate) fn alone() -> Result<(), Failure> {
    match Arguments::parse().verb {
        Verb::Kernel(verb) => super::dispatch(&verb),
        Verb::Completions { shell } => manual::completions(Arguments::command(), shell),
        Verb::Man { dir } => manual::pages(Arguments::command(), &dir, "8"),
    }
}
