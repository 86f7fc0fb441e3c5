//! What a table shows of a run: a number of the run, of a flow's or subflow's record, or of its time series where a part of
//! the run is meant.

use crate::estimate::Estimate;
use crate::layout::Scope;
use crate::sample::Sample;
use crate::series::{samples, subject};
use crate::study::SweepCell;
use crate::subject::{DROP_PERCENT, Subject, percent};
use crate::trajectory::{self, Trajectory};
use crate::{cpu, load};
use record::{Flow, Run, Subflow};

/// How much the throughput varies from sample to sample, percent: its standard deviation as a share of its mean.
const VARIATION: &str = "variation_percent";

/// What belongs to a run as a whole and not to one of its flows.
const RUN_VALUES: [(&str, RunValue); 6] = [
    ("jain", |run| run.jain),
    ("convergence_s", |run| run.convergence_s),
    ("cpu_s_per_gb", cpu::machine_s_per_gb),
    ("tunnel_cpu_s_per_gb", cpu::tunnel_s_per_gb),
    ("cpu_percent", cpu::machine_percent),
    ("tunnel_cpu_percent", cpu::tunnel_percent),
];
type RunValue = fn(&Run) -> Option<f64>;

/// What a part of the run's time has: of these columns of a flow's series the mean over time,
const MEANS: [&str; 6] =
    ["goodput_mbps", "throughput_mbps", "cwnd_packets", "ssthresh_packets", "srtt_ms", "in_flight_packets"];
/// and of these the sum.
const SUMS: [&str; 3] = ["sent_packets", "retransmitted_packets", "dropped_packets"];

/// The mean of a value over a cell's seeds. None if one of them has none: the mean of those that completed, or converged,
/// would flatter.
pub(crate) fn estimate(cell: &SweepCell<'_>, field: &str, scope: &Scope) -> Option<Estimate> {
    sample(cell, field, scope)?.estimate()
}

/// The same run by run.
pub(crate) fn sample(cell: &SweepCell<'_>, field: &str, scope: &Scope) -> Option<Sample> {
    let scope = &cell.scope(scope);
    let of = |run: &&Run| {
        let value = match trajectory::NAMES.contains(&field) {
            true => nearness(run, &cell.baseline, field, scope),
            false => value(run, field, scope),
        };
        value.map(|value| (run.seed, value))
    };
    let points = cell.runs.iter().map(of).collect::<Option<_>>()?;
    Some(Sample { points, excluded: cell.excluded.iter().filter_map(of).collect() })
}

/// Whether a value belongs to a run as a whole.
pub(crate) fn is_run_value(field: &str) -> bool {
    RUN_VALUES.iter().any(|(name, _)| *name == field)
}

/// How near a run's window is to the baseline's: the mean over the baseline's runs of that cell.
fn nearness(run: &Run, baseline: &[&Run], field: &str, scope: &Scope) -> Option<f64> {
    let whole = Scope { flow: scope.flow.clone(), ..Scope::default() };
    let ours = trajectory(run, trajectory::COLUMN, scope)?;
    let theirs = baseline.iter().filter_map(|other| trajectory(other, trajectory::COLUMN, &whole));
    let each = theirs.filter_map(|theirs| trajectory::number(field, &ours, &theirs));
    Estimate::of(&each.collect::<Vec<_>>()).map(|estimate| estimate.mean)
}

/// The trajectory of a column of a flow's series; nothing if the scope has no sample of it.
pub(crate) fn trajectory(run: &Run, column: &str, scope: &Scope) -> Option<Trajectory> {
    let (times, values): (Vec<f64>, Vec<f64>) = samples(run, column, scope)?.unzip();
    (!times.is_empty()).then_some(Trajectory { times, values })
}

/// The value of one run.
pub(crate) fn value(run: &Run, field: &str, scope: &Scope) -> Option<f64> {
    if let Some((_, of_run)) = RUN_VALUES.iter().find(|(name, _)| *name == field) {
        return of_run(run);
    }
    match field {
        VARIATION => variation(run, scope),
        _ if load::NAMES.contains(&field) => load::value(run, field, scope),
        _ if scope.is_timed() => timed(run, field, scope),
        _ => subject(run, scope)?.number(field),
    }
}

/// The value over a part of the run's time. A sample stands for the interval that it ends.
fn timed(run: &Run, field: &str, scope: &Scope) -> Option<f64> {
    if field == DROP_PERCENT {
        let part = |field| timed(run, field, scope);
        return percent(part("dropped_packets")?, part("sent_packets")?);
    }
    let known = known(run, field, scope)?;
    let sum: f64 = known.iter().sum();
    (!known.is_empty()).then(|| if SUMS.contains(&field) { sum } else { sum / known.len() as f64 })
}

fn variation(run: &Run, scope: &Scope) -> Option<f64> {
    let rates = known(run, "throughput_mbps", scope)?;
    let mean = rates.iter().sum::<f64>() / rates.len() as f64;
    let variance = rates.iter().map(|rate| (rate - mean).powi(2)).sum::<f64>() / rates.len() as f64;
    percent(variance.sqrt(), mean)
}

/// The samples that say something.
fn known(run: &Run, column: &str, scope: &Scope) -> Option<Vec<f64>> {
    Some(samples(run, column, scope)?.map(|(_, value)| value).filter(|value| value.is_finite()).collect())
}

/// What a table's `value` may be of a flow, or of a subflow: every numeric field of its record, such as `goodput_mbps` or
/// `rtt_ms.p95`, and `drop_percent`; of a flow also the measures of a run, such as `jain` and `cpu_s_per_gb`. With `from` or
/// `until` it is a column of the time series instead. Either way `variation_percent`, and of a subflow its load.
pub(crate) fn table_values(subflow: bool, timed: bool) -> Vec<String> {
    let zero = Some(0.0);
    let flow = Flow { completion_s: zero, share: zero, startup_s: zero, ..Flow::default() };
    let fields = match (timed, subflow) {
        (true, _) => MEANS.iter().chain(&SUMS).map(|name| (*name).to_owned()).collect(),
        (false, true) => Subject::Subflow(&Subflow::default()).fields(),
        (false, false) => Subject::Flow(&flow).fields(),
    };
    let of_run = RUN_VALUES.iter().map(|(name, _)| *name).filter(|_| !timed && !subflow);
    let loads = load::NAMES.into_iter().filter(|_| subflow);
    fields.into_iter().chain(of_run.chain([DROP_PERCENT, VARIATION]).chain(loads).map(str::to_owned)).collect()
}

/// Whether a value comes from the time series although it is of the whole run.
pub(crate) fn is_from_series(value: &str) -> bool {
    value == VARIATION || load::NAMES.contains(&value)
}

/// What a figure's `value` may be: columns of the time series of a flow or subflow.
pub(crate) fn figure_values() -> Vec<String> {
    MEANS.iter().chain(&SUMS).map(|name| (*name).to_owned()).collect()
}

/// What the `value` of a table or a claim may be where there is a baseline: how near a flow's window is to it.
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
            let runs: Vec<&Run> = runs.iter().collect();
            let cell = SweepCell { runs: runs.clone(), ..SweepCell::empty(&runs[0].parameters) };
            estimate(&cell, "convergence_s", &Scope::default()).map(|estimate| estimate.mean)
        };
        assert_eq!((mean(&runs[..2]), mean(&runs)), (Some(15.0), None));
    }
}
