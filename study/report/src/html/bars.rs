//! Figures of bars on the page, as SVG.

use crate::axes::{self, Area, CHARACTER, Titles, with_unit, x_tick};
use crate::bars::{self, axis_max, charts};
use crate::chart::Line;
use crate::colour;
use crate::drawing::{self, Drawing, Look};
use crate::figure::title;
use crate::grid::{Grid, Row, Value};
use crate::layout::Figure;
use crate::number::{format_number, mark_disturbed, name_and_unit_in};
use crate::study::{Study, short_names};
use crate::svg::ticks;
use strings::escape_html;

/// The share of its slot that a group of bars takes.
const GROUP_SHARE: f64 = 0.8;

/// The figure; none if it has no values.
pub(crate) fn drawing(study: &Study<'_>, figure: &Figure, across: &str) -> Option<Drawing> {
    let charts = charts(study, figure, across);
    let columns = &charts.first()?.columns;
    let (name, unit) = name_and_unit_in(&figure.scope, &figure.value);
    let slots = study.slots().of_several(columns);
    let legend = columns.iter().zip(slots).map(|(name, slot)| Line {
        name: name.clone(),
        colour: colour::colour(slot),
        dash: colour::dash(slot),
        ..Line::default()
    });
    let bars = Bars {
        unit,
        x: short_names(&[across]).concat(),
        y: with_unit(&name, unit),
        title: with_unit(&title(figure), unit),
        legend: legend.collect(),
        ticks: ticks(axis_max(&charts)),
    };
    let panels = charts.iter().map(|grid| bars.panel(grid)).collect();
    Some(Drawing { notes: notes(study, &charts), title: bars.title, legend: bars.legend, look: Look::Bars, panels })
}

/// The notes on whiskers and dots, and on the baseline.
fn notes(study: &Study<'_>, charts: &[Grid]) -> Vec<String> {
    let mut sentences = Vec::new();
    if charts.iter().any(Grid::has_intervals) {
        sentences.push("Whiskers: 95 % confidence intervals of the means (Student's t). Dots: runs.".to_owned());
    }
    let compared = |row: &Row| row.values.iter().flatten().any(|value| value.baseline.is_some());
    if let Some(baseline) = study.baseline.filter(|_| charts.iter().flat_map(|grid| &grid.rows).any(compared)) {
        sentences.push(format!("Dashed: {}.", baseline.name));
    }
    sentences
}

/// The common parts of a figure's panels.
struct Bars<'u> {
    unit: &'u str,
    /// Titles of the axes.
    x: String,
    y: String,
    title: String,
    legend: Vec<Line>,
    ticks: Vec<f64>,
}

impl Bars<'_> {
    fn y(&self, area: &Area, value: f64) -> f64 {
        let drawn_max = self.ticks[self.ticks.len() - 1];
        area.y(value.clamp(0.0, drawn_max) / drawn_max)
    }

    fn panel(&self, grid: &Grid) -> String {
        let label = if grid.panel.is_empty() { self.title.clone() } else { format!("{}, {}", self.title, grid.panel) };
        let titles = Titles { caption: &grid.panel, x: &self.x, y: &self.y, label: &label };
        axes::picture(&titles, &axes::shares(&self.ticks), |area| {
            let slot = (area.right - area.left) / grid.rows.len() as f64;
            let groups = grid.rows.iter().enumerate();
            let groups = groups.map(|(index, row)| self.group(area, grid, row, area.left + slot * index as f64, slot));
            groups.collect::<String>() + &names(area, grid, slot)
        })
    }

    /// The bars at one value of the axis.
    fn group(&self, area: &Area, grid: &Grid, row: &Row, start: f64, slot: f64) -> String {
        let width = slot * GROUP_SHARE / grid.columns.len() as f64;
        let bars = row.values.iter().zip(&grid.columns).zip(&self.legend).enumerate();
        let bar = |(index, ((value, column), line)): (usize, ((&Option<Value>, &String), &Line))| {
            let left = start + slot * (1.0 - GROUP_SHARE) / 2.0 + width * index as f64;
            let name = format!("{}, {column}", row.name);
            value.as_ref().map(|value| self.bar(area, value, (&name, line), (left, width)))
        };
        bars.filter_map(bar).collect()
    }

    fn bar(&self, area: &Area, value: &Value, (name, line): (&str, &Line), (left, width): (f64, f64)) -> String {
        let (mean, middle) = (value.estimate.mean, left + width / 2.0);
        let rect = |height: f64| {
            let y = self.y(area, height);
            drawing::bar(line, (left + width * 0.05, y, width * 0.9, area.bottom - y), "")
        };
        let whisker = |half: f64| {
            let ([high, low], cap) = ([mean + half, mean - half].map(|end| self.y(area, end)), (width * 0.2).min(3.0));
            let [from, to] = [middle - cap, middle + cap];
            format!(
                "<path class=\"w\" d=\"M{middle:.1} {low:.1}V{high:.1}M{from:.1} {low:.1}H{to:.1}M{from:.1} {high:.1}H{to:.1}\"/>"
            )
        };
        let baseline =
            |value: f64| format!("<path class=\"b\" d=\"M{left:.1} {:.1}h{width:.1}\"/>", self.y(area, value));
        format!(
            "<g><title>{}</title>{}{}{}{}{}</g>",
            escape_html(&self.tooltip(value, name)),
            rect(mean),
            self.runs(area, value, (left + width * 0.85, (width * 0.12).min(1.1))),
            value.estimate.half_width.map_or(String::new(), whisker),
            value.baseline.map_or(String::new(), baseline),
            self.mark(area, value, middle)
        )
    }

    /// Each run as a dot at `x`, next to the whisker, where there are several.
    fn runs(&self, area: &Area, value: &Value, (x, radius): (f64, f64)) -> String {
        let sample = &value.sample;
        if sample.points.len() + sample.excluded.len() < 2 {
            return String::new();
        }
        let outliers = sample.outliers();
        let class = |point| if outliers.contains(point) { "out" } else { "run" };
        let points = sample.points.iter().map(|point| (class(point), point.1));
        let points = points.chain(sample.excluded.iter().map(|point| ("left", point.1)));
        let circle = |(class, value)| {
            format!("<circle class=\"{class}\" cx=\"{x:.1}\" cy=\"{:.1}\" r=\"{radius:.2}\"/>", self.y(area, value))
        };
        points.map(circle).collect()
    }

    /// The mark of disturbed runs, above everything that is drawn for the value.
    fn mark(&self, area: &Area, value: &Value, x: f64) -> String {
        match mark_disturbed(String::new(), value.disturbed[0]) {
            mark if mark.is_empty() => mark,
            mark => {
                format!(
                    "<text class=\"x\" x=\"{x:.1}\" y=\"{:.1}\">{mark}</text>",
                    self.y(area, bars::drawn_max(value)) - 3.0
                )
            }
        }
    }

    /// The tooltip of a bar.
    fn tooltip(&self, value: &Value, name: &str) -> String {
        let half = value.estimate.half_text().map_or(String::new(), |half| format!(" ± {half}"));
        let identical = value.sample.identical_note().map_or(String::new(), |note| format!("; {note}"));
        let mean = mark_disturbed(format_number(value.estimate.mean), value.disturbed[0]);
        let outliers = value.sample.outlier_note("; outliers").unwrap_or_default();
        format!("{name}: {mean}{half} {}{identical}{outliers}", self.unit)
    }
}

/// The names below the groups: all, or as many as there is room for.
fn names(area: &Area, grid: &Grid, slot: f64) -> String {
    let longest = grid.rows.iter().map(|row| row.name.chars().count() + 1).max().unwrap_or(1);
    let step = (longest as f64 * CHARACTER / slot).ceil() as usize;
    let name = |(index, row): (usize, &Row)| x_tick(area, area.left + slot * (index as f64 + 0.5), &row.name);
    grid.rows.iter().enumerate().step_by(step.max(1)).map(name).collect()
}
