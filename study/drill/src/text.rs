//! The text of a script: its statements with their lines, without comments.

use crate::error::ScriptError;

/// A place in a script.
#[derive(Clone, Debug)]
pub(crate) struct Cursor<'a> {
    rest: &'a str,
    line: usize,
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        Self { rest: text, line: 1 }
    }

    /// The current line, from 1.
    pub(crate) fn line(&self) -> usize {
        self.line
    }

    pub(crate) fn peek(&self) -> Option<char> {
        self.rest.chars().next()
    }

    /// Consumes this many bytes and returns them.
    fn advance(&mut self, bytes: usize) -> &'a str {
        let (passed, rest) = self.rest.split_at(bytes);
        self.line += passed.matches('\n').count();
        self.rest = rest;
        passed
    }

    /// Consumes `prefix` if it is next.
    pub(crate) fn take(&mut self, prefix: &str) -> bool {
        let is_next = self.rest.starts_with(prefix);
        if is_next {
            self.advance(prefix.len());
        }
        is_next
    }

    /// The characters that belong together by `is_part`.
    pub(crate) fn take_while(&mut self, is_part: impl Fn(char) -> bool) -> &'a str {
        self.advance(self.rest.find(|c| !is_part(c)).unwrap_or(self.rest.len()))
    }

    /// The text before `end`, which is consumed as well; an error if there is no `end`.
    pub(crate) fn until(&mut self, end: &str) -> Result<&'a str, ScriptError> {
        let at = self.rest.find(end).ok_or_else(|| {
            ScriptError::new(self.line, format!("`{end}` is missing"), "it ends what begins on this line")
        })?;
        let text = self.advance(at);
        self.advance(end.len());
        Ok(text)
    }

    /// The rest of the line.
    pub(crate) fn rest_of_line(&mut self) -> &'a str {
        self.take_while(|c| c != '\n').trim()
    }

    /// Skips blanks on the current line.
    pub(crate) fn skip_blanks(&mut self) {
        self.take_while(|c| c != '\n' && c.is_whitespace());
    }

    /// Skips all white space.
    pub(crate) fn skip_space(&mut self) {
        self.take_while(char::is_whitespace);
    }
}

/// The lines of a text with their numbers from 0. A line that ends with `\` continues in the next one.
pub(crate) fn joined_lines(text: &str) -> Vec<(usize, String)> {
    let mut lines: Vec<(usize, String)> = Vec::new();
    let mut is_continued = false;
    for (number, line) in text.lines().enumerate() {
        let (part, continues) = line.trim().strip_suffix('\\').map_or((line.trim(), false), |part| (part.trim(), true));
        match lines.last_mut() {
            Some(last) if is_continued => last.1 = format!("{} {part}", last.1),
            _ => lines.push((number, part.to_owned())),
        }
        is_continued = continues;
    }
    lines
}

/// The text with blanks for its comments: `/* */` and `//`, but not within quotes, commands and code, nor in addresses.
pub(crate) fn without_comments(text: &str) -> Result<String, ScriptError> {
    let mut cursor = Cursor::new(text);
    let mut out = String::with_capacity(text.len());
    while let Some(c) = cursor.peek() {
        if cursor.take("/*") {
            out.extend(cursor.until("*/")?.chars().filter(|c| *c == '\n'));
        } else if cursor.take("//") {
            cursor.rest_of_line();
        } else if let Some((begin, end)) = quotation(&mut cursor) {
            out.extend([begin, cursor.until(end)?, end]);
        } else {
            out.push_str(cursor.advance(c.len_utf8()));
        }
    }
    Ok(out)
}

/// The delimiters of a verbatim section, if one begins here.
fn quotation(cursor: &mut Cursor<'_>) -> Option<(&'static str, &'static str)> {
    [("`", "`"), ("\"", "\""), ("%{", "}%")].into_iter().find(|(begin, _)| cursor.take(begin))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_go_and_lines_stay() {
        let text = "a /* b\n c */ d // e\n`f // g`\n%{ h /* }%";
        assert_eq!(without_comments(text).expect("closed"), "a \n d \n`f // g`\n%{ h /* }%");
        assert_eq!(without_comments("a\n/* b").map_err(|error| error.line), Err(2));
    }
}
