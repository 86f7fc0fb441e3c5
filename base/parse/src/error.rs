//! Errors in input files, with position and help.

use annotate_snippets::{AnnotationKind, Level, Origin, Renderer, Snippet};
use std::fmt;
use std::ops::Range;

/// An error in a file, in a `--set`, or in a file named in another one.
///
/// `Display` shows the file, line and column, the line with the error underlined, the key, and help. It then shows the
/// other errors that the same pass found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error(Box<LocatedDiagnostic>);

/// A diagnostic with the file that contains it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct LocatedDiagnostic {
    file_name: String,
    /// Contents of the file; `None` if it could not be read.
    text: Option<String>,
    diagnostic: Diagnostic,
    /// Other errors that the same pass found.
    others: Vec<Error>,
}

/// An error at a position of a text. The text itself is not part of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Diagnostic {
    /// Position of the error in the text, bytes.
    pub span: Range<usize>,
    /// Dotted key; empty if [`key_at`](crate::key_at) finds it by `span`.
    pub key: String,
    /// Name of the key that is missing in the table at `span`, or empty.
    pub missing_key: String,
    /// The error, in one line.
    pub message: String,
    /// Help, or empty.
    pub help: String,
    /// The error's location in another file; `span` is then the position of that file's name.
    pub location: Option<Box<SourceLocation>>,
}

/// A position in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceLocation {
    /// Name of the file.
    pub file_name: String,
    /// Contents of the file.
    pub text: String,
    /// Position of the error in the file, bytes.
    pub span: Range<usize>,
}

impl Diagnostic {
    /// An error at `span`.
    #[must_use]
    pub fn new(span: Range<usize>, message: impl Into<String>) -> Self {
        Self { span, message: message.into(), ..Self::default() }
    }

    /// Sets the help.
    #[must_use]
    pub fn with_help(mut self, help: impl Into<String>) -> Self {
        self.help = help.into();
        self
    }

    /// Sets the key of an error that is not at the position of the key's value.
    #[must_use]
    pub fn with_key(mut self, key: impl Into<String>) -> Self {
        self.key = key.into();
        self
    }

    /// The error that `given_name` is not the name of a `kind` (path, link ...).
    #[must_use]
    pub fn unknown_name(span: Range<usize>, kind: &str, given_name: &str, known: &[&str]) -> Self {
        Self::new(span, format!("unknown {kind} `{given_name}`")).with_help(suggest(given_name, known))
    }
}

impl Error {
    /// The error `diagnostic` in the file `file_name` with the contents `text`.
    #[must_use]
    pub fn new(file_name: &str, text: &str, mut diagnostic: Diagnostic) -> Self {
        let this_file =
            SourceLocation { file_name: file_name.to_owned(), text: text.to_owned(), span: diagnostic.span.clone() };
        let SourceLocation { file_name, text, span } =
            diagnostic.location.take().map_or(this_file, |location| *location);
        diagnostic.span = first_line_of_span(&text, &span);
        Self(Box::new(LocatedDiagnostic { file_name, text: Some(text), diagnostic, others: Vec::new() }))
    }

    /// The error for a file that could not be read.
    #[must_use]
    pub fn unreadable(file_name: &str, message: String) -> Self {
        let diagnostic = Diagnostic::new(0..0, message);
        let file_name = file_name.to_owned();
        Self(Box::new(LocatedDiagnostic { file_name, text: None, diagnostic, others: Vec::new() }))
    }

    /// Adds other errors that the same pass found; they are displayed below this one.
    #[must_use]
    pub fn with_others(mut self, others: Vec<Self>) -> Self {
        self.0.others = others;
        self
    }

    /// The errors added by [`Error::with_others`].
    #[must_use]
    pub fn others(&self) -> &[Self] {
        &self.0.others
    }

    /// The file's name as the caller gave it; `--set` for an error in a `--set`.
    #[must_use]
    pub fn file_name(&self) -> &str {
        &self.0.file_name
    }

    /// The line, from 1; 0 for a file that could not be read.
    #[must_use]
    pub fn line(&self) -> usize {
        self.0.text.as_ref().map_or(0, |text| 1 + text[..self.0.diagnostic.span.start].matches('\n').count())
    }

    /// The dotted key, as in a sweep: `path.eno2.delay`. Empty if the text is not TOML.
    #[must_use]
    pub fn key(&self) -> &str {
        &self.0.diagnostic.key
    }

    /// The error, in one line.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.0.diagnostic.message
    }

    /// Help, or empty.
    #[must_use]
    pub fn help(&self) -> &str {
        &self.0.diagnostic.help
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let LocatedDiagnostic { file_name, text, diagnostic, others } = &*self.0;
        let title = Level::ERROR.primary_title(diagnostic.message.as_str());
        let mut group = match text {
            None => title.element(Origin::path(file_name.as_str())),
            Some(text) => {
                let label = (!diagnostic.key.is_empty()).then_some(diagnostic.key.as_str());
                let annotation = AnnotationKind::Primary.span(diagnostic.span.clone()).label(label);
                title.element(Snippet::source(text.as_str()).path(file_name.as_str()).annotation(annotation))
            }
        };
        if !diagnostic.help.is_empty() {
            group = group.element(Level::HELP.message(diagnostic.help.as_str()));
        }
        f.write_str(&Renderer::plain().render(&[group]))?;
        others.iter().try_for_each(|other| write!(f, "\n\n{other}"))
    }
}

impl std::error::Error for Error {}

/// The part of `span` that is on its first line and inside `text`.
fn first_line_of_span(text: &str, span: &Range<usize>) -> Range<usize> {
    let floor_char_boundary = |mut index: usize| {
        index = index.min(text.len());
        while !text.is_char_boundary(index) {
            index -= 1;
        }
        index
    };
    let (start, end) = (floor_char_boundary(span.start), floor_char_boundary(span.end));
    let line_end = text[start..].find('\n').map_or(text.len(), |length| start + length);
    start..end.clamp(start, line_end)
}

/// Help for an unknown word: "did you mean ...?", or the list of known words.
#[must_use]
pub fn suggest(given_word: &str, known: &[&str]) -> String {
    match did_you_mean(given_word, known.iter().copied()) {
        Some(nearest) => format!("did you mean `{nearest}`?"),
        None if known.is_empty() => String::new(),
        None if known.iter().any(|word| continues(word, given_word)) => {
            let words: Vec<String> = known
                .iter()
                .filter(|word| continues(word, given_word))
                .take(4)
                .map(|word| format!("`{word}`"))
                .collect();
            format!("did you mean {}?", words.join(" or "))
        }
        None => format!("known: {}", known.join(", ")),
    }
}

/// Whether a word begins with the given one: `goodput_mbps` with `goodput`.
fn continues(word: &str, given_word: &str) -> bool {
    word.strip_prefix(given_word).is_some_and(|rest| !given_word.is_empty() && rest.starts_with(['_', '.', '-']))
}

/// The word of `known` nearest to `given_word`, if their edit distance is at most a third of its length.
pub fn did_you_mean<'a>(given_word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let max_distance = (given_word.chars().count() / 3).max(1);
    let distances = known.into_iter().map(|word| (distance(given_word, word), word));
    let (distance, nearest) = distances.min_by_key(|(distance, _)| *distance)?;
    (distance <= max_distance).then_some(nearest)
}

/// Edit distance (optimal string alignment): insertions, deletions, substitutions, and transpositions.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut distances = vec![vec![0; b.len() + 1]; a.len() + 1];
    for i in 0..=a.len() {
        for j in 0..=b.len() {
            distances[i][j] = match (i, j) {
                (0, _) | (_, 0) => i + j,
                _ => {
                    let substitution = distances[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
                    substitution.min(distances[i - 1][j] + 1).min(distances[i][j - 1] + 1)
                }
            };
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                distances[i][j] = distances[i][j].min(distances[i - 2][j - 2] + 1);
            }
        }
    }
    distances[a.len()][b.len()]
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
        assert_eq!(suggest("goodput", &["rtt_ms", "goodput_mbps"]), "did you mean `goodput_mbps`?");
    }

    #[test]
    fn a_span_that_ends_inside_a_character_or_beyond_the_text_is_truncated() {
        assert_eq!(first_line_of_span("aé\nb", &(0..2)), 0..1);
        assert_eq!(first_line_of_span("aé\nb", &(1..99)), 1..3);
        assert_eq!(first_line_of_span("ab", &(7..9)), 2..2);
    }
}
