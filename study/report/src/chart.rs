//! Which time series stand together in a chart, and how each is drawn.

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
    /// The greatest value of its main lines; helpers such as a threshold may lie above.
    pub(crate) most: f64,
    pub(crate) lines: Vec<Line>,
}

#[derive(Clone, Default)]
pub(crate) struct Line {
    pub(crate) name: String,
    pub(crate) colour: usize,
    /// Index into [`DASHES`].
    pub(crate) dash: usize,
    /// A helper, drawn thin.
    pub(crate) thin: bool,
    /// A baseline's, drawn broad and pale under ours.
    pub(crate) baseline: bool,
    pub(crate) values: Vec<f64>,
}

/// Dash patterns: solid first.
pub(crate) const DASHES: [&str; 5] = ["", "7 3", "2 3", "9 3 2 3", "4 4"];

/// Column, chart, unit, word beside the subject's name, whether it is a helper.
const KNOWN: [(&str, &str, &str, &str, bool); 12] = [
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
    ("marked_packets", "Losses and marks", "packets per sample", "mark_disturbed", false),
];

/// Columns of a flow that are there to be plural up, and would crowd the charts.
const COUNTED: [&str; 3] = [THROUGHPUT, "sent_packets", "dropped_packets"];

/// Columns of a flow or subflow that the baseline's line is drawn for.
const WITH_BASELINE: [&str; 3] = ["cwnd_packets", "goodput_mbps", THROUGHPUT];
const THROUGHPUT: &str = "throughput_mbps";

/// The unit of a column.
pub(crate) fn unit(column: &str) -> String {
    place(column).2
}

/// The charts of a cell's first run with at most `limit` points a line, with what the `baseline` has beside it. Lines
/// without anything in them are left out.
pub(crate) fn charts(cell: &SweepCell<'_>, baseline: &str, limit: usize) -> Charts {
    let run = cell.runs[0];
    let theirs = cell.baseline.first().map_or(Vec::new(), |other| of_baseline(run, other));
    let all: Vec<Series> = theirs.iter().chain(&run.series).cloned().collect();
    let aligned = aligned(&all, limit);
    let mut charts: Vec<(usize, Chart)> = Vec::new();
    let mut all: Vec<_> = all.iter().enumerate().zip(aligned.values).collect();
    all.sort_by_key(|((_, series), _)| !series.subject.starts_with("path ")); // flows are drawn over paths
    for ((at, series), columns) in all {
        let whose = (at < theirs.len()).then_some(baseline);
        for (column, values) in series.columns.iter().zip(columns) {
            if is_counted(&series.subject, column, !theirs.is_empty()) {
                continue;
            }
            let most = values.iter().copied().filter(|value| value.is_finite()).fold(f64::NEG_INFINITY, f64::max);
            let (rank, title, unit, word, thin) = place(column);
            if most == f64::NEG_INFINITY || (title == "Losses and marks" && most == 0.0) {
                continue;
            }
            let at =
                charts.iter().position(|(_, chart)| chart.title == title && chart.unit == unit).unwrap_or_else(|| {
                    charts.push((rank, Chart { title, unit, most: 0.0, lines: Vec::new() }));
                    charts.len() - 1
                });
            let chart = &mut charts[at].1;
            chart.most = if thin { chart.most } else { chart.most.max(most) };
            chart.lines.push(line(run, &series.subject, &word, thin, whose, values));
        }
    }
    charts.sort_by_key(|(rank, _)| *rank);
    Charts { times: aligned.times, charts: charts.into_iter().map(|(_, chart)| chart).collect() }
}

/// Whether a column stays out of the charts. A subflow's throughput is its path's, unless the path has no series, as in a
/// baseline from a kernel.
fn is_counted(subject: &str, column: &str, compared: bool) -> bool {
    let wanted = compared && subject.starts_with("subflow ") && column == THROUGHPUT;
    COUNTED.contains(&column) && !subject.starts_with("path ") && !wanted
}

/// What a baseline has of the flows and subflows of `run`, at the instants of its samples.
fn of_baseline(run: &Run, baseline: &Run) -> Vec<Series> {
    let both = baseline.series.iter().filter(|series| !series.subject.starts_with("path "));
    let both = both.filter_map(|theirs| Some((theirs, run.series.iter().find(|ours| ours.subject == theirs.subject)?)));
    let resample = |(theirs, ours): (&Series, &Series)| {
        let columns = theirs.columns.iter().zip(&theirs.values);
        let columns = columns.filter(|(column, _)| WITH_BASELINE.contains(&column.as_str()));
        let at = || ours.time_s.iter().copied();
        let columns = columns.map(|(column, values)| (column.clone(), resampled(&theirs.time_s, values, at())));
        let (columns, values) = columns.unzip();
        Series { subject: ours.subject.clone(), columns, time_s: ours.time_s.clone(), values }
    };
    both.map(resample).collect()
}

/// Rank, chart, unit, word and thinness of a column; one that is not known has a chart of its own.
fn place(column: &str) -> (usize, String, String, String, bool) {
    match KNOWN.iter().position(|known| known.0 == column) {
        Some(rank) => {
            let (_, title, unit, word, thin) = KNOWN[rank];
            (rank, title.to_owned(), unit.to_owned(), word.to_owned(), thin)
        }
        None => {
            let (name, unit) = number::label(column);
            (KNOWN.len(), crate::caption::capital(&name), unit.to_owned(), String::new(), false)
        }
    }
}

/// A flow has its algorithm's colour, a path and a subflow over it a muted one of its own; dashes tell apart what has the same colour.
fn line(run: &Run, subject: &str, word: &str, thin: bool, whose: Option<&str>, values: Vec<f64>) -> Line {
    let named = subject.strip_prefix("flow ").unwrap_or(subject);
    let flow = run.flows.iter().position(|flow| subject.starts_with("flow ") && flow.name == named);
    let over = subject.strip_prefix("path ").or_else(|| Some(subject.strip_prefix("subflow ")?.split_once('/')?.1));
    let path = run.paths.iter().position(|path| over == Some(&path.name));
    let (colour, dash) = match (flow, path) {
        (Some(index), _) => {
            let algorithm = &run.flows[index].congestion_control;
            let before = run.flows[..index].iter().filter(|flow| flow.congestion_control == *algorithm).count();
            (colour::index(algorithm), before)
        }
        (_, Some(index)) => (colour::path(index), index),
        _ => (colour::index(subject), 0),
    };
    // Helpers of one subject are told apart by dashes as well.
    let dash = match word {
        "ssthresh" => dash + 1,
        "in flight" | "mark_disturbed" | "capacity" => dash + 2,
        _ => dash,
    };
    let name = format!("{subject} {word}").trim_end().to_owned();
    let name = whose.map_or(name.clone(), |baseline| format!("{name}, {baseline}"));
    Line { name, colour, dash: dash % DASHES.len(), thin, baseline: whose.is_some(), values }
}
