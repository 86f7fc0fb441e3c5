//! Figures of the samples of a delay on the page, as SVG: cumulative distributions, or complementary ones.

use crate::axes::{Titles, with_unit};
use crate::csv;
use crate::drawing::{Drawing, Look};
use crate::figure::{title, unique_lines};
use crate::layout::{Figure, Scale};
use crate::number::{format_number, name_and_unit, plural};
use crate::plane::{self, Axis, Plane};
use crate::samples::{SampleLine, SamplePanel, panels};
use crate::study::Study;
use crate::svg::{stroke, tick_text};
use record::Delays;
use strings::escape_html;

/// The share of the samples of a line that a cumulative distribution shows: the axis would else be as long as the
/// greatest one.
const SHOWN: f64 = 0.999;

/// The figure and its numbers; none if it has no samples.
pub(crate) fn drawing(study: &Study<'_>, figure: &Figure) -> Option<(Drawing, String)> {
    let panels = panels(study, figure);
    let lines = || panels.iter().flat_map(|panel| &panel.lines);
    let legend = unique_lines(lines().map(|line| &line.line));
    let (name, unit) = name_and_unit(&figure.value);
    let is_complementary = figure.scale == Scale::Ccdf;
    let of = |share: f64| move |line: &SampleLine| line.delays.quantile(share).unwrap_or_default();
    let high = lines().map(of(if is_complementary { 1.0 } else { SHOWN })).reduce(f64::max)?;
    let low = lines().map(of(0.0)).fold(high, f64::min).min(figure.threshold.unwrap_or(high));
    let x = Axis::linear(low, high.max(figure.threshold.unwrap_or(high)));
    let y = y_axis(is_complementary, lines().map(|line| line.delays.count()).max().unwrap_or(1));
    let chart = Chart { figure, is_complementary, x, y, unit, x_title: with_unit(&name, unit) };
    let mut notes = vec![note(&panels, is_complementary)];
    notes.extend(figure.threshold.map(|threshold| above(&panels, threshold, unit)));
    let drawing = Drawing {
        title: with_unit(&title(figure), unit),
        notes,
        legend,
        look: Look::Lines,
        panels: panels.iter().map(|panel| chart.panel(panel)).collect(),
    };
    Some((drawing, csv::samples(&panels, &figure.value)))
}

/// The axis of shares, percent.
fn y_axis(is_complementary: bool, count: u64) -> Axis {
    match is_complementary {
        true => Axis::log((100.0 / count.max(2) as f64).min(10.0), 100.0),
        false => Axis::linear(0.0, 100.0)
            .with_ticks([0.0, 25.0, 50.0, 75.0, 100.0].map(|share| (share, tick_text(share))).to_vec()),
    }
}

/// What is distributed, and what lies beyond the axis.
fn note(panels: &[SamplePanel], is_complementary: bool) -> String {
    let runs = panels.iter().flat_map(|panel| &panel.lines).map(|line| line.runs.len()).max().unwrap_or(0);
    let has_band = panels.iter().flat_map(|panel| &panel.lines).any(has_band);
    let band = if has_band { " Pale: from the lowest to the highest of the single runs." } else { "" };
    let beyond = match is_complementary {
        true => "",
        false => " Up to 0.1 % of the samples of a line lie beyond the right edge.",
    };
    format!("All samples of {} per line, merged.{band}{beyond}", plural(runs, "run"))
}

/// The share of each line's samples above the threshold, which is dashed.
fn above(panels: &[SamplePanel], threshold: f64, unit: &str) -> String {
    let of_line = |panel: &SamplePanel, line: &SampleLine| {
        let percent = 100.0 * (1.0 - share_at_most(&line.delays, threshold));
        let setting = if panel.title.is_empty() { String::new() } else { format!(" ({})", panel.title) };
        format!("{}{setting} {} %", line.line.name, format_number(percent))
    };
    let lines = panels.iter().flat_map(|panel| panel.lines.iter().map(move |line| of_line(panel, line)));
    let threshold = with_unit(&tick_text(threshold), unit).replace(',', "");
    format!("Dashed: {threshold}. Samples above it: {}.", lines.collect::<Vec<_>>().join(", "))
}

/// The share of samples that are at most `delay`.
fn share_at_most(delays: &Delays, delay: f64) -> f64 {
    let below = delays.steps().take_while(|(step, _)| *step <= delay).last().map_or(0, |(_, below)| below);
    below as f64 / delays.count().max(1) as f64
}

/// Whether the runs of a line differ.
fn has_band(line: &SampleLine) -> bool {
    line.runs.iter().any(|run| *run != line.runs[0])
}

/// The common parts of a figure's panels.
struct Chart<'f> {
    figure: &'f Figure,
    is_complementary: bool,
    x: Axis,
    y: Axis,
    unit: &'f str,
    x_title: String,
}

impl Chart<'_> {
    fn panel(&self, panel: &SamplePanel) -> String {
        let (y, kind) = match self.is_complementary {
            true => ("share of the samples above, %", "complementary cumulative"),
            false => ("share of the samples, %", "cumulative"),
        };
        let label = format!("{kind} distribution of the samples: {}", title(self.figure));
        let label = if panel.title.is_empty() { label } else { format!("{label}, {}", panel.title) };
        let titles = Titles { caption: &panel.title, x: &self.x_title, y, label: &label };
        plane::picture(&titles, &self.x, &self.y, |plane| {
            let bands: String = panel.lines.iter().map(|line| self.band(plane, line)).collect();
            let marker = |value: f64| {
                let (x, area) = (plane.x(value), plane.area);
                format!("<path class=\"d\" stroke-dasharray=\"4 3\" d=\"M{x:.1} {:.1}V{:.1}\"/>", area.bottom, area.top)
            };
            let threshold = self.figure.threshold.map_or(String::new(), marker);
            bands + &threshold + &panel.lines.iter().map(|line| self.curve(plane, line)).collect::<String>()
        })
    }

    /// What the vertical axis shows of a share of samples that are at most a value: percent.
    fn shown(&self, share: f64) -> f64 {
        100.0 * if self.is_complementary { 1.0 - share } else { share }
    }

    /// The steps of a distribution, in places of the picture that differ.
    fn steps(&self, plane: &Plane<'_>, delays: &Delays) -> Vec<(f64, f64)> {
        let count = delays.count().max(1) as f64;
        let mut steps: Vec<(f64, f64)> = vec![(plane.area.left, plane.y(self.shown(0.0)))];
        for (delay, below) in delays.steps() {
            let step = (plane.x(delay), plane.y(self.shown(below as f64 / count)));
            match steps.last_mut() {
                Some(last) if step.0 - last.0 < 0.25 => last.1 = step.1,
                _ => steps.push(step),
            }
        }
        steps
    }

    /// The curve, whose title tells quantiles to a pointer.
    fn curve(&self, plane: &Plane<'_>, SampleLine { line, delays, .. }: &SampleLine) -> String {
        let steps = self.steps(plane, delays);
        let (start, rest) = (steps[0], &steps[1..]);
        let mut path = format!("M{:.1} {:.1}", start.0, start.1);
        path.extend(rest.iter().map(|(x, y)| format!("H{x:.1}V{y:.1}")));
        if !self.is_complementary {
            path += &format!("H{:.1}", plane.area.right);
        }
        let quantile = |share| delays.quantile(share).map_or_else(String::new, format_number);
        let title = format!(
            "{}: median {}, p95 {}, p99 {} {}; {} samples",
            escape_html(&line.name),
            quantile(0.5),
            quantile(0.95),
            quantile(0.99),
            self.unit,
            delays.count()
        );
        format!(
            "<g><title>{title}</title><path class=\"l\" {} d=\"{path}\"/><path class=\"t\" d=\"{path}\"/></g>",
            stroke(line)
        )
    }

    /// The band between the lowest and the highest distribution of the single runs; none of one run.
    fn band(&self, plane: &Plane<'_>, sample_line: &SampleLine) -> String {
        if !has_band(sample_line) {
            return String::new();
        }
        let SampleLine { line, delays, runs } = sample_line;
        let places: Vec<f64> = self.steps(plane, delays).into_iter().map(|(x, _)| x).collect();
        let steps: Vec<Vec<(f64, f64)>> = runs.iter().map(|run| self.steps(plane, run)).collect();
        let height =
            |steps: &[(f64, f64)], x: f64| steps[steps.partition_point(|step| step.0 <= x + 1e-9).max(1) - 1].1;
        let heights = |x: f64| steps.iter().map(move |steps| height(steps, x));
        let edge = |pick: fn(f64, f64) -> f64| {
            let step = |x: &f64| heights(*x).reduce(pick).map(|y| (*x, y));
            places.iter().filter_map(step).collect::<Vec<_>>()
        };
        let (upper, lower) = (edge(f64::min), edge(f64::max));
        let mut path = format!("M{:.1} {:.1}", upper[0].0, upper[0].1);
        path.extend(upper[1..].iter().map(|(x, y)| format!("H{x:.1}V{y:.1}")));
        let end = if self.is_complementary { upper[upper.len() - 1].0 } else { plane.area.right };
        path += &format!("H{end:.1}");
        path.extend(lower.iter().rev().map(|(x, y)| format!("V{y:.1}H{x:.1}")));
        format!(
            "<path class=\"band\" style=\"fill:var(--c{});fill-opacity:.18;stroke:none\" d=\"{path}Z\"/>",
            line.colour
        )
    }
}
