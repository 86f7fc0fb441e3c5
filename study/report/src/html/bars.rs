//! Figures of bars on the page, as SVG.

use crate::bars::{self, charts, colours, greatest};
use crate::figure::{nothing, title};
use crate::grid::{Grid, Row, Value};
use crate::layout::Figure;
use crate::markup::escape;
use crate::number::{format_digits, format_number, label, mark_disturbed};
use crate::study::{Study, short_names};
use crate::svg::{short, ticks};

const WIDTH: f64 = 480.0;
const HEIGHT: f64 = 220.0;
const LEFT: f64 = 44.0;
const RIGHT: f64 = WIDTH - 8.0;
const TOP: f64 = 12.0;
const BOTTOM: f64 = HEIGHT - 22.0;
/// The part of its place that a group of bars takes.
const FULL: f64 = 0.8;
/// About how wide a character of a name is.
const CHARACTER: f64 = 6.0;

/// The figure, or why it is not there.
pub(super) fn bars(study: &Study<'_>, figure: &Figure, across: &str) -> String {
    let charts = charts(study, figure, across);
    let title = escape(&title(figure));
    let Some(first) = charts.first() else {
        return format!("<div class=\"figure\">\n<h3>{title}</h3>\n<p>{}</p>\n</div>\n", escape(&nothing(figure)));
    };
    let unit = label(&figure.value).1;
    let title = if unit.is_empty() { title } else { format!("{title}, {}", escape(unit)) };
    let drawing = Drawing { unit, colours: colours(&first.columns), ticks: ticks(greatest(&charts)) };
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

/// What is drawn beside the bars.
fn note(study: &Study<'_>, across: &str, charts: &[Grid]) -> String {
    let mut told = vec![format!("Along the axis: {}.", escape(&short_names(&[across]).concat()))];
    if charts.iter().any(Grid::has_intervals) {
        told.push("Whiskers: 95 % confidence intervals of the means (Student's t). Dots: runs.".to_owned());
    }
    let compared = |row: &Row| row.values.iter().flatten().any(|value| value.baseline.is_some());
    if let Some(baseline) = study.baseline.filter(|_| charts.iter().flat_map(|grid| &grid.rows).any(compared)) {
        told.push(format!("Dashed: {}.", escape(baseline.name)));
    }
    format!("<p class=\"note\">{}</p>\n", told.join(" "))
}

/// What the charts of a figure have in common.
struct Drawing<'u> {
    unit: &'u str,
    colours: Vec<usize>,
    ticks: Vec<f64>,
}

impl Drawing<'_> {
    fn y(&self, value: f64) -> f64 {
        let most = self.ticks[self.ticks.len() - 1];
        BOTTOM - value.clamp(0.0, most) / most * (BOTTOM - TOP)
    }

    fn panel(&self, grid: &Grid, title: &str) -> String {
        let name = escape(&grid.panel);
        let caption = if name.is_empty() { String::new() } else { format!("<figcaption>{name}</figcaption>") };
        let title = if name.is_empty() { title.to_owned() } else { format!("{title}, {name}") };
        let place = (RIGHT - LEFT) / grid.rows.len() as f64;
        let groups = grid.rows.iter().enumerate();
        let groups: String = groups.map(|(at, row)| self.group(grid, row, LEFT + place * at as f64, place)).collect();
        format!(
            "<figure>{caption}<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{title}\">{}{groups}{}</svg></figure>",
            self.axis(),
            names(grid, place)
        )
    }

    fn axis(&self) -> String {
        let tick = |tick: &f64| {
            let (at, beside) = (self.y(*tick), LEFT - 4.0);
            format!(
                "<path d=\"M{LEFT} {at:.1}H{RIGHT}\"/><text x=\"{beside}\" y=\"{:.1}\">{}</text>",
                at + 3.5,
                short(*tick)
            )
        };
        self.ticks.iter().map(tick).collect()
    }

    /// The bars at one value of the axis.
    fn group(&self, grid: &Grid, row: &Row, start: f64, place: f64) -> String {
        let wide = place * FULL / grid.columns.len() as f64;
        let bars = row.values.iter().zip(&grid.columns).zip(&self.colours).enumerate();
        let bar = |(at, ((value, column), colour)): (usize, ((&Option<Value>, &String), &usize))| {
            let left = start + place * (1.0 - FULL) / 2.0 + wide * at as f64;
            let name = format!("{}, {column}", row.name);
            value.as_ref().map(|value| self.bar(value, &name, *colour, (left, wide)))
        };
        bars.filter_map(bar).collect()
    }

    fn bar(&self, value: &Value, name: &str, colour: usize, (left, wide): (f64, f64)) -> String {
        let (mean, middle) = (value.estimate.mean, left + wide / 2.0);
        let rect = |height: f64| {
            let (x, y, width) = (left + wide * 0.05, self.y(height), wide * 0.9);
            format!(
                "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{:.1}\" style=\"fill:var(--c{colour})\"/>",
                BOTTOM - y
            )
        };
        let whisker = |half: f64| {
            let ([high, low], cap) = ([mean + half, mean - half].map(|end| self.y(end)), (wide * 0.25).min(4.0));
            let [from, to] = [middle - cap, middle + cap];
            format!(
                "<path class=\"w\" d=\"M{middle:.1} {low:.1}V{high:.1}M{from:.1} {low:.1}H{to:.1}M{from:.1} {high:.1}H{to:.1}\"/>"
            )
        };
        let baseline = |value: f64| format!("<path class=\"b\" d=\"M{left:.1} {:.1}h{wide:.1}\"/>", self.y(value));
        format!(
            "<g><title>{}</title>{}{}{}{}{}</g>",
            escape(&self.told(value, name)),
            rect(mean),
            value.estimate.half_width.map_or(String::new(), whisker),
            self.runs(value, left + wide * 0.78),
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
        let all = points.chain(sample.excluded.iter().map(|point| ("left", point.1)));
        let circle =
            |(class, value)| format!("<circle class=\"{class}\" cx=\"{x:.1}\" cy=\"{:.1}\" r=\"1.7\"/>", self.y(value));
        all.map(circle).collect()
    }

    /// The mark of disturbed runs, above all that is drawn of a value.
    fn mark(&self, value: &Value, x: f64) -> String {
        match mark_disturbed(String::new(), value.disturbed[0]) {
            mark if mark.is_empty() => mark,
            mark => {
                format!("<text class=\"x\" x=\"{x:.1}\" y=\"{:.1}\">{mark}</text>", self.y(bars::most(value)) - 4.0)
            }
        }
    }

    /// What a pointer on a bar says.
    fn told(&self, value: &Value, name: &str) -> String {
        let half = value.estimate.half_width.map_or(String::new(), |half| format!(" ± {}", format_digits(half, 2)));
        let mean = mark_disturbed(format_number(value.estimate.mean), value.disturbed[0]);
        let outliers = value.sample.outlier_note("; outliers").unwrap_or_default();
        format!("{name}: {mean}{half} {}{outliers}", self.unit)
    }
}

/// What stands below the groups: every name, or as many as there is room for.
fn names(grid: &Grid, place: f64) -> String {
    let longest = grid.rows.iter().map(|row| row.name.chars().count() + 1).max().unwrap_or(1);
    let every = (longest as f64 * CHARACTER / place).ceil() as usize;
    let name = |(at, row): (usize, &Row)| {
        let x = LEFT + place * (at as f64 + 0.5);
        format!("<text class=\"x\" x=\"{x:.1}\" y=\"{}\">{}</text>", BOTTOM + 14.0, escape(&row.name))
    };
    grid.rows.iter().enumerate().step_by(every).map(name).collect()
}
