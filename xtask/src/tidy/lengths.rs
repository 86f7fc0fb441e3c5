//! Lengths, by ratchet: `xtask/ratchet.txt` holds the longest file of Rust and the count of long functions, and
//! both may only shrink. A fixed limit would allow growth up to it. Files of C have the fixed limit only.

use super::Source;
use std::path::Path;

/// The maximum length of a file, whatever the ratchet allows.
const MAX_FILE_LINES: usize = 800;
/// A function with more lines counts as long.
const MAX_FUNCTION_LINES: usize = 70;

const RATCHET: &str = "xtask/ratchet.txt";

/// The marks that the ratchet file holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct LengthMarks {
    longest_file_lines: usize,
    long_functions: usize,
}

/// A function's first line and its length.
#[derive(Debug, PartialEq, Eq)]
struct Function {
    line: usize,
    lines: usize,
}

/// Findings in all files of Rust and C. `update` first lowers the stored marks to the current values.
pub(super) fn check(root: &Path, sources: &[Source], update: bool) -> Result<Vec<String>, String> {
    let stored = std::fs::read_to_string(root.join(RATCHET)).map_err(|error| format!("{RATCHET}: {error}"))?;
    let stored = parse_marks(&stored).ok_or_else(|| format!("{RATCHET}: cannot be read"))?;
    let rust: Vec<_> = sources.iter().filter(|source| source.path.ends_with(".rs")).collect();
    let current = marks(&rust);
    let reduced = LengthMarks {
        longest_file_lines: current.longest_file_lines.min(stored.longest_file_lines),
        long_functions: current.long_functions.min(stored.long_functions),
    };
    if update && reduced != stored {
        std::fs::write(root.join(RATCHET), format_marks(reduced)).map_err(|error| format!("{RATCHET}: {error}"))?;
    } else if reduced != stored {
        crate::shell::print("tidy: lengths have shrunk; `cargo xtask tidy --update` keeps them so\n")?;
    }
    let c = sources.iter().filter(|source| source.path.ends_with(".c") || source.path.ends_with(".h"));
    Ok([findings(&rust, current, stored), too_long(c, MAX_FILE_LINES)].concat())
}

fn too_long<'a>(sources: impl Iterator<Item = &'a Source>, limit: usize) -> Vec<String> {
    sources
        .map(|source| (&source.path, source.text.lines().count()))
        .filter(|(_, lines)| *lines > limit)
        .map(|(path, lines)| format!("{path}: {lines} lines; at most {limit}: split it"))
        .collect()
}

fn findings(rust: &[&Source], current: LengthMarks, stored: LengthMarks) -> Vec<String> {
    let limit = MAX_FILE_LINES.min(stored.longest_file_lines);
    let mut findings = too_long(rust.iter().copied(), limit);
    if current.long_functions > stored.long_functions {
        findings.push(format!(
            "{} functions have more than {MAX_FUNCTION_LINES} lines; there were {}. All of them:",
            current.long_functions, stored.long_functions
        ));
        findings.extend(rust.iter().flat_map(|source| {
            long(source).map(|function| format!("  {}:{}: {} lines", source.path, function.line, function.lines))
        }));
    }
    findings
}

fn marks(rust: &[&Source]) -> LengthMarks {
    LengthMarks {
        longest_file_lines: rust.iter().map(|source| source.text.lines().count()).max().unwrap_or(0),
        long_functions: rust.iter().map(|source| long(source).count()).sum(),
    }
}

fn long(source: &Source) -> impl Iterator<Item = Function> {
    functions(&source.text).into_iter().filter(|function| function.lines > MAX_FUNCTION_LINES)
}

/// Every function with a body. Rustfmt puts its last line at the indent of its first, so no parser is needed.
fn functions(text: &str) -> Vec<Function> {
    let lines: Vec<_> = text.lines().collect();
    let starts = lines.iter().enumerate().filter(|(_, line)| starts_function(line));
    starts.filter_map(|(start, _)| length(&lines[start..]).map(|lines| Function { line: start + 1, lines })).collect()
}

fn starts_function(line: &str) -> bool {
    let mut tokens = line.split_whitespace();
    let mut token = tokens.next();
    while token.is_some_and(|token| {
        token.starts_with("pub") || ["const", "async", "unsafe", "extern", "\"C\""].contains(&token)
    }) {
        token = tokens.next();
    }
    token == Some("fn")
}

/// Lines of the function that begins here; `None` for a declaration without a body.
fn length(lines: &[&str]) -> Option<usize> {
    let indent = indent(lines[0]);
    let at_indent = lines.iter().enumerate().filter(|(_, line)| self::indent(line) == indent);
    for (index, line) in at_indent {
        if line.ends_with(';') {
            return None;
        }
        if line.ends_with('}') {
            return Some(index + 1);
        }
    }
    None
}

fn indent(line: &str) -> usize {
    if line.trim().is_empty() { usize::MAX } else { line.len() - line.trim_start().len() }
}

fn parse_marks(text: &str) -> Option<LengthMarks> {
    let value = |key: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(key)?.trim().strip_prefix('='))?;
        line.trim().parse().ok()
    };
    Some(LengthMarks { longest_file_lines: value("longest_file_lines")?, long_functions: value("long_functions")? })
}

fn format_marks(marks: LengthMarks) -> String {
    format!(
        "# Lengths of Rust code. They may only shrink: `cargo xtask tidy --update` lowers them, nothing raises them.\n\
         longest_file_lines = {}\nlong_functions = {}\n",
        marks.longest_file_lines, marks.long_functions
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file_with_function(lines: usize) -> Source {
        let body = "    step();\n".repeat(lines - 2);
        Source { path: "x.rs".to_owned(), text: format!("pub(crate) const fn f() {{\n{body}}}\n") }
    }

    #[test]
    fn functions_are_measured_from_their_first_line_to_their_closing_brace() {
        let text = "\
trait T {
    fn declared(&self);
    fn long_declaration(
        &self,
    ) -> u8;
    fn one_line() -> u8 { 1 }
}

pub(crate) async fn outer(
    a: u8,
) -> u8
where
    u8: Copy,
{
    let f = |fn_name: u8| {
        fn_name
    };

    fn inner() {
    }
    f(a)
}
";
        let measured: Vec<_> = functions(text).iter().map(|function| (function.line, function.lines)).collect();
        assert_eq!(measured, [(6, 1), (9, 14), (19, 2)]);
    }

    #[test]
    fn a_function_of_seventy_lines_is_not_long_and_one_of_seventy_one_is() {
        assert_eq!(marks(&[&file_with_function(70)]).long_functions, 0);
        assert_eq!(marks(&[&file_with_function(71)]).long_functions, 1);
    }

    #[test]
    fn growth_is_refused_and_shrinking_is_not() {
        let source = file_with_function(100);
        let current = marks(&[&source]);
        assert_eq!(current, LengthMarks { longest_file_lines: 100, long_functions: 1 });
        let finding_count = |stored| findings(&[&source], current, stored).len();
        assert_eq!(finding_count(LengthMarks { longest_file_lines: 100, long_functions: 1 }), 0);
        assert_eq!(finding_count(LengthMarks { longest_file_lines: 99, long_functions: 1 }), 1);
        assert_eq!(finding_count(LengthMarks { longest_file_lines: 100, long_functions: 0 }), 2);
    }

    #[test]
    fn the_ratchet_reads_what_it_writes() {
        let marks = LengthMarks { longest_file_lines: 412, long_functions: 3 };
        assert_eq!(parse_marks(&format_marks(marks)), Some(marks));
        assert_eq!(parse_marks("longest_file_lines = many\nlong_functions = 3"), None);
    }
}
