//! Rules of packet schedulers.

mod checked;
mod connection;
mod tunnel;

pub use checked::CheckedScheduler;

use crate::Violation;
use schedule::{Needs, SchedulerEntry};

/// Number of connections that [`check`] draws.
const CONNECTIONS: u64 = 48;

/// Checks every rule: descriptions, and random MPTCP connections whose paths lose, delay and duplicate packets, fail,
/// join late and leave. Every pick must be one that the sender can carry out, and all data must arrive. A scheduler
/// that needs no measurements must use all paths of a tunnel without measurements. Returns the first violation of each
/// kind of check.
#[must_use]
pub fn check(entry: &SchedulerEntry) -> Vec<Violation> {
    let mut violations: Vec<Violation> = describe(entry).err().into_iter().collect();
    let checks = |seed| crate::panics::caught(|| connection::check(entry, seed));
    violations.extend((0..CONNECTIONS).find_map(|seed| checks(seed).err()));
    if entry.needs == Needs::Nothing {
        violations.extend(crate::panics::caught(|| tunnel::check(entry)).err());
    }
    violations
}

fn describe(entry: &SchedulerEntry) -> Result<(), Violation> {
    let texts = [("title", entry.title), ("source", entry.source)];
    let parameters = entry.parameters.iter().map(|parameter| (parameter.name, parameter.description));
    match texts.into_iter().chain(parameters).find(|(_, text)| text.trim().is_empty()) {
        Some((what, _)) => Err(Violation {
            rule: "title, source and parameters are described",
            message: format!("`{what}` of {} is empty", entry.name),
            steps: Vec::new(),
        }),
        None => Ok(()),
    }
}

/// An instance with default parameters.
fn instance(entry: &SchedulerEntry, weights: &[u32]) -> Result<Box<dyn schedule::Scheduler>, Violation> {
    entry.scheduler(weights, 0, &std::collections::BTreeMap::new()).map_err(|error| Violation {
        rule: "its parameters have allowed defaults",
        message: error.to_string(),
        steps: Vec::new(),
    })
}
