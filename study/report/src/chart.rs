//! Charts of time series over time: which columns share a chart, and the style of each line.

use crate::axes::with_unit;
use crate::colour::{self, DASHES, Slots};
use crate::decimate::aligned;
use crate::number;
use crate::resample::resampled;
use crate::study::SweepCell;
use record::{Run, Series};
use std::collections::BTreeMap;

/// The charts of one run, over one time axis.
pub(crate) struct Charts {
    pub(crate) times: Vec<f64>,
    pub(crate) charts: Vec<Chart>,
}

pub(crate) struct Chart {
    pub(crate) title: String,
    pub(crate) unit: String,
    /// What its lines are of: flows, subflows or paths.
    pub(crate) kind: &'static str,
    /// The maximum value of its main lines; auxiliary lines such as `ssthresh` may lie above.
    pub(crate) max: f64,
    pub(crate) lines: Vec<Line>,
}

impl Chart {
    /// The title of the vertical axis: the chart's where there is room for it, or the unit.
    pub(crate) fn axis(&self) -> String {
        let title = with_unit(&self.title, &self.unit);
        if title.chars().count() <= MAX_AXIS_CHARACTERS { title } else { self.unit.clone() }
    }
}

/// The most characters for which a vertical axis has room.
const MAX_AXIS_CHARACTERS: usize = 28;

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
    /// The least and the greatest value of several runs at each instant, drawn pale; may be empty.
    pub(crate) band: Vec<(f64, f64)>,
}

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
    ("dropped_packets", "Losses and marks", "packets per sample", "dropped or lost", false),
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
    let (mut charts, slots): (Vec<(usize, Chart)>, _) = (Vec::new(), slots(run));
    let mut drawn: Vec<_> = series.iter().enumerate().zip(aligned.values).collect();
    drawn.sort_by_key(|((_, series), _)| !series.subject.starts_with("path ")); // flows are drawn over paths
    for ((index, series), columns) in drawn {
        let baseline_name = (index < baseline_series.len()).then_some(baseline);
        for (column, values) in series.columns.iter().zip(columns) {
            if is_left_out(run, &series.subject, column, !baseline_series.is_empty()) {
                continue;
            }
            let max = values.iter().copied().filter(|value| value.is_finite()).fold(f64::NEG_INFINITY, f64::max);
            let (rank, title, unit, suffix, auxiliary) = column_style(column);
            if max == f64::NEG_INFINITY || (title == "Losses and marks" && max == 0.0) {
                continue;
            }
            let kind = kind(&series.subject);
            let chart_index = charts
                .iter()
                .position(|(_, chart)| (chart.title.as_str(), &chart.unit, chart.kind) == (title.as_str(), &unit, kind))
                .unwrap_or_else(|| {
                    charts.push((rank, Chart { title, unit, kind, max: 0.0, lines: Vec::new() }));
                    charts.len() - 1
                });
            let chart = &mut charts[chart_index].1;
            chart.max = if auxiliary { chart.max } else { chart.max.max(max) };
            let slot = slots.get(&series.subject).copied().unwrap_or_default();
            chart.lines.push(line(&series.subject, slot, &suffix, auxiliary, baseline_name, values));
        }
    }
    charts.sort_by_key(|(rank, _)| *rank);
    let mut charts: Vec<Chart> = charts.into_iter().map(|(_, chart)| chart).collect();
    name_kinds(&mut charts);
    charts.iter_mut().for_each(|chart| make_unique(&mut chart.lines));
    Charts { times: aligned.times, charts }
}

/// What a series is of: flows, subflows and paths have charts of their own.
fn kind(subject: &str) -> &'static str {
    match subject.split_once(' ').map(|(kind, _)| kind) {
        Some("flow") => "flows",
        Some("subflow") => "subflows",
        Some("path") => "paths",
        _ => "",
    }
}

/// Says of charts with one title what each is of.
fn name_kinds(charts: &mut [Chart]) {
    let titles: Vec<(String, String)> = charts.iter().map(|chart| (chart.title.clone(), chart.unit.clone())).collect();
    for (chart, own) in charts.iter_mut().zip(&titles) {
        if titles.iter().filter(|title| *title == own).count() > 1 && !chart.kind.is_empty() {
            chart.title += &format!(" of {}", chart.kind);
        }
    }
}

/// Lines of one chart with the same colour get different dashes; a baseline's line has those of its own study's.
fn make_unique(lines: &mut [Line]) {
    for index in 0..lines.len() {
        let (earlier, rest) = lines.split_at_mut(index);
        let line = &mut rest[0];
        let look = |line: &Line| (line.colour, line.dash, line.baseline);
        for _ in 0..DASHES.len() {
            if !earlier.iter().any(|other| look(other) == look(line)) {
                break;
            }
            line.dash = (line.dash + 1) % DASHES.len();
        }
    }
}

/// The slot of each subject of a run: flows by their algorithms, then paths; a subflow has the colour of its path.
fn slots(run: &Run) -> BTreeMap<String, usize> {
    let algorithms = Slots::of(run.flows.iter().map(|flow| flow.congestion_control.as_str()));
    let own = run
        .flows
        .iter()
        .map(|flow| algorithms.get(&flow.congestion_control).filter(|_| !flow.congestion_control.is_empty()));
    let assigned = colour::assign(&own.chain(run.paths.iter().map(|_| None)).collect::<Vec<_>>());
    let (of_flows, of_paths) = assigned.split_at(run.flows.len());
    let flows = run.flows.iter().zip(of_flows).map(|(flow, slot)| (format!("flow {}", flow.name), *slot));
    let paths = run.paths.iter().zip(of_paths).map(|(path, slot)| (format!("path {}", path.name), *slot));
    let mut slots: BTreeMap<String, usize> = flows.chain(paths).collect();
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    for series in run.series.iter().filter(|series| series.subject.starts_with("subflow ")) {
        let path = series.subject.split_once('/').map_or("", |(_, path)| path);
        let count = seen.entry(path.to_owned()).or_default();
        let slot = slots.get(&format!("path {path}")).copied().unwrap_or_default() + *count * colour::COLOURS;
        *count += 1;
        slots.insert(series.subject.clone(), slot);
    }
    slots
}

/// Whether a column is not drawn. A subflow's throughput is its path's, unless the path has no series, as in a baseline
/// from a kernel.
fn is_left_out(run: &Run, subject: &str, column: &str, compared: bool) -> bool {
    let is_subflow_rate = compared && subject.starts_with("subflow ") && column == THROUGHPUT;
    let has_subflows = |flow: &str| run.subflows.iter().any(|subflow| subflow.flow == flow);
    // A flow with subflows has no smoothed RTT: each subflow has its own.
    let is_rtt_of_several = column == "srtt_ms" && subject.strip_prefix("flow ").is_some_and(has_subflows);
    is_rtt_of_several || OMITTED_COLUMNS.contains(&column) && !subject.starts_with("path ") && !is_subflow_rate
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

/// The line of a series.
fn line(
    subject: &str,
    slot: usize,
    suffix: &str,
    auxiliary: bool,
    baseline_name: Option<&str>,
    values: Vec<f64>,
) -> Line {
    let name = format!("{subject} {suffix}").trim_end().to_owned();
    let name = baseline_name.map_or(name.clone(), |baseline| format!("{name}, {baseline}"));
    let (colour, dash) = (colour::colour(slot), colour::dash(slot));
    Line { name, colour, dash, auxiliary, baseline: baseline_name.is_some(), values, band: Vec::new() }
}
