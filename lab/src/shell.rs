//! Text for the shell.

/// The text as comments of a shell script.
pub(crate) fn commented(text: &str) -> String {
    text.lines().map(|line| format!("# {line}")).collect::<Vec<_>>().join("\n")
}
