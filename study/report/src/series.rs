//! Samples of a time series in a scope.

use crate::layout::Scope;
use crate::subject::Subject;
use record::Run;

/// Whose result is meant.
pub(crate) fn subject<'r>(run: &'r Run, scope: &Scope) -> Option<Subject<'r>> {
    Subject::of(run, scope.flow.as_deref())
}

/// The samples of a column of the series that is meant, in the scope's time: instant and value.
pub(crate) fn samples<'r>(
    run: &'r Run,
    column: &str,
    scope: &Scope,
) -> Option<impl Iterator<Item = (f64, f64)> + use<'r>> {
    let subject = subject(run, scope)?.series();
    let series = run.series.iter().find(|series| series.subject == subject)?;
    let values = &series.values[series.columns.iter().position(|other| other == column)?];
    let (after, until) = (scope.from_s.unwrap_or(0.0) + SLACK, scope.until_s.unwrap_or(f64::MAX) + SLACK);
    let samples = series.time_s.iter().copied().zip(values.iter().copied());
    Some(samples.filter(move |(time, _)| *time > after && *time < until))
}

/// Instants of samples are whole multiples of the interval but for rounding, seconds.
const SLACK: f64 = 1e-6;
