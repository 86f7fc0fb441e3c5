//! Claims in the terminal: three columns of wrapped text, or one below the other where there is no room for that.

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
        out += &row(["claim", "here", "verdict"], width, Style::Dim, color);
    }
    for claim in &judged {
        let says = says(claim);
        let mut rows = rows(study, claim).into_iter().peekable();
        if !wide || rows.peek().is_none() {
            out += &paragraph(&says, width, Style::Plain, color);
        }
        for (index, (numbers, verdict, style)) in rows.enumerate() {
            out += &match wide {
                true => row([if index == 0 { &says } else { "" }, &numbers, verdict], width, style, color),
                false => indented(&format!("{verdict}: {numbers}"), width, style, color),
            };
        }
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

/// Numbers and verdict, ours and then the baseline's.
fn rows(study: &Study<'_>, judged: &Judged<'_>) -> Vec<(String, &'static str, Style)> {
    let mut rows = Vec::new();
    let row = |at: &str, finding: &Finding, style| {
        let at = if at.is_empty() { String::new() } else { format!("{at}: ") };
        (format!("{at}{}", finding.numbers), finding.verdict.words(), style)
    };
    for Judgement { at, ours, baseline } in &judged.findings {
        rows.push(row(at, ours, Style::Plain));
        if let (Some(finding), Some(baseline)) = (baseline, study.baseline) {
            rows.push(row(baseline.name, finding, Style::Dim));
        }
    }
    rows
}

fn row(cells: [&str; 3], width: usize, style: Style, color: bool) -> String {
    let rest = width - VERDICT - 2 * GAP;
    let widths = [rest * 45 / 100, rest - rest * 45 / 100, VERDICT];
    let columns: Vec<Vec<String>> = cells.iter().zip(widths).map(|(cell, width)| wrap(cell, width)).collect();
    let lines = columns.iter().map(Vec::len).max().unwrap_or(0);
    let line = |index: usize| {
        let cells = columns.iter().zip(widths);
        let cells: Vec<String> =
            cells.map(|(column, width)| left(column.get(index).map_or("", String::as_str), width)).collect();
        styled(&cells.join(&" ".repeat(GAP)), style, color)
    };
    (0..lines).map(line).collect()
}

fn indented(text: &str, width: usize, style: Style, color: bool) -> String {
    let lines = wrap(text, width.saturating_sub(GAP));
    lines.iter().map(|line| styled(&format!("{}{line}", " ".repeat(GAP)), style, color)).collect()
}
