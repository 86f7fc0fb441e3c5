//! Figures on the page: SVG, and lines over time also as data for the interactive charts.

use super::bars::bars;
use super::distribution::distribution;
use super::plots::{DATA_NUMBERS, FIGURES_PERCENT, MAX_LINES, SVG_NUMBERS, numbers};
use crate::chart::Line;
use crate::figure::{FigureData, Panel, empty_note, figure_data, line_count, title};
use crate::layout::{Figure, FigureKind};
use crate::markup::escape;
use crate::study::Study;
use crate::svg::{self, Size};
use serde_json::{Value, json};

/// The section on figures, and the data of its interactive charts.
pub(super) struct Figures {
    pub(super) section: String,
    pub(super) data: Vec<Value>,
}

/// The size of a figure with one panel.
const SINGLE_PANEL: Size = (960.0, 300.0);
/// The size of a panel among several.
pub(super) const PANEL: Size = (480.0, 210.0);

/// The figures of the layout, as many as fit on the page.
pub(super) fn figures(study: &Study<'_>) -> Figures {
    let figures = &study.layout.figures;
    let (mut total, mut shown) = (0, 0);
    for figure in figures {
        total += line_count(study, figure);
        shown += usize::from(total <= MAX_LINES * FIGURES_PERCENT / 100);
    }
    let points = |budget| budget * FIGURES_PERCENT / 100 / total.clamp(1, MAX_LINES * FIGURES_PERCENT / 100);
    let [svg_points, data_points] = [points(SVG_NUMBERS).clamp(40, 400), points(DATA_NUMBERS).clamp(100, 1000)];
    let (mut drawings, mut data) = (String::new(), Vec::new());
    for figure in &figures[..shown] {
        drawings += &match figure.kind() {
            FigureKind::Bars(across) => bars(study, figure, across),
            FigureKind::Distribution => distribution(study, figure),
            FigureKind::Lines => match figure_data(study, figure, svg_points) {
                Some(svg_data) => {
                    data.extend(figure_data(study, figure, data_points).as_ref().map(self::data));
                    line_figure(data.len() - 1, &svg_data, study.baseline.map_or("", |baseline| baseline.name))
                }
                None => without_values(figure),
            },
        };
    }
    if drawings.is_empty() {
        return Figures { section: String::new(), data };
    }
    let several_seeds = study.seeds().contains(' ') && !data.is_empty();
    let seeds = if several_seeds { "<p>Each line is the first seed of its cell.</p>\n" } else { "" };
    let omission_note = match shown < figures.len() {
        true => format!("<p>The first {shown} of {} figures fit; the Parquet files have all.</p>\n", figures.len()),
        false => String::new(),
    };
    let section = format!("<section id=\"figures\">\n<h2>Figures</h2>\n{seeds}{omission_note}{drawings}</section>\n");
    Figures { section, data }
}

/// The place of a figure without values.
pub(super) fn without_values(figure: &Figure) -> String {
    format!(
        "<div class=\"figure\">\n<h3>{}</h3>\n<p>{}</p>\n</div>\n",
        escape(&title(figure)),
        escape(&empty_note(figure))
    )
}

fn line_figure(index: usize, figure: &FigureData, baseline: &str) -> String {
    let is_single = figure.panels.len() == 1;
    let title = format!("{}, {}", escape(&figure.title), escape(&figure.unit));
    let compared = figure.panels.iter().any(|panel| panel.chart.lines.iter().any(|line| line.baseline));
    let note = match compared {
        true => format!("<p class=\"note\">Broad and pale: {}.</p>\n", escape(baseline)),
        false => String::new(),
    };
    let size = if is_single { SINGLE_PANEL } else { PANEL };
    let panels: String = figure.panels.iter().map(|panel| picture(panel, size, &title)).collect();
    let class = if is_single { "panels alone" } else { "panels" };
    format!(
        "<div class=\"figure\" id=\"figure-{index}\">\n<h3>{title}</h3>\n{note}{}\n<div class=\"{class}\">{panels}</div>\n</div>\n",
        svg::legend(&figure.legend)
    )
}

fn picture(panel: &Panel, size: Size, title: &str) -> String {
    let name = escape(&panel.chart.title);
    let caption = if name.is_empty() { String::new() } else { format!("<figcaption>{name}</figcaption>") };
    let title = if name.is_empty() { title.to_owned() } else { format!("{title}, {name}") };
    let picture = svg::picture(&panel.chart, &panel.times, panel.span, size, &title);
    format!("<figure>{caption}{picture}</figure>")
}

fn data(figure: &FigureData) -> Value {
    let legend_index = |line: &Line| figure.legend.iter().position(|entry| entry.name == line.name);
    let line = |line: &Line| json!({ "of": legend_index(line), "baseline": line.baseline, "values": numbers(&line.values, 4) });
    let panel = |panel: &Panel| {
        let top = svg::ticks(panel.chart.max).last().copied();
        let lines: Vec<Value> = panel.chart.lines.iter().map(line).collect();
        json!({ "span": [panel.span.0, panel.span.1], "top": top, "times": numbers(&panel.times, 5), "lines": lines })
    };
    let legend =
        figure.legend.iter().map(|line| json!({ "name": line.name, "colour": line.colour, "dash": line.dash }));
    let legend: Vec<Value> = legend.collect();
    json!({ "legend": legend, "panels": figure.panels.iter().map(panel).collect::<Vec<_>>() })
}
