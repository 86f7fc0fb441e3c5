//! Claims in the terminal: format_number columns of wrapped text, or one below the other where there is no room for that.

use super::paragraph;
use crate::claim::{Finding, Judged, Judgement, judged, tally};
use crate::study::Study;
use crate::text::{Style, left, styled, wrap};

/// Below this many columns everything stands below each other.
const NARROW: usize = 64;
/// The widest verdict, "does not hold".
const VERDICT: usize = 13;
const GAP: usize = 2;

/// What was claimed, the numbers here, the verdict.
pub(super) fn claims(study: &Study<'_>, width: usize, color: bool) -> String {
    let judged = judged(study);
    if judged.is_empty() {
        return String::new();
    }
    let mut out = "\n".to_owned() + &paragraph(&format!("Claims: {}", tally(&judged)), width, Style::Bold, color);
    let wide = width >= NARROW;
    if wide {
        out += &beside("claim", &[("here".to_owned(), "verdict")], width, Style::Dim, color);
    }
    for (index, claim) in judged.iter().enumerate() {
        let (says, rows) = (says(claim), rows(study, claim));
        out += if index > 0 { "\n" } else { "" };
        out += &match wide {
            true => beside(&says, &rows, width, Style::Plain, color),
            false => below(&says, &rows, width, color),
        };
    }
    out
}

/// The claim, and where it stands.
fn says(judged: &Judged<'_>) -> String {
    match judged.claim.source.as_str() {
        "" => judged.claim.says.clone(),
        source => format!("{} ({source})", judged.claim.says),
    }
}

/// Numbers and verdict.
type Row = (String, &'static str);

/// What was published, ours, after each the baseline's, and what is to be known.
fn rows(study: &Study<'_>, judged: &Judged<'_>) -> Vec<Row> {
    let row = |at: &str, finding: &Finding| {
        let at = if at.is_empty() { String::new() } else { format!("{at}: ") };
        (format!("{at}{}", finding.numbers), finding.verdict.words())
    };
    let told = |word: &str, text: &str| (!text.is_empty()).then(|| (format!("{word}: {text}"), ""));
    let mut rows: Vec<Row> = told("published", &judged.claim.published).into_iter().collect();
    for Judgement { at, ours, baseline } in &judged.findings {
        rows.push(row(at, ours));
        if let (Some(finding), Some(baseline)) = (baseline, study.baseline) {
            rows.push(row(baseline.name, finding));
        }
    }
    rows.extend(told("note", &judged.claim.note));
    rows
}

/// The claim at the left, its rows at the right.
fn beside(says: &str, rows: &[Row], width: usize, style: Style, color: bool) -> String {
    let rest = width - VERDICT - 2 * GAP;
    let claim = rest * 45 / 100;
    let says = wrap(says, claim);
    let numbers = |(numbers, verdict): &Row| {
        let lines = wrap(numbers, rest - claim);
        lines.into_iter().enumerate().map(|(at, line)| (line, if at == 0 { *verdict } else { "" })).collect::<Vec<_>>()
    };
    let numbers: Vec<Row> = rows.iter().flat_map(numbers).collect();
    let line = |at: usize| {
        let (numbers, verdict) = numbers.get(at).map_or(("", ""), |(numbers, verdict)| (numbers.as_str(), *verdict));
        let cells =
            [left(says.get(at).map_or("", String::as_str), claim), left(numbers, rest - claim), verdict.to_owned()];
        styled(&cells.join(&" ".repeat(GAP)), style, color)
    };
    (0..says.len().max(numbers.len())).map(line).collect()
}

/// The claim, its rows below.
fn below(says: &str, rows: &[Row], width: usize, color: bool) -> String {
    let indented = |(numbers, verdict): &Row| {
        let text = if verdict.is_empty() { numbers.clone() } else { format!("{verdict}: {numbers}") };
        let lines = wrap(&text, width.saturating_sub(GAP));
        lines.iter().map(|line| styled(&format!("{}{line}", " ".repeat(GAP)), Style::Plain, color)).collect::<String>()
    };
    paragraph(says, width, Style::Plain, color) + &rows.iter().map(indented).collect::<String>()
}
