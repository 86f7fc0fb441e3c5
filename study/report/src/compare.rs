//! Comparison of two studies of the same cells, one of which is the baseline: each value in both, its relative error,
//! and the distribution of the errors.

use crate::flow_record::FlowRecord;
use crate::grid::{median, unique};
use crate::layout::Scope;
use crate::number::{plural, relative_error};
use crate::study::{Baseline, Study, SweepCell, varying_keys};
use crate::summary::cell_name;
use crate::trajectory;
use crate::value::{estimate, is_run_value};
use std::collections::BTreeMap;

/// The value that is always compared, and whose errors are summed up in a sentence.
const GOODPUT: &str = "goodput_mbps";
/// Values compared beside the goodput where no layout names some.
const DEFAULT_VALUES: [&str; 2] = ["rtt_ms.mean", "retransmitted_packets"];
/// The error of the congestion window that is shown if both studies have series.
const CWND_ERROR: &str = "cwnd_quantile_error_percent";

/// A comparison of two studies.
#[derive(Clone, Debug)]
pub struct Comparison<'a> {
    /// Names of the studies, in the order in which they were given.
    pub(crate) names: [&'a str; 2],
    pub(crate) studies: [Study<'a>; 2],
    /// The index of the study that is the baseline.
    pub(crate) baseline: usize,
    /// The values that are compared; the first is [`GOODPUT`].
    pub(crate) values: Vec<String>,
    /// A line for each flow of each cell, in the order of the first study's cells, then of the second's.
    pub(crate) lines: Vec<ComparedFlow<'a>>,
}

/// A flow or subflow of a cell, in both studies.
#[derive(Clone, Debug)]
pub(crate) struct ComparedFlow<'a> {
    /// The cell of the measured study beside that of the baseline; or of the only study that has it.
    pub(crate) cell: SweepCell<'a>,
    /// The parameters that vary, and the flow where there are several.
    pub(crate) label: String,
    /// Whether each study has the cell.
    pub(crate) has: [bool; 2],
    /// Whether each study has disturbed runs in the cell.
    pub(crate) disturbed: [bool; 2],
    /// Each of [`Comparison::values`] in both studies.
    pub(crate) values: Vec<[Option<f64>; 2]>,
    /// Mean distance of the windows' quantile functions, percent of the baseline's mean window.
    pub(crate) cwnd_error: Option<f64>,
}

impl<'a> Comparison<'a> {
    /// Compares two studies with their names; `baseline` is the index of the baseline. The values are the goodput and
    /// those of the first study's first table, or without a table mean RTT and retransmissions.
    #[must_use]
    pub fn new(sides: [(&'a str, Study<'a>); 2], baseline: usize) -> Self {
        let [(first_name, first), (second_name, second)] = sides;
        let (names, mut studies) = ([first_name, second_name], [first, second]);
        let measured = 1 - baseline;
        studies[measured].baseline = Some(Baseline { name: names[baseline], runs: studies[baseline].runs });
        studies[baseline].baseline = None;
        let mut comparison = Self { names, values: values(&studies[0]), studies, baseline, lines: Vec::new() };
        comparison.lines = comparison.all_lines();
        comparison
    }

    /// The study that is compared with the baseline.
    pub(crate) fn measured(&self) -> &Study<'a> {
        &self.studies[1 - self.baseline]
    }

    /// The folder of the study that is compared with the baseline, without the folders above it.
    pub(crate) fn measured_folder(&self) -> &'a str {
        let name = self.names[1 - self.baseline];
        name.trim_end_matches('/').rsplit('/').next().unwrap_or(name)
    }

    /// `one-link against one-link-kernel`.
    pub(crate) fn name(&self) -> String {
        let [measured, baseline] = [1 - self.baseline, self.baseline].map(|side| self.names[side]);
        format!("{measured} against {baseline}")
    }

    /// The relative error of a line's value against the baseline's.
    pub(crate) fn error(&self, line: &ComparedFlow<'_>, value: usize) -> Option<f64> {
        relative_error(line.values[value][1 - self.baseline]?, line.values[value][self.baseline]?)
    }

    /// The absolute errors of a value over all lines.
    pub(crate) fn errors(&self, value: usize) -> Option<Errors> {
        let sizes = self.lines.iter().filter_map(|line| self.error(line, value)).map(f64::abs);
        Errors::sorted(sizes.filter(|size| size.is_finite()).collect())
    }

    /// The lines of the common cells, by descending error of the goodput.
    pub(crate) fn worst_first(&self) -> Vec<&ComparedFlow<'a>> {
        let mut lines: Vec<_> = self.lines.iter().filter(|line| line.is_common()).collect();
        let size = |line: &ComparedFlow<'_>| self.error(line, 0).map_or(-1.0, f64::abs);
        lines.sort_by(|first, second| size(second).total_cmp(&size(first)));
        lines
    }

    /// Whether any common cell has an error of the congestion window.
    pub(crate) fn has_cwnd_errors(&self) -> bool {
        self.lines.iter().any(|line| line.is_common() && line.cwnd_error.is_some())
    }

    /// The names of the cells that only this study has.
    pub(crate) fn only_in(&self, side: usize) -> Vec<String> {
        let varying_keys = self.varying_keys();
        let lines = self.lines.iter().filter(|line| line.has[side] && !line.has[1 - side]);
        unique(lines.map(|line| cell_name(&line.cell, &varying_keys)))
    }

    /// The number of cells that both studies have.
    pub(crate) fn common_cells(&self) -> usize {
        unique(self.lines.iter().filter(|line| line.is_common()).map(|line| line.cell.parameters)).len()
    }

    /// Why there is nothing to compare, with what differs; none if there is.
    #[must_use]
    pub fn unrelated(&self) -> Option<String> {
        let has_pair =
            |line: &ComparedFlow<'_>| line.values.iter().any(|[first, second]| first.is_some() && second.is_some());
        if self.lines.iter().any(|line| line.is_common() && has_pair(line)) {
            return None;
        }
        let side = |side: usize| {
            let Study { scenario, runs, .. } = &self.studies[side];
            let run = runs.first()?;
            let cell: Vec<String> = run.parameters.iter().map(|(key, value)| format!("{key} = {value}")).collect();
            let cell = if cell.is_empty() { "no swept key".to_owned() } else { cell.join(", ") };
            let flows: Vec<&str> = run.flows.iter().map(|flow| flow.name.as_str()).collect();
            Some(format!(
                "  {}: scenario {scenario}; first cell: {cell}; flows: {}",
                self.names[side],
                flows.join(", ")
            ))
        };
        let sides: Vec<String> = [0, 1].into_iter().filter_map(side).collect();
        Some(format!("no flow of a cell of one is in the other\n{}", sides.join("\n")))
    }

    /// The errors of the goodput in one sentence.
    pub(crate) fn sentence(&self) -> String {
        let (cells, errors) = match (self.common_cells(), self.errors(0)) {
            (0, _) => return "No cell of one has the parameters of a cell of the other.".to_owned(),
            (_, None) => return "No goodput to compare.".to_owned(),
            (cells, Some(errors)) => (cells, errors),
        };
        format!(
            "Goodput of {}: {} in {}, {}.",
            self.name(),
            plural(errors.0.len(), "value"),
            plural(cells, "common cell"),
            errors.sentence()
        )
    }

    /// Parameters that differ between cells.
    pub(crate) fn varying_keys(&self) -> Vec<&'a str> {
        varying_keys(&self.studies.iter().flat_map(|study| study.runs).collect::<Vec<_>>())
    }

    fn all_lines(&self) -> Vec<ComparedFlow<'a>> {
        let cells = self.studies.each_ref().map(Study::cells);
        let cells_by_parameters =
            cells.each_ref().map(|cells| cells.iter().map(|cell| (cell.parameters, cell)).collect());
        let cells_by_parameters: [BTreeMap<_, &SweepCell<'a>>; 2] = cells_by_parameters;
        let layout_flow = self.studies[0].layout.tables.first().and_then(|table| table.scope.flow.as_deref());
        let varying_keys = self.varying_keys();
        let mut lines = Vec::new();
        for parameters in unique(cells.iter().flatten().map(|cell| cell.parameters)) {
            let cell_pair = cells_by_parameters.each_ref().map(|cells| cells.get(parameters).copied());
            let flows = cell_pair.iter().flatten().flat_map(|cell| FlowRecord::all(cell.runs[0]).map(FlowRecord::name));
            let flows = unique(flows).into_iter().filter(|flow| layout_flow.is_none_or(|name| name == flow));
            let flows = flows.enumerate().map(|(index, flow)| (self.line(cell_pair, &flow, index == 0), flow));
            lines.extend(flows.filter(|(line, _)| line.values.iter().flatten().any(Option::is_some)));
        }
        let has_several_flows = lines.iter().any(|(_, flow)| *flow != lines[0].1);
        let name = |line: &ComparedFlow<'_>, flow: &String| match (varying_keys.is_empty(), has_several_flows) {
            (true, _) => flow.clone(),
            (false, false) => cell_name(&line.cell, &varying_keys),
            (false, true) => format!("{}, {flow}", cell_name(&line.cell, &varying_keys)),
        };
        lines.into_iter().map(|(line, flow)| ComparedFlow { label: name(&line, &flow), ..line }).collect()
    }

    /// The line of a flow of a cell that one or both studies have. Values of a run as a whole are in the line of its
    /// first flow.
    fn line(&self, cell_pair: [Option<&SweepCell<'a>>; 2], flow: &str, is_first: bool) -> ComparedFlow<'a> {
        let scope = Scope { flow: Some(flow.to_owned()), ..Scope::default() };
        let mean = |cell: Option<&SweepCell<'_>>, value: &String| {
            let is_shown = is_first || !is_run_value(value);
            estimate(cell?, value, &scope).map(|estimate| estimate.mean).filter(|_| is_shown)
        };
        let cell = cell_pair[1 - self.baseline].or(cell_pair[self.baseline]).expect("one of the studies has the cell");
        ComparedFlow {
            cell: cell.clone(),
            label: String::new(),
            has: cell_pair.map(|cell| cell.is_some()),
            disturbed: cell_pair.map(|cell| cell.is_some_and(|cell| cell.disturbed[0])),
            values: self.values.iter().map(|value| cell_pair.map(|cell| mean(cell, value))).collect(),
            cwnd_error: estimate(cell, CWND_ERROR, &scope).map(|estimate| estimate.mean),
        }
    }
}

impl ComparedFlow<'_> {
    /// Whether both studies have the cell.
    pub(crate) fn is_common(&self) -> bool {
        self.has == [true; 2]
    }
}

fn values(study: &Study<'_>) -> Vec<String> {
    let table = study.layout.tables.first();
    let values = table.iter().flat_map(|table| &table.values).map(|column| column.value.as_str());
    let values: Vec<&str> = values.filter(|value| !trajectory::NAMES.contains(value)).collect();
    let values = if values.is_empty() { DEFAULT_VALUES.to_vec() } else { values };
    unique(std::iter::once(GOODPUT).chain(values)).into_iter().map(str::to_owned).collect()
}

/// Absolute relative errors as shares, ascending; at least one.
#[derive(Clone, Debug)]
pub(crate) struct Errors(pub(crate) Vec<f64>);

impl Errors {
    /// The errors, given in any order; none without errors.
    pub(crate) fn sorted(mut sizes: Vec<f64>) -> Option<Self> {
        median(&mut sizes).map(|_| Self(sizes))
    }

    /// A quantile of the errors, by linear interpolation between order statistics.
    pub(crate) fn quantile(&self, share: f64) -> f64 {
        trajectory::quantile(&self.0, share)
    }

    /// Median, 90th and 95th percentile, and the worst, percent.
    pub(crate) fn percents(&self) -> [f64; 4] {
        [0.5, 0.9, 0.95, 1.0].map(|share| 100.0 * self.quantile(share))
    }

    /// The number of errors that are at most `share`.
    pub(crate) fn within(&self, share: f64) -> usize {
        self.0.iter().filter(|size| **size <= share).count()
    }

    /// [`Errors::percents`] in words.
    pub(crate) fn sentence(&self) -> String {
        let [median, p90, p95, worst] = self.percents();
        format!("median |error| {median:.1} %, 90th percentile {p90:.1} %, 95th {p95:.1} %, worst {worst:.1} %")
    }
}
