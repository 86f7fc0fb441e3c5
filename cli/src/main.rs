//! `ropewalk`: one program for all that Ropewalk does. This file reads the command line and hands over.

use clap::Parser;
use std::process::ExitCode;

mod arguments;
mod baseline;
mod checks;
mod compare;
mod doctor;
mod document;
mod driver;
mod failure;
mod list;
mod output;
mod progress;
mod run;
mod simulate;
mod study;
mod tunnel;

use arguments::{Arguments, Verb};
use failure::Failure;

fn main() -> ExitCode {
    let verb = Arguments::parse().verb;
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
        Verb::Compare { dirs, out, json } => compare::compare(dirs, out.as_deref(), *json),
        Verb::Tunnel(verb) => tunnel::dispatch(verb),
        Verb::LabAgent { .. } => unreachable!("answered before"),
        Verb::Doctor { json } => doctor::doctor(*json),
        Verb::Schema => output::json(&report::schema()),
    }
}
