//! Queue disciplines: whose key is whose, and what holds where a key is not given.

use super::{bytes, positive};
use crate::file::{self, Queue};
use crate::model::{CoDel, Discipline};
use parse::At;
use parse::Fault;
use parse::Time;
use std::ops::Range;
use units::Span;

/// The discipline of a queue.
pub(super) fn discipline(at: &At<Queue>) -> Result<Discipline, Fault> {
    let queue = at.get();
    refuse_foreign(queue)?;
    match queue.discipline {
        file::Discipline::DropTail => Ok(Discipline::DropTail),
        file::Discipline::CoDel => controlled_delay(queue).map(Discipline::CoDel),
        file::Discipline::Red => random_early(at),
        file::Discipline::Pie => proportional_integral(queue),
        file::Discipline::FqCodel => fair(queue),
        file::Discipline::Cake => Ok(Discipline::Cake { rtt: time("rtt", &queue.rtt, 100)? }),
    }
}

/// The name of a discipline, and its keys.
fn words(discipline: file::Discipline) -> (&'static str, &'static [&'static str]) {
    match discipline {
        file::Discipline::DropTail => ("droptail", &[]),
        file::Discipline::CoDel => ("codel", &["target", "interval", "ce_threshold"]),
        file::Discipline::Red => ("red", &["least", "most", "probability", "weight"]),
        file::Discipline::Pie => ("pie", &["target", "tupdate", "alpha", "beta"]),
        file::Discipline::FqCodel => ("fq-codel", &["flows", "quantum", "target", "interval", "ce_threshold"]),
        file::Discipline::Cake => ("cake", &["rtt"]),
    }
}

/// Refuses keys of another discipline.
fn refuse_foreign(queue: &Queue) -> Result<(), Fault> {
    let (name, own) = words(queue.discipline);
    let given = given(queue).into_iter().filter_map(|(key, span)| Some((key, span?)));
    match given.into_iter().find(|(key, _)| !own.contains(key)) {
        Some((key, span)) => {
            let fault = Fault::at(span, format!("a {name} queue has no `{key}`"));
            Err(if own.is_empty() { fault } else { fault.help(format!("it has {}", own.join(", "))) })
        }
        None => Ok(()),
    }
}

/// The keys that some disciplines have, and where they stand.
fn given(queue: &Queue) -> [(&'static str, Option<Range<usize>>); 13] {
    [
        ("target", span(&queue.target)),
        ("interval", span(&queue.interval)),
        ("ce_threshold", span(&queue.ce_threshold)),
        ("flows", span(&queue.flows)),
        ("quantum", span(&queue.quantum)),
        ("tupdate", span(&queue.tupdate)),
        ("alpha", span(&queue.alpha)),
        ("beta", span(&queue.beta)),
        ("rtt", span(&queue.rtt)),
        ("least", span(&queue.least)),
        ("most", span(&queue.most)),
        ("probability", span(&queue.probability)),
        ("weight", span(&queue.weight)),
    ]
}

fn span<T>(given: &Option<At<T>>) -> Option<Range<usize>> {
    given.as_ref().map(At::span)
}

/// A time above zero, by default so many milliseconds.
fn time(key: &str, given: &Option<At<Time>>, default_ms: u64) -> Result<Span, Fault> {
    match given {
        Some(time) => positive(key, time, |time| time.0.0).map(|time| time.0),
        None => Ok(Span::from_millis(default_ms)),
    }
}

/// Defaults: RFC 8289, section 4.
fn controlled_delay(queue: &Queue) -> Result<CoDel, Fault> {
    let ce_threshold = queue.ce_threshold.as_ref().map(|time| time.get().0);
    Ok(CoDel {
        target: time("target", &queue.target, 5)?,
        interval: time("interval", &queue.interval, 100)?,
        ce_threshold,
    })
}

/// Defaults: RFC 8290, section 5.2. `tc` takes no quantum below 256 bytes either.
fn fair(queue: &Queue) -> Result<Discipline, Fault> {
    let flows = queue.flows.as_ref().map_or(1024, |flows| *flows.get());
    if let Some(given) = queue.flows.as_ref().filter(|_| !(1..=65_536).contains(&flows)) {
        return Err(Fault::at(given.span(), "`flows` is 1 to 65536").help("usual: 1024"));
    }
    let quantum = queue.quantum.as_ref().map_or(Ok(1514), bytes)?;
    if let Some(given) = queue.quantum.as_ref().filter(|_| quantum < 256) {
        return Err(Fault::at(given.span(), "`quantum` is at least 256 bytes").help("usual: 1514b, a full packet"));
    }
    Ok(Discipline::FqCodel { flows, quantum, codel: controlled_delay(queue)? })
}

/// Defaults: RFC 8033, section 4.2.
fn proportional_integral(queue: &Queue) -> Result<Discipline, Fault> {
    let (target, tupdate) = (time("target", &queue.target, 15)?, time("tupdate", &queue.tupdate, 15)?);
    let alpha = gain("alpha", &queue.alpha, 0.125)?;
    Ok(Discipline::Pie { target, tupdate, alpha, beta: gain("beta", &queue.beta, 1.25)? })
}

/// `tc` takes 0 to 32 sixteenths.
fn gain(key: &str, given: &Option<At<f64>>, default: f64) -> Result<f64, Fault> {
    let Some(at) = given else { return Ok(default) };
    match *at.get() {
        gain if (0.0..=2.0).contains(&gain) => Ok(gain),
        _ => {
            let fault = Fault::at(at.span(), format!("`{key}` is 0 to 2, in 1/s"));
            Err(fault.help(format!("usual: {default}; `tc` writes sixteenths of it")))
        }
    }
}

/// Defaults: `tc-red`'s probability, Floyd and Jacobson's weight.
fn random_early(at: &At<Queue>) -> Result<Discipline, Fault> {
    let queue = at.get();
    let (Some(least), Some(most)) = (&queue.least, &queue.most) else {
        return Err(
            Fault::at(at.span(), "red needs `least` and `most`").help("for example least = \"30kB\", most = \"90kB\"")
        );
    };
    if least.get().0 >= most.get().0 {
        return Err(Fault::at(most.span(), "`most` must be more than `least`"));
    }
    if let Some(weight) = queue.weight.as_ref().filter(|weight| !(*weight.get() > 0.0 && *weight.get() <= 1.0)) {
        return Err(Fault::at(weight.span(), "`weight` is above 0 and at most 1").help("usual: 0.002"));
    }
    Ok(Discipline::Red {
        least: least.get().0,
        most: most.get().0,
        probability: queue.probability.as_ref().map_or(0.02, |share| share.get().0),
        weight: queue.weight.as_ref().map_or(0.002, |weight| *weight.get()),
    })
}
