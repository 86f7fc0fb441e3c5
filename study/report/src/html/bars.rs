//! Figures of bars on the page, as SVG.

use super::figures::without_values;
use crate::bars::{self, axis_max, charts, colours};
use crate::figure::title;
use crate::grid::{Grid, Row, Value};
use crate::layout::Figure;
use crate::markup::escape;
use crate::number::{format_digits, format_number, mark_disturbed, name_and_unit_in};
use crate::study::{Study, short_names};
use crate::svg::{tick_text, ticks};

const WIDTH: f64 = 480.0;
const HEIGHT: f64 = 220.0;
const LEFT: f64 = 44.0;
const RIGHT: f64 = WIDTH - 8.0;
const TOP: f64 = 12.0;
const BOTTOM: f64 = HEIGHT - 22.0;
/// The share of its slot that a group of bars takes.
const GROUP_SHARE: f64 = 0.8;
/// The approximate width of a character of a name.
const CHARACTER_WIDTH: f64 = 6.0;

/// The figure, or a note if it has no values.
pub(super) fn bars(study: &Study<'_>, figure: &Figure, across: &str) -> String {
    let charts = charts(study, figure, across);
    let title = escape(&title(figure));
    let Some(first) = charts.first() else {
        return without_values(figure);
    };
    let unit = name_and_unit_in(&figure.scope, &figure.value).1;
    let title = if unit.is_empty() { title } else { format!("{title}, {}", escape(unit)) };
    let drawing = Drawing { unit, colours: colours(&first.columns), ticks: ticks(axis_max(&charts)) };
    let names = first.columns.iter().zip(&drawing.colours);
    let key = |(name, colour): (&String, &usize)| {
        format!("<span><i style=\"background:var(--c{colour})\"></i>{}</span>", escape(name))
    };
    let key: String = names.map(key).collect();
    let panels: String = charts.iter().map(|grid| drawing.panel(grid, &title)).collect();
    let note = note(study, across, &charts);
    format!(
        "<div class=\"figure bars\">\n<h3>{title}</h3>\n{note}<div class=\"key\">{key}</div>\n<div class=\"panels\">{panels}</div>\n\
         </div>\n"
    )
}

/// The note on the axis, on whiskers and dots, and on the baseline.
fn note(study: &Study<'_>, across: &str, charts: &[Grid]) -> String {
    let mut sentences = vec![format!("Along the axis: {}.", escape(&short_names(&[across]).concat()))];
    if charts.iter().any(Grid::has_intervals) {
        sentences.push("Whiskers: 95 % confidence intervals of the means (Student's t). Dots: runs.".to_owned());
    }
    let compared = |row: &Row| row.values.iter().flatten().any(|value| value.baseline.is_some());
    if let Some(baseline) = study.baseline.filter(|_| charts.iter().flat_map(|grid| &grid.rows).any(compared)) {
        sentences.push(format!("Dashed: {}.", escape(baseline.name)));
    }
    format!("<p class=\"note\">{}</p>\n", sentences.join(" "))
}

/// The common parts of a figure's panels: the unit, the colour of each column, and the ticks.
struct Drawing<'u> {
    unit: &'u str,
    colours: Vec<usize>,
    ticks: Vec<f64>,
}

impl Drawing<'_> {
    fn y(&self, value: f64) -> f64 {
        let drawn_max = self.ticks[self.ticks.len() - 1];
        BOTTOM - value.clamp(0.0, drawn_max) / drawn_max * (BOTTOM - TOP)
    }

    fn panel(&self, grid: &Grid, title: &str) -> String {
        let name = escape(&grid.panel);
        let caption = if name.is_empty() { String::new() } else { format!("<figcaption>{name}</figcaption>") };
        let title = if name.is_empty() { title.to_owned() } else { format!("{title}, {name}") };
        let slot = (RIGHT - LEFT) / grid.rows.len() as f64;
        let groups = grid.rows.iter().enumerate();
        let groups: String =
            groups.map(|(index, row)| self.group(grid, row, LEFT + slot * index as f64, slot)).collect();
        format!(
            "<figure>{caption}<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{title}\">{}{groups}{}</svg></figure>",
            self.axis(),
            names(grid, slot)
        )
    }

    fn axis(&self) -> String {
        let tick = |tick: &f64| {
            let (y, label_x) = (self.y(*tick), LEFT - 4.0);
            format!(
                "<path d=\"M{LEFT} {y:.1}H{RIGHT}\"/><text x=\"{label_x}\" y=\"{:.1}\">{}</text>",
                y + 3.5,
                tick_text(*tick)
            )
        };
        self.ticks.iter().map(tick).collect()
    }

    /// The bars at one value of the axis.
    fn group(&self, grid: &Grid, row: &Row, start: f64, slot: f64) -> String {
        let width = slot * GROUP_SHARE / grid.columns.len() as f64;
        let bars = row.values.iter().zip(&grid.columns).zip(&self.colours).enumerate();
        let bar = |(index, ((value, column), colour)): (usize, ((&Option<Value>, &String), &usize))| {
            let left = start + slot * (1.0 - GROUP_SHARE) / 2.0 + width * index as f64;
            let name = format!("{}, {column}", row.name);
            value.as_ref().map(|value| self.bar(value, &name, *colour, (left, width)))
        };
        bars.filter_map(bar).collect()
    }

    fn bar(&self, value: &Value, name: &str, colour: usize, (left, width): (f64, f64)) -> String {
        let (mean, middle) = (value.estimate.mean, left + width / 2.0);
        let rect = |height: f64| {
            let (x, y, bar_width) = (left + width * 0.05, self.y(height), width * 0.9);
            format!(
                "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{bar_width:.1}\" height=\"{:.1}\" style=\"fill:var(--c{colour})\"/>",
                BOTTOM - y
            )
        };
        let whisker = |half: f64| {
            let ([high, low], cap) = ([mean + half, mean - half].map(|end| self.y(end)), (width * 0.25).min(4.0));
            let [from, to] = [middle - cap, middle + cap];
            format!(
                "<path class=\"w\" d=\"M{middle:.1} {low:.1}V{high:.1}M{from:.1} {low:.1}H{to:.1}M{from:.1} {high:.1}H{to:.1}\"/>"
            )
        };
        let baseline = |value: f64| format!("<path class=\"b\" d=\"M{left:.1} {:.1}h{width:.1}\"/>", self.y(value));
        format!(
            "<g><title>{}</title>{}{}{}{}{}</g>",
            escape(&self.tooltip(value, name)),
            rect(mean),
            value.estimate.half_width.map_or(String::new(), whisker),
            self.runs(value, left + width * 0.78),
            value.baseline.map_or(String::new(), baseline),
            self.mark(value, middle)
        )
    }

    /// Each run as a dot beside the whisker, where there are several.
    fn runs(&self, value: &Value, x: f64) -> String {
        let sample = &value.sample;
        if sample.points.len() + sample.excluded.len() < 2 {
            return String::new();
        }
        let outliers = sample.outliers();
        let class = |point| if outliers.contains(point) { "out" } else { "run" };
        let points = sample.points.iter().map(|point| (class(point), point.1));
        let points = points.chain(sample.excluded.iter().map(|point| ("left", point.1)));
        let circle =
            |(class, value)| format!("<circle class=\"{class}\" cx=\"{x:.1}\" cy=\"{:.1}\" r=\"1.7\"/>", self.y(value));
        points.map(circle).collect()
    }

    /// The mark of disturbed runs, above everything that is drawn for the value.
    fn mark(&self, value: &Value, x: f64) -> String {
        match mark_disturbed(String::new(), value.disturbed[0]) {
            mark if mark.is_empty() => mark,
            mark => {
                format!(
                    "<text class=\"x\" x=\"{x:.1}\" y=\"{:.1}\">{mark}</text>",
                    self.y(bars::drawn_max(value)) - 4.0
                )
            }
        }
    }

    /// The tooltip of a bar.
    fn tooltip(&self, value: &Value, name: &str) -> String {
        let half = value.estimate.half_width.map_or(String::new(), |half| format!(" ± {}", format_digits(half, 2)));
        let mean = mark_disturbed(format_number(value.estimate.mean), value.disturbed[0]);
        let outliers = value.sample.outlier_note("; outliers").unwrap_or_default();
        format!("{name}: {mean}{half} {}{outliers}", self.unit)
    }
}

/// The names below the groups: all, or as many as there is room for.
fn names(grid: &Grid, slot: f64) -> String {
    let longest = grid.rows.iter().map(|row| row.name.chars().count() + 1).max().unwrap_or(1);
    let step = (longest as f64 * CHARACTER_WIDTH / slot).ceil() as usize;
    let name = |(index, row): (usize, &Row)| {
        let x = LEFT + slot * (index as f64 + 0.5);
        format!("<text class=\"x\" x=\"{x:.1}\" y=\"{}\">{}</text>", BOTTOM + 14.0, escape(&row.name))
    };
    grid.rows.iter().enumerate().step_by(step).map(name).collect()
}
