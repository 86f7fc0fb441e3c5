//! Figures of bars: a swept key along the axis, and at each of its values a bar for each value of another key. Their
//! data is the table with these rows and columns.

use crate::grid::{Grid, Value};
use crate::layout::{Column, Figure, Table};
use crate::study::Study;

/// The grids of a figure of bars across a key: one for each setting of the other keys that has a value.
pub(crate) fn charts(study: &Study<'_>, figure: &Figure, across: &str) -> Vec<Grid> {
    let table = Table {
        rows: vec![across.to_owned()],
        columns: Some(figure.lines.clone()),
        values: vec![Column { value: figure.value.clone(), ..Column::default() }],
        scope: figure.scope.clone(),
        ..Table::default()
    };
    let has_values = |grid: &Grid| grid.rows.iter().any(|row| row.values.iter().any(Option::is_some));
    Grid::of(study, &table).into_iter().filter(has_values).collect()
}

/// The maximum value drawn in any of the charts.
pub(crate) fn axis_max(charts: &[Grid]) -> f64 {
    let values = charts.iter().flat_map(|grid| &grid.rows).flat_map(|row| row.values.iter().flatten());
    values.map(drawn_max).fold(0.0, f64::max)
}

/// The maximum number drawn for a value: mean, end of its interval, single runs, baseline.
pub(crate) fn drawn_max(value: &Value) -> f64 {
    let runs = value.sample.points.iter().chain(&value.sample.excluded).map(|point| point.1);
    let end = value.estimate.mean + value.estimate.half_width.unwrap_or(0.0);
    runs.chain(value.baseline).fold(end, f64::max)
}
