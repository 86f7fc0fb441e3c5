//! Claims in the terminal: three columns of wrapped text, or one column if the terminal is narrow.

use super::paragraph;
use crate::claim::{
    ClaimResult, Claims, Evaluation, SettingResult, ValueResult, evaluate_claims, notes, reference_name,
};
use crate::study::Study;
use crate::text::{Style, align_left, styled, wrap};

/// The minimum width of the three columns.
const MIN_WIDE: usize = 64;
/// The width of the verdicts, which are wrapped.
const VERDICT_WIDTH: usize = 16;
const GAP: usize = 2;

/// The claims with their numbers and verdicts; empty without claims.
pub(super) fn claims(study: &Study<'_>, width: usize, color: bool) -> String {
    let Claims { results, tally } = evaluate_claims(study);
    if results.is_empty() {
        return String::new();
    }
    let mut out = "\n".to_owned() + &paragraph(&format!("Claims: {}", tally.counts()), width, Style::Bold, color);
    tally.sentences().iter().for_each(|sentence| out += &paragraph(sentence, width, Style::Plain, color));
    let wide = width >= MIN_WIDE;
    if wide {
        out += &side_by_side("claim", &[("here".to_owned(), "verdict".to_owned())], width, Style::Dim, color);
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
type Row = (String, String);

/// The published numbers, those of each setting, and the note.
fn rows(study: &Study<'_>, result: &ClaimResult<'_>) -> Vec<Row> {
    let labelled = |label: &str, text: &str| (!text.is_empty()).then(|| row(label, text, String::new()));
    let mut rows: Vec<Row> = labelled("published", &result.claim.published).into_iter().collect();
    result.settings.iter().for_each(|setting| rows.extend(setting_rows(study, setting)));
    rows.extend(notes(result.claim).filter_map(|note| labelled("note", &note)));
    rows
}

/// The numbers of a setting, at each value of an unknown key; those of the baseline and of references after them.
fn setting_rows(study: &Study<'_>, setting: &SettingResult<'_>) -> Vec<Row> {
    let mut rows = Vec::new();
    if let Some(note) = setting.unknown_note() {
        rows.push(row(&setting.setting, &note, setting.words()));
    }
    for ValueResult { value, study: evaluation, baseline, .. } in &setting.values {
        let label = if setting.unknown.is_some() { value } else { &setting.setting };
        rows.push(evaluation_row(label, evaluation));
        if let (Some(evaluation), Some(baseline)) = (baseline, study.baseline) {
            rows.push(evaluation_row(baseline.name, evaluation));
        }
    }
    let references = setting.references().into_iter();
    rows.extend(
        references.map(|(name, evaluation)| evaluation_row(&format!("in {}", reference_name(name)), evaluation)),
    );
    rows
}

fn evaluation_row(label: &str, evaluation: &Evaluation) -> Row {
    row(label, &evaluation.numbers, evaluation.words())
}

fn row(label: &str, text: &str, verdict: String) -> Row {
    (if label.is_empty() { text.to_owned() } else { format!("{label}: {text}") }, verdict)
}

/// The claim at the left, its rows at the right.
fn side_by_side(statement: &str, rows: &[Row], width: usize, style: Style, color: bool) -> String {
    let text_width = width - VERDICT_WIDTH - 2 * GAP;
    let claim_width = text_width * 45 / 100;
    let statement = wrap(statement, claim_width);
    let lines = |(numbers, verdict): &Row| {
        let [numbers, verdict] = [wrap(numbers, text_width - claim_width), wrap(verdict, VERDICT_WIDTH)];
        let line = |lines: &[String], index: usize| lines.get(index).cloned().unwrap_or_default();
        let count = numbers.len().max(verdict.len());
        (0..count).map(|index| (line(&numbers, index), line(&verdict, index))).collect::<Vec<_>>()
    };
    let numbers: Vec<Row> = rows.iter().flat_map(lines).collect();
    let line = |index: usize| {
        let (numbers, verdict) =
            numbers.get(index).map_or(("", ""), |(numbers, verdict)| (numbers.as_str(), verdict.as_str()));
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
