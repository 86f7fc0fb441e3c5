//! Figures of a page whose scenario asks for nothing: what a reader of papers on congestion control looks for first, the
//! distribution of the delay, and throughput against delay.

use crate::grid::{other_keys, unique};
use crate::layout::{BY_FLOW, Figure, Form, Layout};
use crate::study::Study;

/// Delays of a flow by how much they say of its data: the first of which it has samples is drawn.
const DELAYS: [&str; 3] = ["protocol_delay_ms", "one_way_delay_ms", "rtt_ms"];
/// The most charts and lines of a figure.
const MAX_PANELS: usize = 6;
const MAX_LINES: usize = 8;

/// The study with these figures; none if its layout has anything, or if the figures would have too many charts or lines.
pub(crate) fn with_figures<'a>(study: &Study<'a>) -> Option<Study<'a>> {
    if study.layout != Layout::default() {
        return None;
    }
    let figures = figures(study);
    (!figures.is_empty()).then(|| Study { layout: Layout { figures, ..Layout::default() }, ..study.clone() })
}

fn figures(study: &Study<'_>) -> Vec<Figure> {
    let Some(first) = study.runs.first() else { return Vec::new() };
    let subjects: Vec<String> = first.flows.iter().take(1).map(|flow| format!("flow {}", flow.name)).collect();
    let is_known = |column: &&str| {
        first.histograms.iter().any(|histogram| histogram.column == **column && subjects.contains(&histogram.subject))
    };
    let Some(delay) = DELAYS.iter().find(|column| is_known(column)) else { return Vec::new() };
    let lines = lines(study);
    let cells = study.cells_in_scope(&crate::layout::Scope::default(), &[&lines]);
    let others = other_keys(&cells, &[&lines]);
    let panels = unique(cells.iter().map(|(_, cell)| cell.heading(&others))).len();
    let names = unique(cells.iter().map(|(_, cell)| cell.parameter(&lines).to_owned())).len();
    if panels > MAX_PANELS || names > MAX_LINES {
        return Vec::new();
    }
    let samples = Figure { lines: lines.clone(), distribution: true, value: (*delay).to_owned(), ..Figure::default() };
    let scatter = Figure {
        lines,
        form: Form::Scatter,
        value: "goodput_mbps".to_owned(),
        against: Some(format!("{delay}.p50")),
        ..Figure::default()
    };
    // One marker alone compares nothing.
    std::iter::once(samples).chain((names > 1).then_some(scatter)).collect()
}

/// The key whose values are the lines: that of a congestion control if one is swept, or the first; else the flows.
fn lines(study: &Study<'_>) -> String {
    let keys = study.varying_keys();
    let congestion = keys.iter().find(|key| key.ends_with("congestion"));
    congestion.or(keys.first()).map_or(BY_FLOW, |key| key).to_owned()
}
