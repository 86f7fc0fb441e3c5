//! Charts of time series over time: which columns share a chart, and the style of each line.

use crate::decimate::aligned;
use crate::resample::resampled;
use crate::study::SweepCell;
use crate::{colour, number};
use record::{Run, Series};

/// The charts of one run, over one time axis.
pub(crate) struct Charts {
    pub(crate) times: Vec<f64>,
    pub(crate) charts: Vec<Chart>,
}

pub(crate) struct Chart {
    pub(crate) title: String,
    pub(crate) unit: String,
    /// The maximum value of its main lines; auxiliary lines such as `ssthresh` may lie above.
    pub(crate) max: f64,
    pub(crate) lines: Vec<Line>,
}

#[derive(Clone, Default)]
pub(crate) struct Line {
    pub(crate) name: String,
    pub(crate) colour: usize,
    /// Index into [`DASHES`].
    pub(crate) dash: usize,
    /// An auxiliary line, drawn thin.
    pub(crate) auxiliary: bool,
    /// A line of the baseline, drawn broad and pale below the study's own.
    pub(crate) baseline: bool,
    pub(crate) values: Vec<f64>,
}

/// The dash patterns of lines; the first is solid.
pub(crate) const DASHES: [&str; 5] = ["", "7 3", "2 3", "9 3 2 3", "4 4"];

/// Column, title of its chart, unit, suffix of the line's name, whether the line is auxiliary.
const COLUMNS: [(&str, &str, &str, &str, bool); 12] = [
    ("goodput_mbps", "Throughput", "Mbit/s", "goodput", false),
    ("throughput_mbps", "Throughput", "Mbit/s", "", false),
    ("capacity_mbps", "Throughput", "Mbit/s", "capacity", true),
    ("cwnd_packets", "Window", "packets", "cwnd", false),
    ("ssthresh_packets", "Window", "packets", "ssthresh", true),
    ("in_flight_packets", "Window", "packets", "in flight", true),
    ("srtt_ms", "Smoothed RTT", "ms", "", false),
    ("queue_packets", "Queue", "packets", "", false),
    ("queue_ms", "Queueing delay", "ms", "", false),
    ("retransmitted_packets", "Losses and marks", "packets per sample", "retransmitted", false),
    ("dropped_packets", "Losses and marks", "packets per sample", "lost", false),
    ("marked_packets", "Losses and marks", "packets per sample", "marked", false),
];

/// Columns of a flow that are not drawn: they are for sums over a part of the run.
const OMITTED_COLUMNS: [&str; 3] = [THROUGHPUT, "sent_packets", "dropped_packets"];

/// Columns of a flow or subflow that are drawn for the baseline, too.
const BASELINE_COLUMNS: [&str; 3] = ["cwnd_packets", "goodput_mbps", THROUGHPUT];
const THROUGHPUT: &str = "throughput_mbps";

/// The unit of a column.
pub(crate) fn unit(column: &str) -> String {
    column_style(column).2
}

/// The charts of a cell's first run with at most `limit` points a line, and with the lines of the baseline called
/// `baseline`. Lines without values are left out.
pub(crate) fn charts(cell: &SweepCell<'_>, baseline: &str, limit: usize) -> Charts {
    let run = cell.runs[0];
    let baseline_series = cell.baseline.first().map_or(Vec::new(), |baseline_run| baseline_series(run, baseline_run));
    let series: Vec<Series> = baseline_series.iter().chain(&run.series).cloned().collect();
    let aligned = aligned(&series, limit);
    let mut charts: Vec<(usize, Chart)> = Vec::new();
    let mut drawn: Vec<_> = series.iter().enumerate().zip(aligned.values).collect();
    drawn.sort_by_key(|((_, series), _)| !series.subject.starts_with("path ")); // flows are drawn over paths
    for ((index, series), columns) in drawn {
        let baseline_name = (index < baseline_series.len()).then_some(baseline);
        for (column, values) in series.columns.iter().zip(columns) {
            if is_left_out(&series.subject, column, !baseline_series.is_empty()) {
                continue;
            }
            let max = values.iter().copied().filter(|value| value.is_finite()).fold(f64::NEG_INFINITY, f64::max);
            let (rank, title, unit, suffix, auxiliary) = column_style(column);
            if max == f64::NEG_INFINITY || (title == "Losses and marks" && max == 0.0) {
                continue;
            }
            let chart_index =
                charts.iter().position(|(_, chart)| chart.title == title && chart.unit == unit).unwrap_or_else(|| {
                    charts.push((rank, Chart { title, unit, max: 0.0, lines: Vec::new() }));
                    charts.len() - 1
                });
            let chart = &mut charts[chart_index].1;
            chart.max = if auxiliary { chart.max } else { chart.max.max(max) };
            chart.lines.push(line(run, &series.subject, &suffix, auxiliary, baseline_name, values));
        }
    }
    charts.sort_by_key(|(rank, _)| *rank);
    Charts { times: aligned.times, charts: charts.into_iter().map(|(_, chart)| chart).collect() }
}

/// Whether a column is not drawn. A subflow's throughput is its path's, unless the path has no series, as in a baseline
/// from a kernel.
fn is_left_out(subject: &str, column: &str, compared: bool) -> bool {
    let is_subflow_rate = compared && subject.starts_with("subflow ") && column == THROUGHPUT;
    OMITTED_COLUMNS.contains(&column) && !subject.starts_with("path ") && !is_subflow_rate
}

/// The baseline's series of the flows and subflows of `run`, resampled at the instants of `run`.
fn baseline_series(run: &Run, baseline: &Run) -> Vec<Series> {
    let flows = baseline.series.iter().filter(|series| !series.subject.starts_with("path "));
    let flows = flows.filter_map(|baseline_series| {
        Some((baseline_series, run.series.iter().find(|run_series| run_series.subject == baseline_series.subject)?))
    });
    let resample = |(baseline_series, run_series): (&Series, &Series)| {
        let columns = baseline_series.columns.iter().zip(&baseline_series.values);
        let columns = columns.filter(|(column, _)| BASELINE_COLUMNS.contains(&column.as_str()));
        let instants = || run_series.time_s.iter().copied();
        let columns =
            columns.map(|(column, values)| (column.clone(), resampled(&baseline_series.time_s, values, instants())));
        let (columns, values) = columns.unzip();
        Series { subject: run_series.subject.clone(), columns, time_s: run_series.time_s.clone(), values }
    };
    flows.map(resample).collect()
}

/// Rank, chart title, unit, suffix and whether auxiliary, of a column; an unknown column has a chart of its own.
fn column_style(column: &str) -> (usize, String, String, String, bool) {
    match COLUMNS.iter().position(|known| known.0 == column) {
        Some(rank) => {
            let (_, title, unit, suffix, auxiliary) = COLUMNS[rank];
            (rank, title.to_owned(), unit.to_owned(), suffix.to_owned(), auxiliary)
        }
        None => {
            let (name, unit) = number::name_and_unit(column);
            (COLUMNS.len(), crate::caption::capitalise(&name), unit.to_owned(), String::new(), false)
        }
    }
}

/// The line of a series: a flow has the colour of its algorithm, a path and the subflows over it a muted colour; lines
/// of one colour differ in dashes.
fn line(
    run: &Run,
    subject: &str,
    suffix: &str,
    auxiliary: bool,
    baseline_name: Option<&str>,
    values: Vec<f64>,
) -> Line {
    let flow_name = subject.strip_prefix("flow ").unwrap_or(subject);
    let flow = run.flows.iter().position(|flow| subject.starts_with("flow ") && flow.name == flow_name);
    let path_name =
        subject.strip_prefix("path ").or_else(|| Some(subject.strip_prefix("subflow ")?.split_once('/')?.1));
    let path = run.paths.iter().position(|path| path_name == Some(&path.name));
    let (colour, dash) = match (flow, path) {
        (Some(index), _) => {
            let algorithm = &run.flows[index].congestion_control;
            let earlier_flows = run.flows[..index].iter().filter(|flow| flow.congestion_control == *algorithm).count();
            (colour::index(algorithm), earlier_flows)
        }
        (_, Some(index)) => (colour::path(index), index),
        _ => (colour::index(subject), 0),
    };
    // Auxiliary lines of one series differ in dashes, too.
    let dash = match suffix {
        "ssthresh" => dash + 1,
        "in flight" | "marked" | "capacity" => dash + 2,
        _ => dash,
    };
    let name = format!("{subject} {suffix}").trim_end().to_owned();
    let name = baseline_name.map_or(name.clone(), |baseline| format!("{name}, {baseline}"));
    Line { name, colour, dash: dash % DASHES.len(), auxiliary, baseline: baseline_name.is_some(), values }
}
