//! Charts as SVG, for paper and for readers without JavaScript.

use crate::chart::{Chart, DASHES, Line};
use crate::markup::escape;
use crate::number::{format_number, relative_error};

/// Width and height of a picture.
pub(crate) type Size = (f64, f64);
/// The size of a chart among several.
pub(crate) const SMALL: Size = (460.0, 150.0);

/// Round numbers from zero to at least `max`: at most five steps of 1, 2 or 5 times a power of ten.
pub(crate) fn ticks(max: f64) -> Vec<f64> {
    let max = if max > 0.0 { max } else { 1.0 };
    let power = 10_f64.powf((max / 5.0).log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].map(|m| m * power).into_iter().find(|step| max / step <= 5.0).unwrap_or(max);
    (0..).map(|index| f64::from(index) * step).take_while(|tick| *tick < max + step * 0.999).collect()
}

/// Round numbers in a span of time.
fn instants((start, end): (f64, f64)) -> Vec<f64> {
    let step = ticks(end - start)[1];
    let first = (start / step - 1e-6).ceil();
    (0..).map(|index| (first + f64::from(index)) * step).take_while(|tick| *tick <= end + step * 1e-3).collect()
}

/// One chart over time, with its lines' names below.
pub(crate) fn chart(chart: &Chart, times: &[f64]) -> String {
    let span = (times.first().copied().unwrap_or(0.0).min(0.0), times.last().copied().unwrap_or(1.0));
    let title = format!("{}, {}", escape(&chart.title), escape(&chart.unit));
    let (picture, names) = (picture(chart, times, span, SMALL, &title), legend(&chart.lines));
    format!(r#"<figure><figcaption>{title}</figcaption>{picture}{names}</figure>"#)
}

/// The names of lines.
pub(crate) fn legend(lines: &[Line]) -> String {
    format!(r#"<div class="key">{}</div>"#, lines.iter().map(legend_entry).collect::<String>())
}

/// Lines over a span of time; `title` (markup) is the label for screen readers.
pub(crate) fn picture(chart: &Chart, times: &[f64], span: (f64, f64), (width, height): Size, title: &str) -> String {
    let [left, right, top, bottom] = [44.0, width - 16.0, 8.0, height - 20.0];
    let vertical = ticks(chart.max);
    let axis_max = vertical[vertical.len() - 1];
    let x = |time: f64| left + (time - span.0) / (span.1 - span.0).max(1e-9) * (right - left);
    let y = |value: f64| bottom - value.clamp(0.0, axis_max) / axis_max * (bottom - top);
    let mut marks = String::new();
    for tick in &vertical {
        let tick_y = y(*tick);
        marks += &format!(
            r#"<path d="M{left} {tick_y:.1}H{right}"/><text x="{}" y="{:.1}">{}</text>"#,
            left - 4.0,
            tick_y + 3.5,
            tick_text(*tick)
        );
    }
    for tick in instants(span) {
        marks += &format!(r#"<text class="x" x="{:.1}" y="{}">{} s</text>"#, x(tick), bottom + 14.0, tick_text(tick));
    }
    let lines: String = chart.lines.iter().map(|line| polyline(line, times, x, y)).collect();
    format!(r#"<svg viewBox="0 0 {width} {height}" role="img" aria-label="{title} over time">{marks}{lines}</svg>"#)
}

fn polyline(line: &Line, times: &[f64], x: impl Fn(f64) -> f64, y: impl Fn(f64) -> f64) -> String {
    let mut path = String::new();
    let mut drawing = false;
    for (time, value) in times.iter().zip(&line.values) {
        if value.is_finite() {
            let verb = if drawing { 'L' } else { 'M' };
            path += &format!("{verb}{:.1} {:.1}", x(*time), y(*value));
        }
        drawing = value.is_finite();
    }
    format!(r#"<path class="l" {} d="{path}"/>"#, stroke(line))
}

fn stroke(line: &Line) -> String {
    let dash = DASHES[line.dash];
    let dash = if dash.is_empty() { String::new() } else { format!(r#" stroke-dasharray="{dash}""#) };
    let (width, opacity) = match () {
        () if line.baseline => (4.0, r#" stroke-opacity="0.35""#),
        () if line.auxiliary => (0.9, ""),
        () => (1.6, ""),
    };
    format!(r#"style="stroke:var(--c{})" stroke-width="{width}"{opacity}{dash}"#, line.colour)
}

fn legend_entry(line: &Line) -> String {
    format!(
        r#"<span><svg viewBox="0 0 22 8"><path class="l" {} d="M0 4H22"/></svg>{}</span>"#,
        stroke(line),
        escape(&line.name)
    )
}

/// A tick's number without superfluous digits.
pub(crate) fn tick_text(tick: f64) -> String {
    let rounded: f64 = format!("{tick:.6}").parse().unwrap_or(tick);
    rounded.to_string()
}

/// What is drawn beside the curves of [`cumulative`].
pub(crate) struct Distribution<'d> {
    /// The value at the right edge, more than zero.
    pub(crate) max: f64,
    /// The unit behind the axis' numbers.
    pub(crate) unit: &'d str,
    /// The values with a dashed line.
    pub(crate) markers: &'d [f64],
    pub(crate) size: Size,
}

/// Empirical distributions of the lines' values (ascending; those below zero stand at the left edge), and how many
/// values are beyond the right edge. `label` (markup) is for screen readers.
pub(crate) fn cumulative(lines: &[Line], axis: &Distribution<'_>, label: &str) -> (String, usize) {
    let (width, height) = axis.size;
    let [left, right, top, bottom] = [44.0, width - 16.0, 8.0, height - 20.0];
    let x = |value: f64| left + value.max(0.0) / axis.max * (right - left);
    let y = |share: f64| bottom - share * (bottom - top);
    let mut marks = String::new();
    for share in [0.0, 0.25, 0.5, 0.75, 1.0] {
        let (mark_y, label_x, percent) = (y(share), left - 4.0, share * 100.0);
        marks += &format!(
            r#"<path d="M{left} {mark_y:.1}H{right}"/><text x="{label_x}" y="{:.1}">{percent} %</text>"#,
            mark_y + 3.5
        );
    }
    for tick in ticks(axis.max).into_iter().filter(|tick| *tick <= axis.max) {
        let name = tick_text(tick) + axis.unit;
        marks += &format!(r#"<text class="x" x="{:.1}" y="{}">{name}</text>"#, x(tick), bottom + 14.0);
    }
    let (mut curves, mut beyond) = (String::new(), 0);
    for line in lines {
        let shown = line.values.iter().take_while(|value| **value <= axis.max);
        let step = |(index, value): (usize, &f64)| {
            format!("H{:.1}V{:.1}", x(*value), y((index + 1) as f64 / line.values.len() as f64))
        };
        beyond += line.values.len() - shown.clone().count();
        let steps: String = shown.enumerate().map(step).collect();
        curves += &format!(r#"<path class="l" {} d="M{left} {bottom}{steps}H{right}"/>"#, stroke(line));
    }
    let marker_lines: String = axis.markers.iter().map(|marker| format!("M{:.1} {bottom}V{top}", x(*marker))).collect();
    let picture = format!(
        r#"<svg viewBox="0 0 {width} {height}" role="img" aria-label="{label}">{marks}<path class="d" stroke-dasharray="4 3" d="{marker_lines}"/>{curves}</svg>"#
    );
    (picture, beyond)
}

/// A value of a reference and the simulated one.
pub(crate) struct ScatterPoint {
    pub(crate) name: String,
    pub(crate) colour: usize,
    pub(crate) published: f64,
    pub(crate) simulated: f64,
}

/// A scatter plot of simulated values against those of the reference called `name`, on logarithmic axes; the band is 25
/// % about the diagonal.
pub(crate) fn scatter(points: &[ScatterPoint], name: &str, unit: &str) -> String {
    const SIZE: f64 = 340.0;
    const EDGE: f64 = 46.0;
    let logs = || points.iter().flat_map(|point| [point.published.log10(), point.simulated.log10()]);
    let high = logs().fold(f64::NEG_INFINITY, f64::max) + 0.1;
    let low = (logs().fold(f64::INFINITY, f64::min) - 0.1).min(high - 1.0); // a decade at least
    let scaled = |log: f64| (log - low) / (high - low) * (SIZE - EDGE - 8.0);
    let (x, y) = (|log: f64| EDGE + scaled(log), |log: f64| SIZE - EDGE - scaled(log));
    let mut out = String::new();
    for exponent in low.floor() as i32..=high.ceil() as i32 {
        for tick in [1.0, 2.0, 5.0].map(|m| m * 10_f64.powi(exponent)) {
            let log = tick.log10();
            if log < low || log > high {
                continue;
            }
            let (tick_x, tick_y, name) = (x(log), y(log), tick_text(tick));
            out += &format!(
                r#"<path d="M{tick_x:.1} {:.1}V{:.1}M{:.1} {tick_y:.1}H{:.1}"/>"#,
                y(low),
                y(high),
                x(low),
                x(high)
            );
            out += &format!(r#"<text class="x" x="{tick_x:.1}" y="{:.1}">{name}</text>"#, y(low) + 14.0);
            out += &format!(r#"<text x="{:.1}" y="{:.1}">{name}</text>"#, x(low) - 5.0, tick_y + 3.5);
        }
    }
    let band = 1.25_f64.log10();
    let corners =
        [(low, low), (low, low + band), (high - band, high), (high, high), (high, high - band), (low + band, low)];
    let corners: Vec<String> =
        corners.iter().map(|(log_x, log_y)| format!("{:.1},{:.1}", x(*log_x), y(*log_y))).collect();
    out += &format!(r#"<polygon points="{}"/>"#, corners.join(" "));
    out += &format!(r#"<path class="d" d="M{:.1} {:.1}L{:.1} {:.1}"/>"#, x(low), y(low), x(high), y(high));
    let name = escape(name);
    for ScatterPoint { name: cell, colour, published, simulated } in points {
        let error = relative_error(*simulated, *published).map_or(String::new(), crate::number::format_percent);
        out += &format!(
            r#"<circle cx="{:.1}" cy="{:.1}" r="4" style="fill:var(--c{colour})"><title>{}: {name} {}, simulated {} ({error})</title></circle>"#,
            x(published.log10()),
            y(simulated.log10()),
            escape(cell),
            format_number(*published),
            format_number(*simulated)
        );
    }
    let middle = (SIZE - EDGE + 8.0) / 2.0;
    let unit = escape(unit);
    format!(
        r#"<svg class="scatter" viewBox="0 0 {SIZE} {SIZE}" role="img" aria-label="values here against {name}">{out}<text class="x" x="{:.1}" y="{:.1}">{name}, {unit}</text><text class="x" transform="translate(12 {middle:.1}) rotate(-90)">here, {unit}</text></svg>"#,
        (SIZE + EDGE) / 2.0,
        SIZE - 8.0
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_cover_the_values() {
        assert_eq!(ticks(183.0), [0.0, 50.0, 100.0, 150.0, 200.0]);
        assert_eq!(ticks(5.0), [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
        assert_eq!(ticks(0.0).last(), Some(&1.0));
        for max in [0.003, 1.0, 7.7, 99.0, 101.0, 123_456.0] {
            let ticks = ticks(max);
            assert!(ticks.len() <= 7 && *ticks.last().unwrap() >= max, "{max}: {ticks:?}");
        }
    }
}
