//! The sweep as a table: one parameter down, one across, one value in each cell.

use crate::estimate::Estimate;
use crate::number::{label, relative_error};
use crate::study::{Cell, Study};
use record::Flow;
use scenario::{Layout, Reference};
use std::collections::BTreeMap;

/// One table. A sweep over more than two parameters makes several, one for each setting of the others.
#[derive(Clone, Debug)]
pub(crate) struct Grid {
    /// What the other parameters are; empty if there are none.
    pub(crate) panel: String,
    pub(crate) rows: Vec<Row>,
    pub(crate) columns: Vec<String>,
}

#[derive(Clone, Debug)]
pub(crate) struct Row {
    pub(crate) name: String,
    /// One a column; nothing where nothing was run.
    pub(crate) values: Vec<Option<Value>>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Value {
    /// Index of the cell in [`Study::cells`].
    pub(crate) cell: usize,
    pub(crate) estimate: Estimate,
}

impl Row {
    /// A row that is known from a publication only.
    pub(crate) fn is_coming(&self) -> bool {
        self.values.iter().all(Option::is_none)
    }
}

impl Grid {
    /// The tables of a study with this layout. Rows and columns that only the references have are added, empty.
    pub(crate) fn of(study: &Study<'_>, layout: &Layout) -> Vec<Self> {
        let cells = study.cells();
        let references = || study.references.iter().filter(|reference| comparable(layout, reference));
        let others: Vec<&str> =
            study.varying().into_iter().filter(|key| *key != layout.rows && *key != layout.columns).collect();
        let panels = unique(cells.iter().map(|cell| cell.name(&others)));
        let rows = unique(
            cells
                .iter()
                .map(|cell| cell.parameter(&layout.rows).to_owned())
                .chain(references().flat_map(|reference| reference.rows.iter().map(|(name, _)| name.clone()))),
        );
        let columns = unique(
            cells
                .iter()
                .map(|cell| cell.parameter(&layout.columns).to_owned())
                .chain(references().flat_map(|reference| reference.columns.iter().cloned())),
        );
        let key = |cell: &Cell<'_>| {
            (cell.name(&others), cell.parameter(&layout.rows).to_owned(), cell.parameter(&layout.columns).to_owned())
        };
        let index: BTreeMap<_, usize> = cells.iter().enumerate().map(|(at, cell)| (key(cell), at)).collect();
        let grid = |panel: String| {
            let find = |row: &String, column: &String| {
                let cell = *index.get(&(panel.clone(), row.clone(), column.clone()))?;
                Some(Value { cell, estimate: estimate(&cells[cell], layout.flow.as_deref(), &layout.value)? })
            };
            let row = |name: &String| Row {
                name: name.clone(),
                values: columns.iter().map(|column| find(name, column)).collect(),
            };
            Self { rows: rows.iter().map(row).collect(), columns: columns.clone(), panel }
        };
        panels.into_iter().map(grid).collect()
    }

    /// The greatest mean, to scale colours with.
    pub(crate) fn greatest(&self) -> f64 {
        let values = self.rows.iter().flat_map(|row| row.values.iter().flatten());
        values.map(|value| value.estimate.mean).fold(0.0, f64::max)
    }

    /// Whether values are means over several seeds.
    pub(crate) fn has_intervals(&self) -> bool {
        self.rows.iter().any(|row| row.values.iter().flatten().any(|value| value.estimate.half_width.is_some()))
    }
}

/// The mean of a field over a cell's seeds.
pub(crate) fn estimate(cell: &Cell<'_>, flow: Option<&str>, field: &str) -> Option<Estimate> {
    let of = |flows: &[Flow]| {
        let chosen = flows.iter().find(|candidate| flow.is_none_or(|name| candidate.name == name))?;
        number(chosen, field)
    };
    Estimate::of(&cell.runs.iter().filter_map(|run| of(&run.flows)).collect::<Vec<_>>())
}

/// A numeric field of a flow's record by its name: `goodput_mbps`, `rtt_ms.p95`.
pub(crate) fn number(flow: &Flow, field: &str) -> Option<f64> {
    if field == "goodput_mbps" {
        return Some(flow.goodput_mbps); // nearly always; spares a detour over JSON
    }
    let record = serde_json::to_value(flow).ok()?;
    record.pointer(&format!("/{}", field.replace('.', "/")))?.as_f64()
}

/// What a layout's `value` may be: every numeric field of a flow's record, such as `goodput_mbps` or `rtt_ms.p95`.
#[must_use]
pub fn table_values() -> Vec<String> {
    let flow = Flow { completion_s: Some(0.0), ..Flow::default() };
    let record = serde_json::to_value(&flow).expect("text and numbers");
    let fields = record.as_object().into_iter().flatten();
    let names = fields.flat_map(|(name, value)| match value.as_object() {
        Some(below) => below.keys().map(|key| format!("{name}.{key}")).collect(),
        None => vec![name.clone()],
    });
    names.filter(|name| number(&flow, name).is_some()).collect()
}

/// The values once each, in order of appearance.
fn unique(values: impl Iterator<Item = String>) -> Vec<String> {
    let mut seen = std::collections::BTreeSet::new();
    values.filter(|value| seen.insert(value.clone())).collect()
}

/// One published value beside what was simulated.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Pair {
    pub(crate) published: Option<f64>,
    pub(crate) simulated: Option<f64>,
}

impl Pair {
    pub(crate) fn error(&self) -> Option<f64> {
        relative_error(self.simulated?, self.published?)
    }
}

/// Whether a reference's values are of the unit that the layout shows: `--set table.value=rtt_ms.p95` leaves the
/// goodput that a paper published without a counterpart.
pub(crate) fn comparable(layout: &Layout, reference: &Reference) -> bool {
    let (shown, given) = (label(&layout.value).1, reference.unit.as_str());
    shown.is_empty() || given.is_empty() || shown == given
}

/// Every value of a grid beside that of a reference.
pub(crate) fn pairs(grid: &Grid, reference: &Reference) -> Vec<Vec<Pair>> {
    let published = |row: &str, column: &String| {
        let at = reference.columns.iter().position(|other| other == column)?;
        reference.rows.iter().find(|(name, _)| name == row)?.1.get(at).copied().flatten()
    };
    let pair = |row: &Row, column: usize| Pair {
        published: published(&row.name, &grid.columns[column]),
        simulated: row.values[column].map(|value| value.estimate.mean),
    };
    grid.rows.iter().map(|row| (0..grid.columns.len()).map(|column| pair(row, column)).collect()).collect()
}

/// How well simulated and published values agree, in one sentence.
pub(crate) fn agreement(pairs: &[Vec<Pair>]) -> String {
    let mut errors: Vec<f64> = pairs.iter().flatten().filter_map(Pair::error).map(f64::abs).collect();
    errors.sort_by(f64::total_cmp);
    let Some(median) = errors.get(errors.len() / 2) else { return "no value to compare yet".to_owned() };
    let within = |limit: f64| errors.iter().filter(|error| **error <= limit).count();
    let total = errors.len();
    format!(
        "{} of {total} values within 10 %, {} within 25 %; median |error| {:.1} %",
        within(0.10),
        within(0.25),
        // The mean of the middle two, if there are two.
        (median + errors[(total - 1) / 2]) * 50.0
    )
}
