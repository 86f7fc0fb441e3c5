//! Queue disciplines: the keys and the defaults of each.

use super::checks::{check_positive, parse_bytes};
use crate::file::{self, Queue};
use link::{CakeConfig, CoDelConfig, DualPi2Config, FqCodelConfig, PieConfig, QueueDiscipline, RedConfig};
use parse::{Diagnostic, Spanned, Time};
use std::ops::Range;
use units::Span;

/// The discipline of a queue.
pub(super) fn discipline(spanned: &Spanned<Queue>) -> Result<QueueDiscipline, Diagnostic> {
    let queue = spanned.get();
    refuse_keys_of_others(queue)?;
    match queue.discipline {
        file::Discipline::DropTail => Ok(QueueDiscipline::DropTail),
        file::Discipline::DropHead => Ok(QueueDiscipline::DropHead),
        file::Discipline::CoDel => codel(queue).map(QueueDiscipline::CoDel),
        file::Discipline::Red => red(spanned),
        file::Discipline::Pie => pie(queue),
        file::Discipline::DualPi2 => dualpi2(queue),
        file::Discipline::FqCodel => fq_codel(queue),
        file::Discipline::Cake => {
            Ok(QueueDiscipline::Cake(CakeConfig { rtt: time("rtt", &queue.rtt, CakeConfig::default().rtt)? }))
        }
    }
}

/// The name and the keys of a discipline.
fn name_and_keys(discipline: file::Discipline) -> (&'static str, &'static [&'static str]) {
    match discipline {
        file::Discipline::DropTail => ("droptail", &[]),
        file::Discipline::DropHead => ("drophead", &[]),
        file::Discipline::CoDel => ("codel", &["target", "interval", "ce_threshold"]),
        file::Discipline::Red => ("red", &["min", "max", "probability", "weight", "hard_drop"]),
        file::Discipline::Pie => ("pie", &["target", "tupdate", "alpha", "beta"]),
        file::Discipline::DualPi2 => {
            ("dualpi2", &["target", "tupdate", "alpha", "beta", "coupling_factor", "step_thresh", "classic_protection"])
        }
        file::Discipline::FqCodel => ("fq-codel", &["flows", "quantum", "target", "interval", "ce_threshold"]),
        file::Discipline::Cake => ("cake", &["rtt"]),
    }
}

/// Refuses keys of another discipline.
fn refuse_keys_of_others(queue: &Queue) -> Result<(), Diagnostic> {
    let (name, allowed_keys) = name_and_keys(queue.discipline);
    let present = present_keys(queue).into_iter().filter_map(|(key, span)| Some((key, span?)));
    match present.into_iter().find(|(key, _)| !allowed_keys.contains(key)) {
        Some((key, span)) => {
            let diagnostic = Diagnostic::new(span, format!("a {name} queue has no `{key}`"));
            Err(if allowed_keys.is_empty() {
                diagnostic
            } else {
                diagnostic.with_help(format!("it has {}", allowed_keys.join(", ")))
            })
        }
        None => Ok(()),
    }
}

/// The keys that only some disciplines have, with their positions if the file has them.
fn present_keys(queue: &Queue) -> [(&'static str, Option<Range<usize>>); 17] {
    [
        ("target", span(&queue.target)),
        ("interval", span(&queue.interval)),
        ("ce_threshold", span(&queue.ce_threshold)),
        ("flows", span(&queue.flows)),
        ("quantum", span(&queue.quantum)),
        ("tupdate", span(&queue.tupdate)),
        ("alpha", span(&queue.alpha)),
        ("beta", span(&queue.beta)),
        ("coupling_factor", span(&queue.coupling_factor)),
        ("step_thresh", span(&queue.step_thresh)),
        ("classic_protection", span(&queue.classic_protection)),
        ("rtt", span(&queue.rtt)),
        ("min", span(&queue.min)),
        ("max", span(&queue.max)),
        ("probability", span(&queue.probability)),
        ("weight", span(&queue.weight)),
        ("hard_drop", span(&queue.hard_drop)),
    ]
}

fn span<T>(given: &Option<Spanned<T>>) -> Option<Range<usize>> {
    given.as_ref().map(Spanned::span)
}

/// A time above zero.
fn time(key: &str, given: &Option<Spanned<Time>>, default: Span) -> Result<Span, Diagnostic> {
    given.as_ref().map_or(Ok(default), |time| check_positive(key, time, |time| time.0.0).map(|time| time.0))
}

fn codel(queue: &Queue) -> Result<CoDelConfig, Diagnostic> {
    let default = CoDelConfig::DEFAULT;
    Ok(CoDelConfig {
        target: time("target", &queue.target, default.target)?,
        interval: time("interval", &queue.interval, default.interval)?,
        ce_threshold: queue.ce_threshold.as_ref().map(|time| time.get().0),
    })
}

/// `tc` takes no quantum below 256 bytes either.
fn fq_codel(queue: &Queue) -> Result<QueueDiscipline, Diagnostic> {
    let default = FqCodelConfig::default();
    let flows = queue.flows.as_ref().map_or(default.flows, |flows| *flows.get());
    if let Some(given) = queue.flows.as_ref().filter(|_| !(1..=65_536).contains(&flows)) {
        return Err(
            Diagnostic::new(given.span(), "`flows` is 1 to 65536").with_help(format!("usual: {}", default.flows))
        );
    }
    let quantum = queue.quantum.as_ref().map_or(Ok(default.quantum), parse_bytes)?;
    if let Some(given) = queue.quantum.as_ref().filter(|_| quantum < 256) {
        let help = format!("usual: {}b, a full packet", default.quantum);
        return Err(Diagnostic::new(given.span(), "`quantum` is at least 256 bytes").with_help(help));
    }
    Ok(QueueDiscipline::FqCodel(FqCodelConfig { flows, quantum, codel: codel(queue)? }))
}

fn pie(queue: &Queue) -> Result<QueueDiscipline, Diagnostic> {
    let default = PieConfig::default();
    Ok(QueueDiscipline::Pie(PieConfig {
        target: time("target", &queue.target, default.target)?,
        tupdate: time("tupdate", &queue.tupdate, default.tupdate)?,
        alpha: gain("alpha", &queue.alpha, default.alpha)?,
        beta: gain("beta", &queue.beta, default.beta)?,
    }))
}

/// `tc` takes 0 to 32 sixteenths.
fn gain(key: &str, given: &Option<Spanned<f64>>, default: f64) -> Result<f64, Diagnostic> {
    number(key, given, default, 2.0, "0 to 2, in 1/s", "; `tc` writes sixteenths of it")
}

/// A number from 0 to `max`; `range` and `note` for the error.
fn number(
    key: &str,
    given: &Option<Spanned<f64>>,
    default: f64,
    max: f64,
    range: &str,
    note: &str,
) -> Result<f64, Diagnostic> {
    let Some(spanned) = given else { return Ok(default) };
    match *spanned.get() {
        value if (0.0..=max).contains(&value) => Ok(value),
        _ => {
            let diagnostic = Diagnostic::new(spanned.span(), format!("`{key}` is {range}"));
            Err(diagnostic.with_help(format!("usual: {default}{note}")))
        }
    }
}

/// `tc` takes gains of up to 256 and factors of up to 255.
fn dualpi2(queue: &Queue) -> Result<QueueDiscipline, Diagnostic> {
    let default = DualPi2Config::default();
    let gain = |key, given, default| number(key, given, default, 256.0, "0 to 256, in 1/s", "");
    Ok(QueueDiscipline::DualPi2(DualPi2Config {
        target: time("target", &queue.target, default.target)?,
        tupdate: time("tupdate", &queue.tupdate, default.tupdate)?,
        alpha: gain("alpha", &queue.alpha, default.alpha)?,
        beta: gain("beta", &queue.beta, default.beta)?,
        coupling_factor: number(
            "coupling_factor",
            &queue.coupling_factor,
            default.coupling_factor,
            255.0,
            "0 to 255",
            "",
        )?,
        step_thresh: time("step_thresh", &queue.step_thresh, default.step_thresh)?,
        classic_protection: queue.classic_protection.as_ref().map_or(default.classic_protection, |share| share.get().0),
    }))
}

fn red(spanned: &Spanned<Queue>) -> Result<QueueDiscipline, Diagnostic> {
    let queue = spanned.get();
    let (Some(min), Some(max)) = (&queue.min, &queue.max) else {
        let diagnostic = Diagnostic::new(spanned.span(), "red needs `min` and `max`");
        return Err(diagnostic.with_help("for example min = \"30kB\", max = \"90kB\""));
    };
    if min.get().0 >= max.get().0 {
        return Err(Diagnostic::new(max.span(), "`max` must be more than `min`"));
    }
    if let Some(weight) = queue.weight.as_ref().filter(|weight| !(*weight.get() > 0.0 && *weight.get() <= 1.0)) {
        let help = format!("usual: {}", RedConfig::WEIGHT);
        return Err(Diagnostic::new(weight.span(), "`weight` is above 0 and at most 1").with_help(help));
    }
    Ok(QueueDiscipline::Red(RedConfig {
        min: min.get().0,
        max: max.get().0,
        probability: queue.probability.as_ref().map_or(RedConfig::PROBABILITY, |share| share.get().0),
        weight: queue.weight.as_ref().map_or(RedConfig::WEIGHT, |weight| *weight.get()),
        hard_drop: queue.hard_drop.as_ref().is_none_or(|hard_drop| *hard_drop.get()),
    }))
}
