//! Claims in the terminal: three columns of wrapped text, or one column if the terminal is narrow.

use super::paragraph;
use crate::claim::{ClaimResult, Evaluation, SettingResult, evaluate_claims, tally};
use crate::study::Study;
use crate::text::{Style, align_left, styled, wrap};

/// The minimum width of the three columns.
const MIN_WIDE: usize = 64;
/// The width of the widest verdict, "does not hold".
const VERDICT_WIDTH: usize = 13;
const GAP: usize = 2;

/// The claims with their numbers and verdicts; empty without claims.
pub(super) fn claims(study: &Study<'_>, width: usize, color: bool) -> String {
    let results = evaluate_claims(study);
    if results.is_empty() {
        return String::new();
    }
    let mut out = "\n".to_owned() + &paragraph(&format!("Claims: {}", tally(&results)), width, Style::Bold, color);
    let wide = width >= MIN_WIDE;
    if wide {
        out += &side_by_side("claim", &[("here".to_owned(), "verdict")], width, Style::Dim, color);
    }
    for (index, claim) in results.iter().enumerate() {
        let (statement, rows) = (statement(claim), rows(study, claim));
        out += if index > 0 { "\n" } else { "" };
        out += &match wide {
            true => side_by_side(&statement, &rows, width, Style::Plain, color),
            false => stacked(&statement, &rows, width, color),
        };
    }
    out
}

/// The claim and its source.
fn statement(result: &ClaimResult<'_>) -> String {
    match result.claim.source.as_str() {
        "" => result.claim.says.clone(),
        source => format!("{} ({source})", result.claim.says),
    }
}

/// Numbers and verdict.
type Row = (String, &'static str);

/// The published numbers, those of each setting with the baseline's after them, and the note.
fn rows(study: &Study<'_>, result: &ClaimResult<'_>) -> Vec<Row> {
    let row = |label: &str, evaluation: &Evaluation| {
        let prefix = if label.is_empty() { String::new() } else { format!("{label}: ") };
        (format!("{prefix}{}", evaluation.numbers), evaluation.verdict.label())
    };
    let labelled = |label: &str, text: &str| (!text.is_empty()).then(|| (format!("{label}: {text}"), ""));
    let mut rows: Vec<Row> = labelled("published", &result.claim.published).into_iter().collect();
    for SettingResult { setting, study: evaluation, baseline } in &result.settings {
        rows.push(row(setting, evaluation));
        if let (Some(evaluation), Some(baseline)) = (baseline, study.baseline) {
            rows.push(row(baseline.name, evaluation));
        }
    }
    rows.extend(labelled("note", &result.claim.note));
    rows
}

/// The claim at the left, its rows at the right.
fn side_by_side(statement: &str, rows: &[Row], width: usize, style: Style, color: bool) -> String {
    let text_width = width - VERDICT_WIDTH - 2 * GAP;
    let claim_width = text_width * 45 / 100;
    let statement = wrap(statement, claim_width);
    let numbers = |(numbers, verdict): &Row| {
        let lines = wrap(numbers, text_width - claim_width);
        lines
            .into_iter()
            .enumerate()
            .map(|(index, line)| (line, if index == 0 { *verdict } else { "" }))
            .collect::<Vec<_>>()
    };
    let numbers: Vec<Row> = rows.iter().flat_map(numbers).collect();
    let line = |index: usize| {
        let (numbers, verdict) = numbers.get(index).map_or(("", ""), |(numbers, verdict)| (numbers.as_str(), *verdict));
        let cells = [
            align_left(statement.get(index).map_or("", String::as_str), claim_width),
            align_left(numbers, text_width - claim_width),
            verdict.to_owned(),
        ];
        styled(&cells.join(&" ".repeat(GAP)), style, color)
    };
    (0..statement.len().max(numbers.len())).map(line).collect()
}

/// The claim, its rows below.
fn stacked(statement: &str, rows: &[Row], width: usize, color: bool) -> String {
    let indented = |(numbers, verdict): &Row| {
        let text = if verdict.is_empty() { numbers.clone() } else { format!("{verdict}: {numbers}") };
        let lines = wrap(&text, width.saturating_sub(GAP));
        lines.iter().map(|line| styled(&format!("{}{line}", " ".repeat(GAP)), Style::Plain, color)).collect::<String>()
    };
    paragraph(statement, width, Style::Plain, color) + &rows.iter().map(indented).collect::<String>()
}
