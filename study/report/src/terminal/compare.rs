//! Two studies side by side in the terminal: a table for each value, then how their errors are distributed. Of several
//! comparisons a line each, and all together.

use super::{Line, paragraph, table};
use crate::caption::footer;
use crate::compare::{Compared, Comparison};
use crate::number::{DASH, format_optional, mark_disturbed, percent, title};
use crate::overview::{HEADS, Row, rows, total};
use crate::text::Style;

/// What the columns are called.
const SIDES: [&str; 2] = ["a", "b"];

/// One comparison in full, or several in a line each, at most `width` columns wide.
#[must_use]
pub fn compare_terminal(comparisons: &[Comparison<'_>], width: usize, color: bool) -> String {
    match comparisons {
        [one] => alone(one, width, color),
        several => together(several, width, color),
    }
}

/// How the errors of each are distributed, and those of all.
fn together(comparisons: &[Comparison<'_>], width: usize, color: bool) -> String {
    let rows = rows(comparisons);
    let total = total(&rows);
    let line = |row: &Row, style| Line { label: row.label.clone(), cells: row.numbers().to_vec(), style };
    let mut lines: Vec<Line> = rows.iter().map(|row| line(row, Style::Plain)).collect();
    lines.push(line(&total, Style::Bold));
    let sentence = paragraph(&total.sentence(comparisons.len()), width, Style::Bold, color);
    table("|error| in %", &HEADS.map(str::to_owned), &lines, width, color) + "\n" + &sentence
}

fn alone(comparison: &Comparison<'_>, width: usize, color: bool) -> String {
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
    for (at, value) in comparison.values.iter().enumerate() {
        let lines: Vec<Line> = comparison.lines.iter().filter_map(|line| shown(comparison, line, at)).collect();
        let heads = [SIDES[0], SIDES[1], "error"].map(str::to_owned);
        out += &format!("\n{}", table(&title(value), &heads, &lines, width, color));
    }
    for (at, side) in SIDES.iter().enumerate() {
        let only = comparison.only_in(at);
        if !only.is_empty() {
            out += &format!("\n{}", plain(&format!("Only in {side}: {}.", only.join("; "))));
        }
    }
    out += &super::disturbances(comparison.measured(), width, color);
    out + "\n" + &paragraph(&comparison.sentence(), width, Style::Bold, color)
}

/// A line of a value's table, if either has it.
fn shown(comparison: &Comparison<'_>, line: &Compared<'_>, value: usize) -> Option<Line> {
    let both = line.values[value];
    let text = |side: usize| mark_disturbed(format_optional(both[side]), line.disturbed[side]);
    let error = comparison.error(line, value).map_or_else(|| DASH.to_owned(), percent);
    let cells = vec![text(0), text(1), error];
    both.iter().any(Option::is_some).then(|| Line { label: line.label.clone(), cells, style: Style::Plain })
}
