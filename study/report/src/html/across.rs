//! Lines across a swept number on the page, as SVG: the mean at each value of the key, with its confidence interval.

use crate::axes::{Titles, with_unit};
use crate::bars::{axis_max, charts};
use crate::chart::Line;
use crate::colour;
use crate::drawing::{Drawing, Look};
use crate::export::bars_csv;
use crate::figure::title;
use crate::grid::{Grid, Value};
use crate::layout::{Figure, Scale};
use crate::marker::marker;
use crate::number::{format_number, mark_disturbed, name_and_unit_in};
use crate::plane::{self, Axis, Plane, numbers_of_one_unit};
use crate::study::{Study, short_names};
use crate::svg::stroke;
use strings::escape_html;

/// Half the width of a whisker's end.
const CAP: f64 = 2.0;

/// The figure and its numbers; none if it has no values.
pub(crate) fn drawing(study: &Study<'_>, figure: &Figure, across: &str) -> Option<(Drawing, String)> {
    let charts = charts(study, figure, across);
    let columns = &charts.first()?.columns;
    let names: Vec<&str> = charts[0].rows.iter().map(|row| row.name.as_str()).collect();
    let (places, _) = numbers_of_one_unit(&names)?;
    let (name, unit) = name_and_unit_in(&figure.scope, &figure.value);
    let slots = study.slots().of_several(columns);
    let line = |(name, slot): (&String, usize)| Line {
        name: name.clone(),
        colour: colour::colour(slot),
        dash: colour::dash(slot),
        ..Line::default()
    };
    let legend: Vec<Line> = columns.iter().zip(slots).map(line).collect();
    let ticks = places.iter().copied().zip(names.iter().map(|name| (*name).to_owned())).collect();
    let values = charts.iter().flat_map(|grid| &grid.rows).flat_map(|row| row.values.iter().flatten());
    let low = values.map(|value| value.estimate.mean).fold(0.0, f64::min);
    let chart = Chart {
        x: x_axis(&places, figure.scale).with_ticks(ticks),
        y: Axis::linear(low, axis_max(&charts)),
        x_title: short_names(&[across]).concat(),
        y_title: with_unit(&name, unit),
        title: with_unit(&title(figure), unit),
        unit,
        legend: &legend,
        places: &places,
    };
    let mut notes = Vec::new();
    if charts.iter().any(Grid::has_intervals) {
        notes.push("Whiskers: 95 % confidence intervals of the means (Student's t).".to_owned());
    }
    if figure.scale == Scale::Log && places.contains(&0.0) {
        notes.push("Zero, which a logarithmic axis does not have, stands at its left end.".to_owned());
    }
    let panels = charts.iter().map(|grid| chart.panel(grid)).collect();
    let drawing =
        Drawing { title: chart.title.clone(), notes, look: Look::MarkedLines, panels, legend: legend.clone() };
    Some((drawing, bars_csv(study, figure, across)))
}

/// The axis of the swept key. A zero on a logarithmic one stands as far before the least number as that is from the
/// next.
fn x_axis(places: &[f64], scale: Scale) -> Axis {
    let of = |pick: fn(f64, f64) -> f64, shown: &[f64]| shown.iter().copied().reduce(pick).unwrap_or(1.0);
    if scale != Scale::Log {
        let (low, high) = (of(f64::min, places), of(f64::max, places));
        let margin = if high > low { 0.04 * (high - low) } else { 0.5 };
        return Axis::exact(low - margin, high + margin);
    }
    let mut positive: Vec<f64> = places.iter().copied().filter(|place| *place > 0.0).collect();
    positive.sort_by(f64::total_cmp);
    let low = of(f64::min, &positive);
    let ratio = positive.get(1).map_or(2.0, |next| next / low);
    let low = if positive.len() < places.len() { low / ratio } else { low / 1.1 };
    Axis::log(low, 1.1 * of(f64::max, &positive))
}

/// The common parts of a figure's panels.
struct Chart<'f> {
    x: Axis,
    y: Axis,
    x_title: String,
    y_title: String,
    title: String,
    unit: &'f str,
    legend: &'f [Line],
    places: &'f [f64],
}

impl Chart<'_> {
    fn panel(&self, grid: &Grid) -> String {
        let label = if grid.panel.is_empty() { self.title.clone() } else { format!("{}, {}", self.title, grid.panel) };
        let titles = Titles { caption: &grid.panel, x: &self.x_title, y: &self.y_title, label: &label };
        plane::picture(&titles, &self.x, &self.y, |plane| {
            self.legend.iter().enumerate().map(|(column, line)| self.line(plane, grid, column, line)).collect()
        })
    }

    /// The line of a column: between the values of the key in their order, with a marker and a whisker at each.
    fn line(&self, plane: &Plane<'_>, grid: &Grid, column: usize, line: &Line) -> String {
        let rows = self.places.iter().zip(&grid.rows);
        let mut points: Vec<(f64, &str, &Value)> =
            rows.filter_map(|(place, row)| Some((*place, row.name.as_str(), row.values[column].as_ref()?))).collect();
        points.sort_by(|one, other| one.0.total_cmp(&other.0));
        let corners: Vec<String> = points
            .iter()
            .map(|(place, _, value)| format!("{:.1} {:.1}", plane.x(*place), plane.y(value.estimate.mean)))
            .collect();
        let marks: String =
            points.iter().map(|(place, name, value)| self.point(plane, *place, name, value, line)).collect();
        format!("<path class=\"l\" {} d=\"M{}\"/>{marks}", stroke(line), corners.join("L"))
    }

    fn point(&self, plane: &Plane<'_>, place: f64, name: &str, value: &Value, line: &Line) -> String {
        let (mean, x) = (value.estimate.mean, plane.x(place));
        let whisker = |half: f64| {
            let ([high, low], [from, to]) = ([mean + half, mean - half].map(|end| plane.y(end)), [x - CAP, x + CAP]);
            format!(
                "<path class=\"w\" style=\"stroke:var(--c{})\" d=\"M{x:.1} {low:.1}V{high:.1}M{from:.1} {low:.1}H{to:.1}M{from:.1} {high:.1}H{to:.1}\"/>",
                line.colour
            )
        };
        let half = value.estimate.half_width;
        let interval = value.estimate.half_text().map_or(String::new(), |half| format!(" ± {half}"));
        let number = mark_disturbed(format_number(mean), value.disturbed[0]);
        let text = format!("{name}, {}: {number}{interval} {}", line.name, self.unit);
        let whisker = half.map_or(String::new(), whisker);
        format!("<g><title>{}</title>{whisker}{}</g>", escape_html(text.trim_end()), marker(line, x, plane.y(mean)))
    }
}
