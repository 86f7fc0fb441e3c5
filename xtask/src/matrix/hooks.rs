//! The table kernel x program x hook: the number of calls of each hook of a program.

use std::fmt::Write;

/// One row per kernel and program, in order; one column per hook that any of them has. `calls` are pairs of a
/// kernel's release and `PROGRAM HOOK=CALLS ...`.
pub(super) fn table(calls: &[(String, String)]) -> String {
    let rows: Vec<Row<'_>> = calls.iter().map(|(kernel, line)| Row::new(kernel, line)).collect();
    let mut names: Vec<&str> = Vec::new();
    for (name, _) in rows.iter().flat_map(|row| &row.hooks) {
        if !names.contains(name) {
            names.push(name);
        }
    }
    if names.is_empty() {
        return String::new();
    }
    let mut text = format!("| kernel | program | {} |\n|---|---|{}\n", names.join(" | "), "---|".repeat(names.len()));
    for Row { kernel, program, hooks } in rows {
        let calls = names.iter().map(|name| hooks.iter().find(|hook| hook.0 == *name).map_or("", |hook| hook.1));
        let _ = writeln!(text, "| {kernel} | {program} | {} |", calls.collect::<Vec<_>>().join(" | "));
    }
    text
}

/// A program on a kernel, with its hooks and their calls.
struct Row<'a> {
    kernel: &'a str,
    program: &'a str,
    hooks: Vec<(&'a str, &'a str)>,
}

impl<'a> Row<'a> {
    fn new(kernel: &'a str, line: &'a str) -> Self {
        let mut words = line.split_whitespace();
        let program = words.next().unwrap_or_default();
        Self { kernel, program, hooks: words.filter_map(|word| word.split_once('=')).collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hook_that_a_program_or_kernel_lacks_is_an_empty_cell() {
        let line = |kernel: &str, hooks: &str| (kernel.to_owned(), hooks.to_owned());
        let table = table(&[line("6.1", "rw_lia ssthresh=3"), line("7.2", "rw_vegas ssthresh=1 init=0")]);
        let rows = "| 6.1 | rw_lia | 3 |  |\n| 7.2 | rw_vegas | 1 | 0 |\n";
        assert_eq!(table, format!("| kernel | program | ssthresh | init |\n|---|---|---|---|\n{rows}"));
        assert_eq!(super::table(&[]), "");
    }
}
