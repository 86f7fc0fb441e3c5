//! Runs a tutorial as its reader would.
//!
//! - A block whose fence has `title="FILE"` is a file. A second block of the same title is appended.
//! - In a `console` block, a line after `$ ` is a command. The lines up to the next command are its output.
//! - A command whose output has a line that begins with `error: ` fails; every other one succeeds.
//! - In output, `...` stands for any text of a line, and a line of `...` for any lines.
//! - In a page with `<!-- measured -->`, other numbers may be printed, other spaces before them, other
//!   lines between, and lines in another order.
//!
//! All commands run in one shell in an empty folder, with the program on the path.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Separates outputs: no program prints it.
const SEPARATOR: char = '\u{1e}';

/// A block of the page: its line number, what follows the opening fence, and its lines.
pub(crate) struct Block<'a> {
    line: usize,
    pub(crate) info: &'a str,
    pub(crate) lines: Vec<&'a str>,
}

impl Block<'_> {
    /// The file that the block is.
    pub(crate) fn file(&self) -> Option<&str> {
        self.info.split_once("title=\"")?.1.split('"').next()
    }
}

pub(crate) fn blocks(page: &str) -> Vec<Block<'_>> {
    let mut lines = (1..).zip(page.lines());
    let mut blocks = Vec::new();
    while let Some((line, text)) = lines.next() {
        if let Some(info) = text.strip_prefix("```") {
            let lines = lines.by_ref().map(|(_, text)| text).take_while(|text| *text != "```").collect();
            blocks.push(Block { line, info, lines });
        }
    }
    blocks
}

/// A command of the page, and what it prints there.
struct Step<'a> {
    line: usize,
    command: String,
    output: Vec<&'a str>,
}

fn steps<'a>(block: &Block<'a>) -> Vec<Step<'a>> {
    let mut steps: Vec<Step<'a>> = Vec::new();
    for (line, text) in (block.line + 1..).zip(&block.lines) {
        let last = steps.last_mut();
        match (text.strip_prefix("$ "), last) {
            (Some(command), _) => steps.push(Step { line, command: command.to_owned(), output: Vec::new() }),
            (None, Some(step)) if step.output.is_empty() && step.command.ends_with('\\') => {
                step.command = format!("{}\n{text}", step.command);
            }
            (None, Some(step)) => step.output.push(text),
            (None, None) => panic!("line {line}: a console block begins with a command"),
        }
    }
    steps
}

/// Runs the page `docs/tutorials/NAME.md` in `folder` with the folder `program` on the path. `shell` runs a script that
/// is its last argument.
pub(crate) fn run(page: &Path, folder: &Path, program: &Path, shell: &[&str]) {
    let text = std::fs::read_to_string(page).unwrap_or_else(|error| panic!("{}: {error}", page.display()));
    let is_measured = text.contains("<!-- measured -->");
    let (mut script, mut expected) = ("exec 2>&1\n".to_owned(), Vec::new());
    for block in blocks(&text) {
        if let Some(name) = block.file() {
            write!(script, "cat >> '{name}' <<'END OF FILE'\n{}\nEND OF FILE\n", block.lines.join("\n")).unwrap();
        } else if block.info == "console" {
            for step in steps(&block) {
                write!(script, "{}\nprintf '\\036%s\\036' $?\n", step.command).unwrap();
                expected.push(step);
            }
        }
    }
    assert!(!expected.is_empty(), "{} has no commands", page.display());
    let mut path: Vec<PathBuf> = vec![program.to_owned()];
    path.extend(std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()));
    let mut command = Command::new(shell[0]);
    command.args(&shell[1..]).arg(script).current_dir(folder).env("PATH", std::env::join_paths(path).unwrap());
    let output = command.env_remove("COLUMNS").stdin(Stdio::null()).output().expect("the shell starts");
    let text = String::from_utf8_lossy(&output.stdout);
    let mut parts = text.split(SEPARATOR);
    for Step { line, command, output } in expected {
        let (printed, code) = (parts.next().unwrap_or_default(), parts.next());
        let printed: Vec<&str> = printed.trim_end().lines().map(str::trim_end).collect();
        let blank = output.iter().rev().take_while(|line| line.is_empty()).count();
        let page = page.display();
        let at = format!("{page}:{line}: `{command}` printed\n{}", printed.join("\n"));
        let fails = output.iter().any(|line| line.starts_with("error: "));
        assert_eq!(code != Some("0"), fails, "{at}");
        let output = &output[..output.len() - blank];
        assert!(if is_measured { all_occur(output, &printed) } else { lines_match(output, &printed) }, "{at}");
    }
}

/// Whether each line of the pattern occurs, whatever its numbers.
fn all_occur(pattern: &[&str], lines: &[&str]) -> bool {
    let lines: Vec<String> = lines.iter().map(|line| masked(line)).collect();
    let occurs = |pattern: &str| lines.iter().any(|line| line_matches(pattern, line));
    pattern.iter().filter(|line| **line != "...").all(|line| occurs(&masked(line)))
}

/// The line with `#` for each number, one space for several, as a column is as wide as its numbers, and the unit of each rate in
/// bit/s: a busy machine has one of another size.
fn masked(line: &str) -> String {
    let mut masked = String::new();
    for c in line.chars() {
        match c {
            '0'..='9' if masked.ends_with('#') => {}
            '0'..='9' => masked.push('#'),
            ' ' if masked.ends_with(' ') => {}
            _ => masked.push(c),
        }
    }
    let numbers = masked.replace("#.#", "#");
    ["k", "M", "G"].iter().fold(numbers, |line, prefix| line.replace(&format!("# {prefix}bit/s"), "# bit/s"))
}

fn lines_match(pattern: &[&str], lines: &[&str]) -> bool {
    match pattern {
        [] => lines.is_empty(),
        ["...", rest @ ..] => (0..=lines.len()).any(|skipped| lines_match(rest, &lines[skipped..])),
        [first, rest @ ..] => {
            lines.split_first().is_some_and(|(line, lines)| line_matches(first, line) && lines_match(rest, lines))
        }
    }
}

fn line_matches(pattern: &str, line: &str) -> bool {
    let Some((start, rest)) = pattern.split_once("...") else { return pattern == line };
    let Some(line) = line.strip_prefix(start) else { return false };
    (0..=line.len()).filter(|from| line.is_char_boundary(*from)).any(|from| line_matches(rest, &line[from..]))
}
