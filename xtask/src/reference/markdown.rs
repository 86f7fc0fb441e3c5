//! Text as Markdown.

/// Columns of a line.
const WIDTH: usize = 128;

/// A paragraph or a list item in lines of [`WIDTH`], those after the first with this indentation. Code is not broken.
pub(super) fn wrapped(text: &str, indent: &str) -> String {
    let mut lines = vec![String::new()];
    for word in words(text) {
        let line = lines.last_mut().expect("one at least");
        let has_room = line.chars().count() + 1 + word.chars().count() <= WIDTH;
        if line.trim().is_empty() {
            line.push_str(&word);
        } else if has_room {
            line.push(' ');
            line.push_str(&word);
        } else {
            lines.push(format!("{indent}{word}"));
        }
    }
    lines.join("\n")
}

/// The words of a text; code with blanks is one.
fn words(text: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut is_code = false;
    for character in text.chars() {
        is_code ^= character == '`';
        match character {
            ' ' | '\n' if !is_code => words.push(String::new()),
            '\n' => words.last_mut().expect("one at least").push(' '),
            character => words.last_mut().expect("one at least").push(character),
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

/// The text with a capital letter at its beginning and a full stop at its end.
pub(super) fn sentence(text: &str) -> String {
    let text = text.trim();
    let mut characters = text.chars();
    let first = text.split([' ', ':', ',', ';']).next().unwrap_or_default();
    let is_plain = first.chars().all(|c| c.is_ascii_lowercase() || c == '-' || c == '\'');
    let is_plain = is_plain && (first.len() > 1 || first == "a");
    let start = characters.next().map(|start| if is_plain { start.to_ascii_uppercase() } else { start });
    let text: String = start.into_iter().chain(characters).collect();
    if text.ends_with(['.', ':', '?']) || text.is_empty() { text } else { format!("{text}.") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_broken_between_words_but_not_in_code() {
        let text = format!("{} `a b c d e` f", "x".repeat(WIDTH - 4));
        assert_eq!(wrapped(&text, "  ").lines().nth(1), Some("  `a b c d e` f"));
        assert_eq!(wrapped("a\nb", ""), "a b");
    }

    #[test]
    fn a_sentence_begins_with_a_capital_unless_its_first_word_is_a_name() {
        assert_eq!(sentence("bytes of a burst"), "Bytes of a burst.");
        assert_eq!(sentence("`fq` paces."), "`fq` paces.");
        assert_eq!(sentence("iperf3"), "iperf3.");
        assert_eq!(sentence("g = 2^-gain_shift"), "g = 2^-gain_shift.");
    }
}
