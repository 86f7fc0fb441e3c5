//! Heat maps on the page.

use super::tables::table_head;
use crate::caption::caption;
use crate::grid::{Grid, Row, Value};
use crate::heat_map::{format_cell, sentence, shade};
use crate::layout::{HeatMap, Table};
use crate::markup::escape;
use crate::number::{format_digits, format_number};
use crate::study::Study;

/// A table as a heat map. The first `shown` cells of the study have plots to link to.
pub(super) fn heat_map(study: &Study<'_>, table: &Table, grid: &Grid, scale: &HeatMap, shown: usize) -> String {
    let row = |row: &Row| {
        let cells: String = row.values.iter().map(|value| cell(value.as_ref(), scale, shown)).collect();
        format!("<tr><th scope=\"row\">{}</th>{cells}</tr>\n", escape(&row.name))
    };
    let rows: String = grid.rows.iter().map(row).collect();
    let sentence = sentence(grid, scale).map_or(String::new(), |sentence| format!(": {}", escape(&sentence)));
    format!(
        "<div class=\"scroll\"><table class=\"map\"><caption><b>{}</b>{sentence}. {}</caption>\n{}<tbody>\n{rows}</tbody></table>\
         </div>\n{}",
        escape(&caption(study, table, grid)),
        legend(scale),
        table_head(table, grid),
        grid.outliers().map_or(String::new(), |note| format!("<p>{}</p>\n", escape(&note)))
    )
}

/// The scale with its colours.
fn legend(HeatMap { min, max, threshold }: &HeatMap) -> String {
    let (min, max) = (format_number(*min), format_number(*max));
    match threshold {
        Some(threshold) => format!(
            "<span class=\"scale\">{min} <i class=\"below\"></i> <b>{}</b> <i class=\"above\"></i> {max}</span>",
            format_cell(*threshold)
        ),
        None => format!("<span class=\"scale\">{min} <i></i> {max}</span>"),
    }
}

fn cell(value: Option<&Value>, scale: &HeatMap, shown: usize) -> String {
    let Some(value) = value else { return "<td>–</td>".to_owned() };
    let (class, strength) = shade(scale, value.estimate.mean);
    let number = value.marked(format_cell(value.estimate.mean));
    let number = if value.cell < shown { format!("<a href=\"#cell-{}\">{number}</a>", value.cell) } else { number };
    let half = value.estimate.half_width;
    let half = half.map_or(String::new(), |half| format!(" title=\"± {}\"", format_digits(half, 2)));
    format!("<td class=\"{class}\" style=\"--h:{strength:.2}\"{half}>{number}</td>")
}
