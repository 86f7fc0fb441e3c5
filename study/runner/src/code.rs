//! Versions of the code that is not the program's: of algorithms, schedulers and stacks that were registered at run time.

use crate::checks::{congestions, schedulers};
use control::registry;
use scenario::Scenario;
use scenario::model::FlowKind;
use std::collections::BTreeMap;

/// The code version of each registered algorithm, scheduler and stack that a scenario names; none for built-in ones.
#[must_use]
pub fn versions(scenario: &Scenario) -> BTreeMap<String, String> {
    let experiments = || scenario.cells.iter().map(|cell| &cell.experiment);
    let algorithms = experiments().flat_map(congestions).filter_map(|(_, choice)| registry::find(&choice.name));
    let algorithms = algorithms.map(|entry| (entry.name, entry.properties.code_version));
    let schedulers = experiments().flat_map(schedulers).filter_map(|(_, choice)| schedule::find(&choice.name));
    let schedulers = schedulers.map(|entry| (entry.name, entry.code_version));
    let named =
        |kind: &str, (name, version): (&str, Option<&str>)| Some((format!("{kind} {name}"), version?.to_owned()));
    let algorithms = algorithms.filter_map(|entry| named("congestion", entry));
    let stacks = experiments().flat_map(|experiment| &experiment.flows).filter_map(|flow| match &flow.kind {
        FlowKind::Hosted(hosted) => stack::find(&hosted.stack.name),
        FlowKind::Tcp { .. } | FlowKind::ConstantRate { .. } => None,
    });
    let stacks = stacks.map(|entry| (entry.name, Some(entry.code_version)));
    let schedulers = schedulers.filter_map(|entry| named("scheduler", entry));
    algorithms.chain(schedulers).chain(stacks.filter_map(|entry| named("stack", entry))).collect()
}
