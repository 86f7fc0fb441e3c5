//! Checks that links in Markdown files name existing files and headings.

use super::Source;
use std::path::{Component, Path, PathBuf};

/// Findings in all `*.md`. `exists` tells whether a path below the workspace's folder exists.
pub(super) fn check(sources: &[Source], exists: &dyn Fn(&Path) -> bool) -> Vec<String> {
    let pages: Vec<_> = sources.iter().filter(|source| source.path.ends_with(".md")).collect();
    let mut findings = Vec::new();
    for page in &pages {
        for (line, target) in links(&page.text) {
            if let Some(problem) = problem(page, &target, &pages, exists) {
                findings.push(format!("{}:{line}: link to `{target}`: {problem}", page.path));
            }
        }
    }
    findings
}

fn problem(page: &Source, target: &str, pages: &[&Source], exists: &dyn Fn(&Path) -> bool) -> Option<&'static str> {
    if target.contains("://") || target.starts_with("mailto:") {
        return None;
    }
    let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
    let folder = Path::new(&page.path).parent().unwrap_or(Path::new(""));
    let file = if path.is_empty() { PathBuf::from(&page.path) } else { normalised(&folder.join(path)) };
    if !exists(&file) {
        return Some("there is no such file");
    }
    let target_page = pages.iter().find(|page| Path::new(&page.path) == file)?;
    let has_heading =
        anchor.is_empty() || headings(&target_page.text).iter().any(|heading| anchor_of_heading(heading) == anchor);
    (!has_heading).then_some("the file has no such heading")
}

/// Resolves `..` in a path.
fn normalised(path: &Path) -> PathBuf {
    let mut normalised = PathBuf::new();
    for component in path.components() {
        match component {
            Component::ParentDir => _ = normalised.pop(),
            Component::CurDir => {}
            component => normalised.push(component),
        }
    }
    normalised
}

/// Targets of `[text](target)`, `![text](target)` and `[name]: target`, each with its line, outside of code.
fn links(text: &str) -> Vec<(usize, String)> {
    let mut links = Vec::new();
    for (line_number, line) in lines_outside_code(text) {
        let line = without_code(line);
        let inline = line.split("](").skip(1).filter_map(|rest| rest.split_once(')'));
        links.extend(inline.map(|(target, _)| (line_number, target.to_owned())));
        if let Some((_, target)) = line.strip_prefix('[').and_then(|line| line.split_once("]: ")) {
            links.push((line_number, target.trim().to_owned()));
        }
    }
    links
}

fn headings(text: &str) -> Vec<&str> {
    let lines = lines_outside_code(text).map(|(_, line)| line);
    lines.filter(|line| line.starts_with('#')).map(|line| line.trim_start_matches('#').trim()).collect()
}

/// The lines outside of fenced and indented code, numbered from 1.
pub(super) fn lines_outside_code(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut fenced = false;
    text.lines().enumerate().filter_map(move |(index, line)| {
        let fence = line.trim_start().starts_with("```");
        fenced ^= fence;
        (!fence && !fenced && !line.starts_with("    ")).then_some((index + 1, line))
    })
}

pub(super) fn without_code(line: &str) -> String {
    line.split('`').step_by(2).collect::<Vec<_>>().join("`")
}

/// A heading's anchor, as GitHub makes it.
fn anchor_of_heading(heading: &str) -> String {
    let characters = heading.to_lowercase();
    let characters = characters.chars().filter(|c| c.is_alphanumeric() || [' ', '-', '_'].contains(c));
    characters.map(|c| if c == ' ' { '-' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(text: &str) -> Vec<String> {
        let page = |path: &str, text: &str| Source { path: path.to_owned(), text: text.to_owned() };
        let sources = [page("docs/a.md", text), page("README.md", "# The `run` verb, in short\n")];
        check(&sources, &|path| sources.iter().any(|source| Path::new(&source.path) == path))
    }

    #[test]
    fn links_to_files_and_headings_that_exist_are_fine() {
        assert_eq!(findings("[up](../README.md#the-run-verb-in-short), [web](https://example.org)\n"), [""; 0]);
        assert_eq!(findings("# Here\n[here](#here) ![picture](a.md)\n"), [""; 0]);
    }

    #[test]
    fn dead_files_and_dead_headings_are_found_with_their_line() {
        let findings = findings("fine\n[x](gone.md) and [y](../README.md#gone)\n\n[ref]: ../gone.svg\n");
        assert_eq!(findings.len(), 3);
        assert!(findings[0].starts_with("docs/a.md:2:"), "{}", findings[0]);
        assert!(findings[1].contains("heading"), "{}", findings[1]);
    }

    #[test]
    fn code_holds_no_links() {
        assert_eq!(findings("`[x](gone.md)`\n```\n[y](gone.md)\n```\n    [z](gone.md)\n"), [""; 0]);
    }
}
