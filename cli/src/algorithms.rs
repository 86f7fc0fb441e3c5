//! Congestion controls by name: a scenario is checked against the registry before anything runs.

use crate::Failure;
use control::registry::{self, REGISTRY};
use scenario::Scenario;
use scenario::model::{Congestion, Experiment, Flow, FlowKind, Parameter};
use std::collections::BTreeMap;

/// Every congestion control of every cell, with its parameters.
pub(crate) fn check(scenario: &Scenario) -> Result<(), Failure> {
    let cells = scenario.cells.iter().enumerate();
    let mut all = cells.flat_map(|(cell, it)| congestions(&it.experiment).map(move |(flow, used)| (cell, flow, used)));
    all.try_for_each(|(cell, flow, used)| check_one(scenario, cell, flow, used))
}

fn congestions(experiment: &Experiment) -> impl Iterator<Item = (&Flow, &Congestion)> {
    experiment.flows.iter().filter_map(|flow| match &flow.kind {
        FlowKind::Tcp { congestion, .. } => Some((flow, congestion)),
        FlowKind::ConstantRate { .. } => None,
    })
}

fn check_one(scenario: &Scenario, cell: usize, flow: &Flow, congestion: &Congestion) -> Result<(), Failure> {
    let key = format!("flow.{}.congestion", flow.name);
    let Some(entry) = registry::find(&congestion.name) else {
        let message = format!("unknown congestion control `{}`", congestion.name);
        return Err(scenario.error_in(cell, &key, &message, &suggestion(&congestion.name)).into());
    };
    let given = congestion.parameters.iter().map(|(name, value)| (name.clone(), value_of(value)));
    entry.controller(&given.collect::<BTreeMap<_, _>>()).map(drop).map_err(|bad| {
        let key = format!("{key}.{}", bad.key);
        let help = format!("`ropewalk list algorithms {}` shows its parameters", entry.name);
        scenario.error_in(cell, &key, &format!("{}: {bad}", entry.name), &help).into()
    })
}

/// What to write instead of an unknown name.
pub(crate) fn suggestion(wrong: &str) -> String {
    let names = REGISTRY.iter().flat_map(|entry| std::iter::once(&entry.name).chain(entry.aliases));
    match scenario::did_you_mean(wrong, names.copied()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => "`ropewalk list algorithms` shows them all".to_owned(),
    }
}

fn value_of(parameter: &Parameter) -> control::Value {
    match parameter {
        Parameter::Number(number) => control::Value::Number(*number),
        Parameter::Word(word) => control::Value::Word(word.clone()),
    }
}
