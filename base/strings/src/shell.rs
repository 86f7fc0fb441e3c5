//! Quoting of words for a POSIX shell.

/// The word in single quotes.
#[must_use]
pub fn shell_quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// The word as a shell reads it, in quotes only if it needs them.
#[must_use]
pub fn shell_word(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,+@%".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) { word.to_owned() } else { shell_quoted(word) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_in_quotes_where_a_shell_would_split_or_expand_it() {
        for (word, expected) in [("a.toml", "a.toml"), ("", "''"), ("a b", "'a b'"), ("it's", r"'it'\''s'")] {
            assert_eq!(shell_word(word), expected);
        }
    }
}
