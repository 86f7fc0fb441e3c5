//! Figures of distributions: the values of all cells, sorted, for each value of a swept key.

use crate::chart::Line;
use crate::colour;
use crate::grid::unique;
use crate::layout::Figure;
use crate::study::Study;
use crate::value::estimate;

/// A line for each value of the figure's key that has cells with a number: the numbers of its cells, ascending.
pub(crate) fn curves(study: &Study<'_>, figure: &Figure) -> Vec<Line> {
    let cells = study.cells_in_scope(&figure.scope, &[&figure.lines]);
    let names = unique(cells.iter().map(|(_, cell)| cell.parameter(&figure.lines).to_owned()));
    let slots = study.slots().of_several(&names);
    let curve = |(index, name): (usize, String)| {
        let cells = cells.iter().map(|(_, cell)| cell).filter(|cell| cell.parameter(&figure.lines) == name);
        let numbers = cells.filter_map(|cell| Some(estimate(cell, &figure.value, &figure.scope)?.mean));
        let mut values: Vec<f64> = numbers.filter(|number| number.is_finite()).collect();
        values.sort_by(f64::total_cmp);
        let slot = slots[index];
        Line { name, colour: colour::colour(slot), dash: colour::dash(slot), values, ..Line::default() }
    };
    names.into_iter().enumerate().map(curve).filter(|curve| !curve.values.is_empty()).collect()
}
