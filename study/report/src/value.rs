//! The values that tables, bars and claims show: numbers of a run, of a flow's or subflow's record, or of its time
//! series.

use crate::copies;
use crate::estimate::Estimate;
use crate::flow_record::{DROP_PERCENT, FlowRecord, percent};
use crate::layout::Scope;
use crate::sample::Sample;
use crate::series::{flow_record, samples};
use crate::study::SweepCell;
use crate::trajectory::{self, Trajectory};
use crate::{cpu, load};
use record::{Flow, Run, Subflow};

/// The mean of numbers, if there is one.
fn mean(numbers: impl ExactSizeIterator<Item = f64>) -> Option<f64> {
    let count = numbers.len();
    (count > 0).then(|| numbers.sum::<f64>() / count as f64)
}

/// The coefficient of variation of the throughput's samples, percent.
const VARIATION_PERCENT: &str = "variation_percent";

/// The values of a run as a whole, by name.
const RUN_VALUES: [(&str, RunValue); 7] = [
    ("jain", |run| run.jain),
    ("mean_goodput_mbps", |run| mean(run.flows.iter().map(|flow| flow.goodput_mbps))),
    ("convergence_s", |run| run.convergence_s),
    ("cpu_s_per_gb", cpu::machine_s_per_gb),
    ("tunnel_cpu_s_per_gb", cpu::tunnel_s_per_gb),
    ("cpu_percent", cpu::machine_percent),
    ("tunnel_cpu_percent", cpu::tunnel_percent),
];
type RunValue = fn(&Run) -> Option<f64>;

/// Columns of a flow's series of which a part of the run has the mean over time.
const MEAN_COLUMNS: [&str; 6] =
    ["goodput_mbps", "throughput_mbps", "cwnd_packets", "ssthresh_packets", "srtt_ms", "in_flight_packets"];
/// Columns of a flow's series of which a part of the run has the sum.
const SUM_COLUMNS: [&str; 3] = ["sent_packets", "retransmitted_packets", "dropped_packets"];

/// The mean of a value over a cell's seeds. None if one seed has no value: a mean over those that completed, or
/// converged, would be too good.
pub(crate) fn estimate(cell: &SweepCell<'_>, field: &str, scope: &Scope) -> Option<Estimate> {
    sample(cell, field, scope)?.estimate()
}

/// The value of each run of a cell; none if one of the runs in the mean has no value.
pub(crate) fn sample(cell: &SweepCell<'_>, field: &str, scope: &Scope) -> Option<Sample> {
    let scope = &cell.scope(scope);
    let point = |run: &&Run| {
        let value = match trajectory::NAMES.contains(&field) {
            true => cwnd_error(run, &cell.baseline, field, scope),
            false => value(run, field, scope),
        };
        value.map(|value| (run.seed, value))
    };
    let points = cell.runs.iter().map(point).collect::<Option<_>>()?;
    let excluded = cell.excluded.iter().filter_map(point).collect();
    Some(Sample { points, excluded, identical: cell.has_identical_runs() })
}

/// Whether a value belongs to a run as a whole.
pub(crate) fn is_run_value(field: &str) -> bool {
    RUN_VALUES.iter().any(|(name, _)| *name == field)
}

/// The error of a run's congestion window against the baseline's: the mean over the baseline's runs of that cell.
fn cwnd_error(run: &Run, baseline: &[&Run], field: &str, scope: &Scope) -> Option<f64> {
    let flow_scope = Scope { flow: scope.flow.clone(), ..Scope::default() };
    let run_trajectory = trajectory(run, trajectory::COLUMN, scope)?;
    let baseline_trajectory = baseline.iter().filter_map(|run| trajectory(run, trajectory::COLUMN, &flow_scope));
    let errors = baseline_trajectory
        .filter_map(|baseline_trajectory| trajectory::cwnd_error(field, &run_trajectory, &baseline_trajectory));
    Estimate::of(&errors.collect::<Vec<_>>()).map(|estimate| estimate.mean)
}

/// The trajectory of a column of a flow's series; none if the scope has no sample of it.
pub(crate) fn trajectory(run: &Run, column: &str, scope: &Scope) -> Option<Trajectory> {
    let (times, values): (Vec<f64>, Vec<f64>) = samples(run, column, scope)?.unzip();
    (!times.is_empty()).then_some(Trajectory { times, values })
}

/// The value of one run; with [`Scope::attainable`] as a share of what is attainable, if the run has a capacity.
pub(crate) fn value(run: &Run, field: &str, scope: &Scope) -> Option<f64> {
    let value = absolute_value(run, field, scope)?;
    match scope.attainable {
        None => Some(value),
        Some(payload_share) => Some(value / (run.capacity_mbps? * payload_share)),
    }
}

/// The value of one run, in its own unit.
fn absolute_value(run: &Run, field: &str, scope: &Scope) -> Option<f64> {
    if let Some((_, run_value)) = RUN_VALUES.iter().find(|(name, _)| *name == field) {
        return run_value(run);
    }
    let (field, statistic) = copies::split(field);
    let of_copy = |name: String| value_of_one(run, field, &Scope { flow: Some(name), ..scope.clone() });
    match copies::names(run, scope) {
        // The usual case, without a copy of the scope.
        names if names.len() == 1 && scope.flow.as_ref() == names.first() => value_of_one(run, field, scope),
        // A copy that has sent nothing has lost nothing, and no share of it.
        names if field == DROP_PERCENT => copies::summarise(names.into_iter().filter_map(of_copy).collect(), statistic),
        names => copies::summarise(names.into_iter().map(of_copy).collect::<Option<_>>()?, statistic),
    }
}

/// The value of one flow or subflow.
fn value_of_one(run: &Run, field: &str, scope: &Scope) -> Option<f64> {
    match field {
        VARIATION_PERCENT => variation_percent(run, scope),
        _ if load::NAMES.contains(&field) => load::value(run, field, scope),
        _ if scope.is_timed() => value_in_time(run, field, scope),
        _ => flow_record(run, scope)?.number(field),
    }
}

/// The value over a part of the run's time. A sample stands for the interval that it ends.
fn value_in_time(run: &Run, field: &str, scope: &Scope) -> Option<f64> {
    if field == DROP_PERCENT {
        let part = |field| value_in_time(run, field, scope);
        return percent(part("dropped_packets")?, part("sent_packets")?);
    }
    let finite_samples = finite_samples(run, field, scope)?;
    let sum: f64 = finite_samples.iter().sum();
    (!finite_samples.is_empty())
        .then(|| if SUM_COLUMNS.contains(&field) { sum } else { sum / finite_samples.len() as f64 })
}

fn variation_percent(run: &Run, scope: &Scope) -> Option<f64> {
    let rates = finite_samples(run, "throughput_mbps", scope)?;
    let mean = rates.iter().sum::<f64>() / rates.len() as f64;
    let variance = rates.iter().map(|rate| (rate - mean).powi(2)).sum::<f64>() / rates.len() as f64;
    percent(variance.sqrt(), mean)
}

/// The samples of a column that are finite.
fn finite_samples(run: &Run, column: &str, scope: &Scope) -> Option<Vec<f64>> {
    Some(samples(run, column, scope)?.map(|(_, value)| value).filter(|value| value.is_finite()).collect())
}

/// The names that a table's `value` may have for a flow, or for a subflow: the numeric fields of its record, such as
/// `goodput_mbps` or `rtt_ms.p95`, and `drop_percent`; for a flow also values of the run, such as `jain` and
/// `cpu_s_per_gb`. With `from` or `until`, the columns of the time series instead. In all cases `variation_percent`,
/// and for a subflow its load.
pub(crate) fn table_values(subflow: bool, is_timed: bool) -> Vec<String> {
    let fields = match (is_timed, subflow) {
        (true, _) => MEAN_COLUMNS.iter().chain(&SUM_COLUMNS).map(|name| (*name).to_owned()).collect(),
        (false, true) => FlowRecord::Subflow(&Subflow::complete()).fields(),
        (false, false) => FlowRecord::Flow(&Flow::complete()).fields(),
    };
    let run_values = RUN_VALUES.iter().map(|(name, _)| *name).filter(|_| !is_timed && !subflow);
    let loads = load::NAMES.into_iter().filter(|_| subflow);
    fields
        .into_iter()
        .chain(run_values.chain([DROP_PERCENT, VARIATION_PERCENT]).chain(loads).map(str::to_owned))
        .collect()
}

/// Whether a value needs the time series even for the whole run.
pub(crate) fn is_from_series(value: &str) -> bool {
    value == VARIATION_PERCENT || load::NAMES.contains(&value)
}

/// The names that a figure's `value` may have: columns of the time series of a flow or subflow.
pub(crate) fn figure_values() -> Vec<String> {
    MEAN_COLUMNS.iter().chain(&SUM_COLUMNS).map(|name| (*name).to_owned()).collect()
}

/// The names that the `value` of shares over time may have: columns whose values of several flows add up.
pub(crate) fn stacked_values() -> Vec<String> {
    figure_values().into_iter().filter(|name| !["srtt_ms", "ssthresh_packets"].contains(&name.as_str())).collect()
}

/// The names that a `value` may have besides, if there is a baseline: errors of a flow's congestion window.
pub(crate) fn baseline_values() -> Vec<String> {
    trajectory::NAMES.map(str::to_owned).to_vec()
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
        let columns: std::collections::BTreeSet<&str> = MEAN_COLUMNS.into_iter().chain(SUM_COLUMNS).collect();
        assert_eq!(columns, record::FLOW_COLUMNS.into_iter().collect());
    }

    #[test]
    fn a_part_of_the_run_has_the_mean_of_rates_and_the_sum_of_counts() {
        let part = |from_s, until_s, field| value(&run(), field, &Scope { from_s, until_s, ..Scope::default() });
        assert_eq!(part(None, Some(2.0), "goodput_mbps"), Some(3.0));
        assert_eq!(part(Some(1.0), None, "goodput_mbps"), Some(6.5), "what is not finite does not count");
        assert_eq!(part(Some(1.0), Some(3.0), "sent_packets"), Some(50.0));
        assert_eq!(part(None, Some(2.0), "drop_percent"), Some(10.0), "3 of 30");
        assert_eq!(part(Some(3.0), None, "goodput_mbps"), None);
        assert_eq!(value(&run(), "drop_percent", &Scope::default()), Some(5.0), "3 of 60");
    }

    #[test]
    fn a_rate_is_a_share_of_the_payload_that_the_paths_can_carry() {
        let share = |capacity_mbps, from_s| {
            let scope =
                Scope { attainable: Some(0.9), from_s, until_s: from_s.map(|from_s| from_s + 1.0), ..Scope::default() };
            let mut run = Run { capacity_mbps, ..run() };
            run.flows[0].goodput_mbps = 4.5;
            value(&run, "goodput_mbps", &scope)
        };
        assert_eq!(share(Some(10.0), None), Some(0.5), "4.5 of 9");
        assert_eq!(share(Some(10.0), Some(2.0)), Some(1.0), "9 of 9 in the third second");
        assert_eq!(share(None, None), None, "what the paths can carry is not known");
    }

    #[test]
    fn a_mean_needs_every_seed() {
        let runs = [Some(10.0), Some(20.0), None].map(|convergence_s| Run { convergence_s, ..run() });
        let mean = |runs: &[Run]| {
            let runs: Vec<&Run> = runs.iter().collect();
            let cell = SweepCell { runs: runs.clone(), ..SweepCell::empty(&runs[0].parameters) };
            estimate(&cell, "convergence_s", &Scope::default()).map(|estimate| estimate.mean)
        };
        assert_eq!((mean(&runs[..2]), mean(&runs)), (Some(15.0), None));
    }
}
