//! A short run (`--quick`): which part of its study a report shows.

use crate::study::Study;

/// A study in its short form as a report shows it, and the sentence that says so: without published values and kernel runs,
/// which are of the full length, and where there are such, without claims. None if the study ran in full.
pub(crate) fn short_form<'a>(study: &Study<'a>) -> Option<(Study<'a>, String)> {
    if !study.provenance.is_short_run() {
        return None;
    }
    let has_references = study.layout.tables.iter().any(|table| !table.references.is_empty());
    let is_published = has_references || study.baseline.is_some();
    let left_out = [
        (has_references, "published values"),
        (study.baseline.is_some(), "the runs to compare with"),
        (is_published && !study.layout.claims.is_empty(), "claims"),
    ];
    let left_out: Vec<&str> = left_out.iter().filter(|(is_there, _)| *is_there).map(|(_, name)| *name).collect();
    let mut sentence = format!("Short run (--quick): {}.", study.provenance.short_form());
    if !left_out.is_empty() {
        sentence += &format!(" The full run also shows {}.", left_out.join(", "));
    }
    let mut shown = Study { baseline: None, ..study.clone() };
    if is_published {
        shown.layout.claims.clear();
    }
    shown.layout.tables.iter_mut().for_each(|table| table.references.clear());
    Some((shown, sentence))
}
