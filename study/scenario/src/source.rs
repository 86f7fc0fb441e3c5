//! The source texts of a scenario: the file and, as if they were appended to it, the `--set` arguments.

use parse::{Diagnostic, Error};
use std::ops::Range;

/// The texts of one reading. A position below the file's length is in the file, one above is in a `--set`.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    origin: String,
    pub(crate) text: String,
    pub(crate) sets: Vec<Set>,
    /// Whether the short form is read.
    pub(crate) quick: bool,
}

/// One `--set KEY=VALUE`.
#[derive(Clone, Debug)]
pub(crate) struct Set {
    text: String,
    start: usize,
    equals: usize,
    /// The value as a document, blanks in front: its positions are those of this reading.
    pub(crate) document: String,
}

impl Source {
    pub(crate) fn new(origin: &str, text: &str, sets: &[String], quick: bool) -> Self {
        let mut start = text.len() + 1;
        let sets = sets.iter().map(|set| {
            let set = Set::new(start, set);
            start += set.text.len() + 1;
            set
        });
        Self { origin: origin.to_owned(), text: text.to_owned(), sets: sets.collect(), quick }
    }

    /// The same without its sets.
    pub(crate) fn without_sets(&self) -> Self {
        Self { sets: Vec::new(), ..self.clone() }
    }

    /// The name of the file, for messages.
    pub(crate) fn origin(&self) -> &str {
        &self.origin
    }

    /// The bytes at `span`.
    pub(crate) fn slice(&self, span: &Range<usize>) -> &str {
        let (_, text, span) = self.part(span);
        &text[span]
    }

    /// `error` with its place.
    pub(crate) fn error(&self, mut diagnostic: Diagnostic) -> Error {
        let (origin, text, span) = self.part(&diagnostic.span);
        diagnostic.span = span;
        Error::new(origin, text, diagnostic)
    }

    /// The document that contains `span`: its text, its name, and the span within it.
    fn part(&self, span: &Range<usize>) -> (&str, &str, Range<usize>) {
        match self.sets.iter().rfind(|set| set.start <= span.start) {
            Some(set) => ("--set", &set.text, span.start - set.start..span.end - set.start),
            None => (&self.origin, &self.text, span.clone()),
        }
    }
}

impl Set {
    /// The name under which a set's value stands in its document.
    pub(crate) const NAME: &str = "v";

    fn new(start: usize, text: &str) -> Self {
        let equals = text.find('=').unwrap_or(text.len());
        let value = text.get(equals + 1..).unwrap_or_default();
        // The file's last byte and the key are in front of the value, so there is room for the name.
        let document = format!("{:blanks$}{}={value}", "", Self::NAME, blanks = start + equals - Self::NAME.len());
        Self { text: text.to_owned(), start, equals, document }
    }

    /// The key and its place; an error if there is no `=` or no key.
    pub(crate) fn key(&self) -> Result<(&str, Range<usize>), Diagnostic> {
        let key = self.text[..self.equals].trim();
        let span = self.start..self.start + self.equals;
        match self.equals < self.text.len() && !key.is_empty() {
            true => Ok((key, span)),
            false => {
                Err(Diagnostic::new(span, "`--set` takes KEY=VALUE").with_help("for example `--set flow.tcp.size=1GB`"))
            }
        }
    }

    /// The value as it was written, and its place.
    pub(crate) fn value(&self) -> (&str, Range<usize>) {
        (&self.text[self.equals + 1..], self.start + self.equals + 1..self.start + self.text.len())
    }
}
