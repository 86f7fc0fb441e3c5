//! Checks of a scenario before it runs that the scenario crate cannot make: names and parameters of algorithms, and the
//! size of the time series.

use crate::Error;
use control::{ParamError, ParamKind, Parameter, registry};
use scenario::Scenario;
use scenario::model::{AlgorithmChoice, Experiment, FlowKind, NEEDS_CONGESTION, OFF, Tunnel};
use schedule::{Fill, Needs, Scheduler, SchedulerEntry};
use std::collections::HashSet;

/// Maximum number of values in all time series of a study. They are held in memory until the tables are written.
const MAX_SERIES_VALUES: u64 = 30_000_000;
/// Maximum number of errors that are reported below the first.
const MAX_OTHER_ERRORS: usize = 9;
/// Maximum number of errors that are collected: other cells of a sweep have the same errors.
const MAX_ERRORS_READ: usize = 100;
/// Number of values of a flow, a subflow or a path in one sample.
const VALUES_PER_SAMPLE: u64 = 10;

/// Checks the names and the parameters of congestion controls, schedulers and stacks in every cell, and the number of values of
/// all time series (at most 30 million).
///
/// # Errors
/// All errors of names and parameters, or the error of the time series, with line and key.
pub fn check(scenario: &Scenario) -> Result<(), Error> {
    let mut errors = congestion_control_errors(scenario);
    errors.extend(scheduler_errors(scenario));
    errors.extend(stack_errors(scenario));
    // Many cells have the same error.
    let mut told = HashSet::new();
    errors.retain(|error| told.insert((error.line(), error.message().to_owned())));
    if errors.is_empty() {
        return check_series_size(scenario);
    }
    let first = errors.remove(0);
    errors.truncate(MAX_OTHER_ERRORS);
    Err(first.with_others(errors).into())
}

/// Checks the size of all time series of the study.
fn check_series_size(scenario: &Scenario) -> Result<(), Error> {
    let series_values = |experiment: &Experiment| {
        let samples = experiment.sample.map_or(0, |sample| experiment.duration.0 / sample.0.max(1));
        let subflows: usize = experiment.flows.iter().map(|flow| flow.kind.subflows().len()).sum();
        let subjects = experiment.flows.len() + subflows + experiment.paths.len();
        samples.saturating_mul(subjects as u64 * VALUES_PER_SAMPLE)
    };
    let cells = scenario.cells.iter().map(|cell| series_values(&cell.experiment));
    let total = cells.fold(0, u64::saturating_add).saturating_mul(scenario.seeds.len() as u64);
    if total <= MAX_SERIES_VALUES {
        return Ok(());
    }
    let message = format!("the time series of all runs would hold about {} million numbers", total / 1_000_000);
    let help = format!("at most {} million: sample less often, or in fewer runs", MAX_SERIES_VALUES / 1_000_000);
    Err(scenario.error_at("sample", &message, &help).into())
}

/// The errors of the schedulers of the tunnel and of MPTCP flows in every cell.
fn scheduler_errors(scenario: &Scenario) -> Vec<scenario::Error> {
    let mut errors = Vec::new();
    for (index, cell) in scenario.cells.iter().enumerate() {
        if errors.len() >= MAX_ERRORS_READ {
            break;
        }
        let tunnel = cell.experiment.tunnel.as_ref();
        errors.extend(tunnel.and_then(|tunnel| check_tunnel_scheduler(scenario, index, tunnel).err()));
        let of_flows = flow_schedulers(&cell.experiment);
        errors.extend(of_flows.filter_map(|(key, choice)| scheduler_of(scenario, index, &key, choice).err()));
    }
    errors
}

/// The schedulers of the flows, with their keys.
fn flow_schedulers(experiment: &Experiment) -> impl Iterator<Item = (String, &AlgorithmChoice)> {
    experiment.flows.iter().filter_map(|flow| match &flow.kind {
        FlowKind::Tcp { multipath: Some(multipath), .. } => {
            Some((format!("flow.{}.scheduler", flow.name), &multipath.scheduler))
        }
        _ => None,
    })
}

/// The scheduler of the tunnel.
fn tunnel_scheduler(tunnel: &Tunnel) -> &AlgorithmChoice {
    tunnel.ropewalk.as_ref().map_or(&tunnel.mpt_scheduler, |ropewalk| &ropewalk.options.scheduler)
}

/// Checks that the tunnel can use its scheduler: MPT's has no measurements, Ropewalk's no send buffers of paths.
fn check_tunnel_scheduler(scenario: &Scenario, cell: usize, tunnel: &Tunnel) -> Result<(), scenario::Error> {
    let key = "tunnel.scheduler";
    let choice = tunnel_scheduler(tunnel);
    let (is_usable, reason): (fn(&SchedulerEntry) -> bool, _) = match &tunnel.ropewalk {
        None => (|entry| entry.needs == Needs::Nothing, "needs measurements of each path, which MPT does not make"),
        Some(_) => (|entry| entry.fill == Fill::Cwnd, "fills send buffers, which paths of a tunnel do not have"),
    };
    let (entry, scheduler) = scheduler_of(scenario, cell, key, choice)?;
    let is_off = tunnel.ropewalk.as_ref().is_some_and(|ropewalk| ropewalk.options.congestion.name == OFF);
    if is_off && scheduler.watches() {
        let message = format!("the policy {NEEDS_CONGESTION}");
        return Err(scenario.error_in(cell, key, &message, "leave out `congestion`, or name an algorithm"));
    }
    if is_usable(entry) {
        return Ok(());
    }
    let names =
        schedule::entries().into_iter().filter(|entry| is_usable(entry)).map(|entry| format!("`{}`", entry.name));
    let help = format!("one of {}", names.collect::<Vec<_>>().join(", "));
    Err(scenario.error_in(cell, key, &format!("`{}` {reason}", choice.name), &help))
}

/// The registry entry of a scheduler, and the scheduler with its parameters.
fn scheduler_of(
    scenario: &Scenario,
    cell: usize,
    key: &str,
    choice: &AlgorithmChoice,
) -> Result<(&'static SchedulerEntry, Box<dyn Scheduler>), scenario::Error> {
    let entry =
        known_scheduler(&choice.name).map_err(|(message, help)| scenario.error_in(cell, key, &message, &help))?;
    let scheduler = entry.scheduler(&[], 0, &choice.parameters).map_err(|error| {
        let help = parameter_help(&error, entry.parameters, "schedulers", entry.name, entry.source);
        let (key, message) = (format!("{key}.{}", error.key), format!("{}: {error}", entry.name));
        scenario.error_in(cell, &key, &message, &help)
    })?;
    Ok((entry, scheduler))
}

/// Where one reads about a wrong parameter: in the list of the registry, or on the page about a file.
fn parameter_help(error: &ParamError, parameters: &[Parameter], list: &str, name: &str, source: &str) -> String {
    match parameters.iter().any(|it| it.name == error.key && matches!(it.kind, ParamKind::File)) {
        true => format!("{source} says what the file of `{name}` may contain"),
        false => format!("`ropewalk list {list} {name}` shows its parameters"),
    }
}

/// The scheduler of this name, or an error with a suggestion.
fn known_scheduler(name: &str) -> Result<&'static schedule::SchedulerEntry, (String, String)> {
    schedule::find(name).ok_or_else(|| {
        let help = match scenario::did_you_mean(name, schedule::names()) {
            Some(closest_name) => format!("did you mean `{closest_name}`?"),
            None => "`ropewalk list schedulers` lists all of them".to_owned(),
        };
        (format!("unknown scheduler `{name}`"), help)
    })
}

/// The errors of the stacks of every cell with their parameters.
fn stack_errors(scenario: &Scenario) -> Vec<scenario::Error> {
    let mut errors = Vec::new();
    for (cell, experiment) in scenario.cells.iter().map(|cell| &cell.experiment).enumerate() {
        for flow in &experiment.flows {
            let FlowKind::Hosted(hosted) = &flow.kind else { continue };
            let key = format!("flow.{}.stack", flow.name);
            errors.extend(check_stack(&hosted.stack).err().map(|(parameter, message, help)| {
                scenario.error_in(cell, &format!("{key}{parameter}"), &message, &help)
            }));
        }
    }
    errors.truncate(MAX_ERRORS_READ);
    errors
}

/// Checks a stack; the error has the rest of the key, the message and the help.
fn check_stack(choice: &AlgorithmChoice) -> Result<(), (String, String, String)> {
    let name = &choice.name;
    let Some(entry) = stack::find(name) else {
        let names: Vec<String> = stack::entries().iter().map(|entry| format!("`{}`", entry.name)).collect();
        let help = match names.as_slice() {
            [] => "it has none: `ropewalk-stacks` in examples/stacks is a program with quinn and noq".to_owned(),
            names => format!("it has {}", names.join(", ")),
        };
        return Err((String::new(), format!("this program has no stack `{name}`"), help));
    };
    entry.params(&choice.parameters).map(drop).map_err(|error| {
        let help = format!("`ropewalk list stacks {name}` shows its parameters");
        (format!(".{}", error.key), format!("{name}: {error}"), help)
    })
}

/// The errors of every congestion control of every cell with its parameters.
fn congestion_control_errors(scenario: &Scenario) -> Vec<scenario::Error> {
    let cells = scenario.cells.iter().enumerate();
    let choices =
        cells.flat_map(|(index, cell)| congestions(&cell.experiment).map(move |(key, choice)| (index, key, choice)));
    let errors =
        choices.filter_map(|(index, key, choice)| check_congestion_control(scenario, index, &key, choice).err());
    errors.take(MAX_ERRORS_READ).collect()
}

/// The notes of the congestion controls and schedulers of all cells on their parameters, each with its first key.
pub(crate) fn algorithm_notes(scenario: &Scenario) -> Vec<String> {
    let mut notes: Vec<(String, String)> = Vec::new();
    let experiments = || scenario.cells.iter().map(|cell| &cell.experiment);
    let of_congestions = experiments().flat_map(congestions).map(|(key, choice)| {
        let entry = registry::find(&choice.name);
        (key, entry.map_or_else(Vec::new, |entry| entry.notes(&choice.parameters)))
    });
    let of_schedulers = experiments().flat_map(schedulers).map(|(key, choice)| {
        let scheduler = schedule::find(&choice.name).map(|entry| entry.scheduler(&[], 0, &choice.parameters));
        (key, scheduler.and_then(Result::ok).map_or_else(Vec::new, |scheduler| scheduler.notes()))
    });
    for (key, of_choice) in of_congestions.chain(of_schedulers) {
        for note in of_choice {
            if !notes.iter().any(|(_, known)| *known == note) {
                notes.push((key.clone(), note));
            }
        }
    }
    notes.into_iter().map(|(key, note)| format!("{key}: {note}")).collect()
}

/// The schedulers of the flows and of the tunnel, with their keys.
pub(crate) fn schedulers(experiment: &Experiment) -> impl Iterator<Item = (String, &AlgorithmChoice)> {
    let of_tunnel = experiment.tunnel.iter().map(|tunnel| ("tunnel.scheduler".to_owned(), tunnel_scheduler(tunnel)));
    flow_schedulers(experiment).chain(of_tunnel)
}

/// The congestion controls of the flows and of the tunnel's paths, with their keys.
pub(crate) fn congestions(experiment: &Experiment) -> impl Iterator<Item = (String, &AlgorithmChoice)> {
    let of_flows = experiment.flows.iter().filter_map(|flow| match &flow.kind {
        FlowKind::Tcp { congestion, .. } => Some((format!("flow.{}.congestion", flow.name), congestion)),
        FlowKind::Hosted(hosted) => {
            let congestion = hosted.congestion.as_ref().filter(|choice| !choice.name.starts_with(stack::OWN));
            congestion.map(|congestion| (format!("flow.{}.congestion", flow.name), congestion))
        }
        FlowKind::ConstantRate { .. } => None,
    });
    let ropewalk = experiment.tunnel.as_ref().and_then(|tunnel| tunnel.ropewalk.as_ref());
    let of_tunnel = ropewalk.map(|ropewalk| &ropewalk.options.congestion).filter(|choice| choice.name != OFF);
    of_flows.chain(of_tunnel.map(|congestion| ("tunnel.congestion".to_owned(), congestion)))
}

fn check_congestion_control(
    scenario: &Scenario,
    cell: usize,
    key: &str,
    congestion: &AlgorithmChoice,
) -> Result<(), scenario::Error> {
    let Some(entry) = registry::find(&congestion.name) else {
        let message = format!("unknown congestion control `{}`", congestion.name);
        return Err(scenario.error_in(cell, key, &message, &suggestion(&congestion.name)));
    };
    entry.controller(&congestion.parameters).map(drop).map_err(|error| {
        let key = format!("{key}.{}", error.key);
        let help = parameter_help(&error, entry.parameters, "algorithms", entry.name, entry.source);
        scenario.error_in(cell, &key, &format!("{}: {error}", entry.name), &help)
    })
}

/// The suggestion for an unknown name of a congestion control.
#[must_use]
pub fn suggestion(unknown_name: &str) -> String {
    if unknown_name == "uncoupled" {
        return "any single-path algorithm runs uncoupled, once on each path: congestion = \"reno\"".to_owned();
    }
    match scenario::did_you_mean(&unknown_name.to_lowercase(), registry::names()) {
        Some(closest_name) => format!("did you mean `{closest_name}`?"),
        None => "`ropewalk list algorithms` lists all of them".to_owned(),
    }
}
