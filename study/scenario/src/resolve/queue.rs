//! Queues: discipline, limit, and limits relative to the bandwidth-delay product.

use super::discipline::discipline;
use crate::file;
use crate::model::{Discipline, Limit, Link, Path, Pipe, Queue};
use parse::At;
use parse::Fault;
use parse::{Decimal, QueueLimit};
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
    if given.ecn == Some(true) && discipline == Discipline::DropTail {
        let fault = Fault::at(at.span(), "a drop-tail queue marks nothing");
        return Err(fault.help("`ecn` goes with codel, red, pie, fq-codel and cake"));
    }
    let (limit, relative) = match given.limit.as_ref().map(|limit| (*limit.get(), limit.span())) {
        None => (default_limit(discipline), None),
        Some((QueueLimit::Packets(packets), _)) => (Limit::Packets(packets), None),
        Some((QueueLimit::Bytes(bytes), _)) => (Limit::Bytes(bytes), None),
        Some((QueueLimit::Time(span), _)) => (Limit::Time(span), None),
        Some((QueueLimit::Bdp(factor), span)) => (Limit::Bytes(0), Some(Relative { factor, span })),
    };
    Ok((Queue { limit, discipline, ecn: given.ecn.unwrap_or(marks_by_default(discipline)) }, relative))
}

/// As in `tc`. CAKE counts memory, and at least this much.
fn default_limit(discipline: Discipline) -> Limit {
    match discipline {
        Discipline::FqCodel { .. } => Limit::Packets(10_240),
        Discipline::Cake { .. } => Limit::Bytes(4 << 20),
        _ => DEFAULT_LIMIT,
    }
}

/// As in `tc`.
fn marks_by_default(discipline: Discipline) -> bool {
    matches!(discipline, Discipline::FqCodel { .. } | Discipline::Cake { .. })
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
