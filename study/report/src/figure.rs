//! Figures over time: a line for each value of a swept key, in a chart for each setting of the others.

use crate::caption::{capital, time_range};
use crate::chart::{self, Chart, Line};
use crate::decimate::aligned;
use crate::grid::{others, unique};
use crate::layout::Figure;
use crate::resample::resampled;
use crate::series::subject;
use crate::study::{Study, SweepCell};
use crate::trajectory::Trajectory;
use crate::value::trajectory;
use crate::{bars, colour, number};
use record::{Run, Series};

/// A figure, drawn with at most so many points a line.
pub(crate) struct Drawn {
    pub(crate) title: String,
    pub(crate) unit: String,
    /// Each line's name and looks, without values. The lines of a panel have the same names.
    pub(crate) legend: Vec<Line>,
    pub(crate) panels: Vec<Panel>,
}

/// One chart of a figure.
pub(crate) struct Panel {
    /// What it shows first and last, seconds.
    pub(crate) span: (f64, f64),
    pub(crate) times: Vec<f64>,
    /// Its title is the setting of the other keys, or empty.
    pub(crate) chart: Chart,
}

/// Cells of a figure's chart: those with one setting of the keys that are not its lines.
type Setting<'c, 'a> = (String, Vec<&'c SweepCell<'a>>);

/// What stands above a figure.
pub(crate) fn title(figure: &Figure) -> String {
    let name = match figure.title.as_str() {
        "" => capital(&number::label(&figure.value).0),
        title => title.to_owned(),
    };
    let of = figure.scope.flow.as_ref().map_or(String::new(), |flow| format!(", flow {flow}"));
    format!("{name}{of}{}", time_range(&figure.scope))
}

/// What stands in the place of a figure that has nothing to show.
pub(crate) fn nothing(figure: &Figure) -> String {
    let why = match figure.value.contains("cpu_") {
        true => ": CPU time is measured on a kernel in real time only",
        false => "",
    };
    format!("No run here has a value for this figure{why}.")
}

/// Whether a figure has nothing to show.
pub(crate) fn is_empty(study: &Study<'_>, figure: &Figure) -> bool {
    match &figure.across {
        Some(across) => bars::charts(study, figure, across).is_empty(),
        None => drawn(study, figure, 10).is_none(),
    }
}

/// How many lines a figure has, all charts together; bars are none.
pub(crate) fn lines(study: &Study<'_>, figure: &Figure) -> usize {
    if figure.across.is_some() {
        return 0;
    }
    let cells = study.shown(&figure.scope, &[Some(&figure.lines)]);
    cells.iter().map(|(_, cell)| 1 + usize::from(!cell.baseline.is_empty())).sum()
}

/// The figure with at most `limit` points a line; nothing if no cell has the series.
pub(crate) fn drawn(study: &Study<'_>, figure: &Figure, limit: usize) -> Option<Drawn> {
    let cells = study.shown(&figure.scope, &[Some(&figure.lines)]);
    let keys = others(&cells, &[Some(&figure.lines)]);
    let cells: Vec<&SweepCell<'_>> = cells.iter().map(|(_, cell)| cell).collect();
    let legend = legend(figure, &cells);
    let unit = chart::unit(&figure.value);
    let panel = |name: String| {
        let here = cells.iter().copied().filter(|cell| cell.name(&keys) == name).collect();
        panel(figure, &legend, &unit, (name, here), limit)
    };
    let panels: Vec<Panel> = unique(cells.iter().map(|cell| cell.name(&keys))).into_iter().filter_map(panel).collect();
    (!panels.is_empty()).then(|| Drawn { title: title(figure), unit, legend, panels })
}

/// The lines of a figure: each in its algorithm's colour, in dashes where several have it. Where that does not tell them
/// apart, as with buffer sizes, colours come in turn.
fn legend(figure: &Figure, cells: &[&SweepCell<'_>]) -> Vec<Line> {
    let names = unique(cells.iter().map(|cell| cell.parameter(&figure.lines).to_owned()));
    let own = |name: &String| {
        let cell = cells.iter().find(|cell| cell.parameter(&figure.lines) == name)?;
        let run = cell.runs[0];
        let algorithm = subject(run, &cell.scope(&figure.scope))?.congestion_control(run);
        Some(colour::known(name).unwrap_or_else(|| colour::index(algorithm)))
    };
    let colours: Vec<usize> = names.iter().map(|name| own(name).unwrap_or_default()).collect();
    let before = |colours: &[usize], at: usize| colours[..at].iter().filter(|other| **other == colours[at]).count();
    let most = (0..colours.len()).map(|at| before(&colours, at)).max().unwrap_or(0);
    let colours = match most < chart::DASHES.len() {
        true => colours,
        false => (0..names.len()).map(colour::in_turn).collect(),
    };
    let line = |(at, name): (usize, String)| Line {
        name,
        colour: colours[at],
        dash: before(&colours, at) % chart::DASHES.len(),
        ..Line::default()
    };
    names.into_iter().enumerate().map(line).collect()
}

fn panel(figure: &Figure, legend: &[Line], unit: &str, (title, cells): Setting<'_, '_>, limit: usize) -> Option<Panel> {
    let mut found: Vec<(Line, Trajectory)> = Vec::new();
    for line in legend {
        let Some(cell) = cells.iter().find(|cell| cell.parameter(&figure.lines) == line.name) else { continue };
        let scope = cell.scope(&figure.scope);
        let of = |run: &Run| trajectory(run, &figure.value, &scope);
        let theirs = cell.baseline.first().and_then(|run| of(run));
        found.extend(theirs.map(|trajectory| (Line { baseline: true, ..line.clone() }, trajectory)));
        found.extend(of(cell.runs[0]).map(|trajectory| (line.clone(), trajectory)));
    }
    // One axis for all: that of the longest of our runs.
    let ours = found.iter().filter(|(line, _)| !line.baseline).map(|(_, trajectory)| &trajectory.times);
    let axis = ours.max_by_key(|times| times.len())?.clone();
    let series: Vec<Series> = found.iter().map(|(_, trajectory)| on_axis(&axis, trajectory)).collect();
    let thinned = aligned(&series, limit);
    let values = thinned.values.into_iter().flatten();
    let lines: Vec<Line> = found.into_iter().zip(values).map(|((line, _), values)| Line { values, ..line }).collect();
    let finite = lines.iter().flat_map(|line| &line.values).copied().filter(|value| value.is_finite());
    let most = finite.fold(0.0, f64::max);
    let end = axis[axis.len() - 1];
    let span = (figure.scope.from_s.unwrap_or(0.0), figure.scope.until_s.map_or(end, |until| until.min(end)));
    Some(Panel { span, times: thinned.times, chart: Chart { title, unit: unit.to_owned(), most, lines } })
}

/// A series of one column at the instants `axis`.
fn on_axis(axis: &[f64], Trajectory { times, values }: &Trajectory) -> Series {
    let values = if axis == times { values.to_vec() } else { resampled(times, values, axis.iter().copied()) };
    Series { subject: String::new(), columns: vec![String::new()], time_s: axis.to_vec(), values: vec![values] }
}
