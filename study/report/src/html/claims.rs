//! The page's table of claims.

use crate::claim::{ClaimResult, Evaluation, SettingResult, Verdict, evaluate_claims, tally};
use crate::markup::escape;
use crate::study::Study;

/// The section on claims with their numbers and verdicts; empty without claims.
pub(super) fn claims(study: &Study<'_>) -> String {
    let results = evaluate_claims(study);
    if results.is_empty() {
        return String::new();
    }
    let published = results.iter().any(|result| !result.claim.published.is_empty());
    let rows: String = results.iter().map(|result| rows(study, result, published)).collect();
    let column = if published { "<th scope=\"col\">published</th>" } else { "" };
    format!(
        "<section id=\"claims\">\n<h2>Claims</h2>\n<p>{}.</p>\n<table class=\"claims\"><thead><tr><th scope=\"col\">claim</th>\
         {column}<th scope=\"col\">here</th><th scope=\"col\">verdict</th></tr></thead>\n{rows}</table>\n</section>\n",
        crate::caption::capitalise(&tally(&results))
    )
}

/// The rows of a claim, with the column of published values if any claim has some: a row for each setting, for the
/// study and for the baseline.
fn rows(study: &Study<'_>, result: &ClaimResult<'_>, published: bool) -> String {
    let mut row_cells: Vec<String> = Vec::new();
    for SettingResult { setting, study: evaluation, baseline } in &result.settings {
        row_cells.push(cells(setting, evaluation, ""));
        if let (Some(evaluation), Some(baseline)) = (baseline, study.baseline) {
            row_cells.push(cells(baseline.name, evaluation, " class=\"theirs\""));
        }
    }
    let source = match result.claim.source.as_str() {
        "" => String::new(),
        source => format!(" <small>{}</small>", escape(source)),
    };
    let statement = escape(&result.claim.says);
    let note = match result.claim.note.as_str() {
        "" => String::new(),
        note => format!("<p>{}</p>", escape(note)),
    };
    let rowspan = row_cells.len().max(1);
    let mut head = format!("<th scope=\"rowgroup\" rowspan=\"{rowspan}\">{statement}{source}{note}</th>");
    if published {
        head += &format!("<td class=\"published\" rowspan=\"{rowspan}\">{}</td>", escape(&result.claim.published));
    }
    let rows = row_cells.iter().enumerate().map(|(index, cells)| {
        let head = if index == 0 { head.as_str() } else { "" };
        format!("<tr>{head}{cells}</tr>\n")
    });
    format!("<tbody>{}</tbody>\n", rows.collect::<String>())
}

fn cells(label: &str, evaluation: &Evaluation, class: &str) -> String {
    let label = if label.is_empty() { String::new() } else { format!("<b>{}</b> ", escape(label)) };
    // A mark and words beside the colour.
    let (name, mark) = match evaluation.verdict {
        Verdict::Holds => ("holds", "✓"),
        Verdict::Fails => ("fails", "✗"),
        Verdict::NotRun => ("missing", "–"),
    };
    let (numbers, verdict) = (escape(&evaluation.numbers), evaluation.verdict.label());
    format!("<td{class}>{label}{numbers}</td><td class=\"verdict {name}\"><i>{mark}</i> {verdict}</td>")
}
