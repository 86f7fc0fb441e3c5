//! Figures of the samples of a delay: the merged histograms of all seeds, for each value of a swept key.

use crate::chart::Line;
use crate::copies;
use crate::figure::legend;
use crate::flow_record::FlowRecord;
use crate::grid::{other_keys, unique};
use crate::layout::{Figure, Scope};
use crate::study::{Study, SweepCell};
use record::{DelayHistogram, Delays, Run};

/// One chart: a setting of the keys that the figure does not name.
pub(crate) struct SamplePanel {
    /// The setting, or empty.
    pub(crate) title: String,
    pub(crate) lines: Vec<SampleLine>,
}

/// The samples of one line.
pub(crate) struct SampleLine {
    /// Its name and look.
    pub(crate) line: Line,
    /// All of them.
    pub(crate) delays: Delays,
    /// Those of each run.
    pub(crate) runs: Vec<Delays>,
}

/// The charts that have samples.
pub(crate) fn panels(study: &Study<'_>, figure: &Figure) -> Vec<SamplePanel> {
    let cells = study.cells_in_scope(&figure.scope, &[&figure.lines]);
    let keys = other_keys(&cells, &[&figure.lines]);
    let cells: Vec<&SweepCell<'_>> = cells.iter().map(|(_, cell)| cell).collect();
    let legend = legend(study, &figure.lines, &cells);
    let panel = |title: String| {
        let line = |line: &Line| {
            let is_of_line =
                |cell: &&&SweepCell<'_>| cell.heading(&keys) == title && cell.parameter(&figure.lines) == line.name;
            let cells = cells.iter().filter(is_of_line);
            let histograms: Vec<_> = cells.flat_map(|cell| of_cell(cell, figure)).collect();
            let delays: Delays = histograms.iter().flatten().copied().collect();
            let runs = histograms.iter().map(|histograms| histograms.iter().copied().collect()).collect();
            (delays.count() > 0).then(|| SampleLine { line: line.clone(), delays, runs })
        };
        let lines: Vec<SampleLine> = legend.iter().filter_map(line).collect();
        (!lines.is_empty()).then_some(SamplePanel { title, lines })
    };
    unique(cells.iter().map(|cell| cell.heading(&keys))).into_iter().filter_map(panel).collect()
}

/// The histograms of each run of a cell.
fn of_cell<'r>(cell: &SweepCell<'r>, figure: &Figure) -> Vec<Vec<&'r DelayHistogram>> {
    let scope = cell.scope(&figure.scope);
    cell.runs.iter().map(|run| histograms(run, &figure.value, &scope)).collect()
}

/// The histograms of a delay in a run: that of the scope's flow or subflow, or those of all copies.
fn histograms<'r>(run: &'r Run, column: &str, scope: &Scope) -> Vec<&'r DelayHistogram> {
    let names = copies::names(run, scope).into_iter();
    let subjects: Vec<String> =
        names.filter_map(|name| FlowRecord::of(run, Some(&name)).map(FlowRecord::series)).collect();
    let is_shown = |histogram: &&DelayHistogram| histogram.column == column && subjects.contains(&histogram.subject);
    run.histograms.iter().filter(is_shown).collect()
}
