//! Queues: discipline, limit, and limits relative to the bandwidth-delay product.

use super::positive;
use crate::error::Fault;
use crate::file::{self, At};
use crate::model::{Discipline, Limit, Link, Path, Pipe, Queue};
use crate::quantity::{Decimal, QueueLimit, Time};
use std::ops::Range;
use units::{Rate, Span};

/// A limit in multiples of the bandwidth-delay product, which is known when the paths are.
#[derive(Clone, Debug)]
pub(super) struct Relative {
    factor: Decimal,
    span: Range<usize>,
}

/// Linux's default length of an interface's queue.
const DEFAULT_LIMIT: Limit = Limit::Packets(1000);

/// The queue; a relative limit is returned beside it.
pub(super) fn queue(given: Option<&At<file::Queue>>) -> Result<(Queue, Option<Relative>), Fault> {
    let Some(at) = given else {
        return Ok((Queue { limit: DEFAULT_LIMIT, discipline: Discipline::DropTail, ecn: false }, None));
    };
    let given = at.get();
    let discipline = discipline(at)?;
    if given.ecn && discipline == Discipline::DropTail {
        return Err(Fault::at(at.span(), "a drop-tail queue marks nothing").help("`ecn` goes with codel or red"));
    }
    let (limit, relative) = match given.limit.as_ref().map(|limit| (*limit.get(), limit.span())) {
        None => (DEFAULT_LIMIT, None),
        Some((QueueLimit::Packets(packets), _)) => (Limit::Packets(packets), None),
        Some((QueueLimit::Bytes(bytes), _)) => (Limit::Bytes(bytes), None),
        Some((QueueLimit::Time(span), _)) => (Limit::Time(span), None),
        Some((QueueLimit::Bdp(factor), span)) => (Limit::Bytes(0), Some(Relative { factor, span })),
    };
    Ok((Queue { limit, discipline, ecn: given.ecn }, relative))
}

fn discipline(at: &At<file::Queue>) -> Result<Discipline, Fault> {
    let queue = at.get();
    let codel = [("target", span(&queue.target)), ("interval", span(&queue.interval))];
    let red = [
        ("least", span(&queue.least)),
        ("most", span(&queue.most)),
        ("probability", span(&queue.probability)),
        ("weight", span(&queue.weight)),
    ];
    match queue.discipline {
        file::Discipline::DropTail => foreign("droptail", codel.into_iter().chain(red)).map(|()| Discipline::DropTail),
        file::Discipline::CoDel => foreign("codel", red.into_iter()).and_then(|()| controlled_delay(queue)),
        file::Discipline::Red => foreign("red", codel.into_iter()).and_then(|()| random_early(at)),
    }
}

/// Defaults: RFC 8289, section 4.
fn controlled_delay(queue: &file::Queue) -> Result<Discipline, Fault> {
    let time = |key, given: &Option<At<Time>>, default| match given {
        Some(time) => positive(key, time, |time| time.0.0).map(|time| time.0),
        None => Ok(default),
    };
    let target = time("target", &queue.target, Span::from_millis(5))?;
    Ok(Discipline::CoDel { target, interval: time("interval", &queue.interval, Span::from_millis(100))? })
}

/// Defaults: `tc-red`'s probability, Floyd and Jacobson's weight.
fn random_early(at: &At<file::Queue>) -> Result<Discipline, Fault> {
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

fn span<T>(given: &Option<At<T>>) -> Option<Range<usize>> {
    given.as_ref().map(At::span)
}

/// Refuses keys of another discipline.
fn foreign(name: &str, mut keys: impl Iterator<Item = (&'static str, Option<Range<usize>>)>) -> Result<(), Fault> {
    match keys.find_map(|(key, span)| span.map(|span| (key, span))) {
        Some((key, span)) => Err(Fault::at(span, format!("a {name} queue has no `{key}`"))),
        None => Ok(()),
    }
}

/// Resolves `limit` of a queue on `link` for the first path over that link: the rate of the slowest link in the
/// queue's own direction, times the delays of all links there and back.
pub(super) fn product(
    relative: &Relative,
    link: usize,
    links: &[Link],
    paths: &[Path],
    direction: fn(&Link) -> &Pipe,
) -> Result<Limit, Fault> {
    let fault = |message: String| Err(Fault::at(relative.span.clone(), message));
    let Some(path) = paths.iter().find(|path| path.links.contains(&link)) else {
        return fault(format!("no path crosses `{}`, so it has no bandwidth-delay product", links[link].name));
    };
    let Some(rate) = path.links.iter().filter_map(|&index| mean_rate(direction(&links[index]))).min() else {
        return fault(format!("no link of `{}` has a rate, so it has no bandwidth-delay product", path.name));
    };
    let delay = |index: &usize| links[*index].forward.delay + links[*index].reverse.delay;
    let round = path.links.iter().map(delay).fold(Span::ZERO, |sum, delay| sum + delay);
    match relative.factor.of(rate.bytes_in(round)) {
        0 => fault(format!("the bandwidth-delay product of `{}` is zero: its links have no delay", path.name)),
        bytes => Ok(Limit::Bytes(bytes)),
    }
}

/// A pipe's rate, or what its trace carries on average (1500 bytes an opportunity).
pub(super) fn mean_rate(pipe: &Pipe) -> Option<Rate> {
    let trace = pipe.trace.as_ref();
    pipe.rate.or_else(|| trace.map(|t| Rate::of(1500 * t.opportunities.len() as u64, Span::from_millis(t.period_ms))))
}
