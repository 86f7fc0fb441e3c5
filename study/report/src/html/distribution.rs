//! Figures of distributions on the page, as SVG.

use crate::axes::{Titles, with_unit};
use crate::chart::Line;
use crate::distribution::curves;
use crate::drawing::Drawing;
use crate::figure::title;
use crate::layout::Figure;
use crate::number::name_and_unit_in;
use crate::study::Study;
use crate::svg::{self, Distribution, tick_text};

/// The figure; none if it has no values.
pub(crate) fn drawing(study: &Study<'_>, figure: &Figure) -> Option<Drawing> {
    let curves = curves(study, figure);
    let max = curves.iter().filter_map(|curve| curve.values.last()).copied().reduce(f64::max)?;
    let (name, unit) = name_and_unit_in(&figure.scope, &figure.value);
    let title = with_unit(&title(figure), unit);
    let label = format!("cumulative distribution over the cells: {title}");
    let x = with_unit(&name, unit);
    let titles = Titles { caption: "", x: &x, y: "share of the cells, %", label: &label };
    let markers: Vec<f64> = figure.threshold.into_iter().collect();
    let max = max.max(figure.threshold.unwrap_or(0.0));
    let axis = Distribution { max: if max > 0.0 { max } else { 1.0 }, markers: &markers, titles };
    let (picture, _) = svg::cumulative(&curves, &axis);
    let mut notes = vec!["Share of the cells in which the value is at most that on the axis.".to_owned()];
    notes.extend(figure.threshold.map(|threshold| reached(&curves, threshold)));
    Some(Drawing { title, notes, legend: curves, panels: vec![picture], ..Drawing::default() })
}

/// How many cells of each curve reach the threshold, which is dashed.
fn reached(curves: &[Line], threshold: f64) -> String {
    let count = |curve: &Line| {
        let reached = curve.values.iter().filter(|value| **value >= threshold).count();
        format!("{} {reached} of {}", curve.name, curve.values.len())
    };
    let counts: Vec<String> = curves.iter().map(count).collect();
    format!("Dashed: {}. Cells that reach it: {}.", tick_text(threshold), counts.join(", "))
}
