//! Standard output and standard error. A reader that has gone away (`| head`) is not a failure.
//!
//! Files, peers and strangers' servers supply names, and a terminal obeys control characters in names. So this module
//! removes them from all output, and nothing else writes to the terminal.

use crate::Failure;
use std::borrow::Cow;
use std::io::{ErrorKind, Write};

/// The styles that the program itself writes to a terminal: bold, dim, black on white, and reset. They hide nothing.
const STYLES: [&str; 4] = ["\x1b[1m", "\x1b[2m", "\x1b[30;107m", "\x1b[0m"];

/// Writes text to standard output, with control characters as `\u001b`.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    print_raw(&cleaned(text))
}

/// As [`print`], on a cleared terminal.
#[cfg(feature = "kernel")]
pub(crate) fn print_on_clear(text: &str) -> Result<(), Failure> {
    print_raw(&format!("\x1b[H\x1b[2J{}", cleaned(text)))
}

/// The text with JSON escapes for control characters and characters that change the direction of writing, except line ends,
/// tabs, and [`STYLES`]. So JSON stays the same JSON.
fn cleaned(text: &str) -> Cow<'_, str> {
    if !text.contains(is_control) {
        return Cow::Borrowed(text);
    }
    let (mut clean, mut rest) = (String::with_capacity(text.len()), text);
    while let Some(c) = rest.chars().next() {
        let kept = STYLES.iter().find(|style| rest.starts_with(**style)).map(|style| style.len());
        let kept = kept.or_else(|| rest.starts_with("\r\n").then_some(2)).or((!is_control(c)).then_some(c.len_utf8()));
        match kept {
            Some(len) => clean.push_str(&rest[..len]),
            None => clean.push_str(&format!("\\u{:04x}", u32::from(c))),
        }
        rest = &rest[kept.unwrap_or(c.len_utf8())..];
    }
    Cow::Owned(clean)
}

fn is_control(c: char) -> bool {
    let changes_direction = matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    changes_direction || c.is_control() && !matches!(c, '\n' | '\t')
}

fn print_raw(text: &str) -> Result<(), Failure> {
    let mut stdout = std::io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(Failure::Environment(format!("cannot write to standard output: {error}")))
        }
        _ => Ok(()),
    }
}

/// Writes one JSON document to standard output.
pub(crate) fn json(document: &impl serde::Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(document).expect("maps with text keys, numbers and lists");
    print(&(text + "\n"))
}

/// Writes a line to standard error, cleaned as [`print`] does. There is nowhere to report a failure of this.
pub(crate) fn warn(line: &str) {
    let _ = writeln!(std::io::stderr(), "{}", cleaned(line));
}

/// Whether standard output is a terminal.
#[cfg(feature = "tunnel")]
pub(crate) fn is_terminal() -> bool {
    std::io::IsTerminal::is_terminal(&std::io::stdout())
}

/// Lines of at most `width` characters, broken between words, with the first one's indentation.
pub(crate) fn wrapped(text: &str, width: usize) -> Vec<String> {
    let indent = " ".repeat(text.chars().take_while(|c| *c == ' ').count());
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => *line += &format!(" {word}"),
            _ => lines.push(format!("{indent}{word}")),
        }
    }
    lines
}

/// Columns of the terminal; 80 if there is none.
pub(crate) fn width() -> usize {
    terminal_size::terminal_size().map_or(80, |(width, _)| usize::from(width.0))
}

/// Columns of the terminal on standard error; 80 if there is none.
#[cfg(feature = "study")]
pub(crate) fn error_width() -> usize {
    terminal_size::terminal_size_of(std::io::stderr()).map_or(80, |(width, _)| usize::from(width.0))
}

/// Lines of the terminal; 24 if there is none.
#[cfg(feature = "kernel")]
pub(crate) fn height() -> usize {
    terminal_size::terminal_size().map_or(24, |(_, height)| usize::from(height.0))
}

/// Whether the table may use colour: on a terminal, unless `NO_COLOR` is set (no-color.org).
#[cfg(feature = "study")]
pub(crate) fn color() -> bool {
    let no_color = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    !no_color && std::io::IsTerminal::is_terminal(&std::io::stdout())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_a_terminal_obeys_is_left_but_our_styles_and_json_stays_the_same_json() {
        for (text, clean) in [
            ("plain: ä, ▀, 日本\n\tline\r\n", "plain: ä, ▀, 日本\n\tline\r\n"),
            ("\x1b]0;title\x07", "\\u001b]0;title\\u0007"),
            ("\x1b[1mbold\x1b[0m \x1b[8mhidden\x1b[0m", "\x1b[1mbold\x1b[0m \\u001b[8mhidden\x1b[0m"),
            ("over\rwritten \u{9b}31m \u{7f} \u{202e}txt", "over\\u000dwritten \\u009b31m \\u007f \\u202etxt"),
        ] {
            assert_eq!(cleaned(text), clean);
        }
        let document = serde_json::json!({ "name\u{9b}": "\x1b]0;x\x07\u{7f}\u{202e}" });
        let text = cleaned(&document.to_string()).into_owned();
        assert!(!text.contains(char::is_control), "{text}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&text).unwrap(), document);
    }
}
