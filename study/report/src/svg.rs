//! Charts as SVG, for paper and for readers without JavaScript.

use crate::axes::{self, Area, Titles, x_tick};
use crate::chart::{Chart, Line};
use crate::colour::DASHES;
use crate::number::{format_number, relative_error};
use strings::escape_html;

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
    let title = axes::with_unit(&chart.title, &chart.unit);
    let (picture, names) = (time_chart(chart, times), legend(&chart.lines));
    format!(r#"<figure><figcaption>{}</figcaption>{picture}{names}</figure>"#, escape_html(&title))
}

/// The picture of a chart over time.
pub(crate) fn time_chart(chart: &Chart, times: &[f64]) -> String {
    let span = (times.first().copied().unwrap_or(0.0).min(0.0), times.last().copied().unwrap_or(1.0));
    let title = axes::with_unit(&chart.title, &chart.unit);
    let label = format!("{title} over time");
    picture(chart, times, span, chart.max, &Titles { caption: "", x: "time, s", y: &chart.axis(), label: &label })
}

/// The names of lines.
pub(crate) fn legend(lines: &[Line]) -> String {
    format!(r#"<div class="key">{}</div>"#, lines.iter().map(legend_entry).collect::<String>())
}

/// Lines over a span of time, below `max`.
pub(crate) fn picture(chart: &Chart, times: &[f64], span: (f64, f64), max: f64, titles: &Titles<'_>) -> String {
    let ticks = axes::shares(&ticks(max));
    let max = self::ticks(max).last().copied().unwrap_or(1.0);
    axes::picture(titles, &ticks, |area| {
        let x = |time: f64| area.x((time - span.0) / (span.1 - span.0).max(1e-9));
        let y = |value: f64| area.y(value.clamp(0.0, max) / max);
        let marks: String = instants(span).into_iter().map(|tick| x_tick(area, x(tick), &tick_text(tick))).collect();
        let bands = chart.lines.iter().map(|line| band(line, times, x, y));
        marks + &bands.chain(chart.lines.iter().map(|line| polyline(line, times, x, y))).collect::<String>()
    })
}

/// The area between the least and the greatest value of several runs.
fn band(line: &Line, times: &[f64], x: impl Fn(f64) -> f64, y: impl Fn(f64) -> f64) -> String {
    let points = || times.iter().zip(&line.band).filter(|(_, band)| band.0.is_finite() && band.1.is_finite());
    if points().next().is_none() {
        return String::new();
    }
    let upper = points().map(|(time, band)| (time, band.1)).chain(points().rev().map(|(time, band)| (time, band.0)));
    let path: Vec<String> = upper.map(|(time, value)| format!("{:.1} {:.1}", x(*time), y(value))).collect();
    let style = format!("fill:var(--c{});fill-opacity:.18;stroke:none", line.colour);
    format!(r#"<path class="band" style="{style}" d="M{}Z"/>"#, path.join("L"))
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

pub(crate) fn stroke(line: &Line) -> String {
    let dash = DASHES[line.dash];
    let dash = if dash.is_empty() { String::new() } else { format!(r#" stroke-dasharray="{dash}""#) };
    let (width, opacity) = match () {
        () if line.baseline => (3.2, ";stroke-opacity:.35"),
        () if line.auxiliary => (0.6, ""),
        () => (1.2, ""),
    };
    // In `style`, since a style sheet's rule for paths goes before attributes.
    format!(r#"style="stroke:var(--c{});stroke-width:{width}{opacity}"{dash}"#, line.colour)
}

fn legend_entry(line: &Line) -> String {
    format!(
        r#"<span><svg viewBox="0 0 22 8"><path class="l" {} d="M0 4H22"/></svg>{}</span>"#,
        stroke(line),
        escape_html(&line.name)
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
    /// The values with a dashed line.
    pub(crate) markers: &'d [f64],
    pub(crate) titles: Titles<'d>,
}

/// Empirical distributions of the lines' values (ascending; those below zero stand at the left edge), and how many
/// values are beyond the right edge.
pub(crate) fn cumulative(lines: &[Line], axis: &Distribution<'_>) -> (String, usize) {
    let shares = [0.0, 0.25, 0.5, 0.75, 1.0].map(|share| (share, tick_text(share * 100.0)));
    let is_shown = |value: &&f64| **value <= axis.max;
    let beyond = lines.iter().map(|line| line.values.len() - line.values.iter().take_while(is_shown).count()).sum();
    let picture = axes::picture(&axis.titles, &shares, |area| {
        let x = |value: f64| area.x(value.max(0.0) / axis.max);
        let ticks = ticks(axis.max).into_iter().filter(|tick| *tick <= axis.max);
        let ticks: String = ticks.map(|tick| x_tick(area, x(tick), &tick_text(tick))).collect();
        let markers: String = axis
            .markers
            .iter()
            .map(|marker| format!("M{:.1} {:.1}V{:.1}", x(*marker), area.bottom, area.top))
            .collect();
        let curves: String = lines.iter().map(|line| curve(line, axis.max, area)).collect();
        format!(r#"{ticks}<path class="d" stroke-dasharray="4 3" d="{markers}"/>{curves}"#)
    });
    (picture, beyond)
}

/// The steps of a curve, whose title tells the quartiles to a pointer.
fn curve(line: &Line, max: f64, area: &Area) -> String {
    let count = line.values.len();
    let shown = line.values.iter().take_while(|value| **value <= max);
    let step = |(index, value): (usize, &f64)| {
        format!("H{:.1}V{:.1}", area.x(value.max(0.0) / max), area.y((index + 1) as f64 / count as f64))
    };
    let steps: String = shown.enumerate().map(step).collect();
    let quartile = |share: f64| format_number(line.values[((count - 1) as f64 * share).round() as usize]);
    let title = format!(
        "{}: median {}, quartiles {} and {}, {count} values",
        escape_html(&line.name),
        quartile(0.5),
        quartile(0.25),
        quartile(0.75)
    );
    let (left, bottom, right) = (area.left, area.bottom, area.right);
    let path = format!(r#"d="M{left:.1} {bottom:.1}{steps}H{right:.1}""#);
    // A broad line that cannot be seen catches the pointer.
    format!(r#"<g><title>{title}</title><path class="l" {} {path}/><path class="t" {path}/></g>"#, stroke(line))
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
    let name = escape_html(name);
    for ScatterPoint { name: cell, colour, published, simulated } in points {
        let error = relative_error(*simulated, *published).map_or(String::new(), crate::number::format_percent);
        out += &format!(
            r#"<circle cx="{:.1}" cy="{:.1}" r="4" style="fill:var(--c{colour})"><title>{}: {name} {}, simulated {} ({error})</title></circle>"#,
            x(published.log10()),
            y(simulated.log10()),
            escape_html(cell),
            format_number(*published),
            format_number(*simulated)
        );
    }
    let middle = (SIZE - EDGE + 8.0) / 2.0;
    let unit = escape_html(unit);
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
