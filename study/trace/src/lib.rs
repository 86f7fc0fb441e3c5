//! Traces of a simulated run: its packets as pcapng, its events as a table, qlog, and a page that draws them.
//!
//! A run is deterministic, so a run of a study can be repeated with all of its packets in view. [`trace`] does so: its
//! record has the same digest as the run without a trace. Packets and events are written while the run goes on, so that
//! memory does not grow with its length. The page takes about 50 bytes per packet with data until it is written.

mod capture;
mod captured;
mod cell;
mod compare;
mod crossings;
mod events;
mod headers;
mod measurements;
mod options;
mod output;
mod page;
mod place;
mod qlog;
mod streams;

pub use captured::{
    CaptureEnd, CaptureOutputs, CaptureSummary, capture_events, is_capture, measure_capture, read_capture,
};
pub use cell::find_cell;
pub use compare::compare;
pub use measurements::{measurements, named_file};
pub use page::Heading;
pub use place::{LinkEnd, Place};
pub use qlog::QlogVersion;

use capture::Capture;
use events::Events;
use output::Output;
use page::Page;
use qlog::Qlog;
use record::Run;
use scenario::model::Experiment;
use sim::Simulation;
use std::fmt;
use std::io::{self, BufWriter};
use std::path::Path;
use store::EventRow;
use units::Span;

/// Time by which a run advances between two writes.
const STEP: Span = Span::from_millis(100);

/// The outputs of a traced run.
#[derive(Clone, Copy, Debug, Default)]
pub struct Outputs<'a> {
    /// The packets at one place of the network, as pcapng.
    pub pcap: Option<&'a Path>,
    /// The place at which packets are captured.
    pub place: Place,
    /// Whether packets are written with their payload, which is zeros; otherwise their headers alone.
    pub has_payload: bool,
    /// The table of events, as Parquet.
    pub events: Option<&'a Path>,
    /// Packets and recovery of QUIC flows, recovery of the others, as qlog of a version.
    pub qlog: Option<(&'a Path, QlogVersion)>,
    /// The page, and what it says of the run.
    pub page: Option<(&'a Path, &'a Heading)>,
}

/// The reason why there is no trace.
#[derive(Debug)]
pub enum Error {
    /// The simulator refuses the experiment.
    Simulation(sim::Error),
    /// A file cannot be written.
    Store(store::Error),
    /// The capture, the qlog or the page cannot be written, or a capture cannot be read.
    Capture(String),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Simulation(error) => error.fmt(f),
            Self::Store(error) => error.fmt(f),
            Self::Capture(error) => f.write_str(error),
        }
    }
}

impl std::error::Error for Error {}

/// Runs an experiment with a seed, and writes its packets and events. Returns its record.
///
/// # Errors
/// The simulator does not know an algorithm or a parameter, or a file cannot be written.
pub fn trace(experiment: &Experiment, seed: u64, outputs: &Outputs<'_>) -> Result<Run, Error> {
    let mut simulation = traced(experiment, seed, outputs.place).map_err(Error::Simulation)?;
    let failed = |path: &Path, error: io::Error| Error::Capture(cannot_write(path, &error));
    let mut made = Vec::new();
    let mut create = |path: &Path| {
        let (output, file) = Output::create(path).map_err(|error| failed(path, error))?;
        made.push((path.to_owned(), output));
        Ok(file)
    };
    let mut capture = match outputs.pcap {
        Some(path) => {
            let file = create(path)?;
            let capture = Capture::new(file, experiment, &simulation, outputs.place, outputs.has_payload);
            Some((path, capture.map_err(|error| failed(path, error))?))
        }
        None => None,
    };
    let mut qlog = match outputs.qlog {
        Some((path, version)) => {
            let file = create(path)?;
            Some((path, Qlog::new(file, version, experiment, &simulation).map_err(|error| failed(path, error))?))
        }
        None => None,
    };
    let mut page = outputs.page.map(|_| Page::new(experiment, &simulation));
    let mut events = Events::new(experiment);
    let mut is_over = false;
    let groups = std::iter::from_fn(|| {
        if is_over {
            return None;
        }
        let until = simulation.now() + STEP;
        is_over = until >= simulation.end();
        simulation.run_until(until);
        let trace = simulation.take_trace();
        let written =
            capture.as_mut().map_or(Ok(()), |(path, file)| file.write(&trace).map_err(|error| (*path, error)));
        let written = written
            .and(qlog.as_mut().map_or(Ok(()), |(path, file)| file.write(&trace).map_err(|error| (*path, error))));
        if let Err((path, error)) = written {
            return Some(Err(cannot_write(path, &error)));
        }
        if let Some(page) = &mut page {
            page.add(&trace);
        }
        Some(Ok(events.rows(&trace)))
    });
    write_events(outputs.events, groups)?;
    if let Some((path, capture)) = &mut capture {
        capture.finish().map_err(|error| failed(path, error))?;
    }
    let run = simulation.finish();
    if let (Some(mut page), Some((path, heading))) = (page, outputs.page) {
        let file = create(path)?;
        page.write(&mut BufWriter::new(file), heading, &run.digest).map_err(|error| failed(path, error))?;
    }
    made.into_iter().try_for_each(|(path, output)| output.keep().map_err(|error| failed(&path, error)))?;
    Ok(run)
}

/// Writes the groups of events, if they are wanted; they are made in any case.
fn write_events(
    path: Option<&Path>,
    mut groups: impl Iterator<Item = Result<Vec<EventRow>, String>>,
) -> Result<(), Error> {
    match path {
        Some(path) => store::write_events(path, groups).map_err(Error::Store),
        None => groups.try_for_each(|group| group.map(drop)).map_err(Error::Capture),
    }
}

fn cannot_write(path: &Path, error: &io::Error) -> String {
    format!("cannot write {}: {error}", path.display())
}

/// Runs an experiment with a seed, and returns its record and its events.
///
/// # Errors
/// The simulator does not know an algorithm or a parameter.
pub fn events(experiment: &Experiment, seed: u64) -> Result<(Run, Vec<EventRow>), sim::Error> {
    let mut simulation = traced(experiment, seed, Place::Near)?;
    simulation.run_until(simulation.end());
    let rows = Events::new(experiment).rows(&simulation.take_trace());
    Ok((simulation.finish(), rows))
}

/// A run with its packets in view, on a link also where they cross it.
fn traced(experiment: &Experiment, seed: u64, place: Place) -> Result<Simulation, sim::Error> {
    let mut simulation = Simulation::new(experiment, seed)?;
    simulation.trace();
    if let Place::Link { link, .. } = place {
        simulation.watch(link);
    }
    Ok(simulation)
}
