//! `ropewalk trace`: repeats one run of a scenario or of a results folder, and writes its packets, its events and a page; or
//! writes the events of a capture.

use super::{QlogVersion, Trace, run};
use crate::{Failure, output};
use record::Run;
use scenario::{Cell, Overrides, Scenario};
use std::path::Path;
use store::Results;

/// Repeats the run, writes the files, and reports whether it is the run of the folder. Of a capture, writes the files.
pub(crate) fn trace(arguments: &Trace) -> Result<(), Failure> {
    if trace::is_capture(&arguments.scenario) {
        return capture(arguments);
    }
    if arguments.at.is_some() && arguments.pcap.is_none() {
        return Err(Failure::Usage("--at is the place of a capture: add --pcap FILE".to_owned()));
    }
    let (scenario, stored) = load(arguments)?;
    runner::check(&scenario)?;
    let cell = trace::find_cell(&scenario, &arguments.cells).map_err(Failure::Usage)?;
    let seed = arguments.seed.or_else(|| scenario.seeds.first().copied()).unwrap_or(1);
    let heading = trace::Heading::of(&scenario, cell, seed, crate::VERSION);
    let outputs = trace::Outputs {
        pcap: arguments.pcap.as_deref(),
        place: trace::Place::parse(arguments.at.as_deref().unwrap_or("near"), &cell.experiment)
            .map_err(Failure::Usage)?,
        has_payload: arguments.payload,
        events: arguments.events.as_deref(),
        qlog: arguments.qlog.as_deref().map(|path| match arguments.qlog_version {
            QlogVersion::Quic12 => (path, trace::QlogVersion::Draft12),
            QlogVersion::V03 => (path, trace::QlogVersion::V03),
        }),
        page: arguments.page.as_deref().map(|path| (path, &heading)),
    };
    let run = trace::trace(&cell.experiment, seed, &outputs).map_err(failure)?;
    let stored = stored.iter().find(|stored| is_of(stored, cell, seed));
    output::print(&summary(arguments, cell, seed, &run, stored))?;
    match stored.filter(|stored| stored.digest != run.digest) {
        Some(stored) => Err(Failure::Run(format!(
            "this run differs from that of the folder, whose digest is {}: another version of the program made it",
            stored.digest
        ))),
        None => Ok(()),
    }
}

/// Writes the events of a capture.
fn capture(arguments: &Trace) -> Result<(), Failure> {
    let of_a_run = [
        ("--cell", !arguments.cells.is_empty()),
        ("--seed", arguments.seed.is_some()),
        ("--set", !arguments.set.is_empty()),
        ("--quick", arguments.quick),
        ("--pcap", arguments.pcap.is_some()),
        ("--qlog", arguments.qlog.is_some()),
    ];
    if let Some((option, _)) = of_a_run.iter().find(|(_, is_given)| *is_given) {
        let file = arguments.scenario.display();
        return Err(Failure::Usage(format!(
            "{file} is a capture, for which there are --events and --page, but no {option}"
        )));
    }
    let end = arguments.at.as_deref().map(trace::CaptureEnd::parse).transpose().map_err(Failure::Usage)?;
    let outputs = trace::CaptureOutputs { events: arguments.events.as_deref(), page: arguments.page.as_deref() };
    let summary = trace::read_capture(&arguments.scenario, end, &outputs).map_err(failure)?;
    let end = match summary.end {
        trace::CaptureEnd::Near => "near: the host that opens connections",
        trace::CaptureEnd::Far => "far: the host that accepts connections",
    };
    let trace::CaptureSummary { packets, flows, .. } = summary;
    output::print(&format!("at       {end}\nread     packets: {packets}, flows: {flows}\n{}", files(arguments)))
}

fn failure(error: trace::Error) -> Failure {
    match error {
        trace::Error::Simulation(error) => Failure::Usage(error.to_string()),
        trace::Error::Store(error) => Failure::Environment(error.to_string()),
        trace::Error::Capture(error) => Failure::Environment(error),
    }
}

/// The scenario, and the runs of the folder if it is one.
fn load(arguments: &Trace) -> Result<(Scenario, Vec<Run>), Failure> {
    let overrides = Overrides { sets: arguments.set.clone(), quick: arguments.quick };
    if !arguments.scenario.is_dir() {
        return Ok((run::find(&arguments.scenario, &overrides, false)?, Vec::new()));
    }
    let (manifest, runs) = Results::open(&arguments.scenario)?;
    let is_changed = manifest.command.iter().any(|word| word == "--set" || word == "--quick");
    let text = match &manifest.effective_text {
        None if is_changed => {
            let message = "options changed the scenario in a way that a file cannot express; give the scenario with these options";
            return Err(Failure::Usage(format!(
                "{}: {message}: {}",
                arguments.scenario.display(),
                manifest.command.join(" ")
            )));
        }
        text => text.as_ref().unwrap_or(&manifest.scenario_text),
    };
    let file = manifest.command.get(2).map(Path::new).filter(|file| file.is_file());
    let base = file.and_then(Path::parent).unwrap_or(Path::new(""));
    let origin = arguments.scenario.join("scenario.toml");
    Ok((scenario::parse(&origin.display().to_string(), text, base, &overrides)?, runs))
}

/// Whether a stored run has the cell and the seed.
fn is_of(run: &Run, cell: &Cell, seed: u64) -> bool {
    let has = |(key, value): &(String, String)| run.parameters.get(key) == Some(value);
    run.seed == seed && run.parameters.len() == cell.parameters.len() && cell.parameters.iter().all(has)
}

fn summary(arguments: &Trace, cell: &Cell, seed: u64, run: &Run, stored: Option<&Run>) -> String {
    let parameters: Vec<String> = cell.parameters.iter().map(|(key, value)| format!("{key} = {value}")).collect();
    let same = stored.is_some_and(|stored| stored.digest == run.digest);
    let same = if same { ", the run of the folder" } else { "" };
    let cell = if parameters.is_empty() { String::new() } else { format!("cell     {}\n", parameters.join(", ")) };
    format!("{cell}seed     {seed}\n{}digest   {}{same}\n", files(arguments), run.digest)
}

/// The lines of the files that were written.
fn files(arguments: &Trace) -> String {
    let files = [
        ("packets", &arguments.pcap),
        ("events", &arguments.events),
        ("qlog", &arguments.qlog),
        ("page", &arguments.page),
    ];
    files.iter().filter_map(|(what, file)| Some(format!("{what:8} {}\n", file.as_ref()?.display()))).collect()
}
