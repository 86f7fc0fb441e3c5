//! `[tunnel]`: names of the registries, and policies.

use super::{Context, value};
use crate::config::file::{Named, Scalar, Tunnel};
use crate::config::{Carriage, Choice, Late};
use control::{ParamError, ParamValue};
use machine::defaults;
use parse::{At, Fault, did_you_mean, suggest};
use std::collections::BTreeMap;
use units::Span;

/// What MPT holds a packet for, if nothing is said.
const MPT_HOLD: Span = Span::from_millis(100);

/// (`ropewalk` mode, `mpt` mode).
const CONGESTION: (&str, &str) = (defaults::CONGESTION_CONTROL, OFF);
const SCHEDULER: (&str, &str) = (defaults::SCHEDULER, "packet-round-robin");
/// No congestion control.
const OFF: &str = "off";

pub(super) fn carriage(table: Option<&Tunnel>, weights: &[u32], context: &mut Context<'_>) -> Carriage {
    let given = table.cloned().unwrap_or_default();
    let pick = |(ropewalk, mpt): (&str, &str), is_mpt| if is_mpt { mpt.to_owned() } else { ropewalk.to_owned() };
    let order = given.order.as_ref().is_none_or(|it| *it.get());
    if context.is_mpt {
        let right = "MPT's protocol has neither acknowledgements nor copies: remove it";
        context.refuse(given.repair.as_ref(), "repair", right);
    }
    Carriage {
        congestion: choice(given.congestion.as_ref(), pick(CONGESTION, context.is_mpt), context, congestion),
        scheduler: choice(given.scheduler.as_ref(), pick(SCHEDULER, context.is_mpt), context, |it, span, is_mpt| {
            scheduler(it, span, weights, is_mpt)
        })
        .unwrap_or_else(|| plain(SCHEDULER.0.to_owned())),
        repair: !context.is_mpt && given.repair.as_ref().is_none_or(|it| *it.get()),
        order,
        late: late(given.late.as_ref(), context),
        max_hold: value::time(given.max_hold.as_ref(), context).or(context.is_mpt.then_some(MPT_HOLD)),
    }
}

fn plain(name: String) -> Choice {
    Choice { name, parameters: BTreeMap::new() }
}

/// The named entry if `check` finds it fine; none if it is "off" or wrong.
fn choice(
    given: Option<&At<Named>>,
    default: String,
    context: &mut Context<'_>,
    check: impl FnOnce(&Choice, &At<Named>, bool) -> Result<(), Fault>,
) -> Option<Choice> {
    let Some(at) = given else { return (default != OFF).then(|| plain(default)) };
    let choice = match at.get() {
        Named::Plain(name) => plain(name.clone()),
        Named::Table { name, parameters } => Choice {
            name: name.clone(),
            parameters: parameters.iter().map(|(key, value)| (key.clone(), setting(value))).collect(),
        },
    };
    context.noted(check(&choice, at, context.is_mpt)).filter(|()| choice.name != OFF).map(|()| choice)
}

fn setting(value: &Scalar) -> ParamValue {
    match value {
        Scalar::Truth(truth) => ParamValue::Number(f64::from(u8::from(*truth))),
        Scalar::Number(number) => ParamValue::Number(*number),
        Scalar::Word(word) => ParamValue::Word(word.clone()),
    }
}

fn congestion(choice: &Choice, at: &At<Named>, is_mpt: bool) -> Result<(), Fault> {
    if choice.name == OFF {
        return Ok(());
    }
    if is_mpt {
        let message = "MPT's protocol tells the sender nothing of its paths: there is no congestion control";
        return Err(Fault::at(at.span(), message).help("leave it out, or \"off\""));
    }
    let names = control::registry::REGISTRY.iter().flat_map(|it| std::iter::once(&it.name).chain(it.aliases));
    let entry = control::registry::find(&choice.name)
        .ok_or_else(|| unknown("congestion control", "algorithms", &choice.name, at, names.chain([&OFF]).copied()))?;
    let bad = |bad: ParamError| wrong(&bad, at, entry.name, "algorithms");
    entry.controller(&choice.parameters).map(drop).map_err(bad)
}

fn scheduler(choice: &Choice, at: &At<Named>, weights: &[u32], is_mpt: bool) -> Result<(), Fault> {
    let names = schedule::REGISTRY.iter().flat_map(|it| std::iter::once(&it.name).chain(it.aliases));
    let entry = schedule::find(&choice.name)
        .ok_or_else(|| unknown("scheduler", "schedulers", &choice.name, at, names.copied()))?;
    if is_mpt && entry.needs != schedule::Needs::Nothing {
        let able = schedule::REGISTRY.iter().filter(|it| it.needs == schedule::Needs::Nothing);
        let able: Vec<_> = able.map(|it| format!("`{}`", it.name)).collect();
        let message = format!("`{}` needs measurements, which MPT's protocol does not make", choice.name);
        return Err(Fault::at(at.span(), message).help(format!("one of {}", able.join(", "))));
    }
    if !is_mpt && entry.fill != schedule::Fill::Cwnd {
        let able = schedule::REGISTRY.iter().filter(|it| it.fill == schedule::Fill::Cwnd);
        let able: Vec<_> = able.map(|it| format!("`{}`", it.name)).collect();
        let message = format!("`{}` fills send buffers, which a tunnel's paths do not have", choice.name);
        return Err(Fault::at(at.span(), message).help(format!("one of {}", able.join(", "))));
    }
    let bad = |bad: ParamError| wrong(&bad, at, entry.name, "schedulers");
    entry.scheduler(weights, 0, &choice.parameters).map(drop).map_err(bad)
}

/// No such entry.
fn unknown<'a>(kind: &str, list: &str, name: &str, at: &At<Named>, known: impl Iterator<Item = &'a str>) -> Fault {
    let help = match did_you_mean(name, known) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("`ropewalk list {list}` shows them all"),
    };
    Fault::at(at.span(), format!("unknown {kind} `{name}`")).help(help)
}

/// A parameter that the entry does not have, or not so.
fn wrong(bad: &ParamError, at: &At<Named>, entry: &str, list: &str) -> Fault {
    Fault::at(at.span(), format!("{entry}: {bad}")).help(format!("`ropewalk list {list} {entry}` shows its parameters"))
}

fn late(text: Option<&At<String>>, context: &mut Context<'_>) -> Late {
    match text.map(|text| text.get().as_str()) {
        None | Some("drop") => Late::Drop,
        Some("deliver") => Late::Deliver,
        Some(other) => {
            let span = text.map_or(0..0, At::span);
            let fault = Fault::at(span, format!("unknown value `{other}`"));
            context.fault(fault.help(suggest(other, &["drop", "deliver"])));
            Late::Drop
        }
    }
}
