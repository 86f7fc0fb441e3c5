//! Queues: discipline, limit, and limits relative to the bandwidth-delay product.

use super::discipline::discipline;
use crate::file;
use crate::model::{Link, Path};
use link::{PipeConfig, QueueConfig, QueueDiscipline, QueueLimit, RateTrace};
use parse::{Decimal, Diagnostic, QueueSize, Spanned};
use std::ops::Range;
use units::{Rate, Span};

/// A limit in multiples of the bandwidth-delay product, which is resolved when the paths are known.
#[derive(Clone, Debug)]
pub(super) struct BdpLimit {
    factor: Decimal,
    span: Range<usize>,
}

/// The queue, and its limit if that is in bandwidth-delay products.
pub(super) fn queue(table: Option<&Spanned<file::Queue>>) -> Result<(QueueConfig, Option<BdpLimit>), Diagnostic> {
    let Some(table) = table else { return Ok((QueueConfig::default(), None)) };
    let (keys, mut queue) = (table.get(), QueueConfig::new(discipline(table)?));
    let never_marks = matches!(queue.discipline, QueueDiscipline::DropTail | QueueDiscipline::DropHead);
    if keys.ecn == Some(true) && never_marks {
        let diagnostic = Diagnostic::new(table.span(), "a queue that drops only when full marks nothing");
        return Err(diagnostic.with_help("`ecn` goes with codel, red, pie, dualpi2, fq-codel and cake"));
    }
    if keys.ecn == Some(false) && matches!(queue.discipline, QueueDiscipline::DualPi2(_)) {
        let diagnostic = Diagnostic::new(table.span(), "a dualpi2 queue always marks");
        return Err(diagnostic.with_help("leave `ecn` out; packets that are not ECN-capable are dropped"));
    }
    queue.ecn = keys.ecn.unwrap_or(queue.ecn);
    let Some(limit) = &keys.limit else { return Ok((queue, None)) };
    let (limit, bdp_limit) = match *limit.get() {
        QueueSize::Packets(packets) => (QueueLimit::Packets(packets), None),
        QueueSize::Bytes(bytes) => (QueueLimit::Bytes(bytes), None),
        QueueSize::Time(span) => (QueueLimit::Time(span), None),
        QueueSize::Bdp(factor) => (QueueLimit::Bytes(0), Some(BdpLimit { factor, span: limit.span() })),
    };
    Ok((QueueConfig { limit, ..queue }, bdp_limit))
}

/// Resolves `limit` of a queue on `link` for the first path over that link: the rate of the slowest link in the queue's own
/// direction, times the delays of all links in both directions.
pub(super) fn resolve_bdp_limit(
    limit: &BdpLimit,
    link: usize,
    links: &[Link],
    paths: &[Path],
    direction: fn(&Link) -> &PipeConfig,
) -> Result<QueueLimit, Diagnostic> {
    let diagnostic = |message: String| Err(Diagnostic::new(limit.span.clone(), message));
    let Some(path) = paths.iter().find(|path| path.links.contains(&link)) else {
        return diagnostic(format!("no path crosses `{}`, so it has no bandwidth-delay product", links[link].name));
    };
    let Some(rate) = path.links.iter().filter_map(|&index| mean_rate(direction(&links[index]))).min() else {
        return diagnostic(format!("no link of `{}` has a rate, so it has no bandwidth-delay product", path.name));
    };
    let delay = |index: &usize| links[*index].forward.delay + links[*index].reverse.delay;
    let rtt = path.links.iter().map(delay).fold(Span::ZERO, |sum, delay| sum + delay);
    match limit.factor.times_rounded_down(rate.bytes_in(rtt)) {
        0 if rtt == Span::ZERO => {
            diagnostic(format!("the bandwidth-delay product of `{}` is zero: its links have no delay", path.name))
        }
        0 => diagnostic(format!(
            "the bandwidth-delay product of `{}` is less than a byte: {} bit/s for an RTT of {} ms",
            path.name,
            rate.as_bits(),
            rtt.as_millis()
        )),
        bytes => Ok(QueueLimit::Bytes(bytes)),
    }
}

/// A pipe's rate, or the mean rate of its trace, or its policer's if that is less.
pub(super) fn mean_rate(pipe: &PipeConfig) -> Option<Rate> {
    let rate = pipe.rate.or_else(|| pipe.trace.as_ref().map(RateTrace::mean_rate));
    rate.into_iter().chain(pipe.policer.map(|policer| policer.rate)).min()
}
