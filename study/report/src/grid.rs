//! The sweep as tables: one parameter down, one across, one value in each cell.

use crate::estimate::Estimate;
use crate::layout::{Column, Reference, Scope, Table};
use crate::number::{mark_disturbed, mark_outlier, name_and_unit, name_and_unit_in, name_with_unit_in, relative_error};
use crate::rank::kendall_tau_b;
use crate::sample::{Sample, outlier_footnote};
use crate::states;
use crate::study::{Baseline, Study, SweepCell};
use crate::trajectory;
use crate::value::sample;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// One table. A sweep over more than two parameters makes several, one for each setting of the other parameters.
#[derive(Clone, Debug)]
pub(crate) struct Grid {
    /// The names and values of the other parameters; empty if there are none.
    pub(crate) panel: String,
    pub(crate) rows: Vec<Row>,
    pub(crate) columns: Vec<String>,
}

#[derive(Clone, Debug)]
pub(crate) struct Row {
    pub(crate) name: String,
    /// Whether the row has published values and none of this study.
    pub(crate) only_published: bool,
    /// A value for each column; none if nothing was run.
    pub(crate) values: Vec<Option<Value>>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Value {
    /// Index of the cell in [`Study::cells`].
    pub(crate) cell: usize,
    pub(crate) estimate: Estimate,
    /// The value of each run.
    pub(crate) sample: Sample,
    /// The baseline's mean, if it has one.
    pub(crate) baseline: Option<f64>,
    /// Whether there are disturbed runs in the cell, and in the baseline's cell.
    pub(crate) disturbed: [bool; 2],
}

impl Value {
    /// `number`, the value as text, with the marks of disturbed runs and outliers.
    pub(crate) fn marked(&self, number: String) -> String {
        mark_outlier(mark_disturbed(number, self.disturbed[0]), !self.sample.outliers().is_empty())
    }
}

impl Grid {
    /// The grids of a table. Rows and columns that only its references have are added, empty.
    pub(crate) fn of(study: &Study<'_>, table: &Table) -> Vec<Self> {
        let keys: Vec<&String> = table.rows.iter().chain(&table.columns).collect();
        let cells = study.cells_in_scope(&table.scope, &keys);
        let other_keys = other_keys(&cells, &keys);
        let panels = unique(cells.iter().map(|(_, cell)| cell.heading(&other_keys)));
        let references = || table.references.iter().filter(|reference| is_comparable(table, reference));
        let rows = row_names(&cells, table).into_iter();
        let rows =
            unique(rows.chain(references().flat_map(|reference| reference.rows.iter().map(|(name, _)| name.clone()))));
        let columns: Vec<String> = match &table.columns {
            Some(key) => {
                let swept = cells.iter().map(|(_, cell)| cell.parameter(key).to_owned());
                unique(swept.chain(references().flat_map(|reference| reference.columns.iter().cloned())))
            }
            None => table.values.iter().map(|column| column_heading(table, column)).collect(),
        };
        let cell_indices = cell_indices(&cells, table, &other_keys);
        let grid = |panel: String| {
            let find = |row: &String, (index, column): (usize, &String)| {
                let swept_column = if table.columns.is_some() { column.as_str() } else { "" };
                let (cell, sweep_cell) =
                    &cells[*cell_indices.get(&(panel.clone(), row.clone(), swept_column.to_owned()))?];
                let baseline =
                    sweep_cell.baseline_cell().and_then(|cell| column_sample(&cell, table, index)?.estimate());
                let (sample, baseline) =
                    (column_sample(sweep_cell, table, index)?, baseline.map(|estimate| estimate.mean));
                Some(Value {
                    cell: *cell,
                    estimate: sample.estimate()?,
                    sample,
                    baseline,
                    disturbed: sweep_cell.disturbed,
                })
            };
            let is_run = |name: &String| cell_indices.keys().any(|(setting, row, _)| *setting == panel && row == name);
            let row = |name: &String| Row {
                name: name.clone(),
                only_published: !is_run(name),
                values: columns.iter().enumerate().map(|column| find(name, column)).collect(),
            };
            Self { rows: rows.iter().map(row).collect(), columns: columns.clone(), panel }
        };
        panels.into_iter().map(grid).collect()
    }

    /// Without the columns for which a reference has no value.
    pub(crate) fn with_columns_of(&self, reference: &Reference) -> Self {
        let pairs = pairs(self, reference);
        let has_published = |index: &usize| pairs.iter().any(|row| row[*index].published.is_some());
        let kept_columns: Vec<usize> = (0..self.columns.len()).filter(has_published).collect();
        let rows = self.rows.iter().map(|row| Row {
            values: kept_columns.iter().map(|index| row.values[*index].clone()).collect(),
            ..row.clone()
        });
        Self {
            columns: kept_columns.iter().map(|index| self.columns[*index].clone()).collect(),
            rows: rows.collect(),
            ..self.clone()
        }
    }

    /// The maximum mean of all columns or of one, which scales the colours.
    pub(crate) fn max_mean(&self, column: Option<usize>) -> f64 {
        let values = self.rows.iter().flat_map(|row| row.values.iter().enumerate());
        let values = values.filter(|(index, _)| column.is_none_or(|column| column == *index));
        values.filter_map(|(_, value)| Some(value.as_ref()?.estimate.mean)).fold(0.0, f64::max)
    }

    /// The footnote on outliers, if there are any.
    pub(crate) fn outliers(&self) -> Option<String> {
        let note = |(row, value, column): (&Row, &Option<Value>, &String)| {
            value.as_ref()?.sample.outlier_note(&format!("{}, {column}", row.name))
        };
        let values = self
            .rows
            .iter()
            .flat_map(|row| row.values.iter().zip(&self.columns).map(move |(value, column)| (row, value, column)));
        outlier_footnote(&values.filter_map(note).collect::<Vec<_>>())
    }

    /// Whether the runs of some cell are one and the same for all seeds.
    pub(crate) fn has_identical_runs(&self) -> bool {
        self.rows.iter().any(|row| row.values.iter().flatten().any(|value| value.sample.identical))
    }

    /// The rule of two states, if a cell has them.
    pub(crate) fn rule_of_states(&self) -> Option<&'static str> {
        let mut values = self.rows.iter().flat_map(|row| row.values.iter().flatten());
        values.any(|value| value.sample.states().is_some()).then_some(states::RULE)
    }

    /// Whether values are means over several seeds.
    pub(crate) fn has_intervals(&self) -> bool {
        self.rows.iter().any(|row| row.values.iter().flatten().any(|value| value.estimate.half_width.is_some()))
    }
}

/// The values of a cell in a column.
pub(crate) fn column_sample(cell: &SweepCell<'_>, table: &Table, column: usize) -> Option<Sample> {
    let Column { value, flow, .. } = column_of(table, column);
    match flow {
        Some(_) => sample(cell, value, &Scope { flow: flow.clone(), ..table.scope.clone() }),
        None => sample(cell, value, &table.scope),
    }
}

/// The heading of a column that shows one of several values.
pub(crate) fn column_heading(table: &Table, column: &Column) -> String {
    if column.label.is_empty() { name_with_unit_in(&table.scope, &column.value) } else { column.label.clone() }
}

/// The name of a cell's row: the values of the rows' keys.
fn row_name(cell: &SweepCell<'_>, table: &Table) -> String {
    table.rows.iter().map(|key| cell.parameter(key)).collect::<Vec<_>>().join(", ")
}

/// The names of the rows: the values of the first key change slowest, each in the order in which the sweep has them.
fn row_names(cells: &[(usize, SweepCell<'_>)], table: &Table) -> Vec<String> {
    let values_of = |key: &String| unique(cells.iter().map(|(_, cell)| cell.parameter(key)));
    let values: Vec<Vec<&str>> = table.rows.iter().map(values_of).collect();
    let place = |cell: &SweepCell<'_>| -> Vec<Option<usize>> {
        let keys = table.rows.iter().zip(&values);
        keys.map(|(key, values)| values.iter().position(|value| *value == cell.parameter(key))).collect()
    };
    let mut in_order: Vec<&SweepCell<'_>> = cells.iter().map(|(_, cell)| cell).collect();
    in_order.sort_by_cached_key(|cell| place(cell));
    in_order.into_iter().map(|cell| row_name(cell, table)).collect()
}

/// The index in `cells` by the other parameters, the row and the column.
fn cell_indices(
    cells: &[(usize, SweepCell<'_>)],
    table: &Table,
    other_keys: &[&str],
) -> BTreeMap<(String, String, String), usize> {
    let column = |cell: &SweepCell<'_>| table.columns.as_ref().map_or("", |key| cell.parameter(key)).to_owned();
    let key = |cell: &SweepCell<'_>| (cell.heading(other_keys), row_name(cell, table), column(cell));
    cells.iter().enumerate().map(|(index, (_, cell))| (key(cell), index)).collect()
}

/// The parameters that differ between cells, without those in `shown`.
pub(crate) fn other_keys<'a>(cells: &[(usize, SweepCell<'a>)], shown: &[&String]) -> Vec<&'a str> {
    let Some((_, first)) = cells.first() else { return Vec::new() };
    let differs = |key: &&String| cells.iter().any(|(_, cell)| cell.parameter(key) != first.parameter(key));
    let keys = cells.iter().flat_map(|(_, cell)| cell.parameters.keys()).filter(|key| !shown.contains(key));
    unique(keys.filter(differs)).into_iter().map(String::as_str).collect()
}

/// The values once each, in order of appearance.
pub(crate) fn unique<T: Clone + Ord>(values: impl Iterator<Item = T>) -> Vec<T> {
    let mut seen = std::collections::BTreeSet::new();
    values.filter(|value| seen.insert(value.clone())).collect()
}

/// The source of a reference whose values are the baseline's.
const BASELINE: &str = "baseline";

/// A published value and the simulated one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Pair {
    pub(crate) published: Option<f64>,
    pub(crate) simulated: Option<f64>,
    /// Whether disturbed runs contribute to the published value (a baseline's), and to the simulated one.
    pub(crate) disturbed: [bool; 2],
}

impl Pair {
    pub(crate) fn error(&self) -> Option<f64> {
        relative_error(self.simulated?, self.published?)
    }
}

/// The unit of a table's first value.
pub(crate) fn unit(table: &Table) -> &'static str {
    name_and_unit_in(&table.scope, &table.values[0].value).1
}

/// Whether a reference's values have the unit of the table. (`--set table.0.value=rtt_ms.p95` shows something else than
/// the goodput that a paper published.)
pub(crate) fn is_comparable(table: &Table, reference: &Reference) -> bool {
    if table.values.len() > 1 {
        return true;
    }
    let (table_unit, reference_unit) = (unit(table), reference.unit.as_str());
    table_unit.is_empty() || reference_unit.is_empty() || table_unit == reference_unit
}

/// The references of a grid: the table's, or the baseline's values if the table has none.
pub(crate) fn references<'t>(study: &Study<'_>, table: &'t Table, grid: &Grid) -> Vec<Cow<'t, Reference>> {
    if table.references.is_empty() {
        return baseline_reference(study, table, grid).map(Cow::Owned).into_iter().collect();
    }
    table.references.iter().filter(|reference| is_comparable(table, reference)).map(Cow::Borrowed).collect()
}

/// The baseline's values of a grid as a reference; none if the baseline has no values.
fn baseline_reference(study: &Study<'_>, table: &Table, grid: &Grid) -> Option<Reference> {
    let name = study.baseline?.name;
    let values = |row: &Row| row.values.iter().map(|value| value.as_ref()?.baseline).collect::<Vec<_>>();
    let rows: Vec<_> = grid.rows.iter().map(|row| (row.name.clone(), values(row))).collect();
    rows.iter().any(|(_, values)| values.iter().any(Option::is_some)).then(|| Reference {
        name: name.to_owned(),
        source: BASELINE.to_owned(),
        unit: table.columns.as_ref().map_or("", |_| unit(table)).to_owned(),
        columns: grid.columns.clone(),
        rows,
        note: String::new(),
    })
}

/// The value that a column shows.
pub(crate) fn column_of(table: &Table, column: usize) -> &Column {
    &table.values[if table.columns.is_some() { 0 } else { column }]
}

/// Every value of a grid beside that of a reference.
pub(crate) fn pairs(grid: &Grid, reference: &Reference) -> Vec<Vec<Pair>> {
    let published = |row: &str, column: &String| {
        let index = reference.columns.iter().position(|name| name == column)?;
        reference.rows.iter().find(|(name, _)| name == row)?.1.get(index).copied().flatten()
    };
    let pair = |row: &Row, column: usize| Pair {
        published: published(&row.name, &grid.columns[column]),
        simulated: row.values[column].as_ref().map(|value| value.estimate.mean),
        disturbed: row.values[column]
            .as_ref()
            .map_or([false; 2], |value| [reference.source == BASELINE && value.disturbed[1], value.disturbed[0]]),
    };
    grid.rows.iter().map(|row| (0..grid.columns.len()).map(|column| pair(row, column)).collect()).collect()
}

/// The agreement of simulated and published values in one sentence.
pub(crate) fn agreement<'p>(pairs: impl IntoIterator<Item = &'p Vec<Pair>>) -> String {
    let mut errors: Vec<f64> = pairs.into_iter().flatten().filter_map(Pair::error).map(f64::abs).collect();
    let Some(median) = median(&mut errors) else { return "no value to compare yet".to_owned() };
    let within = |percent: f64| errors.iter().filter(|error| **error <= percent / 100.0).count();
    format!(
        "of {} values, {} within 5 %, {} within 10 %, {} within 15 %, {} within 25 %; median |error| {:.1} %",
        errors.len(),
        within(5.0),
        within(10.0),
        within(15.0),
        within(25.0),
        median * 100.0
    )
}

/// The rank correlation of simulated and published values in each column: Kendall's tau-b of three values or more; none
/// if no column has one.
pub(crate) fn rank_correlations(pairs: &[Vec<Pair>]) -> Option<Vec<Option<f64>>> {
    let column = |index: usize| {
        let value_pairs: Vec<(f64, f64)> =
            pairs.iter().filter_map(|row| row[index].published.zip(row[index].simulated)).collect();
        if value_pairs.len() < 3 { None } else { kendall_tau_b(&value_pairs) }
    };
    let columns: Vec<Option<f64>> = (0..pairs.first()?.len()).map(column).collect();
    columns.iter().any(Option::is_some).then_some(columns)
}

/// The sentences on all grids of a table together: errors of the congestion window, and with several grids the
/// agreement with the baseline.
pub(crate) fn closing_sentences(study: &Study<'_>, table: &Table, grids: &[Grid]) -> Vec<String> {
    let Some(Baseline { name, .. }) = study.baseline else { return Vec::new() };
    let mut sentences: Vec<String> = table
        .values
        .iter()
        .filter_map(|column| cwnd_error_sentence(table, grids, &column.value))
        .map(|sentence| format!("{name}: {sentence}."))
        .collect();
    if grids.len() > 1 && table.references.is_empty() {
        let all_pairs = grids.iter().filter_map(|grid| Some(pairs(grid, &baseline_reference(study, table, grid)?)));
        let all_pairs: Vec<Vec<Pair>> = all_pairs.flatten().collect();
        if all_pairs.iter().flatten().any(|pair| pair.error().is_some()) {
            sentences.push(format!("{name}, all tables above: {}.", agreement(&all_pairs)));
        }
    }
    sentences
}

/// The median of a value that is an error of the congestion window.
fn cwnd_error_sentence(table: &Table, grids: &[Grid], value: &str) -> Option<String> {
    if !trajectory::NAMES.contains(&value) {
        return None;
    }
    let rows = grids.iter().flat_map(|grid| &grid.rows);
    let cells =
        rows.flat_map(|row| row.values.iter().enumerate().filter(|(index, _)| column_of(table, *index).value == value));
    let mut errors: Vec<f64> = cells.filter_map(|(_, value)| Some(value.as_ref()?.estimate.mean.abs())).collect();
    let median = median(&mut errors)?;
    let (name, below_ten) = (name_and_unit(value).0, errors.iter().filter(|error| **error < 10.0).count());
    Some(format!("median |{name}| {median:.1} %; {below_ten} of {} cells under 10 %", errors.len()))
}

/// The mean of the middle two, or the middle one. Sorts.
pub(crate) fn median(values: &mut [f64]) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    Some((values.get(values.len() / 2)? + values[(values.len() - 1) / 2]) / 2.0)
}
