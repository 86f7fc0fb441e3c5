//! Which time series stand together in a chart, and how each is drawn.

use crate::decimate::aligned;
use crate::{colour, number};
use record::Run;

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

pub(crate) struct Line {
    pub(crate) name: String,
    pub(crate) colour: usize,
    /// Index into [`DASHES`].
    pub(crate) dash: usize,
    /// A helper, drawn thin.
    pub(crate) thin: bool,
    pub(crate) values: Vec<f64>,
}

/// Dash patterns: solid first.
pub(crate) const DASHES: [&str; 5] = ["", "7 3", "2 3", "9 3 2 3", "4 4"];

/// Column, chart, unit, word beside the subject's name, whether it is a helper.
const KNOWN: [(&str, &str, &str, &str, bool); 12] = [
    ("goodput_mbps", "Throughput", "Mbit/s", "goodput", false),
    ("throughput_mbps", "Throughput", "Mbit/s", "", false),
    ("capacity_mbps", "Throughput", "Mbit/s", "capacity", true),
    ("window_packets", "Window", "packets", "window", false),
    ("threshold_packets", "Window", "packets", "ssthresh", true),
    ("in_flight_packets", "Window", "packets", "in flight", true),
    ("rtt_ms", "Smoothed RTT", "ms", "", false),
    ("queue_packets", "Queue", "packets", "", false),
    ("queue_ms", "Queueing delay", "ms", "", false),
    ("retransmitted_packets", "Losses and marks", "packets per sample", "retransmitted", false),
    ("dropped_packets", "Losses and marks", "packets per sample", "lost", false),
    ("marked_packets", "Losses and marks", "packets per sample", "marked", false),
];

/// Columns of a flow that are there to be counted up, and would crowd the charts.
const COUNTED: [&str; 3] = ["throughput_mbps", "sent_packets", "dropped_packets"];

/// The charts of a run with at most `limit` points a line. Lines without anything in them are left out.
pub(crate) fn charts(run: &Run, limit: usize) -> Charts {
    let aligned = aligned(&run.series, limit);
    let mut charts: Vec<(usize, Chart)> = Vec::new();
    let mut all: Vec<_> = run.series.iter().zip(aligned.values).collect();
    all.sort_by_key(|(series, _)| !series.subject.starts_with("path ")); // flows are drawn over paths
    for (series, columns) in all {
        for (column, values) in series.columns.iter().zip(columns) {
            if series.subject.starts_with("flow ") && COUNTED.contains(&column.as_str()) {
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
            chart.lines.push(line(run, &series.subject, &word, thin, values));
        }
    }
    charts.sort_by_key(|(rank, _)| *rank);
    Charts { times: aligned.times, charts: charts.into_iter().map(|(_, chart)| chart).collect() }
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
            (KNOWN.len(), crate::terminal::capital(&name), unit.to_owned(), String::new(), false)
        }
    }
}

/// A flow has its algorithm's colour, a path a muted one of its own; dashes tell apart what has the same colour.
fn line(run: &Run, subject: &str, word: &str, thin: bool, values: Vec<f64>) -> Line {
    let named = subject.strip_prefix("flow ").unwrap_or(subject);
    let flow = run.flows.iter().position(|flow| subject.starts_with("flow ") && flow.name == named);
    let path = run.paths.iter().position(|path| subject.strip_prefix("path ") == Some(&path.name));
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
        "in flight" | "marked" | "capacity" => dash + 2,
        _ => dash,
    };
    let name = format!("{subject} {word}").trim_end().to_owned();
    Line { name, colour, dash: dash % DASHES.len(), thin, values }
}
