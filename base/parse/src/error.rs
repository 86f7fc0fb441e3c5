//! Errors in input files, with position and help.

use annotate_snippets::{AnnotationKind, Level, Origin, Renderer, Snippet};
use std::fmt;
use std::ops::Range;

/// An error in a file, in a `--set`, or in a file named in another one.
///
/// `Display` shows the file, line and column, the line with the error underlined, the key, and help.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error(Box<Report>);

/// An error with its text.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Report {
    origin: String,
    text: Option<String>,
    fault: Fault,
}

/// An error at a position, without the text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fault {
    /// Bytes of the text.
    pub span: Range<usize>,
    /// Dotted key; empty if it follows from the position.
    pub key: String,
    /// A key that is missing in the table at `span`, or empty.
    pub missing: String,
    /// The error, in one line.
    pub message: String,
    /// Help, or empty.
    pub help: String,
    /// Another file that contains the error; `span` is then the position of its name.
    pub elsewhere: Option<Box<Elsewhere>>,
}

/// A position in another file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Elsewhere {
    /// Name of the file.
    pub origin: String,
    /// Its text.
    pub text: String,
    /// Position of the error, bytes.
    pub span: Range<usize>,
}

impl Fault {
    /// An error at `span`.
    #[must_use]
    pub fn at(span: Range<usize>, message: impl Into<String>) -> Self {
        Self { span, message: message.into(), ..Self::default() }
    }

    /// Adds help.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = help.into();
        self
    }

    /// Sets the key, where it does not follow from the position.
    #[must_use]
    pub fn key(mut self, key: impl Into<String>) -> Self {
        self.key = key.into();
        self
    }

    /// `wrong` is not the name of a `kind` (path, link ...).
    #[must_use]
    pub fn unknown(span: Range<usize>, kind: &str, wrong: &str, known: &[&str]) -> Self {
        Self::at(span, format!("unknown {kind} `{wrong}`")).help(suggest(wrong, known))
    }
}

impl Error {
    /// The error `fault` in the file `origin` with the text `text`.
    #[must_use]
    pub fn new(origin: &str, text: &str, mut fault: Fault) -> Self {
        let place = Elsewhere { origin: origin.to_owned(), text: text.to_owned(), span: fault.span.clone() };
        let Elsewhere { origin, text, span } = fault.elsewhere.take().map_or(place, |elsewhere| *elsewhere);
        fault.span = on_one_line(&text, &span);
        Self(Box::new(Report { origin, text: Some(text), fault }))
    }

    /// An error of a file that could not be read.
    #[must_use]
    pub fn unreadable(origin: &str, message: String) -> Self {
        Self(Box::new(Report { origin: origin.to_owned(), text: None, fault: Fault::at(0..0, message) }))
    }

    /// The line, from 1; 0 for a file that could not be read.
    #[must_use]
    pub fn line(&self) -> usize {
        self.0.text.as_ref().map_or(0, |text| 1 + text[..self.0.fault.span.start].matches('\n').count())
    }

    /// The dotted key, as in a sweep: `path.eno2.delay`. Empty if the text is not TOML at all.
    #[must_use]
    pub fn key(&self) -> &str {
        &self.0.fault.key
    }

    /// The error, in one line.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.0.fault.message
    }

    /// Help, or empty.
    #[must_use]
    pub fn help(&self) -> &str {
        &self.0.fault.help
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Report { origin, text, fault } = &*self.0;
        let title = Level::ERROR.primary_title(fault.message.as_str());
        let mut group = match text {
            None => title.element(Origin::path(origin.as_str())),
            Some(text) => {
                let label = (!fault.key.is_empty()).then_some(fault.key.as_str());
                let mark = AnnotationKind::Primary.span(fault.span.clone()).label(label);
                title.element(Snippet::source(text.as_str()).path(origin.as_str()).annotation(mark))
            }
        };
        if !fault.help.is_empty() {
            group = group.element(Level::HELP.message(fault.help.as_str()));
        }
        f.write_str(&Renderer::plain().render(&[group]))
    }
}

impl std::error::Error for Error {}

/// The part of `span` on its first line and inside `text`.
fn on_one_line(text: &str, span: &Range<usize>) -> Range<usize> {
    let inside = |mut at: usize| {
        at = at.min(text.len());
        while !text.is_char_boundary(at) {
            at -= 1;
        }
        at
    };
    let (start, end) = (inside(span.start), inside(span.end));
    let line = text[start..].find('\n').map_or(text.len(), |length| start + length);
    start..end.clamp(start, line)
}

/// "did you mean ...?", or the list of known words.
#[must_use]
pub fn suggest(wrong: &str, known: &[&str]) -> String {
    match did_you_mean(wrong, known.iter().copied()) {
        Some(near) => format!("did you mean `{near}`?"),
        None if known.is_empty() => String::new(),
        None => format!("known: {}", known.join(", ")),
    }
}

/// The word of `known` nearest to `wrong`, if at most a third of the letters differ.
pub fn did_you_mean<'a>(wrong: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let allowed = (wrong.chars().count() / 3).max(1);
    let near = known.into_iter().map(|word| (distance(wrong, word), word)).min_by_key(|(distance, _)| *distance)?;
    (near.0 <= allowed).then_some(near.1)
}

/// Edit distance (optimal string alignment): insertions, deletions, substitutions, and transpositions.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut table = vec![vec![0; b.len() + 1]; a.len() + 1];
    for i in 0..=a.len() {
        for j in 0..=b.len() {
            table[i][j] = match (i, j) {
                (0, _) | (_, 0) => i + j,
                _ => {
                    let replaced = table[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
                    replaced.min(table[i - 1][j] + 1).min(table[i][j - 1] + 1)
                }
            };
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                table[i][j] = table[i][j].min(table[i - 2][j - 2] + 1);
            }
        }
    }
    table[a.len()][b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edit_distances() {
        assert_eq!(distance("kitten", "sitting"), 3);
        assert_eq!(distance("ca", "abc"), 3, "optimal string alignment");
        assert_eq!(distance("dealy", "delay"), 1);
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(did_you_mean("cubik", ["reno", "cubic"]), Some("cubic"));
        assert_eq!(did_you_mean("xyz", ["reno", "cubic"]), None);
    }

    #[test]
    fn a_span_that_ends_inside_a_character_or_beyond_the_text_is_truncated() {
        assert_eq!(on_one_line("aé\nb", &(0..2)), 0..1);
        assert_eq!(on_one_line("aé\nb", &(1..99)), 1..3);
        assert_eq!(on_one_line("ab", &(7..9)), 2..2);
    }
}
