//! `ropewalk drill`: scripts of packetdrill against the simulator's TCP.

use super::Drill;
use crate::{Failure, output};
use drill::{Difference, Options, Outcome};
use std::path::Path;
use units::Span;

/// The maximum size of a script, bytes.
const MAX_SCRIPT: u64 = 1 << 20;

/// Runs the scripts, and prints the outcome of each.
pub(crate) fn drill(arguments: &Drill) -> Result<(), Failure> {
    check_congestion(arguments.congestion.as_deref())?;
    let options = Options {
        congestion: arguments.congestion.clone(),
        tick: Span::from_millis(arguments.tick_ms),
        release: arguments.profile,
        timeline: arguments.verbose,
    };
    let mut failed = 0;
    for script in &arguments.scripts {
        let outcome = run(script, &options)?;
        failed += usize::from(outcome.difference.is_some());
        output::print(&describe(script, &outcome))?;
    }
    let count = arguments.scripts.len();
    if failed == 0 { Ok(()) } else { Err(Failure::Run(format!("{failed} of {count} scripts differ"))) }
}

fn check_congestion(name: Option<&str>) -> Result<(), Failure> {
    let unknown = name.filter(|name| control::registry::find(name).is_none());
    unknown.map_or(Ok(()), |name| {
        Err(Failure::Usage(format!(
            "--congestion: there is no congestion control `{name}`: {}",
            runner::suggestion(name)
        )))
    })
}

fn run(script: &Path, options: &Options) -> Result<Outcome, Failure> {
    let name = script.display();
    let text = filesystem::read_text_of_any(script, MAX_SCRIPT)
        .map_err(|error| Failure::Script(format!("cannot read {name}: {error}")))?;
    drill::run(&text, options)
        .map_err(|error| Failure::Script(format!("{name}:{}: {}\n  help: {}", error.line, error.message, error.help)))
}

fn describe(script: &Path, outcome: &Outcome) -> String {
    let name = script.display();
    let timeline: String = outcome.timeline.iter().map(|line| format!("  {line}\n")).collect();
    let Outcome { packets, assertions, .. } = outcome;
    let verdict = match (&outcome.difference, outcome.end) {
        (Some(difference), _) => describe_difference(&name.to_string(), difference),
        (None, Some(line)) => format!("{name}: pass until line {line}, where the connection ends"),
        (None, None) => format!("{name}: pass"),
    };
    let ignored: String =
        outcome.ignored.iter().map(|(line, sysctl)| format!("{name}:{line}: {sysctl} has no effect here\n")).collect();
    format!("{timeline}{ignored}{verdict} ({packets} packets, {assertions} assertions)\n")
}

fn describe_difference(name: &str, difference: &Difference) -> String {
    let Difference { line, expected, found, state } = difference;
    format!("{name}:{line}: differs\n  expected {expected}\n  found    {found}\n  state    {state}\n ")
}
