//! Figures of distributions on the page, as SVG.

use super::figures::{PANEL, without_values};
use crate::chart::Line;
use crate::distribution::curves;
use crate::figure::title;
use crate::layout::Figure;
use crate::markup::escape;
use crate::number::name_and_unit_in;
use crate::study::Study;
use crate::svg::{self, Distribution, tick_text};

/// The figure, or a note if it has no values.
pub(super) fn distribution(study: &Study<'_>, figure: &Figure) -> String {
    let curves = curves(study, figure);
    let Some(max) = curves.iter().filter_map(|curve| curve.values.last()).copied().reduce(f64::max) else {
        return without_values(figure);
    };
    let unit = name_and_unit_in(&figure.scope, &figure.value).1;
    let title = escape(&title(figure));
    let title = if unit.is_empty() { title } else { format!("{title}, {}", escape(unit)) };
    let label = format!("cumulative distribution over the cells: {title}");
    let markers: Vec<f64> = figure.threshold.into_iter().collect();
    let max = max.max(figure.threshold.unwrap_or(0.0));
    let axis = Distribution { max: if max > 0.0 { max } else { 1.0 }, unit: "", markers: &markers, size: PANEL };
    let (picture, _) = svg::cumulative(&curves, &axis, &label);
    format!(
        "<div class=\"figure\">\n<h3>{title}</h3>\n<p class=\"note\">Share of the cells in which the value is at most that on the \
         axis.{}</p>\n{}<div class=\"panels\"><figure>{picture}</figure></div>\n</div>\n",
        figure.threshold.map_or(String::new(), |threshold| reached(&curves, threshold)),
        svg::legend(&curves)
    )
}

/// How many cells of each curve reach the threshold, which is dashed.
fn reached(curves: &[Line], threshold: f64) -> String {
    let count = |curve: &Line| {
        let reached = curve.values.iter().filter(|value| **value >= threshold).count();
        format!("{} {reached} of {}", escape(&curve.name), curve.values.len())
    };
    let counts: Vec<String> = curves.iter().map(count).collect();
    format!(" Dashed: {}. Cells that reach it: {}.", tick_text(threshold), counts.join(", "))
}
