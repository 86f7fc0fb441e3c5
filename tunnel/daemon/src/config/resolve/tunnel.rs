//! `[tunnel]`: algorithms of the registries, and how packets are carried.

use super::context::{Context, flag};
use super::value;
use crate::config::tables::{NameOrTable, Scalar, TunnelTable};
use control::{AlgorithmChoice, FILE, ParamError, ParamValue};
use machine::{NEEDS_CONGESTION, OFF, TunnelOptions};
use parse::{Diagnostic, Spanned, did_you_mean, suggest};
use schedule::{Fill, Needs, SchedulerEntry};
use std::path::Path;

pub(super) fn options(table: Option<&TunnelTable>, weights: &[u32], context: &mut Context<'_>) -> TunnelOptions {
    let values = table.cloned().unwrap_or_default();
    let default = if context.is_mpt { mpt_defaults() } else { TunnelOptions::default() };
    if context.is_mpt {
        let help = "MPT's protocol has no acknowledgements: remove it";
        context.refuse(values.retransmit.as_ref(), "retransmit", help);
        let help = "MPT's tunnel has no queue in which acknowledgements wait: remove it";
        context.refuse(values.ack_filter.as_ref(), "ack-filter", help);
    }
    let congestion =
        values.congestion.as_ref().and_then(|choice| context.ok(congestion(choice, context.is_mpt, context.folder)));
    let is_off = !context.is_mpt && congestion.as_ref().is_some_and(|choice| choice.name == OFF);
    let scheduler =
        values.scheduler.as_ref().and_then(|choice| context.ok(scheduler(choice, weights, is_off, context)));
    let timeout = value::time(values.max_reorder_timeout.as_ref(), context);
    TunnelOptions {
        congestion: congestion.unwrap_or(default.congestion),
        scheduler: scheduler.unwrap_or(default.scheduler),
        retransmit: !context.is_mpt && flag(values.retransmit.as_ref(), default.retransmit),
        in_order: flag(values.in_order.as_ref(), default.in_order),
        ack_filter: flag(values.ack_filter.as_ref(), default.ack_filter),
        deliver_late: deliver_late(values.late.as_ref(), context).unwrap_or(default.deliver_late),
        max_reorder_timeout: timeout.unwrap_or(default.max_reorder_timeout),
        ..default
    }
}

fn mpt_defaults() -> TunnelOptions {
    TunnelOptions {
        congestion: OFF.into(),
        scheduler: mpt::DEFAULT_SCHEDULER.into(),
        retransmit: false,
        max_reorder_timeout: mpt::DEFAULT_REORDER_TIMEOUT,
        ..TunnelOptions::default()
    }
}

/// Name and parameters, and the file that the parameter `file` names, relative to `folder`.
fn algorithm_choice(choice: &Spanned<NameOrTable>, folder: &Path) -> Result<AlgorithmChoice, Diagnostic> {
    let (name, parameters) = match choice.get() {
        NameOrTable::Name(name) => return Ok(name.as_str().into()),
        NameOrTable::Table { name, parameters } => (name.clone(), parameters),
    };
    let param_value = |(key, scalar): (&String, &Scalar)| {
        let value = match scalar {
            Scalar::Word(file) if key == FILE => read_file(&folder.join(file), choice)?,
            Scalar::Boolean(boolean) => ParamValue::Number(f64::from(u8::from(*boolean))),
            Scalar::Number(number) => ParamValue::Number(*number),
            Scalar::Word(word) => ParamValue::Choice(word.clone()),
        };
        Ok((key.clone(), value))
    };
    Ok(AlgorithmChoice { name, parameters: parameters.iter().map(param_value).collect::<Result<_, _>>()? })
}

fn read_file(path: &Path, choice: &Spanned<NameOrTable>) -> Result<ParamValue, Diagnostic> {
    ParamValue::read_file(path).map_err(|error| {
        let message = format!("`file`: cannot read {}: {error}", path.display());
        Diagnostic::new(choice.span(), message)
            .with_help("a path relative to the configuration's folder, or an absolute one")
    })
}

fn congestion(choice: &Spanned<NameOrTable>, is_mpt: bool, folder: &Path) -> Result<AlgorithmChoice, Diagnostic> {
    let algorithm = algorithm_choice(choice, folder)?;
    if algorithm.name == OFF {
        return Ok(algorithm);
    }
    if is_mpt {
        let message = "MPT's protocol has no acknowledgements, so there is no congestion control";
        return Err(Diagnostic::new(choice.span(), message).with_help("leave it out, or \"off\""));
    }
    let entry = control::registry::find(&algorithm.name).ok_or_else(|| {
        unknown_algorithm(
            "congestion control",
            "algorithms",
            &algorithm.name,
            choice,
            control::registry::names().chain([OFF]),
        )
    })?;
    entry.controller(&algorithm.parameters).map_err(|error| bad_parameter(&error, choice, entry.name, "algorithms"))?;
    Ok(algorithm)
}

fn scheduler(
    choice: &Spanned<NameOrTable>,
    weights: &[u32],
    is_off: bool,
    context: &Context<'_>,
) -> Result<AlgorithmChoice, Diagnostic> {
    let (scheduler, is_mpt) = (algorithm_choice(choice, context.folder)?, context.is_mpt);
    let entry = schedule::find(&scheduler.name)
        .ok_or_else(|| unknown_algorithm("scheduler", "schedulers", &scheduler.name, choice, schedule::names()))?;
    let without_measurements = |entry: &SchedulerEntry| entry.needs == Needs::Nothing;
    let without_send_buffers = |entry: &SchedulerEntry| entry.fill == Fill::Cwnd;
    if is_mpt && !without_measurements(entry) {
        return Err(unusable_scheduler(
            choice,
            &scheduler.name,
            "needs measurements, which MPT's protocol does not make",
            without_measurements,
        ));
    }
    if !is_mpt && !without_send_buffers(entry) {
        return Err(unusable_scheduler(
            choice,
            &scheduler.name,
            "fills send buffers, which a tunnel's paths do not have",
            without_send_buffers,
        ));
    }
    let result = entry.scheduler(weights, 0, &scheduler.parameters);
    let made = result.map_err(|error| bad_parameter(&error, choice, entry.name, "schedulers"))?;
    if is_off && made.watches() {
        let help = "leave out `congestion`, or name an algorithm";
        return Err(Diagnostic::new(choice.span(), format!("the policy {NEEDS_CONGESTION}")).with_help(help));
    }
    Ok(scheduler)
}

/// A scheduler that this mode cannot use; the help lists the usable ones.
fn unusable_scheduler(
    choice: &Spanned<NameOrTable>,
    name: &str,
    reason: &str,
    is_usable: impl Fn(&SchedulerEntry) -> bool,
) -> Diagnostic {
    let names =
        schedule::entries().into_iter().filter(|entry| is_usable(entry)).map(|entry| format!("`{}`", entry.name));
    let help = format!("one of {}", names.collect::<Vec<_>>().join(", "));
    Diagnostic::new(choice.span(), format!("`{name}` {reason}")).with_help(help)
}

/// An algorithm that is in no registry.
fn unknown_algorithm<'a>(
    kind: &str,
    list: &str,
    name: &str,
    choice: &Spanned<NameOrTable>,
    known_names: impl Iterator<Item = &'a str>,
) -> Diagnostic {
    let help = match did_you_mean(name, known_names) {
        Some(suggestion) => format!("did you mean `{suggestion}`?"),
        None => format!("`ropewalk list {list}` shows them all"),
    };
    Diagnostic::new(choice.span(), format!("unknown {kind} `{name}`")).with_help(help)
}

/// The error of a parameter that the algorithm does not have, or that is out of its range.
fn bad_parameter(error: &ParamError, choice: &Spanned<NameOrTable>, entry: &str, list: &str) -> Diagnostic {
    let help = match error.key.as_str() {
        FILE => format!("docs/reference/policies.md says what the file of `{entry}` may contain"),
        _ => format!("`ropewalk list {list} {entry}` shows its parameters"),
    };
    Diagnostic::new(choice.span(), format!("{entry}: {error}")).with_help(help)
}

fn deliver_late(text: Option<&Spanned<String>>, context: &mut Context<'_>) -> Option<bool> {
    let text = text?;
    match text.get().as_str() {
        "drop" => Some(false),
        "deliver" => Some(true),
        other => {
            let diagnostic = Diagnostic::new(text.span(), format!("unknown value `{other}`"));
            context.report(diagnostic.with_help(suggest(other, &["drop", "deliver"])));
            None
        }
    }
}
