//! The page's table of claims.

use crate::claim::{Finding, Judged, Judgement, Verdict, judged, tally};
use crate::markup::escape;
use crate::study::Study;

/// What was claimed, the numbers here, the verdict; nothing where nothing was claimed.
pub(super) fn claims(study: &Study<'_>) -> String {
    let judged = judged(study);
    if judged.is_empty() {
        return String::new();
    }
    let published = judged.iter().any(|it| !it.claim.published.is_empty());
    let rows: String = judged.iter().map(|claim| rows(study, claim, published)).collect();
    let column = if published { "<th scope=\"col\">published</th>" } else { "" };
    format!(
        "<section id=\"claims\">\n<h2>Claims</h2>\n<p>{}.</p>\n<table class=\"claims\"><thead><tr><th scope=\"col\">claim</th>\
         {column}<th scope=\"col\">here</th><th scope=\"col\">verdict</th></tr></thead>\n{rows}</table>\n</section>\n",
        crate::caption::capital(&tally(&judged))
    )
}

/// A claim beside what was published, where any claim has that, and all its verdicts, ours and the baseline's.
fn rows(study: &Study<'_>, judged: &Judged<'_>, published: bool) -> String {
    let mut shown: Vec<String> = Vec::new();
    for Judgement { at, ours, baseline } in &judged.findings {
        shown.push(cells(at, ours, ""));
        if let (Some(finding), Some(baseline)) = (baseline, study.baseline) {
            shown.push(cells(baseline.name, finding, " class=\"theirs\""));
        }
    }
    let source = match judged.claim.source.as_str() {
        "" => String::new(),
        source => format!(" <small>{}</small>", escape(source)),
    };
    let says = escape(&judged.claim.says);
    let note = match judged.claim.note.as_str() {
        "" => String::new(),
        note => format!("<p>{}</p>", escape(note)),
    };
    let rowspan = shown.len().max(1);
    let mut head = format!("<th scope=\"rowgroup\" rowspan=\"{rowspan}\">{says}{source}{note}</th>");
    if published {
        head += &format!("<td class=\"published\" rowspan=\"{rowspan}\">{}</td>", escape(&judged.claim.published));
    }
    let rows = shown.iter().enumerate().map(|(index, cells)| {
        let head = if index == 0 { head.as_str() } else { "" };
        format!("<tr>{head}{cells}</tr>\n")
    });
    format!("<tbody>{}</tbody>\n", rows.collect::<String>())
}

fn cells(at: &str, finding: &Finding, class: &str) -> String {
    let at = if at.is_empty() { String::new() } else { format!("<b>{}</b> ", escape(at)) };
    // Never by colour alone: a mark, a word and a colour.
    let (name, mark) = match finding.verdict {
        Verdict::Holds => ("holds", "✓"),
        Verdict::Fails => ("fails", "✗"),
        Verdict::NotRun => ("missing", "–"),
    };
    let (numbers, words) = (escape(&finding.numbers), finding.verdict.words());
    format!("<td{class}>{at}{numbers}</td><td class=\"verdict {name}\"><i>{mark}</i> {words}</td>")
}
