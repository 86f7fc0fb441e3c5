//! Checks that each row of the tables of docs/explanation/security.md, "Who can do what", names its evidence: tests, or
//! queries of the symbolic model.

use super::Source;

const PAGE: &str = "docs/explanation/security.md";
const HEADING: &str = "## Who can do what";

/// Findings in the tables: rows whose last cell has no name, and names that do not exist.
pub(super) fn check(sources: &[Source]) -> Vec<String> {
    let Some(page) = sources.iter().find(|source| source.path == PAGE) else {
        return vec![format!("{PAGE} is missing")];
    };
    let mut findings = Vec::new();
    for (line, row) in rows(&page.text) {
        let cell = row.trim_end_matches('|').rsplit('|').next().unwrap_or_default();
        let names: Vec<&str> = cell.split('`').skip(1).step_by(2).collect();
        if names.is_empty() {
            findings.push(format!("{PAGE}:{line}: the last cell names no test in backticks"));
        }
        let unknown = names.into_iter().filter(|name| !sources.iter().any(|source| defines(source, name)));
        findings.extend(unknown.map(|name| format!("{PAGE}:{line}: there is no test or query `{name}`")));
    }
    findings
}

/// The rows of the tables below the heading, without their heads.
fn rows(page: &str) -> impl Iterator<Item = (usize, &str)> {
    let lines = (1..).zip(page.lines()).skip_while(|(_, line)| *line != HEADING).skip(1);
    let section = lines.take_while(|(_, line)| !line.starts_with("## "));
    section.filter(|(_, line)| line.starts_with('|') && !line.starts_with("|---") && !line.starts_with("| claim |"))
}

/// Whether a file has a test, or a model a query, of this name. Queries are named by comments, `(* NAME: ... *)`.
fn defines(source: &Source, name: &str) -> bool {
    match source.path.rsplit('.').next() {
        Some("rs") => source.text.contains(&format!("fn {name}(")),
        Some("pv") => source.text.contains(&format!("(* {name}:")),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_without_a_test_and_a_test_that_does_not_exist_are_findings() {
        let page = "## Who can do what\n\n### A\n\n| claim | tests |\n|---|---|\n| b | `holds` |\n| c | |\n\n### B\n\n\
                    | claim | tests |\n|---|---|\n| d | `secrecy`, `gone` |\n\n## Else\n\n| x |\n";
        let source = |path: &str, text: &str| Source { path: path.into(), text: text.into() };
        let sources =
            [source(PAGE, page), source("a.rs", "fn holds() {}"), source("m.pv", "(* secrecy: of the payload *)")];
        assert_eq!(
            check(&sources),
            [
                "docs/explanation/security.md:8: the last cell names no test in backticks",
                "docs/explanation/security.md:14: there is no test or query `gone`"
            ]
        );
    }
}
