//! `ropewalk`: one program for all of Ropewalk. This file reads the command line and dispatches the command. It is a
//! library, so that a program with its own algorithms can register them and call [`main`].

use clap::error::ErrorKind;
use clap::{CommandFactory, FromArgMatches};
use std::process::ExitCode;

#[cfg(not(any(feature = "study", feature = "tunnel", feature = "kernel")))]
compile_error!("a build needs one of the features study, tunnel and kernel");

mod arguments;
#[cfg(feature = "lab")]
mod doctor;
mod failure;
mod features;
mod help;
#[cfg(feature = "kernel")]
mod kernel;
mod manual;
mod output;
#[cfg(feature = "tunnel")]
mod setup;
#[cfg(feature = "study")]
mod study;
#[cfg(feature = "tunnel")]
mod tunnel;

use arguments::{Arguments, Verb};
use failure::Failure;

/// The version of this build, from git: see `cli/version.rs`.
const VERSION: &str = env!("ROPEWALK_VERSION");

/// The program: reads the command line, carries it out, and returns the exit code.
#[must_use]
pub fn main() -> ExitCode {
    #[cfg(any(feature = "study", feature = "tunnel"))]
    policy::register();
    #[cfg(feature = "kernel")]
    if kernel::is_called_alone() {
        return finish(kernel::alone());
    }
    let program = help::with_groups(Arguments::command());
    let matches = program.clone().try_get_matches();
    let verb = match matches.and_then(|matches| Arguments::from_arg_matches(&matches)) {
        Ok(arguments) => arguments.verb,
        Err(error) => {
            let message = match error.kind() {
                ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand if std::env::args_os().len() <= 1 => {
                    help::first(&program)
                }
                _ => features::left_out(&error).unwrap_or_else(|| error.exit()),
            };
            output::warn(&message);
            return Failure::Usage(message).code();
        }
    };
    #[cfg(feature = "lab")]
    if let Verb::LabAgent { words } = &verb {
        return lab::agent(words);
    }
    finish(dispatch(&verb))
}

/// The exit code of a command, whose failure is printed.
fn finish(result: Result<(), Failure>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            output::warn(&failure.to_string());
            failure.code()
        }
    }
}

fn dispatch(verb: &Verb) -> Result<(), Failure> {
    match verb {
        #[cfg(feature = "study")]
        Verb::Study(verb) => study::dispatch(verb),
        #[cfg(feature = "tunnel")]
        Verb::Tunnel(verb) => tunnel::dispatch(verb),
        #[cfg(feature = "lab")]
        Verb::LabAgent { .. } => unreachable!("answered before"),
        #[cfg(feature = "lab")]
        Verb::Doctor { json } => doctor::doctor(*json),
        Verb::Completions { shell } => manual::completions(Arguments::command(), *shell),
        Verb::Man { dir } => manual::pages(Arguments::command(), dir, "1"),
        #[cfg(feature = "kernel")]
        Verb::Kernel { verb } => kernel::dispatch(verb),
    }
}
