//! Figures over time: a line for each value of a swept key, in a chart for each setting of the other keys.

use crate::answer::is_algorithmic;
use crate::axes::with_unit;
use crate::caption::{capitalise, time_range};
use crate::chart::{self, Chart, Line};
use crate::decimate::aligned;
use crate::grid::{other_keys, unique};
use crate::html::still::still;
use crate::layout::{BY_FLOW, Figure, FigureKind};
use crate::resample::resampled;
use crate::study::{Study, SweepCell};
use crate::trajectory::Trajectory;
use crate::value::trajectory;
use crate::{colour, copies, number};
use record::{Run, Series};

/// The data of a figure.
pub(crate) struct FigureData {
    pub(crate) title: String,
    pub(crate) unit: String,
    /// The title of the vertical axis.
    pub(crate) axis: String,
    /// The name and style of each line, without values. The lines of a panel have the same names.
    pub(crate) legend: Vec<Line>,
    /// The greatest value of all panels, which share their axis.
    pub(crate) max: f64,
    pub(crate) panels: Vec<Panel>,
}

/// One chart of a figure.
pub(crate) struct Panel {
    /// The first and the last instant shown, seconds.
    pub(crate) span: (f64, f64),
    pub(crate) times: Vec<f64>,
    /// The title: the setting of the other keys, or empty.
    pub(crate) chart: Chart,
}

/// The title of a panel, and its cells: those with one setting of the keys that are not the figure's lines.
type PanelCells<'c, 'a> = (String, Vec<&'c SweepCell<'a>>);

/// The heading of a figure.
pub(crate) fn title(figure: &Figure) -> String {
    let name = match figure.title.as_str() {
        "" => capitalise(&number::name_and_unit_in(&figure.scope, &figure.value).0),
        title => title.to_owned(),
    };
    let flow_suffix = figure.scope.flow.as_ref().map_or(String::new(), |flow| format!(", flow {flow}"));
    let time = time_range(&figure.scope);
    // A title may say the time itself.
    let time = if name.contains(time.trim_start_matches(" in ")) { "" } else { &time };
    format!("{name}{flow_suffix}{time}")
}

/// The heading with what the lines are of: subflows, or sums over them.
fn title_of_lines(figure: &Figure, cells: &[&SweepCell<'_>]) -> String {
    let is_multipath = |cell: &&SweepCell<'_>| {
        let run = cell.runs[0];
        let names = copies::names(run, &cell.scope(&figure.scope));
        names.iter().any(|name| run.subflows.iter().any(|subflow| subflow.flow == *name))
    };
    let is_of_subflow = |cell: &&SweepCell<'_>| cell.flow.as_ref().is_some_and(|flow| flow.contains('/'));
    let of = match () {
        () if cells.iter().all(is_of_subflow) => ", per subflow",
        () if SUMS.contains(&figure.value.as_str()) && cells.iter().any(is_multipath) => ", sum over subflows",
        () => "",
    };
    title(figure) + of
}

/// The columns of which an MPTCP flow has the sum over its subflows.
const SUMS: [&str; 5] =
    ["cwnd_packets", "in_flight_packets", "sent_packets", "retransmitted_packets", "dropped_packets"];

/// The text in the place of a figure without values.
pub(crate) fn empty_note(figure: &Figure) -> String {
    let reason = match () {
        () if figure.value.contains("cpu_") => ": CPU time is measured on a kernel in real time only",
        () if copies::is_summary(&figure.value) => {
            ": runs on a kernel, and results of earlier versions, have no samples of a delay, only values such as rtt_ms.p95"
        }
        () => "",
    };
    format!("No run here has a value for this figure{reason}.")
}

/// Whether a figure has no values.
pub(crate) fn is_empty(study: &Study<'_>, figure: &Figure) -> bool {
    match figure.kind() {
        FigureKind::Lines => figure_data(study, figure, 10).is_none(),
        _ => still(study, figure).is_none(),
    }
}

/// The number of lines of a figure, all panels together; others have none over time.
pub(crate) fn line_count(study: &Study<'_>, figure: &Figure) -> usize {
    if figure.kind() != FigureKind::Lines {
        return 0;
    }
    let cells = study.cells_in_scope(&figure.scope, &[&figure.lines]);
    cells.iter().map(|(_, cell)| 1 + usize::from(!cell.baseline.is_empty())).sum()
}

/// The data of a figure with at most `limit` points a line; none if no cell has the series.
pub(crate) fn figure_data(study: &Study<'_>, figure: &Figure, limit: usize) -> Option<FigureData> {
    let cells = study.cells_in_scope(&figure.scope, &[&figure.lines]);
    let mut keys = other_keys(&cells, &[&figure.lines]);
    let cells: Vec<&SweepCell<'_>> = cells.iter().map(|(_, cell)| cell).collect();
    let lines = overlaid(&cells, &keys, &figure.lines).unwrap_or(&figure.lines);
    keys.retain(|key| *key != lines);
    let legend = legend(study, lines, &cells);
    let unit = chart::unit(&figure.value);
    let panel = |name: String| {
        let cells_of_panel = cells.iter().copied().filter(|cell| cell.heading(&keys) == name).collect();
        panel((figure, lines), &legend, &unit, (name, cells_of_panel), limit)
    };
    let panels: Vec<Panel> =
        unique(cells.iter().map(|cell| cell.heading(&keys))).into_iter().filter_map(panel).collect();
    let max = panels.iter().map(|panel: &Panel| panel.chart.max).fold(0.0, f64::max);
    (!panels.is_empty()).then(|| {
        let axis = with_unit(&number::name_and_unit_in(&figure.scope, &figure.value).0, &unit);
        FigureData { title: title_of_lines(figure, &cells), unit, axis, legend, max, panels }
    })
}

/// The key of algorithms or schedulers whose values are the lines of a figure by flow, if each chart had the line of one flow.
fn overlaid<'k>(cells: &[&SweepCell<'_>], keys: &[&'k str], lines: &str) -> Option<&'k str> {
    let is_of_one = unique(cells.iter().map(|cell| cell.parameter(BY_FLOW))).len() == 1;
    let key = keys.iter().copied().find(|key| is_algorithmic(key));
    key.filter(|_| lines == BY_FLOW && is_of_one)
}

/// The lines of a figure, no two of which look the same; those of algorithms have their colours of the report.
pub(crate) fn legend(study: &Study<'_>, lines: &str, cells: &[&SweepCell<'_>]) -> Vec<Line> {
    let names = unique(cells.iter().map(|cell| cell.parameter(lines).to_owned()));
    let slots = study.slots().of_several(&names);
    let line = |(name, slot): (String, usize)| Line {
        name,
        colour: colour::colour(slot),
        dash: colour::dash(slot),
        ..Line::default()
    };
    names.into_iter().zip(slots).map(line).collect()
}

/// The lines once each, in order of appearance: the legend of charts that may lack some.
pub(crate) fn unique_lines<'l>(lines: impl Iterator<Item = &'l Line>) -> Vec<Line> {
    let mut legend: Vec<Line> = Vec::new();
    for line in lines {
        if legend.iter().all(|known| known.name != line.name) {
            legend.push(line.clone());
        }
    }
    legend
}

fn panel(
    (figure, lines): (&Figure, &str),
    legend: &[Line],
    unit: &str,
    (title, cells): PanelCells<'_, '_>,
    limit: usize,
) -> Option<Panel> {
    let mut trajectories: Vec<(Line, Trajectory)> = Vec::new();
    for line in legend {
        let Some(cell) = cells.iter().find(|cell| cell.parameter(lines) == line.name) else { continue };
        let scope = cell.scope(&figure.scope);
        let trajectory_of = |run: &Run| trajectory(run, &figure.value, &scope);
        let baseline = cell.baseline.first().and_then(|run| trajectory_of(run));
        trajectories.extend(baseline.map(|trajectory| (Line { baseline: true, ..line.clone() }, trajectory)));
        trajectories.extend(trajectory_of(cell.runs[0]).map(|trajectory| (line.clone(), trajectory)));
    }
    // The panel's axis is that of the longest run of the study.
    let times_without_baseline =
        trajectories.iter().filter(|(line, _)| !line.baseline).map(|(_, trajectory)| &trajectory.times);
    let axis = times_without_baseline.max_by_key(|times| times.len())?.clone();
    let series: Vec<Series> = trajectories.iter().map(|(_, trajectory)| on_axis(&axis, trajectory)).collect();
    let aligned = aligned(&series, limit);
    let values = aligned.values.into_iter().flatten();
    let lines: Vec<Line> =
        trajectories.into_iter().zip(values).map(|((line, _), values)| Line { values, ..line }).collect();
    let finite = lines.iter().flat_map(|line| &line.values).copied().filter(|value| value.is_finite());
    let max = finite.fold(0.0, f64::max);
    let end = axis[axis.len() - 1];
    let span = (figure.scope.from_s.unwrap_or(0.0), figure.scope.until_s.map_or(end, |until_s| until_s.min(end)));
    Some(Panel { span, times: aligned.times, chart: Chart { title, unit: unit.to_owned(), kind: "", max, lines } })
}

/// A series of one column, resampled at the instants `axis`.
fn on_axis(axis: &[f64], Trajectory { times, values }: &Trajectory) -> Series {
    let values = if axis == times { values.to_vec() } else { resampled(times, values, axis.iter().copied()) };
    Series { subject: String::new(), columns: vec![String::new()], time_s: axis.to_vec(), values: vec![values] }
}
