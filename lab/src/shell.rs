//! Text for the shell.

/// The text as comments of a shell script.
pub(crate) fn commented(text: &str) -> String {
    text.lines().map(|line| format!("# {line}")).collect::<Vec<_>>().join("\n")
}

/// The word in single quotes.
pub(crate) fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}
