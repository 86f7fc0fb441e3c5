//! Checks the language of doc comments of Rust and of docstrings of Python by the rules of the pages, by ratchet:
//! `xtask/prose.txt` holds the number of findings per crate, which may only shrink.

use super::{Source, prose};
use std::collections::BTreeMap;
use std::path::Path;

const RATCHET: &str = "xtask/prose.txt";
const HEADER: &str = "\
# Findings in the doc comments of each crate: long sentences and avoided words (`cargo xtask tidy --prose [CRATE]`).
# They may only shrink: `cargo xtask tidy --update` lowers them, nothing raises them. A crate that is not here has none.
";

/// Findings by the folder of the crate.
type Findings = BTreeMap<String, Vec<String>>;
type Counts = BTreeMap<String, usize>;

/// All findings of a crate that has more of them than are stored. `update` first lowers the stored counts to the tree's.
pub(super) fn check(root: &Path, sources: &[Source], update: bool) -> Result<Vec<String>, String> {
    let stored = std::fs::read_to_string(root.join(RATCHET)).map_err(|error| format!("{RATCHET}: {error}"))?;
    let stored = parse(&stored).ok_or_else(|| format!("{RATCHET}: cannot be read"))?;
    let findings = all_findings(sources);
    let reduced = reduced(&stored, &findings);
    if update && reduced != stored {
        std::fs::write(root.join(RATCHET), format(&reduced)).map_err(|error| format!("{RATCHET}: {error}"))?;
    } else if reduced != stored {
        let message = "tidy: findings in doc comments have shrunk; `cargo xtask tidy --update` keeps them so\n";
        crate::shell::print(message)?;
    }
    Ok(above(&stored, findings))
}

/// Prints the findings in the doc comments of one crate, or of all, and then the count of each crate.
pub(crate) fn print(folder: Option<&str>) -> Result<(), String> {
    let mut findings = all_findings(&super::sources(&crate::shell::root())?);
    findings.retain(|of, _| folder.is_none_or(|folder| of == folder));
    let lines = findings.values().flatten().map(|finding| format!("{finding}\n")).collect::<String>();
    let counts = findings.iter().map(|(folder, findings)| (folder.clone(), findings.len())).collect();
    crate::shell::print(&(lines + &format(&counts)))
}

fn all_findings(sources: &[Source]) -> Findings {
    let folders: Vec<_> = sources.iter().filter_map(|source| source.path.strip_suffix("/Cargo.toml")).collect();
    let mut findings = Findings::new();
    for source in sources.iter().filter(|source| !is_test(&source.path)) {
        let of_source = documentation(source).map(|documentation| prose::findings(&documentation)).unwrap_or_default();
        let is_in = |folder: &&str| source.path.strip_prefix(*folder).is_some_and(|rest| rest.starts_with('/'));
        let folder = folders.iter().copied().filter(is_in).max_by_key(|folder| folder.len());
        if !of_source.is_empty() {
            findings.entry(folder.unwrap_or("others").to_owned()).or_default().extend(of_source);
        }
    }
    findings
}

fn is_test(path: &str) -> bool {
    path.ends_with("/tests.rs") || path.contains("/tests/")
}

/// The documentation in a file of code, at its lines; all other lines are empty. `None` if the file is not checked.
fn documentation(source: &Source) -> Option<Source> {
    let text = if source.path.ends_with(".rs") {
        of_rust(&source.text)
    } else if source.path.starts_with("python/") && (source.path.ends_with(".py") || source.path.ends_with(".pyi")) {
        of_python(&source.text)
    } else {
        return None;
    };
    Some(Source { path: source.path.clone(), text })
}

/// The text of `///` and `//!` up to the tests at the end of the file.
fn of_rust(text: &str) -> String {
    let code = text.split("\n#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    let line = |line: &str| {
        let line = line.trim_start();
        let text = line.strip_prefix("///").or_else(|| line.strip_prefix("//!")).unwrap_or_default();
        format!("{}\n", text.strip_prefix(' ').unwrap_or(text))
    };
    code.lines().map(line).collect()
}

/// The text of docstrings, without the indent at which each begins.
fn of_python(text: &str) -> String {
    let mut indent = None;
    let mut line = |line: &str| {
        let begins = indent.is_none() && line.trim_start().starts_with("\"\"\"");
        if begins {
            indent = Some(line.len() - line.trim_start().len());
        }
        let text = match indent {
            Some(indent) => line.get(indent..).unwrap_or_default().replace("\"\"\"", ""),
            None => String::new(),
        };
        if line.matches("\"\"\"").count() == if begins { 2 } else { 1 } {
            indent = None;
        }
        text + "\n"
    };
    text.lines().map(&mut line).collect()
}

fn reduced(stored: &Counts, findings: &Findings) -> Counts {
    let count = |folder: &str| findings.get(folder).map_or(0, Vec::len);
    let counts = stored.iter().map(|(folder, stored)| (folder.clone(), count(folder).min(*stored)));
    counts.filter(|(_, count)| *count > 0).collect()
}

fn above(stored: &Counts, findings: Findings) -> Vec<String> {
    let limit = |folder: &str| stored.get(folder).copied().unwrap_or(0);
    let above = findings.into_iter().filter(|(folder, findings)| findings.len() > limit(folder));
    above
        .flat_map(|(folder, findings)| {
            let (count, limit) = (findings.len(), limit(&folder));
            let summary = format!("{folder}: {count} findings in doc comments; there were {limit}. All of them:");
            std::iter::once(summary).chain(findings.into_iter().map(|finding| format!("  {finding}")))
        })
        .collect()
}

fn parse(text: &str) -> Option<Counts> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines
        .map(|line| line.split_once(" = ").and_then(|(folder, n)| Some((folder.to_owned(), n.parse().ok()?))))
        .collect()
}

fn format(counts: &Counts) -> String {
    let lines = counts.iter().map(|(folder, count)| format!("{folder} = {count}\n"));
    HEADER.to_owned() + &lines.collect::<String>()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, text: &str) -> Findings {
        let source = |(path, text): (&str, &str)| Source { path: path.to_owned(), text: text.to_owned() };
        all_findings(&[("link/Cargo.toml", ""), ("python/Cargo.toml", ""), (path, text)].map(source))
    }

    #[test]
    fn doc_comments_are_checked_and_code_comments_and_tests_are_not() {
        let long = "word ".repeat(41);
        let text =
            format!("//! It stands\n//! beside it.\n\n    /// {long}\n    fn f() {{}}\n// anew\nlet a = \"anew\";\n");
        let findings = found("link/src/a.rs", &text);
        let first = "link/src/a.rs:1: `beside`: write next to, compared with, or in addition to";
        assert_eq!(findings["link"], [first, "link/src/a.rs:3: a sentence of 41 words"]);
        assert!(found("link/tests/a.rs", "/// Sent anew.\n").is_empty());
        assert!(found("link/src/a.rs", "fn f() {}\n\n#[cfg(test)]\nmod tests {\n    /// Sent anew.\n}\n").is_empty());
        assert!(found("link/src/a.rs", "/// ```\n/// anew\n/// ```\n/// `anew`\n").is_empty());
    }

    #[test]
    fn docstrings_are_checked_and_other_text_of_python_is_not() {
        let text = "anew = 1  # anew\nclass A:\n    \"\"\"One line.\"\"\"\n    anew: int\n    \"\"\"Sent\n    anew.\n    \"\"\"\n    anew: int\n";
        assert_eq!(found("python/ropewalk/a.py", text)["python"], ["python/ropewalk/a.py:4: `anew`: write again"]);
        assert!(found("python/tests/a.py", text).is_empty());
    }

    #[test]
    fn more_findings_than_stored_are_refused_and_fewer_lower_the_ratchet() {
        let findings = found("link/src/a.rs", "/// Sent anew.\n");
        let stored = |count| Counts::from([("link".to_owned(), count), ("sim".to_owned(), 3)]);
        assert_eq!(above(&stored(0), findings.clone()).len(), 2);
        assert!(above(&stored(1), findings.clone()).is_empty());
        assert_eq!(reduced(&stored(2), &findings), Counts::from([("link".to_owned(), 1)]));
        assert_eq!(parse(&format(&stored(2))), Some(stored(2)));
        assert_eq!(parse("link = many\n"), None);
    }
}
