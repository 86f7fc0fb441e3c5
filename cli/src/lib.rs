//! `ropewalk`: one program for all that Ropewalk does. This file reads the command line and hands over. It is a library,
//! so that a program with algorithms of its own can register them and call [`main`].

use clap::Parser;
use std::process::ExitCode;

mod arguments;
mod compare;
#[cfg(feature = "lab")]
mod doctor;
mod document;
mod driver;
mod failure;
mod features;
#[cfg(feature = "kernel")]
mod kernel;
#[cfg(feature = "lab")]
mod lab_driver;
mod list;
mod output;
mod progress;
mod run;
mod study;
#[cfg(feature = "tunnel")]
mod tunnel;

use arguments::{Arguments, Verb};
use failure::Failure;

/// The program: reads the command line, does what it says, and gives the exit code.
#[must_use]
pub fn main() -> ExitCode {
    policy::register();
    let verb = match Arguments::try_parse() {
        Ok(arguments) => arguments.verb,
        Err(error) => {
            let Some(message) = features::left_out(&error) else { error.exit() };
            output::warn(&message);
            return Failure::Usage(message).code();
        }
    };
    #[cfg(feature = "lab")]
    if let Verb::LabAgent { words } = &verb {
        return lab::agent(words);
    }
    match dispatch(&verb) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            output::warn(&failure.to_string());
            failure.code()
        }
    }
}

fn dispatch(verb: &Verb) -> Result<(), Failure> {
    match verb {
        Verb::Run(arguments) => run::run(arguments),
        Verb::List(arguments) => list::list(arguments),
        Verb::Report { dir, json } => study::report(dir, *json),
        Verb::Merge { dirs, out, json } => study::merge(dirs, out, *json),
        Verb::Compare { dirs, out, json } => compare::compare(dirs, out.as_deref(), *json),
        #[cfg(feature = "tunnel")]
        Verb::Tunnel(verb) => tunnel::dispatch(verb),
        #[cfg(feature = "lab")]
        Verb::LabAgent { .. } => unreachable!("answered before"),
        #[cfg(feature = "lab")]
        Verb::Doctor { json } => doctor::doctor(*json),
        #[cfg(feature = "kernel")]
        Verb::Kernel { verb } => kernel::dispatch(verb),
        Verb::Schema => output::json(&report::schema()),
    }
}
