//! A study in the terminal. A table that is wider than the terminal is split into blocks of columns.

use crate::answer;
use crate::caption::{caption, corner, footer};
use crate::figure;
use crate::grid::{Grid, Pair, Row, Value, agreement, closing_sentences, pairs, rank_correlations, references};
use crate::heat_map::{BELOW_MARK, format_cell, is_below, sentence};
use crate::layout::{HeatMap, Table};
use crate::marks;
use crate::number::{DASH, IDENTICAL, format_number, format_optional, format_percent, mark_disturbed, plural};
use crate::short::short_form;
use crate::states::State;
use crate::study::Study;
use crate::summary::{SummaryTable, summary_tables};
use crate::text::{Style, align_left, align_right, styled, width as columns_of, wrap};
pub use compare::compare_terminal;

mod claims;
mod compare;

/// Maximum number of rows of a summary table.
const MAX_ROWS: usize = 100;

/// A row of a table: a name, then numbers.
pub(crate) struct TableLine {
    pub(crate) label: String,
    pub(crate) cells: Vec<String>,
    pub(crate) style: Style,
}

/// The study's tables, claims and figures in lines of at most `width` columns; with `color`, headings are bold and
/// details dim.
#[must_use]
pub fn terminal(study: &Study<'_>, width: usize, color: bool) -> String {
    let short = short_form(study);
    let study = short.as_ref().map_or(study, |(shown, _)| shown);
    let mut out = paragraph(study.title, width, Style::Bold, color);
    out += &paragraph(study.source, width, Style::Dim, color);
    out += &short.as_ref().map_or_else(String::new, |(_, note)| paragraph(note, width, Style::Plain, color));
    let answer = answer::sentences(study).join(" ");
    if !answer.is_empty() {
        out += &("\n".to_owned() + &paragraph(&answer, width, Style::Plain, color));
    }
    let claims = claims::claims(study, width, color);
    let [first, later] = if study.is_assessment() { [claims.as_str(), ""] } else { ["", claims.as_str()] };
    out += first;
    let mut section = "";
    for shown in &study.layout.tables {
        if shown.scope.section != section {
            section = &shown.scope.section;
            out += &("\n".to_owned() + &paragraph(section, width, Style::Bold, color));
        }
        let grids = Grid::of(study, shown);
        grids.iter().for_each(|grid| out += &grid_table(study, shown, grid, width, color));
        for sentence in closing_sentences(study, shown, &grids) {
            out += &("\n".to_owned() + &paragraph(&sentence, width, Style::Plain, color));
        }
    }
    if study.layout.tables.is_empty() {
        summary_tables(study, MAX_ROWS).iter().for_each(|summary| out += &summary_table(summary, width, color));
    }
    out += &disturbance_notes(study, width, color);
    for sentence in marks::sentences(study) {
        out += &("\n".to_owned() + &paragraph(&sentence, width, Style::Plain, color));
    }
    out += later;
    out += &figures(study, width, color);
    out + "\n" + &paragraph(&footer(study), width, Style::Dim, color)
}

/// The footnotes on disturbed runs.
pub(crate) fn disturbance_notes(study: &Study<'_>, width: usize, color: bool) -> String {
    let notes = study.disturbance_notes();
    notes.iter().map(|note| "\n".to_owned() + &paragraph(note, width, Style::Plain, color)).collect()
}

/// The titles of the figures, which only the page shows.
fn figures(study: &Study<'_>, width: usize, color: bool) -> String {
    let named = |figure| match figure::is_empty(study, figure) {
        true => format!("{} (without values here)", figure::title(figure)),
        false => figure::title(figure),
    };
    let titles: Vec<String> = study.layout.figures.iter().map(named).collect();
    if titles.is_empty() {
        return String::new();
    }
    "\n".to_owned() + &paragraph(&format!("Figures in the report: {}.", titles.join("; ")), width, Style::Plain, color)
}

pub(crate) fn paragraph(text: &str, width: usize, style: Style, color: bool) -> String {
    if text.is_empty() {
        return String::new();
    }
    wrap(text, width).iter().map(|line| styled(line, style, color)).collect()
}

fn grid_table(study: &Study<'_>, shown: &Table, grid: &Grid, width: usize, color: bool) -> String {
    let references = references(study, shown, grid);
    let compared: Vec<(&str, Vec<Vec<Pair>>)> =
        references.iter().map(|reference| (reference.name.as_str(), pairs(grid, reference))).collect();
    let mut lines = Vec::new();
    for (index, row) in grid.rows.iter().enumerate() {
        lines.extend(simulated_lines(shown, grid, index));
        for (name, pairs) in
            compared.iter().filter(|(_, pairs)| pairs[index].iter().any(|pair| pair.published.is_some()))
        {
            let cells = |show: fn(&Pair) -> String| pairs[index].iter().map(show).collect::<Vec<_>>();
            let published = cells(|pair| mark_disturbed(format_optional(pair.published), pair.disturbed[0]));
            lines.push(TableLine { label: format!("  {name}"), cells: published, style: Style::Dim });
            if !row.only_published {
                let errors = cells(|pair| pair.error().map_or_else(|| DASH.to_owned(), format_percent));
                lines.push(TableLine { label: "  error".to_owned(), cells: errors, style: Style::Plain });
            }
        }
    }
    for (name, pairs) in &compared {
        if let Some(columns) = rank_correlations(pairs) {
            let cells = columns.into_iter().map(format_optional).collect();
            lines.push(TableLine { label: format!("tau-b, {name}"), cells, style: Style::Dim });
        }
    }
    let corner = corner(shown);
    let mut out = "\n".to_owned() + &paragraph(&caption(study, shown, grid), width, Style::Bold, color);
    out += &table(&corner, &grid.columns, &lines, width, color);
    if let Some(scale) = &shown.heat_map {
        out += &paragraph(&heat_map_note(grid, scale), width, Style::Plain, color);
    }
    out += &grid.rule_of_states().map_or(String::new(), |rule| paragraph(rule, width, Style::Dim, color));
    out += &grid.outliers().map_or(String::new(), |note| paragraph(&note, width, Style::Plain, color));
    for (reference, (name, pairs)) in references.iter().zip(&compared) {
        let text = format!("{name} ({}): {}.", reference.source, agreement(pairs));
        out += &("\n".to_owned() + &paragraph(&text, width, Style::Plain, color));
        out += &paragraph(&reference.note, width, Style::Dim, color);
    }
    out
}

/// The sentence below a heat map, and the meaning of its mark.
fn heat_map_note(grid: &Grid, scale: &HeatMap) -> String {
    let mark = |threshold: f64| format!(" {BELOW_MARK} is less than {}.", format_cell(threshold));
    let sentence = sentence(grid, scale).map_or(String::new(), |sentence| sentence + ".");
    sentence + &scale.threshold.map_or(String::new(), mark)
}

fn simulated_lines(shown: &Table, grid: &Grid, index: usize) -> Vec<TableLine> {
    let row = &grid.rows[index];
    if row.only_published {
        let mut cells = vec![String::new(); grid.columns.len()];
        cells[0] = "not run".to_owned();
        return vec![TableLine { label: row.name.clone(), cells, style: Style::Dim }];
    }
    let shown = |value: &Option<Value>| {
        let Some(value) = value else { return DASH.to_owned() };
        let mean = value.estimate.mean;
        value.marked(match &shown.heat_map {
            Some(scale) => format_cell(mean) + if is_below(scale, mean) { BELOW_MARK } else { " " },
            None => format_number(mean),
        })
    };
    let simulated = row.values.iter().map(shown).collect();
    let mut lines = vec![TableLine { label: row.name.clone(), cells: simulated, style: Style::Bold }];
    if grid.has_intervals() || grid.has_identical_runs() {
        let half = |value: &Option<Value>| {
            let half = value.as_ref().and_then(|value| value.estimate.half_text());
            let are_identical = value.as_ref().is_some_and(|value| value.sample.identical);
            half.unwrap_or_else(|| if are_identical { IDENTICAL } else { DASH }.to_owned())
        };
        let cells = row.values.iter().map(half).collect();
        lines.push(TableLine { label: "  ± 95 %".to_owned(), cells, style: Style::Dim });
    }
    if row.values.iter().flatten().any(|value| value.sample.states().is_some()) {
        lines.extend(state_lines(row));
    }
    lines
}

/// The mean of each state of a cell that has two, with its share of the runs.
fn state_lines(row: &Row) -> [TableLine; 2] {
    let states: Vec<_> = row.values.iter().map(|value| value.as_ref()?.sample.states()).collect();
    let cells = |which: usize| {
        let text = |states: &Option<[State; 2]>| states.as_ref().map_or(DASH.to_owned(), |states| states[which].text());
        states.iter().map(text).collect()
    };
    [("  lower state", 0), ("  upper state", 1)].map(|(label, which)| TableLine {
        label: label.to_owned(),
        cells: cells(which),
        style: Style::Dim,
    })
}

/// A table, split into as many blocks of columns as the width requires.
pub(crate) fn table(corner: &str, headings: &[String], lines: &[TableLine], width: usize, color: bool) -> String {
    let labels = lines.iter().map(|line| columns_of(&line.label)).chain([columns_of(corner)]);
    let label = labels.max().unwrap_or(0).min(width / 2);
    let max_width = width.saturating_sub(label);
    let widths: Vec<usize> = (0..headings.len())
        .map(|index| {
            let cells = lines.iter().map(|line| columns_of(&line.cells[index]));
            (cells.chain([columns_of(&headings[index])]).max().unwrap_or(0) + 2).min(max_width)
        })
        .collect();
    let mut out = String::new();
    let mut start = 0;
    while start < headings.len() {
        let mut end = start + 1;
        while end < headings.len() && label + widths[start..=end].iter().sum::<usize>() <= width {
            end += 1;
        }
        let line = |name: &str, cells: &[String]| {
            let cells = cells[start..end].iter().zip(&widths[start..end]);
            align_left(name, label) + &cells.map(|(cell, width)| padded(cell, *width)).collect::<String>()
        };
        out += if start > 0 { "\n" } else { "" };
        out += &styled(&line(corner, headings), Style::Dim, color);
        // A detail line without a value in these columns is left out.
        let is_empty =
            |line: &&TableLine| line.label.starts_with(' ') && line.cells[start..end].iter().all(|cell| cell == DASH);
        lines
            .iter()
            .filter(|line| !is_empty(line))
            .for_each(|detail| out += &styled(&line(&detail.label, &detail.cells), detail.style, color));
        start = end;
    }
    out
}

/// A cell after a gap, which stays even if the cell is truncated.
fn padded(cell: &str, width: usize) -> String {
    let gap = width.min(2);
    " ".repeat(gap) + &align_right(cell, width - gap)
}

fn summary_table(summary: &SummaryTable, width: usize, color: bool) -> String {
    let line = |row: &Vec<String>| TableLine {
        label: row[..summary.name_columns].join(", "),
        cells: row[summary.name_columns..].to_vec(),
        style: Style::Plain,
    };
    let lines: Vec<TableLine> = summary.rows.iter().map(line).collect();
    let more = plural(summary.omitted, "more row");
    let more = (summary.omitted > 0).then(|| format!("and {more}, which the Parquet files have"));
    let notes: String =
        more.iter().chain(&summary.outliers).map(|note| paragraph(note, width, Style::Plain, color)).collect();
    format!("\n{}{notes}", table(summary.title, &summary.headings[summary.name_columns..], &lines, width, color))
}
