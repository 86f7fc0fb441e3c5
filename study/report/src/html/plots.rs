//! Time series on the page: SVG for every cell, and the same as data for the interactive charts.

use super::Place;
use crate::chart::{Chart, Charts, charts};
use crate::markup::escape;
use crate::study::{Baseline, Study, SweepCell, short_names};
use crate::summary::cell_name;
use crate::svg;
use serde_json::{Value, json};

/// What the section on time series is made of.
pub(super) struct Plots {
    pub(super) section: String,
    /// For the script, where there are plots.
    pub(super) data: Option<Value>,
    /// How many cells have plots.
    pub(super) shown: usize,
}

/// Numbers of a page in data (about 7 bytes each) and in SVG (11 bytes): together some 7 MB. Figures have a part of it.
pub(super) const DATA: usize = 600_000;
pub(super) const DRAWN: usize = 250_000;
/// Lines for which there is room at all.
pub(super) const LINES: usize = 5000;
/// The share of all that, in percent, that is left for the figures where there are some.
pub(super) const FIGURES: usize = 30;

/// The series of each cell's first seed, of these cells of the study.
pub(super) fn plots(study: &Study<'_>, cells: &[SweepCell<'_>], place: &Place) -> Plots {
    if cells.iter().all(|cell| cell.runs[0].series.is_empty()) {
        return Plots { section: String::new(), data: None, shown: 0 };
    }
    let sums = cells.iter().scan(0, |sum, cell| {
        *sum += lines(cell);
        Some(*sum)
    });
    let sums: Vec<usize> = sums.take_while(|sum| *sum <= LINES * place.percent / 100).collect();
    let (shown, total) = (sums.len(), sums.last().copied().unwrap_or(0).max(1));
    let (few, many) = (DRAWN * place.percent / 100 / total, DATA * place.percent / 100 / total);
    let varying_keys = study.varying_keys();
    let baseline = study.baseline.map_or("", |baseline| baseline.name);
    let drawn: String = cells[..shown]
        .iter()
        .enumerate()
        .map(|(index, cell)| {
            let few = charts(cell, baseline, few.clamp(50, 400));
            static_charts(index == 0, place.first + index, &cell_name(cell, &varying_keys), &few)
        })
        .collect();
    let all: Vec<Charts> = cells[..shown].iter().map(|cell| charts(cell, baseline, many.clamp(100, 2000))).collect();
    let note = note(study, shown, cells.len());
    let section = format!(
        "<section id=\"{}\">\n{}<p>{note}</p>\n<div class=\"series\" id=\"live-{at}\" hidden></div>\n\
         <div class=\"drawn\" id=\"drawn-{at}\">\n{drawn}</div>\n</section>\n",
        place.id("series"),
        place.heading("Over time"),
        at = place.at()
    );
    Plots { section, data: Some(data(&varying_keys, &cells[..shown], &all, place)), shown }
}

/// How many lines a cell's charts have at most.
pub(super) fn lines(cell: &SweepCell<'_>) -> usize {
    let own = cell.runs[0].series.iter().map(|series| series.columns.len()).sum::<usize>();
    let compared =
        if cell.baseline.is_empty() { 0 } else { 2 * (cell.runs[0].flows.len() + cell.runs[0].subflows.len()) };
    own + compared
}

fn note(study: &Study<'_>, shown: usize, cells: usize) -> String {
    let mut note = "Flows have the colour of their algorithm, paths muted ones; dashes tell lines that meet apart. \
                    Thin lines are helpers. Where there are more samples than the page can carry, the least and the \
                    greatest of each span of time are shown."
        .to_owned();
    if let Some(Baseline { name, .. }) = study.baseline {
        note += &format!(" Broad and pale under them: {}, where it ran the same cell.", escape(name));
    }
    if study.seeds().contains(' ') {
        note += " Each cell shows its first seed.";
    }
    if shown < cells {
        note += &format!(" The first {shown} of {cells} cells are shown; series.parquet has all.");
    }
    note
}

fn static_charts(open: bool, index: usize, name: &str, charts: &Charts) -> String {
    let figures: String = charts.charts.iter().map(|chart| svg::chart(chart, &charts.times)).collect();
    let open = if open { " open" } else { "" };
    let name = escape(name);
    format!(
        "<details{open}><summary>{name}</summary><div class=\"charts\" id=\"cell-{index}\">{figures}</div></details>\n"
    )
}

fn data(varying_keys: &[&str], cells: &[SweepCell<'_>], all: &[Charts], place: &Place) -> Value {
    let mut axes: Vec<&Vec<f64>> = Vec::new(); // most cells share one
    let mut shown = Vec::new();
    for (cell, charts) in cells.iter().zip(all) {
        let axis = axes.iter().position(|axis| **axis == charts.times).unwrap_or_else(|| {
            axes.push(&charts.times);
            axes.len() - 1
        });
        let values: Vec<&str> = varying_keys.iter().map(|key| cell.parameter(key)).collect();
        let charts: Vec<Value> = charts.charts.iter().map(chart).collect();
        shown.push(json!({ "values": values, "axis": axis, "charts": charts }));
    }
    let keys = short_names(varying_keys);
    let axes: Vec<Vec<Value>> = axes.iter().map(|axis| numbers(axis, 5)).collect();
    json!({ "at": place.at(), "first": place.first, "keys": keys, "axes": axes, "cells": shown })
}

fn chart(chart: &Chart) -> Value {
    let lines = chart.lines.iter().map(|line| {
        json!({
            "name": line.name, "colour": line.colour, "dash": line.dash, "thin": line.thin, "baseline": line.baseline,
            "values": numbers(&line.values, 4),
        })
    });
    let top = svg::ticks(chart.most).last().copied();
    json!({ "title": chart.title, "unit": chart.unit, "top": top, "lines": lines.collect::<Vec<_>>() })
}

/// Numbers with so many format_digits digits; `null` where there is none.
pub(super) fn numbers(values: &[f64], digits: usize) -> Vec<Value> {
    let number = |value: &f64| match format!("{value:.*e}", digits - 1).parse::<f64>() {
        Ok(rounded) if rounded == rounded.trunc() && rounded.abs() < 1e15 => json!(rounded as i64), // spares the ".0"
        Ok(rounded) => json!(rounded),
        Err(_) => Value::Null,
    };
    values.iter().map(number).collect()
}
