//! Heat maps on the page.

use super::tables::table_head;
use crate::axes::CHARACTER;
use crate::caption::caption;
use crate::direction::{Direction, direction};
use crate::grid::{Grid, Row, Value};
use crate::heat_map::{format_cell, sentence, shade_of};
use crate::layout::{HeatMap, Table};
use crate::number::format_number;
use crate::study::{Study, short_names};
use strings::escape_html;

/// A table as a heat map. The first `shown` cells of the study have plots to link to.
pub(super) fn heat_map(study: &Study<'_>, table: &Table, grid: &Grid, scale: &HeatMap, shown: usize) -> String {
    let row = |row: &Row| {
        let cells: String = row.values.iter().map(|value| cell(table, value.as_ref(), scale, shown)).collect();
        format!("<tr><th scope=\"row\">{}</th>{cells}</tr>\n", escape_html(&row.name))
    };
    let rows: String = grid.rows.iter().map(row).collect();
    let sentence = sentence(grid, scale).map_or(String::new(), |sentence| format!(": {}", escape_html(&sentence)));
    format!(
        "<div class=\"scroll\"><table class=\"map\"><caption><b>{}</b>{sentence}. {}</caption>\n{}<tbody>\n{rows}</tbody></table>\
         </div>\n{}",
        escape_html(&caption(study, table, grid)),
        legend(&table.values[0].value, scale),
        table_head(table, grid),
        grid.outliers().map_or(String::new(), |note| format!("<p>{}</p>\n", escape_html(&note)))
    )
}

/// The scale with its colours.
fn legend(value: &str, HeatMap { min, max, threshold, even }: &HeatMap) -> String {
    let is_lower = direction(value) == Direction::Lower;
    let [below, above] = if is_lower { ["above", "below"] } else { ["below", "above"] };
    let bad = if is_lower { " bad" } else { "" };
    let (min, max) = (format_number(*min), format_number(*max));
    match threshold {
        Some(threshold) => format!(
            "<span class=\"scale{bad}\">{min} <i class=\"{below}\"></i> <b>{}</b> <i class=\"{above}\"></i> {max}</span>",
            format_cell(*threshold)
        ),
        None => match even {
            Some(even) => format!(
                "<span class=\"scale\">{min} <i class=\"even\"></i> {max}</span>, {} is even",
                format_cell(*even)
            ),
            None => format!("<span class=\"scale{bad}\">{min} <i></i> {max}</span>"),
        },
    }
}

fn cell(table: &Table, value: Option<&Value>, scale: &HeatMap, shown: usize) -> String {
    let Some(value) = value else { return "<td>–</td>".to_owned() };
    let (class, strength) = shade_of(&table.values[0].value, scale, value.estimate.mean);
    let number = value.marked(format_cell(value.estimate.mean));
    let number = if value.cell < shown { format!("<a href=\"#cell-{}\">{number}</a>", value.cell) } else { number };
    let half = value.estimate.half_text().map(|half| format!("± {half}")).or_else(|| value.sample.identical_note());
    let half = half.map_or(String::new(), |half| format!(" title=\"{half}\""));
    format!("<td class=\"{class}\" style=\"--h:{strength:.2}\"{half}>{number}</td>")
}

/// Width of a heat map's cell and height of its line in a file, points.
const CELL: (f64, f64) = (24.0, 13.0);

/// The heat maps of a table as one file.
pub(crate) fn drawing(table: &Table, grids: &[Grid], scale: &HeatMap) -> String {
    let titles =
        short_names(&table.rows.iter().chain(&table.columns).map(String::as_str).collect::<Vec<_>>()).join(" \\ ");
    let names = grids.iter().flat_map(|grid| &grid.rows).map(|row| row.name.chars().count());
    let left = names.chain([titles.chars().count()]).max().unwrap_or(1) as f64 * CHARACTER + 6.0;
    let columns = grids.iter().map(|grid| grid.columns.len()).max().unwrap_or(0) as f64;
    let (width, mut body, mut top) = ((left + columns * CELL.0 + 4.0).max(120.0), String::new(), 0.0);
    for grid in grids {
        let (markup, height) = map(table, grid, scale, (left, top), &titles);
        body += &markup;
        top += height;
    }
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}pt\" height=\"{top:.0}pt\" viewBox=\"0 0 {width:.0} {top:.0}\" \
         role=\"img\"><title>{}</title><style>{STYLE}</style><rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>{body}</svg>\n",
        escape_html(&crate::caption::table_name(table))
    )
}

/// The style of the file.
const STYLE: &str = "text{font-family:'Liberation Sans',Arial,Helvetica,sans-serif;font-size:8px;fill:#222;text-anchor:middle}\
     text.r{text-anchor:end}";

/// One map from `top` on, and its height.
fn map(table: &Table, grid: &Grid, scale: &HeatMap, (left, top): (f64, f64), titles: &str) -> (String, f64) {
    let caption = if grid.panel.is_empty() { 0.0 } else { CELL.1 };
    let mut out = format!("<text x=\"{left:.1}\" y=\"{:.1}\">{}</text>", top + 10.0, escape_html(&grid.panel));
    let head = top + caption + 10.0;
    out += &format!("<text class=\"r\" x=\"{:.1}\" y=\"{head:.1}\">{}</text>", left - 4.0, escape_html(titles));
    let longest = grid.columns.iter().map(|name| name.chars().count()).max().unwrap_or(0) as f64;
    let step = (longest * CHARACTER / CELL.0).ceil().max(1.0) as usize;
    for (column, name) in grid.columns.iter().enumerate().step_by(step) {
        let x = left + (column as f64 + 0.5) * CELL.0;
        out += &format!("<text x=\"{x:.1}\" y=\"{head:.1}\">{}</text>", escape_html(name));
    }
    for (index, row) in grid.rows.iter().enumerate() {
        let y = top + caption + CELL.1 * (index as f64 + 1.0);
        out += &format!(
            "<text class=\"r\" x=\"{:.1}\" y=\"{:.1}\">{}</text>",
            left - 4.0,
            y + 9.5,
            escape_html(&row.name)
        );
        for (column, value) in row.values.iter().enumerate() {
            let Some(value) = value else { continue };
            let (class, strength) = shade_of(&table.values[0].value, scale, value.estimate.mean);
            let (x, colour) = (left + column as f64 * CELL.0, if class == "less" { "#d55e00" } else { "#0072b2" });
            out += &format!(
                "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{}\" height=\"{}\" fill=\"{colour}\" fill-opacity=\"{:.2}\"/>\
                 <text x=\"{:.1}\" y=\"{:.1}\">{}</text>",
                CELL.0 - 0.5,
                CELL.1 - 0.5,
                strength * 0.6,
                x + CELL.0 / 2.0,
                y + 9.5,
                format_cell(value.estimate.mean)
            );
        }
    }
    (out, caption + CELL.1 * (grid.rows.len() as f64 + 1.0) + 6.0)
}
