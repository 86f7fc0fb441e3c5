//! The command line.

#[cfg(feature = "kernel")]
use crate::kernel::KernelVerb;
#[cfg(feature = "study")]
use crate::study::StudyVerb;
#[cfg(feature = "tunnel")]
use crate::tunnel::TunnelVerb;
use clap::{Parser, Subcommand};
use std::path::PathBuf;

pub(crate) const AFTER_HELP: &str = "\
Exit codes:
  0  done
  1  a run failed
  2  the command line is wrong
  3  the scenario or the configuration is wrong
  4  something outside is missing or refuses: a folder that cannot be written, a tunnel that is not up";

/// Simulate, measure and deploy connections that use several network paths at once
#[derive(Debug, Parser)]
#[command(name = "ropewalk", version = crate::VERSION, after_help = format!("{AFTER_HELP}{}", crate::features::left_out_help()))]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) verb: Verb,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    #[cfg(feature = "study")]
    #[command(flatten)]
    Study(StudyVerb),
    /// Report which kernels this machine can run, the features that they lack, and how to add them
    #[cfg(feature = "lab")]
    #[command(after_help = AFTER_HELP)]
    Doctor {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Congestion control for the running kernel, as eBPF programs: coupled for MPTCP, and algorithms that a kernel lacks
    #[cfg(feature = "kernel")]
    #[command(after_help = AFTER_HELP)]
    Kernel {
        #[command(subcommand)]
        verb: KernelVerb,
    },
    #[cfg(feature = "tunnel")]
    #[command(flatten)]
    Tunnel(TunnelVerb),
    /// Print the completions for a shell: bash, elvish, fish, powershell or zsh
    #[command(after_help = AFTER_HELP)]
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Write the manual pages, one per command
    #[command(after_help = AFTER_HELP)]
    Man {
        /// An existing folder, such as /usr/share/man/man1
        dir: PathBuf,
    },
    /// Started inside a guest of the lab: not for users
    #[cfg(feature = "lab")]
    #[command(hide = true)]
    LabAgent {
        /// A plan and the file for its results
        words: Vec<String>,
    },
}
