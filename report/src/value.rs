//! What a table shows of a run: a number of the run, of a flow's record, or of its time series where a part of the run is
//! meant.

use crate::course::{self, Course};
use crate::estimate::Estimate;
use crate::study::Cell;
use record::{Flow, Run};
use scenario::Scope;

/// Dropped packets as a share of those sent, percent: not a field of the record, but made of two.
const DROPS: &str = "drop_percent";

/// What belongs to a run as a whole and not to one of its flows.
const OF_RUN: [(&str, OfRun); 2] = [("jain", |run| run.jain), ("convergence_s", |run| run.convergence_s)];
type OfRun = fn(&Run) -> Option<f64>;

/// What a part of the run's time has: of these columns of a flow's series the mean over time,
const MEANS: [&str; 6] =
    ["goodput_mbps", "throughput_mbps", "window_packets", "threshold_packets", "rtt_ms", "in_flight_packets"];
/// and of these the sum.
const SUMS: [&str; 3] = ["sent_packets", "retransmitted_packets", "dropped_packets"];

/// The mean of a value over a cell's seeds. None if one of them has none: the mean of those that completed, or converged,
/// would flatter.
pub(crate) fn estimate(cell: &Cell<'_>, field: &str, scope: &Scope) -> Option<Estimate> {
    let of = |run: &&Run| match course::NAMES.contains(&field) {
        true => nearness(run, &cell.baseline, field, scope),
        false => value(run, field, scope),
    };
    Estimate::of(&cell.runs.iter().map(of).collect::<Option<Vec<_>>>()?)
}

/// Whether a value belongs to a run as a whole.
pub(crate) fn is_of_run(field: &str) -> bool {
    OF_RUN.iter().any(|(name, _)| *name == field)
}

/// How near a run's window is to the baseline's: the mean over the baseline's runs of that cell.
fn nearness(run: &Run, baseline: &[&Run], field: &str, scope: &Scope) -> Option<f64> {
    let whole = Scope { flow: scope.flow.clone(), ..Scope::default() };
    let ours = course(run, course::COLUMN, scope)?;
    let theirs = baseline.iter().filter_map(|other| course(other, course::COLUMN, &whole));
    let each = theirs.filter_map(|theirs| course::number(field, &ours, &theirs));
    Estimate::of(&each.collect::<Vec<_>>()).map(|estimate| estimate.mean)
}

/// The course of a column of a flow's series; nothing if the scope has no sample of it.
pub(crate) fn course(run: &Run, column: &str, scope: &Scope) -> Option<Course> {
    let (times, values): (Vec<f64>, Vec<f64>) = samples(run, flow(run, scope)?, column, scope)?.unzip();
    (!times.is_empty()).then_some(Course { times, values })
}

/// The value of one run.
pub(crate) fn value(run: &Run, field: &str, scope: &Scope) -> Option<f64> {
    if let Some((_, of_run)) = OF_RUN.iter().find(|(name, _)| *name == field) {
        return of_run(run);
    }
    let flow = flow(run, scope)?;
    match scope.is_timed() {
        true => timed(run, flow, field, scope),
        false => number(flow, field),
    }
}

/// The flow that is meant.
pub(crate) fn flow<'r>(run: &'r Run, scope: &Scope) -> Option<&'r Flow> {
    run.flows.iter().find(|flow| scope.flow.as_ref().is_none_or(|name| *name == flow.name))
}

/// A numeric field of a flow's record by its name: `goodput_mbps`, `rtt_ms.p95`.
pub(crate) fn number(flow: &Flow, field: &str) -> Option<f64> {
    match field {
        "goodput_mbps" => Some(flow.goodput_mbps), // nearly always; spares a detour over JSON
        DROPS => percent(flow.dropped_packets as f64, flow.sent_packets as f64),
        _ => {
            let record = serde_json::to_value(flow).ok()?;
            record.pointer(&format!("/{}", field.replace('.', "/")))?.as_f64()
        }
    }
}

/// The value over a part of the run's time. A sample stands for the interval that it ends.
fn timed(run: &Run, flow: &Flow, field: &str, scope: &Scope) -> Option<f64> {
    if field == DROPS {
        let part = |field| timed(run, flow, field, scope);
        return percent(part("dropped_packets")?, part("sent_packets")?);
    }
    let known = samples(run, flow, field, scope)?.filter(|(_, value)| value.is_finite());
    let (sum, count) = known.fold((0.0, 0.0), |(sum, count), (_, value)| (sum + value, count + 1.0));
    (count > 0.0).then(|| if SUMS.contains(&field) { sum } else { sum / count })
}

/// The samples of a column of a flow's series that lie in the scope's time: instant and value.
fn samples<'r>(
    run: &'r Run,
    flow: &Flow,
    column: &str,
    scope: &Scope,
) -> Option<impl Iterator<Item = (f64, f64)> + use<'r>> {
    let subject = format!("flow {}", flow.name);
    let series = run.series.iter().find(|series| series.subject == subject)?;
    let values = &series.values[series.columns.iter().position(|other| other == column)?];
    let (after, until) = (scope.from_s.unwrap_or(0.0) + SLACK, scope.until_s.unwrap_or(f64::MAX) + SLACK);
    let samples = series.time_s.iter().copied().zip(values.iter().copied());
    Some(samples.filter(move |(time, _)| *time > after && *time < until))
}

/// Instants of samples are whole multiples of the interval but for rounding, seconds.
const SLACK: f64 = 1e-6;

fn percent(part: f64, whole: f64) -> Option<f64> {
    (whole > 0.0).then(|| 100.0 * part / whole)
}

/// What a table's `value` may be: every numeric field of a flow's record, such as `goodput_mbps` or `rtt_ms.p95`,
/// `drop_percent`, and the measures of a run: `jain` and `convergence_s`. With `from` or `until` it is a column of the time series instead.
#[must_use]
pub fn table_values(timed: bool) -> Vec<String> {
    if timed {
        return MEANS.iter().chain(&SUMS).chain(&[DROPS]).map(|name| (*name).to_owned()).collect();
    }
    let zero = Some(0.0);
    let flow = Flow { completion_s: zero, share: zero, startup_s: zero, ..Flow::default() };
    let record = serde_json::to_value(&flow).expect("text and numbers");
    let fields = record.as_object().into_iter().flatten();
    let names = fields.flat_map(|(name, value)| match value.as_object() {
        Some(below) => below.keys().map(|key| format!("{name}.{key}")).collect(),
        None => vec![name.clone()],
    });
    let others = OF_RUN.iter().map(|(name, _)| *name).chain([DROPS]).map(str::to_owned);
    names.filter(|name| number(&flow, name).is_some()).chain(others).collect()
}

/// What a figure's `value` may be: columns of a flow's time series.
#[must_use]
pub fn figure_values() -> Vec<String> {
    MEANS.iter().chain(&SUMS).map(|name| (*name).to_owned()).collect()
}

/// What the `value` of a table or a claim may be where there is a baseline: how near a flow's window is to it.
#[must_use]
pub fn baseline_values() -> Vec<String> {
    course::NAMES.map(str::to_owned).to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;
    use record::Series;

    /// Samples at 1, 2, 3 and 4 s.
    fn run() -> Run {
        let flow = Flow { name: "tcp".to_owned(), dropped_packets: 3, sent_packets: 60, ..Flow::default() };
        let series = Series {
            subject: "flow tcp".to_owned(),
            columns: ["goodput_mbps", "sent_packets", "dropped_packets"].map(str::to_owned).to_vec(),
            time_s: vec![1.0, 2.0, 3.0, 4.0],
            values: vec![vec![2.0, 4.0, 9.0, f64::NAN], vec![10.0, 20.0, 30.0, 40.0], vec![1.0, 2.0, 0.0, 4.0]],
        };
        Run { flows: vec![flow], series: vec![series], ..Run::default() }
    }

    #[test]
    fn every_column_of_a_flow_has_a_value_over_a_part_of_the_run() {
        let known: std::collections::BTreeSet<&str> = MEANS.into_iter().chain(SUMS).collect();
        assert_eq!(known, record::FLOW_COLUMNS.into_iter().collect());
    }

    #[test]
    fn a_part_of_the_run_has_the_mean_of_rates_and_the_sum_of_counts() {
        let part = |from_s, until_s, field| value(&run(), field, &Scope { from_s, until_s, ..Scope::default() });
        assert_eq!(part(None, Some(2.0), "goodput_mbps"), Some(3.0));
        assert_eq!(part(Some(1.0), None, "goodput_mbps"), Some(6.5), "what is not known does not count");
        assert_eq!(part(Some(1.0), Some(3.0), "sent_packets"), Some(50.0));
        assert_eq!(part(None, Some(2.0), "drop_percent"), Some(10.0), "3 of 30");
        assert_eq!(part(Some(3.0), None, "goodput_mbps"), None);
        assert_eq!(value(&run(), "drop_percent", &Scope::default()), Some(5.0), "3 of 60");
    }

    #[test]
    fn a_mean_needs_every_seed() {
        let runs = [Some(10.0), Some(20.0), None].map(|convergence_s| Run { convergence_s, ..run() });
        let mean = |runs: &[Run]| {
            let cell = Cell { parameters: &runs[0].parameters, runs: runs.iter().collect(), baseline: Vec::new() };
            estimate(&cell, "convergence_s", &Scope::default()).map(|estimate| estimate.mean)
        };
        assert_eq!((mean(&runs[..2]), mean(&runs)), (Some(15.0), None));
    }
}
