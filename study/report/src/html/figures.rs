//! Figures on the page: SVG, and lines over time also as data for the interactive charts.

use super::plots::{DATA_NUMBERS, FIGURES_PERCENT, MAX_LINES, SVG_NUMBERS, numbers};
use super::still::still;
use crate::axes::{Titles, with_unit};
use crate::chart::Line;
use crate::drawing::{Drawing, Look};
use crate::export::figure_name;
use crate::figure::{FigureData, Panel, empty_note, figure_data, line_count, title};
use crate::layout::{Figure, FigureKind};
use crate::marker::marker;
use crate::study::Study;
use crate::svg;
use serde_json::{Value, json};
use strings::escape_html;

/// The figures, and the data of the interactive charts.
#[derive(Default)]
pub(super) struct Figures {
    /// The figures that the page shows, in the layout's order.
    drawings: Vec<String>,
    /// Data of the interactive charts.
    pub(super) data: Vec<Value>,
    /// What makes a file of each figure.
    pub(super) files: Vec<Value>,
}

impl Figures {
    /// The figures of a section of the page; those of none have a section for themselves.
    pub(super) fn section(&self, study: &Study<'_>, section: &str) -> String {
        let figures = &study.layout.figures;
        let of_section = figures.iter().zip(&self.drawings).filter(|(figure, _)| figure.scope.section == section);
        let drawings: String = of_section.map(|(_, drawing)| drawing.as_str()).collect();
        if drawings.is_empty() || !section.is_empty() {
            return drawings;
        }
        let (shown, all) = (self.drawings.len(), figures.len());
        let note = match shown < all {
            true => format!("<p>The first {shown} of {all} figures fit; the Parquet files have all.</p>\n"),
            false => String::new(),
        };
        format!("<section id=\"figures\">\n<h2>Figures</h2>\n{note}{drawings}</section>\n")
    }
}

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
    let mut out = Figures::default();
    let Figures { drawings, data, files } = &mut out;
    for (index, figure) in figures[..shown].iter().enumerate() {
        let is_live = figure.kind() == FigureKind::Lines;
        let drawn = match is_live {
            true => {
                let baseline = study.baseline.map_or("", |baseline| baseline.name);
                let drawing = figure_data(study, figure, svg_points).map(|data| self::drawing(&data, baseline));
                drawing.map(|drawing| (of_first_seed(study, drawing), None))
            }
            false => still(study, figure).map(|(drawing, csv)| (drawing, Some(csv))),
        };
        let Some((drawing, csv)) = drawn.map(|(drawing, csv)| (limited(drawing), csv)) else {
            drawings.push(without_values(figure));
            continue;
        };
        let live = is_live.then(|| {
            data.extend(figure_data(study, figure, data_points).as_ref().map(self::data));
            data.len() - 1
        });
        drawings.push(self::section(&drawing, live, files.len()));
        files.push(drawing.data(&figure_name(index, figure), csv.as_deref()));
    }
    out
}

/// The drawing of lines, with a note on their seed if there are several.
fn of_first_seed(study: &Study<'_>, mut drawing: Drawing) -> Drawing {
    if study.seeds().contains(' ') {
        drawing.notes.push("Each line is the first seed of its cell.".to_owned());
    }
    drawing
}

/// The most charts of a figure on the page.
const MAX_PANELS: usize = 12;

/// The figure with as many charts as the page shows.
fn limited(mut drawing: Drawing) -> Drawing {
    let count = drawing.panels.len();
    if count > MAX_PANELS {
        drawing.panels.truncate(MAX_PANELS);
        drawing.notes.push(format!(
            "The first {MAX_PANELS} of {count} charts. `only` in the figure chooses others, and `ropewalk report DIR --figures \
             OUT` writes all."
        ));
    }
    drawing
}

/// The place of a figure without values.
fn without_values(figure: &Figure) -> String {
    format!(
        "<div class=\"figure\">\n<h3>{}</h3>\n<p>{}</p>\n</div>\n",
        escape_html(&title(figure)),
        escape_html(&empty_note(figure))
    )
}

/// A figure on the page: `live` is its place among the interactive ones, `file` among the data of files.
fn section(drawing: &Drawing, live: Option<usize>, file: usize) -> String {
    let id = live.map_or(String::new(), |index| format!(" id=\"figure-{index}\""));
    let class = if drawing.look == Look::Bars { " bars" } else { "" };
    let legend = match drawing.look {
        Look::Bars => bar_legend(&drawing.legend),
        Look::Lines => svg::legend(&drawing.legend),
        Look::Markers | Look::MarkedLines => marker_legend(&drawing.legend, drawing.look),
    };
    let notes = match drawing.notes.as_slice() {
        [] => String::new(),
        notes => format!("<p class=\"note\">{}</p>\n", escape_html(&notes.join(" "))),
    };
    let panels: String = drawing.panels.iter().map(|panel| format!("<figure>{panel}</figure>")).collect();
    let alone = if drawing.panels.len() == 1 { " alone" } else { "" };
    format!(
        "<div class=\"figure{class}\"{id} data-file=\"{file}\">\n<h3>{}</h3>\n{notes}{legend}\n\
         <div class=\"panels{alone}\">{panels}</div>\n</div>\n",
        escape_html(&drawing.title)
    )
}

fn bar_legend(legend: &[Line]) -> String {
    let entry = |line: &Line| {
        let picture = crate::drawing::bar(line, (0.0, 0.0, 14.0, 9.0), "").replace("<rect", "<rect class=\"k\"");
        format!(
            "<span><svg viewBox=\"0 0 14 9\" aria-hidden=\"true\">{picture}</svg>{}</span>",
            escape_html(&line.name)
        )
    };
    format!("<div class=\"key\">{}</div>", legend.iter().map(entry).collect::<String>())
}

fn marker_legend(legend: &[Line], look: Look) -> String {
    let entry = |line: &Line| {
        let path = match look {
            Look::MarkedLines => format!("<path class=\"l\" {} d=\"M0 4H22\"/>", svg::stroke(line)),
            _ => String::new(),
        };
        let (mark, name) = (marker(line, 11.0, 4.0), escape_html(&line.name));
        format!("<span><svg viewBox=\"0 0 22 8\" aria-hidden=\"true\">{path}{mark}</svg>{name}</span>")
    };
    format!("<div class=\"key\">{}</div>", legend.iter().map(entry).collect::<String>())
}

/// A figure without its files, as HTML; none if it has no values, or is one of lines over time.
pub(crate) fn alone(study: &Study<'_>, figure: &Figure) -> Option<String> {
    still(study, figure).map(|(drawing, _)| section(&limited(drawing), None, 0))
}

/// The drawing of lines over time.
pub(crate) fn drawing(figure: &FigureData, baseline: &str) -> Drawing {
    let title = with_unit(&figure.title, &figure.unit);
    let compared = figure.panels.iter().any(|panel| panel.chart.lines.iter().any(|line| line.baseline));
    let mut notes = Vec::new();
    if compared {
        notes.push(format!("Broad and pale: {baseline}."));
    }
    let panels = figure.panels.iter().map(|panel| picture(panel, figure, &title)).collect();
    Drawing { title, notes, legend: figure.legend.clone(), look: Look::Lines, panels }
}

fn picture(panel: &Panel, figure: &FigureData, title: &str) -> String {
    let caption = &panel.chart.title;
    let label = if caption.is_empty() { title.to_owned() } else { format!("{title}, {caption}") };
    let label = format!("{label} over time");
    let titles = Titles { caption, x: "time, s", y: &figure.axis, label: &label };
    svg::picture(&panel.chart, &panel.times, panel.span, figure.max, &titles)
}

fn data(figure: &FigureData) -> Value {
    let legend_index = |line: &Line| figure.legend.iter().position(|entry| entry.name == line.name);
    let line = |line: &Line| json!({ "of": legend_index(line), "baseline": line.baseline, "values": numbers(&line.values, 4) });
    let panel = |panel: &Panel| {
        let lines: Vec<Value> = panel.chart.lines.iter().map(line).collect();
        json!({ "name": panel.chart.title, "span": [panel.span.0, panel.span.1], "times": numbers(&panel.times, 5), "lines": lines })
    };
    let legend =
        figure.legend.iter().map(|line| json!({ "name": line.name, "colour": line.colour, "dash": line.dash }));
    let legend: Vec<Value> = legend.collect();
    let top = svg::ticks(figure.max).last().copied();
    json!({ "title": with_unit(&figure.title, &figure.unit), "axis": figure.axis, "top": top, "legend": legend, "panels": figure.panels.iter().take(MAX_PANELS).map(panel).collect::<Vec<_>>() })
}
