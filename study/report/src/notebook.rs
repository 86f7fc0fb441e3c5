//! Parts of a report for a notebook: the study's tables as a fragment of HTML, and a value in each cell of the sweep.

use crate::caption::{caption, corner};
use crate::colour::{self, Slots};
use crate::grid::{Grid, Row, Value, pairs, references};
use crate::layout::{BY_FLOW, Scope, Table};
use crate::number::{DASH, format_half_width, format_number, format_optional, format_percent, name_with_unit, plural};
use crate::study::Study;
use crate::summary;
use crate::value::{self, sample};
use std::collections::BTreeMap;
use strings::escape_html;

/// The maximum number of rows of a table.
const MAX_ROWS: usize = 100;

/// Text has the colours of the page around it, so that it can be read on a light and on a dark one.
const STYLE: &str = "\
.ropewalk{overflow-x:auto}\
.ropewalk table{border-collapse:collapse;font-variant-numeric:tabular-nums;margin:.5em 0;color:inherit}\
.ropewalk caption{caption-side:top;text-align:left;padding:.3em 0;color:inherit;font-weight:600}\
.ropewalk tr,.ropewalk thead,.ropewalk tbody tr:nth-child(odd){background:none}\
.ropewalk th,.ropewalk td{text-align:right;padding:.15em .6em;border:0;color:inherit;white-space:nowrap}\
.ropewalk th:first-child{text-align:left}\
.ropewalk thead th{border-bottom:1px solid currentColor}\
.ropewalk tr.compared td,.ropewalk tr.compared th{opacity:.7;font-weight:400;font-size:90%}\
.ropewalk tr.compared th{padding-left:1.6em}\
.ropewalk i{display:inline-block;width:.7em;height:.7em;border-radius:50%;margin-right:.4em}\
.ropewalk td.name{text-align:left}\
.ropewalk p{font-size:90%;opacity:.8;max-width:60em}";

/// The tables of the study's layout, or of flows and paths if it has none, as a fragment of HTML. Values are means over
/// seeds with half the width of their 95 % confidence interval.
#[must_use]
pub fn html_tables(study: &Study<'_>) -> String {
    let tables: String = match study.layout.tables.is_empty() {
        true => summary_tables(study),
        false => study.layout.tables.iter().map(|table| layout_table(study, table)).collect(),
    };
    let notes: String = study.disturbance_notes().iter().map(|text| note(text)).collect();
    format!("<div class=\"ropewalk\"><style>{STYLE}</style>\n{tables}{notes}</div>\n")
}

/// A footnote.
fn note(text: &str) -> String {
    format!("<p>{}</p>\n", escape_html(text))
}

fn layout_table(study: &Study<'_>, table: &Table) -> String {
    Grid::of(study, table).iter().map(|grid| grid_table(study, table, grid)).collect()
}

fn grid_table(study: &Study<'_>, table: &Table, grid: &Grid) -> String {
    let references = references(study, table, grid);
    let compared: Vec<_> =
        references.iter().map(|reference| (escape_html(&reference.name), pairs(grid, reference))).collect();
    let mut rows = Vec::new();
    for (index, row) in grid.rows.iter().enumerate() {
        rows.push(simulated(row, &study.slots()));
        for (name, pairs) in &compared {
            if pairs[index].iter().all(|pair| pair.published.is_none()) {
                continue;
            }
            rows.push(line("compared", name, pairs[index].iter().map(|pair| format_optional(pair.published))));
            if !row.only_published {
                let errors = pairs[index].iter().map(|pair| pair.error().map_or(DASH.to_owned(), format_percent));
                rows.push(line("compared", "error", errors));
            }
        }
    }
    let columns: Vec<String> = grid.columns.iter().map(|name| escape_html(name)).collect();
    let outliers = grid.outliers().map_or(String::new(), |text| note(&text));
    html_table(&escape_html(&caption(study, table, grid)), &escape_html(&corner(table)), &columns, &rows, 0) + &outliers
}

fn simulated(row: &Row, slots: &Slots) -> String {
    let dot = |slot: usize| format!("<i style=\"background:{}\"></i>", colour::light()[colour::colour(slot)]);
    let heading = format!("{}{}", slots.get(&row.name).map_or(String::new(), dot), escape_html(&row.name));
    let cell = |value: &Option<Value>| {
        let Some(value) = value else { return DASH.to_owned() };
        let half = value.estimate.half_text().map(|half| format!(" <small>± {}</small>", escape_html(&half)));
        value.marked(format_number(value.estimate.mean)) + &half.unwrap_or_default()
    };
    match row.only_published {
        true => line("", &heading, std::iter::once("not run".to_owned())),
        false => line("", &heading, row.values.iter().map(cell)),
    }
}

/// A row of a table.
fn line(class: &str, heading: &str, cells: impl Iterator<Item = String>) -> String {
    let cells: String = cells.map(|cell| format!("<td>{cell}</td>")).collect();
    format!("<tr class=\"{class}\"><th>{heading}</th>{cells}</tr>\n")
}

/// A table of these rows, the first [`MAX_ROWS`] of them, and `omitted` others.
fn html_table(caption: &str, corner: &str, columns: &[String], rows: &[String], omitted: usize) -> String {
    let head: String = columns.iter().map(|name| format!("<th>{name}</th>")).collect();
    let shown: String = rows.iter().take(MAX_ROWS).map(String::as_str).collect();
    let more = rows.len().saturating_sub(MAX_ROWS) + omitted;
    let more = if more > 0 { format!("<p>and {}</p>\n", plural(more, "more row")) } else { String::new() };
    format!(
        "<table><caption>{caption}</caption>\n<thead><tr><th>{corner}</th>{head}</tr></thead>\n<tbody>\n{shown}</tbody>\
         </table>\n{more}"
    )
}

fn summary_tables(study: &Study<'_>) -> String {
    let table = |summary: summary::SummaryTable| {
        let headings: Vec<String> = summary.headings.iter().map(|name| escape_html(name)).collect();
        let row = |row: &Vec<String>| {
            let cell = |(index, text): (usize, &String)| {
                let class = if index + 1 < summary.name_columns { " class=\"name\"" } else { "" };
                format!("<td{class}>{}</td>", escape_html(text))
            };
            let cells: String = row[1..].iter().enumerate().map(cell).collect();
            format!("<tr><th>{}</th>{cells}</tr>\n", escape_html(&row[0]))
        };
        let rows: Vec<String> = summary.rows.iter().map(row).collect();
        let outliers = summary.outliers.map_or(String::new(), |text| note(&text));
        html_table(summary.title, &headings[0], &headings[1..], &rows, summary.omitted) + &outliers
    };
    summary::summary_tables(study, MAX_ROWS).into_iter().map(table).collect()
}

/// The name and the unit of a value for people: `goodput_mbps` is "goodput, Mbit/s".
#[must_use]
pub fn value_label(value: &str) -> String {
    name_with_unit(value)
}

/// A value in one cell of the sweep.
#[derive(Clone, Debug, PartialEq)]
pub struct CellEstimate {
    /// The swept keys and their values as they are shown; if it goes by flow, also `flow`.
    pub parameters: BTreeMap<String, String>,
    /// The mean over the seeds.
    pub mean: f64,
    /// Half the width of its 95 % confidence interval (Student's t); none for a single run.
    pub half_width: Option<f64>,
    /// The number of runs in the mean.
    pub runs: usize,
}

impl CellEstimate {
    /// The mean with its interval, as the report's tables have them: `93.1 ± 0.25`.
    #[must_use]
    pub fn text(&self) -> String {
        let half = self.half_width.map(|half| format!(" ± {}", format_half_width(half, self.mean)));
        format_number(self.mean) + &half.unwrap_or_default()
    }
}

/// The mean of a value, as a table of the report has it, in each cell of `scope`; with `by_flow` one for each flow.
/// Cells without the value, or with a seed without it, are left out.
///
/// # Errors
/// No result has a value of this name; with the nearest one.
pub fn estimates(study: &Study<'_>, value: &str, scope: &Scope, by_flow: bool) -> Result<Vec<CellEstimate>, String> {
    let subflow = scope.flow.as_ref().is_some_and(|flow| flow.contains('/'));
    let known = value::table_values(subflow, scope.is_timed());
    if !known.iter().any(|name| name == value) {
        let help = parse::suggest(value, &known.iter().map(String::as_str).collect::<Vec<_>>());
        return Err(format!("no result has a value `{value}`; {help}"));
    }
    let flow_key = BY_FLOW.to_owned();
    let keys: Vec<&String> = by_flow.then_some(&flow_key).into_iter().collect();
    let cells = study.cells_in_scope(scope, &keys).into_iter();
    let estimate = |(_, cell): (usize, crate::study::SweepCell<'_>)| {
        let sample = sample(&cell, value, scope)?;
        let estimate = sample.estimate()?;
        let mut parameters = cell.parameters.clone();
        cell.flow.clone().map(|flow| parameters.insert(flow_key.clone(), flow));
        Some(CellEstimate {
            parameters,
            mean: estimate.mean,
            half_width: estimate.half_width,
            runs: sample.points.len(),
        })
    };
    Ok(cells.filter_map(estimate).collect())
}
