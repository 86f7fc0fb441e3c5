//! Random changes of links during a run.

use super::checks::check_positive;
use crate::file;
use crate::model::{Handover, RateWalk};
use parse::{Diagnostic, Spanned};
use units::Span;

/// The shortest interval of a random walk: each step is an event.
const MIN_INTERVAL: Span = Span::from_millis(1);

/// The handovers of a link.
pub(super) fn handover(table: &Spanned<file::Handover>) -> Result<Handover, Diagnostic> {
    let file::Handover { period, outage, delay } = table.get();
    let (period, outage_span) =
        (check_positive("period", period, |time| time.0.0)?.0, outage.as_ref().map_or(Span::ZERO, |time| time.get().0));
    if let Some(outage) = outage.as_ref().filter(|_| outage_span >= period) {
        return Err(Diagnostic::new(outage.span(), format!("`outage` is less than `period`, {period}")));
    }
    let bounds = delay.as_ref().map(|bounds| (bounds.get()[0].0, bounds.get()[1].0));
    if let Some(delay) = delay.as_ref().filter(|_| bounds.is_some_and(|(min, max)| min > max)) {
        return Err(Diagnostic::new(delay.span(), "`delay` has its minimum first: [\"20ms\", \"40ms\"]"));
    }
    if outage_span == Span::ZERO && bounds.is_none() {
        let diagnostic = Diagnostic::new(table.span(), "the handover changes nothing");
        return Err(diagnostic.with_help("give `outage`, or `delay`, or both"));
    }
    Ok(Handover { period, outage: outage_span, delay: bounds })
}

/// The random walk of the rate of a direction.
pub(super) fn rate_walk(table: &Spanned<file::RateWalk>, pipe: &file::Pipe) -> Result<RateWalk, Diagnostic> {
    let file::RateWalk { min, max, deviation, interval } = table.get();
    let Some(rate) = pipe.rate else {
        let diagnostic = Diagnostic::new(table.span(), "`rate_walk` without `rate`");
        return Err(diagnostic.with_help("give the link the rate that the walk starts from"));
    };
    if pipe.grants.is_some() {
        return Err(Diagnostic::new(table.span(), "a link that is served in `grants` has no `rate_walk`"));
    }
    if min.0 >= max.get().0 {
        return Err(Diagnostic::new(max.span(), "`max` must be more than `min`"));
    }
    if !(min.0..=max.get().0).contains(&rate.0) {
        let message = format!("the walk starts at `rate`, {}, which is not between `min` and `max`", rate.0);
        return Err(Diagnostic::new(table.span(), message));
    }
    if interval.get().0 < MIN_INTERVAL {
        return Err(Diagnostic::new(interval.span(), format!("`interval` is at least {MIN_INTERVAL}")));
    }
    Ok(RateWalk { min: min.0, max: max.get().0, deviation: deviation.0, interval: interval.get().0 })
}
