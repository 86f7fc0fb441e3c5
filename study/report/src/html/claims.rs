//! The page's table of claims.

use crate::claim::{ClaimResult, Claims, Evaluation, SettingResult, ValueResult, Verdict, notes, reference_name};
use crate::study::Study;
use strings::escape_html;

/// The section on claims with their numbers and verdicts; empty without claims.
pub(super) fn claims(study: &Study<'_>, Claims { results, tally }: &Claims<'_>) -> String {
    if results.is_empty() {
        return String::new();
    }
    let sentences: String = tally.sentences().iter().map(|sentence| format!(" {}", escape_html(sentence))).collect();
    format!(
        "<section id=\"claims\">\n<h2>Claims</h2>\n<p>{}.{sentences}</p>\n{}</section>\n",
        crate::caption::capitalise(&tally.counts()),
        table(study, results.iter())
    )
}

/// The table of the claims of a section of the page, or nothing.
pub(super) fn of_section(study: &Study<'_>, claims: &Claims<'_>, section: &str) -> String {
    table(study, claims.results.iter().filter(|result| result.claim.scope.section == section))
}

fn table<'c>(study: &Study<'_>, results: impl Iterator<Item = &'c ClaimResult<'c>> + Clone) -> String {
    let published = results.clone().any(|result| !result.claim.published.is_empty());
    let rows: String = results.map(|result| rows(study, result, published)).collect();
    if rows.is_empty() {
        return rows;
    }
    let column = if published { "<th scope=\"col\">published</th>" } else { "" };
    format!(
        "<table class=\"claims\"><thead><tr><th scope=\"col\">claim</th>{column}<th scope=\"col\">here</th>\
         <th scope=\"col\">verdict</th></tr></thead>\n{rows}</table>\n"
    )
}

/// The rows of a claim, with the column of published values if any claim has some.
fn rows(study: &Study<'_>, result: &ClaimResult<'_>, published: bool) -> String {
    let mut row_cells: Vec<String> = Vec::new();
    result.settings.iter().for_each(|setting| row_cells.extend(setting_cells(study, setting)));
    let source = match result.claim.source.as_str() {
        "" => String::new(),
        source => format!(" <small>{}</small>", escape_html(source)),
    };
    let statement = escape_html(&result.claim.says);
    let note: String = notes(result.claim).map(|note| format!("<p>{}</p>", escape_html(&note))).collect();
    let rowspan = row_cells.len().max(1);
    let mut head = format!("<th scope=\"rowgroup\" rowspan=\"{rowspan}\">{statement}{source}{note}</th>");
    if published {
        head += &format!("<td class=\"published\" rowspan=\"{rowspan}\">{}</td>", escape_html(&result.claim.published));
    }
    let rows = row_cells.iter().enumerate().map(|(index, cells)| {
        let head = if index == 0 { head.as_str() } else { "" };
        format!("<tr>{head}{cells}</tr>\n")
    });
    format!("<tbody>{}</tbody>\n", rows.collect::<String>())
}

/// The cells of a setting: numbers and verdict, at each value of an unknown key; those of the baseline and of references
/// after them.
fn setting_cells(study: &Study<'_>, setting: &SettingResult<'_>) -> Vec<String> {
    let mut rows = Vec::new();
    if let Some(note) = setting.unknown_note() {
        let verdict = verdict_cell(setting.verdict(), &setting.words());
        rows.push(format!("<td>{}{}</td>{verdict}", bold(&setting.setting), escape_html(&note)));
    }
    for ValueResult { value, study: evaluation, baseline, .. } in &setting.values {
        let (label, class) = if setting.unknown.is_some() { (value, THEIRS) } else { (&setting.setting, "") };
        rows.push(cells(label, evaluation, class));
        if let (Some(evaluation), Some(baseline)) = (baseline, study.baseline) {
            rows.push(cells(baseline.name, evaluation, THEIRS));
        }
    }
    let references = setting.references().into_iter();
    rows.extend(
        references.map(|(name, evaluation)| cells(&format!("in {}", reference_name(name)), evaluation, THEIRS)),
    );
    rows
}

/// The class of a cell of less weight.
const THEIRS: &str = " class=\"theirs\"";

fn cells(label: &str, evaluation: &Evaluation, class: &str) -> String {
    let verdict = verdict_cell(evaluation.verdict, &evaluation.words());
    format!("<td{class}>{}{}</td>{verdict}", bold(label), escape_html(&evaluation.numbers))
}

fn bold(label: &str) -> String {
    if label.is_empty() { String::new() } else { format!("<b>{}</b> ", escape_html(label)) }
}

/// A mark and words beside the colour.
fn verdict_cell(verdict: Verdict, words: &str) -> String {
    let (name, mark) = match verdict {
        Verdict::Holds => ("holds", "✓"),
        Verdict::Fails => ("fails", "✗"),
        Verdict::FailsAsExpected => ("expected", "✗"),
        Verdict::Undecided => ("open", "?"),
        Verdict::NotRun => ("missing", "–"),
    };
    format!("<td class=\"verdict {name}\"><i>{mark}</i> {}</td>", escape_html(words))
}
