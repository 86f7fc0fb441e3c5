//! Standard output and standard error. A reader that has gone away (`| head`) is no failure.

use crate::Failure;
use std::io::{ErrorKind, Write};

/// Writes text to standard output.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
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

/// Writes a line to standard error. There is nowhere to tell that this failed.
pub(crate) fn warn(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// Whether standard output is a terminal.
#[cfg(feature = "tunnel")]
pub(crate) fn is_terminal() -> bool {
    std::io::IsTerminal::is_terminal(&std::io::stdout())
}

/// Columns of the terminal; 80 where there is none.
pub(crate) fn width() -> usize {
    terminal_size::terminal_size().map_or(80, |(width, _)| usize::from(width.0))
}

/// Columns of the terminal on standard error; 80 where there is none.
#[cfg(feature = "study")]
pub(crate) fn error_width() -> usize {
    terminal_size::terminal_size_of(std::io::stderr()).map_or(80, |(width, _)| usize::from(width.0))
}

/// Lines of the terminal; 24 where there is none.
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
