//! Figures of bars: a swept key along the axis, at each of its values a bar for each value of another. They show what a
//! table with these rows and columns would, and are made of one.

use crate::colour;
use crate::grid::{Grid, Value};
use crate::layout::{Column, Figure, Table};
use crate::study::Study;

/// The charts of a figure of bars across a key, those that have a value: one for each setting of the other keys.
pub(crate) fn charts(study: &Study<'_>, figure: &Figure, across: &str) -> Vec<Grid> {
    let table = Table {
        rows: across.to_owned(),
        columns: Some(figure.lines.clone()),
        values: vec![Column { value: figure.value.clone(), ..Column::default() }],
        scope: figure.scope.clone(),
        ..Table::default()
    };
    let known = |grid: &Grid| grid.rows.iter().any(|row| row.values.iter().any(Option::is_some));
    Grid::of(study, &table).into_iter().filter(known).collect()
}

/// The colours of bars with these names: their own, if each has one.
pub(crate) fn colours(names: &[String]) -> Vec<usize> {
    let own: Option<Vec<usize>> = names.iter().map(|name| colour::known(name)).collect();
    own.unwrap_or_else(|| (0..names.len()).map(colour::in_turn).collect())
}

/// The greatest that charts show.
pub(crate) fn greatest(charts: &[Grid]) -> f64 {
    let values = charts.iter().flat_map(|grid| &grid.rows).flat_map(|row| row.values.iter().flatten());
    values.map(most).fold(0.0, f64::max)
}

/// The greatest that is drawn of a value: mean, end of its interval, single runs, baseline.
pub(crate) fn most(value: &Value) -> f64 {
    let runs = value.sample.points.iter().chain(&value.sample.excluded).map(|point| point.1);
    let end = value.estimate.mean + value.estimate.half_width.unwrap_or(0.0);
    runs.chain(value.baseline).fold(end, f64::max)
}
