//! Checks the language of the documentation: the length of sentences and of cells of tables, and words that have a plainer one.
//! CONTRIBUTING.md, "Documentation", has the rules. `doc_comments` applies them to code.

use super::Source;
use super::links::{lines_outside_code, without_code};

/// The greatest length of a sentence, words. As a rule 25 are enough.
const MAX_SENTENCE: usize = 40;
/// The greatest length of a cell of a table, words.
const MAX_CELL: usize = 30;
/// Expressions that readers stumble over, and what to write.
const AVOIDED: &[(&str, &str)] = &[
    ("beside", "next to, compared with, or in addition to"),
    ("meanwhile", "while ..., or in that time"),
    ("anew", "again"),
    ("whoever", "everyone who"),
    ("wherever", "where"),
    ("goes dark", "fails, or is down"),
    ("set-up", "setup"),
    ("is told", "gets, or sees"),
    ("are told", "get, or see"),
    ("compared are", "the subject first"),
    ("counted are", "the subject first"),
    ("measured is", "the subject first"),
];

/// Findings in the README, the rules for contributors, the policy on security, and the pages below `docs`.
pub(super) fn check(sources: &[Source]) -> Vec<String> {
    let at_root = ["README.md", "CONTRIBUTING.md", "SECURITY.md"];
    let is_page = |path: &str| at_root.contains(&path) || path.starts_with("docs/") && path.ends_with(".md");
    sources.iter().filter(|source| is_page(&source.path)).flat_map(findings).collect()
}

pub(super) fn findings(page: &Source) -> Vec<String> {
    let (mut findings, mut paragraph) = (Vec::new(), (1, String::new()));
    let end = std::iter::once((0, ""));
    for (number, line) in lines_outside_code(&page.text).chain(end) {
        let text = if line.starts_with("<!--") { String::new() } else { without_code(line) };
        let is_row = line.starts_with('|');
        let begins = line.is_empty() || is_row || line.starts_with(['#', '<', '-', '!']) || is_item(line);
        if begins {
            findings.extend(of_paragraph(page, paragraph.0, &std::mem::take(&mut paragraph.1)));
            paragraph.0 = number;
        }
        if is_row {
            let cells = line.split('|').map(|cell| (cell, cell.split_whitespace().count()));
            let long = cells.filter(|(_, words)| *words > MAX_CELL);
            findings.extend(long.map(|(_, words)| format!("{}:{number}: a cell of {words} words", page.path)));
        } else {
            paragraph.1 += &format!("{text} ");
        }
    }
    findings
}

/// Whether a line begins a numbered item.
fn is_item(line: &str) -> bool {
    line.split_once(". ")
        .is_some_and(|(number, _)| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
}

fn of_paragraph(page: &Source, line: usize, text: &str) -> Vec<String> {
    let finding = |what: String| format!("{}:{line}: {what}", page.path);
    let lengths = text.split_inclusive(['.', '!', '?', ':', ';']).fold(vec![0], |mut lengths, part| {
        let words = part.split_whitespace().count();
        *lengths.last_mut().expect("it has one") += words;
        if words > 0 {
            lengths.push(0);
        }
        lengths
    });
    let long = lengths.into_iter().filter(|words| *words > MAX_SENTENCE);
    let mut findings: Vec<String> = long.map(|words| finding(format!("a sentence of {words} words"))).collect();
    let lower = format!(" {} ", text.to_lowercase().replace(|c: char| !c.is_alphanumeric(), " "));
    let words = lower.split_whitespace().collect::<Vec<_>>().join(" ");
    let has = |avoided: &str| format!(" {words} ").contains(&format!(" {avoided} "));
    let avoided = AVOIDED.iter().filter(|(avoided, _)| has(avoided));
    findings.extend(avoided.map(|(avoided, better)| finding(format!("`{avoided}`: write {better}"))));
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<String> {
        check(&[Source { path: "docs/a.md".to_owned(), text: text.to_owned() }])
    }

    #[test]
    fn long_sentences_and_cells_and_avoided_words_are_found() {
        let long = "word ".repeat(41);
        assert_eq!(found(&format!("# A\n\n{}.\n", long.trim_end())), ["docs/a.md:2: a sentence of 41 words"]);
        assert_eq!(found(&format!("| a | {} |\n", "word ".repeat(31))), ["docs/a.md:1: a cell of 31 words"]);
        assert_eq!(
            found("It stands\nbeside it.\n"),
            ["docs/a.md:1: `beside`: write next to, compared with, or in addition to"]
        );
    }

    #[test]
    fn code_and_what_is_not_of_the_documentation_may_be_anything() {
        let short = "word ".repeat(39);
        assert!(found(&format!("{short}. {short}.\n\n1. {short}\n2. {short}\n")).is_empty());
        assert!(found("`beside` is a case.\n\n    beside\n```\nbeside\n```\n").is_empty());
        assert!(check(&[Source { path: "CHANGELOG.md".to_owned(), text: "anew".to_owned() }]).is_empty());
    }
}
