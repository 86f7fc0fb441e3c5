//! Comparisons in the terminal: of one a table for each value and the distribution of the errors, of several a line
//! each.

use super::{TableLine, paragraph, table};
use crate::caption::footer;
use crate::compare::{ComparedFlow, Comparison};
use crate::number::{DASH, format_optional, format_percent, mark_disturbed, name_with_unit};
use crate::overview::{HEADINGS, Row, rows, total};
use crate::text::Style;

/// The headings of the columns of the two studies.
const SIDES: [&str; 2] = ["a", "b"];

/// One comparison in full, or several in a line each, at most `width` columns wide.
#[must_use]
pub fn compare_terminal(comparisons: &[Comparison<'_>], width: usize, color: bool) -> String {
    match comparisons {
        [comparison] => single(comparison, width, color),
        _ => combined(comparisons, width, color),
    }
}

/// The distribution of the errors of each comparison, and of all.
fn combined(comparisons: &[Comparison<'_>], width: usize, color: bool) -> String {
    let rows = rows(comparisons);
    let total = total(&rows);
    let line = |row: &Row, style| TableLine { label: row.label.clone(), cells: row.numbers().to_vec(), style };
    let mut lines: Vec<TableLine> = rows.iter().map(|row| line(row, Style::Plain)).collect();
    lines.push(line(&total, Style::Bold));
    let sentence = paragraph(&total.sentence(comparisons.len()), width, Style::Bold, color);
    table("|error| in %", &HEADINGS.map(str::to_owned), &lines, width, color) + "\n" + &sentence
}

fn single(comparison: &Comparison<'_>, width: usize, color: bool) -> String {
    let plain = |text: &str| paragraph(text, width, Style::Plain, color);
    let mut out = String::new();
    for (side, study) in SIDES.iter().zip(&comparison.studies) {
        out += &paragraph(&format!("{side}: {}", study.title), width, Style::Bold, color);
        let about = [study.driver, &footer(study), &format!("digest {}", study.digest)]
            .into_iter()
            .filter(|text| !text.is_empty())
            .collect::<Vec<_>>()
            .join(", ");
        out += &paragraph(&about, width, Style::Dim, color);
    }
    let [measured, baseline] = [1 - comparison.baseline, comparison.baseline].map(|side| SIDES[side]);
    out += &format!("\n{}", plain(&format!("The error is how far {measured} is from {baseline}.")));
    for (index, value) in comparison.values.iter().enumerate() {
        let lines: Vec<TableLine> = comparison.lines.iter().filter_map(|line| shown(comparison, line, index)).collect();
        let headings = [SIDES[0], SIDES[1], "error"].map(str::to_owned);
        out += &format!("\n{}", table(&name_with_unit(value), &headings, &lines, width, color));
    }
    for (index, side) in SIDES.iter().enumerate() {
        let only_here = comparison.only_in(index);
        if !only_here.is_empty() {
            out += &format!("\n{}", plain(&format!("Only in {side}: {}.", only_here.join("; "))));
        }
    }
    out += &super::disturbance_notes(comparison.measured(), width, color);
    out + "\n" + &paragraph(&comparison.sentence(), width, Style::Bold, color)
}

/// A line of a value's table, if either has it.
fn shown(comparison: &Comparison<'_>, line: &ComparedFlow<'_>, value: usize) -> Option<TableLine> {
    let estimates = line.values[value];
    let text = |side: usize| mark_disturbed(format_optional(estimates[side]), line.disturbed[side]);
    let error = comparison.error(line, value).map_or_else(|| DASH.to_owned(), format_percent);
    let cells = vec![text(0), text(1), error];
    estimates.iter().any(Option::is_some).then(|| TableLine { label: line.label.clone(), cells, style: Style::Plain })
}
