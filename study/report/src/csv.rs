//! The numbers of figures and tables as CSV (RFC 4180): one row a number or a sample, every digit of it.

use crate::chart::Charts;
use crate::chart::Line;
use crate::figure::FigureData;
use crate::grid::Grid;
use crate::samples::{SampleLine, SamplePanel};
use crate::scatter::ScatterPanel;
use crate::shares::SharePanel;

/// A field, quoted where it has to be.
fn field(text: &str) -> String {
    match text.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text.to_owned(),
    }
}

fn row(fields: &[&str]) -> String {
    fields.iter().map(|text| field(text)).collect::<Vec<_>>().join(",") + "\n"
}

/// A number with every digit; nothing for one that is not finite.
fn number(number: f64) -> String {
    if number.is_finite() { number.to_string() } else { String::new() }
}

/// Lines over time; a line of the baseline is named so.
pub(crate) fn lines(figure: &FigureData, column: &str, baseline: &str) -> String {
    let mut out = row(&["panel", "line", "time_s", column]);
    for panel in &figure.panels {
        for line in &panel.chart.lines {
            let name = if line.baseline { format!("{}, {baseline}", line.name) } else { line.name.clone() };
            out += &samples_of(&panel.chart.title, &name, &panel.times, &line.values);
        }
    }
    out
}

/// The charts over time of one cell.
pub(crate) fn charts(charts: &Charts, index: usize) -> String {
    let chart = &charts.charts[index];
    let head = row(&["chart", "line", "time_s", &format!("value ({})", chart.unit)]);
    head + &chart
        .lines
        .iter()
        .map(|line| samples_of(&chart.title, &line.name, &charts.times, &line.values))
        .collect::<String>()
}

fn samples_of(panel: &str, line: &str, times: &[f64], values: &[f64]) -> String {
    let samples = times.iter().zip(values).filter(|(_, value)| value.is_finite());
    samples.map(|(time, value)| row(&[panel, line, &number(*time), &number(*value)])).collect()
}

/// A table, or a figure of bars: the mean of each cell, half of its confidence interval, and the value of each run.
pub(crate) fn grids(grids: &[Grid], rows: &str, columns: &str) -> String {
    let mut out = row(&["panel", rows, columns, "mean", "ci95_half_width", "runs", "values"]);
    for grid in grids {
        for grid_row in &grid.rows {
            for (column, value) in grid.columns.iter().zip(&grid_row.values) {
                let Some(value) = value else { continue };
                let values: Vec<String> = value.sample.points.iter().map(|point| number(point.1)).collect();
                let half = value.estimate.half_width.map_or(String::new(), number);
                let (mean, count) = (number(value.estimate.mean), values.len().to_string());
                out += &row(&[&grid.panel, &grid_row.name, column, &mean, &half, &count, &values.join(" ")]);
            }
        }
    }
    out
}

/// An empirical distribution: each value, and the share of the cells that are at most that.
pub(crate) fn distribution(curves: &[Line], column: &str) -> String {
    let mut out = row(&["line", column, "share"]);
    for curve in curves {
        for (index, value) in curve.values.iter().enumerate() {
            let share = (index + 1) as f64 / curve.values.len() as f64;
            out += &row(&[&curve.name, &number(*value), &number(share)]);
        }
    }
    out
}

/// Distributions of samples: each bucket's greatest value, and how many of the samples are at most that.
pub(crate) fn samples(panels: &[SamplePanel], column: &str) -> String {
    let mut out = row(&["panel", "line", column, "samples", "share"]);
    for panel in panels {
        for SampleLine { line, delays, .. } in &panel.lines {
            let count = delays.count() as f64;
            for (delay, below) in delays.steps() {
                let (delay, share) = (number(delay), number(below as f64 / count));
                out += &row(&[&panel.title, &line.name, &delay, &below.to_string(), &share]);
            }
        }
    }
    out
}

/// One value against another: a row a run.
pub(crate) fn scatter(panels: &[ScatterPanel], key: &str, [against, value]: [&str; 2]) -> String {
    let mut out = row(&["panel", key, against, value]);
    for panel in panels {
        for cloud in &panel.clouds {
            let of_run = |(x, y): &(f64, f64)| row(&[&panel.title, &cloud.line.name, &number(*x), &number(*y)]);
            out.extend(cloud.points.iter().map(of_run));
        }
    }
    out
}

/// Shares over time, each until an instant.
pub(crate) fn shares(panels: &[SharePanel]) -> String {
    let lines = panels.iter().flat_map(|panel| panel.lines.iter().map(move |line| (panel, line)));
    let rows = lines.map(|(panel, line)| samples_of(&panel.title, &line.name, &panel.ends, &line.values));
    row(&["panel", "line", "time_s", "share"]) + &rows.collect::<String>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_with_a_comma_or_a_quote_is_quoted() {
        assert_eq!(row(&["a", "b, c", "say \"d\""]), "a,\"b, c\",\"say \"\"d\"\"\"\n");
    }

    #[test]
    fn every_digit_is_there_and_what_is_not_finite_is_not() {
        assert_eq!(samples_of("", "x", &[0.1, 0.2], &[1.0 / 3.0, f64::NAN]), ",x,0.1,0.3333333333333333\n");
    }
}
