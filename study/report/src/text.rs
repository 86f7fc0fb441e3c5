//! Text in a fixed number of terminal columns.

use unicode_width::UnicodeWidthChar;

/// The style of a line in a terminal with colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Style {
    Plain,
    Bold,
    Dim,
}

/// `line` in a style, with a line break.
pub(crate) fn styled(line: &str, style: Style, color: bool) -> String {
    let line = line.trim_end();
    match (style, color && !line.is_empty()) {
        (Style::Bold, true) => format!("\x1b[1m{line}\x1b[0m\n"),
        (Style::Dim, true) => format!("\x1b[2m{line}\x1b[0m\n"),
        _ => format!("{line}\n"),
    }
}

/// The number of terminal columns of `text` without control characters.
pub(crate) fn width(text: &str) -> usize {
    text.chars().map(char_width).sum()
}

fn char_width(c: char) -> usize {
    c.width().unwrap_or(0)
}

/// `text` with a blank for each control character, which could move the cursor.
pub(crate) fn replace_control_chars(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// `text` in exactly `columns` columns, flush right.
pub(crate) fn align_right(text: &str, columns: usize) -> String {
    let text = truncate(text, columns);
    format!("{}{text}", " ".repeat(columns - width(&text)))
}

/// `text` in exactly `columns` columns, flush left.
pub(crate) fn align_left(text: &str, columns: usize) -> String {
    let text = truncate(text, columns);
    let padding = " ".repeat(columns - width(&text));
    text + &padding
}

/// `text` in at most `columns` columns; an ellipsis stands for what is cut off.
pub(crate) fn truncate(text: &str, columns: usize) -> String {
    let text = replace_control_chars(text);
    if width(&text) <= columns {
        return text;
    }
    let mut prefix = String::new();
    for c in text.chars() {
        if width(&prefix) + char_width(c) + 1 > columns {
            break;
        }
        prefix.push(c);
    }
    if columns > 0 {
        prefix.push('…');
    }
    prefix
}

/// `text` in lines of at most `columns` columns, broken between words where that is possible, but not before a percent
/// sign.
pub(crate) fn wrap(text: &str, columns: usize) -> Vec<String> {
    let columns = columns.max(2); // the widest character
    let mut lines = vec![String::new()];
    let text = replace_control_chars(text).replace(" %", "\u{a0}%");
    for word in text.split([' ', '\n', '\t']).filter(|word| !word.is_empty()) {
        let last_line = lines.last_mut().expect("never empty");
        if last_line.is_empty() || width(last_line) + 1 + width(word) > columns {
            if !last_line.is_empty() {
                lines.push(String::new());
            }
            push_word(&mut lines, word, columns);
        } else {
            last_line.push(' ');
            last_line.push_str(word);
        }
    }
    lines.iter().map(|line| line.replace('\u{a0}', " ")).collect()
}

/// Appends `word` to the last line, which is empty, and to more lines if it is longer than one.
fn push_word(lines: &mut Vec<String>, word: &str, columns: usize) {
    for c in word.chars() {
        if width(lines.last().expect("never empty")) + char_width(c) > columns {
            lines.push(String::new());
        }
        lines.last_mut().expect("never empty").push(c);
    }
}
