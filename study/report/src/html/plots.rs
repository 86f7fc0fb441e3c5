//! Time series on the page: SVG for every cell, and the same as data for the interactive charts.

use super::PagePart;
use crate::chart::{Chart, Charts, charts};
use crate::provenance::shell;
use crate::study::{Baseline, Study, SweepCell, short_names};
use crate::summary::cell_name;
use crate::svg;
use serde_json::{Value, json};
use strings::escape_html;

/// The section on time series.
pub(super) struct Plots {
    pub(super) section: String,
    /// The data for the script, if there are plots.
    pub(super) data: Option<Value>,
    /// The number of cells with plots.
    pub(super) shown: usize,
}

/// The page's budget of numbers in data (about 7 bytes each) and in SVG (11 bytes): together some 7 MB.
pub(super) const DATA_NUMBERS: usize = 600_000;
pub(super) const SVG_NUMBERS: usize = 250_000;
/// The maximum number of lines on a page.
pub(super) const MAX_LINES: usize = 5000;
/// The figures' share of these three, percent, if there are figures.
pub(super) const FIGURES_PERCENT: usize = 30;

/// The charts over time of `cells`, as many as fit on the page: of each the run of its first seed.
pub(super) fn plots(study: &Study<'_>, cells: &[SweepCell<'_>], part: &PagePart) -> Plots {
    if cells.iter().all(|cell| cell.runs[0].series.is_empty()) {
        return Plots { section: String::new(), data: None, shown: 0 };
    }
    let sums = cells.iter().scan(0, |sum, cell| {
        *sum += max_lines(cell);
        Some(*sum)
    });
    let sums: Vec<usize> = sums.take_while(|sum| *sum <= MAX_LINES * part.percent / 100).collect();
    let (shown, total) = (sums.len(), sums.last().copied().unwrap_or(0).max(1));
    let (svg_points, data_points) =
        (SVG_NUMBERS * part.percent / 100 / total, DATA_NUMBERS * part.percent / 100 / total);
    let varying_keys = study.varying_keys();
    let baseline = study.baseline.map_or("", |baseline| baseline.name);
    let drawn: String = cells[..shown]
        .iter()
        .enumerate()
        .map(|(index, cell)| {
            let charts = charts(cell, baseline, svg_points.clamp(50, 400));
            let command = trace_command(study, cell, part);
            static_charts(index == 0, part.first_cell + index, &cell_name(cell, &varying_keys), &charts, &command)
        })
        .collect();
    let charts: Vec<Charts> =
        cells[..shown].iter().map(|cell| charts(cell, baseline, data_points.clamp(100, 2000))).collect();
    let note = note(study, shown, cells.len());
    let section = format!(
        "<section id=\"{}\">\n{}<p>{note}</p>\n<div class=\"series\" id=\"live-{part_index}\" hidden></div>\n\
         <div class=\"drawn\" id=\"drawn-{part_index}\">\n{drawn}</div>\n</section>\n",
        part.id("series"),
        part.heading("Over time"),
        part_index = part.number()
    );
    Plots { section, data: Some(data(&varying_keys, &cells[..shown], &charts, part)), shown }
}

/// The maximum number of lines that a cell's charts can have.
pub(super) fn max_lines(cell: &SweepCell<'_>) -> usize {
    let columns_per_run = cell.runs[0].series.iter().map(|series| series.columns.len()).sum::<usize>();
    let compared =
        if cell.baseline.is_empty() { 0 } else { 2 * (cell.runs[0].flows.len() + cell.runs[0].subflows.len()) };
    columns_per_run + compared
}

fn note(study: &Study<'_>, shown: usize, cells: usize) -> String {
    let mut note = "Flows, subflows and paths have charts of their own; a subflow has the colour of its path. \
                    Thin lines are limits and what is in flight. Where there are more samples than the page can carry, the \
                    minimum and maximum of each interval are shown. Goodput is above a link's rate where a retransmission \
                    releases data that waited for it."
        .to_owned();
    if let Some(Baseline { name, .. }) = study.baseline {
        note += &format!(" Broad and pale under them: {}, where it ran the same cell.", escape_html(name));
    }
    if study.seeds().contains(' ') {
        note += " Each cell shows its first seed.";
    }
    if shown < cells {
        note += &format!(" The first {shown} of {cells} cells are shown; series.parquet has all.");
    }
    note
}

/// The command that draws a run of the cell packet by packet, in the folder of the page; empty for a run on a kernel, and on
/// a page of several folders.
fn trace_command(study: &Study<'_>, cell: &SweepCell<'_>, part: &PagePart) -> String {
    if part.index.is_some() || !study.is_simulated() {
        return String::new();
    }
    let (keys, seed) = (study.varying_keys(), cell.runs[0].seed.to_string());
    let values = keys.iter().flat_map(|key| ["--cell".to_owned(), format!("{key}={}", cell.parameter(key))]);
    let words = ["ropewalk", "trace", "."].map(str::to_owned).into_iter().chain(values);
    let words: Vec<String> = words.chain(["--seed", &seed, "--page", "trace.html"].map(str::to_owned)).collect();
    let command = escape_html(&shell(&words));
    format!("<p class=\"note\">Packet by packet, in the folder of this page: <code>{command}</code></p>")
}

fn static_charts(open: bool, index: usize, name: &str, charts: &Charts, command: &str) -> String {
    let figures: String = charts.charts.iter().map(|chart| svg::chart(chart, &charts.times)).collect();
    let open = if open { " open" } else { "" };
    let name = escape_html(name);
    format!(
        "<details{open}><summary>{name}</summary><div class=\"charts\" id=\"cell-{index}\">{figures}</div>{command}</details>\n"
    )
}

fn data(varying_keys: &[&str], cells: &[SweepCell<'_>], charts: &[Charts], part: &PagePart) -> Value {
    let mut axes: Vec<&Vec<f64>> = Vec::new(); // most cells share an axis
    let mut cells_data = Vec::new();
    for (cell, charts) in cells.iter().zip(charts) {
        let axis = axes.iter().position(|axis| **axis == charts.times).unwrap_or_else(|| {
            axes.push(&charts.times);
            axes.len() - 1
        });
        let values: Vec<&str> = varying_keys.iter().map(|key| cell.parameter(key)).collect();
        let charts: Vec<Value> = charts.charts.iter().map(chart).collect();
        cells_data.push(json!({ "values": values, "axis": axis, "charts": charts }));
    }
    let keys = short_names(varying_keys);
    let axes: Vec<Vec<Value>> = axes.iter().map(|axis| numbers(axis, 5)).collect();
    json!({ "part": part.number(), "first_cell": part.first_cell, "keys": keys, "axes": axes, "cells": cells_data })
}

fn chart(chart: &Chart) -> Value {
    let lines = chart.lines.iter().map(|line| {
        json!({
            "name": line.name, "colour": line.colour, "dash": line.dash, "auxiliary": line.auxiliary, "baseline": line.baseline,
            "values": numbers(&line.values, 4),
        })
    });
    let top = svg::ticks(chart.max).last().copied();
    json!({ "title": chart.title, "unit": chart.unit, "top": top, "lines": lines.collect::<Vec<_>>() })
}

/// Numbers with `digits` significant digits; `null` for a number that is not finite.
pub(super) fn numbers(values: &[f64], digits: usize) -> Vec<Value> {
    let number = |value: &f64| match format!("{value:.*e}", digits - 1).parse::<f64>() {
        Ok(rounded) if rounded == rounded.trunc() && rounded.abs() < 1e15 => json!(rounded as i64), // without ".0"
        Ok(rounded) => json!(rounded),
        Err(_) => Value::Null,
    };
    values.iter().map(number).collect()
}
