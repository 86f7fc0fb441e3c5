//! The samples of a time series that are in a scope.

use crate::copies;
use crate::flow_record::FlowRecord;
use crate::layout::Scope;
use record::Run;

/// The record that a scope names; of copies the first.
pub(crate) fn flow_record<'r>(run: &'r Run, scope: &Scope) -> Option<FlowRecord<'r>> {
    FlowRecord::of(run, Some(copies::names(run, scope).first()?))
}

/// The samples of a column in the scope's time: instant in seconds, and value.
pub(crate) fn samples<'r>(
    run: &'r Run,
    column: &str,
    scope: &Scope,
) -> Option<impl Iterator<Item = (f64, f64)> + use<'r>> {
    let name = flow_record(run, scope)?.series();
    let series = run.series.iter().find(|series| series.subject == name)?;
    let values = &series.values[series.columns.iter().position(|name| name == column)?];
    let (from_s, until_s) =
        (scope.from_s.unwrap_or(0.0) + TOLERANCE_S, scope.until_s.unwrap_or(f64::MAX) + TOLERANCE_S);
    let samples = series.time_s.iter().copied().zip(values.iter().copied());
    Some(samples.filter(move |(time, _)| *time > from_s && *time < until_s))
}

/// The rounding error of a sample's instant, seconds: instants are multiples of the interval.
const TOLERANCE_S: f64 = 1e-6;
