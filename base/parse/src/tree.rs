//! A TOML text as a tree of values with positions, and its deserialization.

use crate::error::{Diagnostic, suggest};
use serde::de::DeserializeOwned;
use std::ops::Range;
use toml::Spanned;
use toml::de::{DeTable, DeValue, ValueDeserializer};

/// A value with its position.
pub type Node<'t> = Spanned<DeValue<'t>>;

/// Parses a text into a tree.
///
/// # Errors
/// The text is not TOML.
pub fn parse(text: &str) -> Result<Node<'_>, Diagnostic> {
    let tree = DeTable::parse(text).map_err(|error| {
        let message = error.message().trim().replace('\n', ", ");
        Diagnostic::new(error.span().unwrap_or(0..0), format!("not TOML: {message}"))
    })?;
    Ok(Spanned::new(tree.span(), DeValue::Table(tree.into_inner())))
}

/// Deserializes a tree.
///
/// # Errors
/// The first unknown or missing key, or value of the wrong type.
pub fn deserialize<T: DeserializeOwned>(tree: Node<'_>) -> Result<T, Diagnostic> {
    T::deserialize(ValueDeserializer::from(tree)).map_err(|error| serde_diagnostic(error.message(), error.span()))
}

/// Phrases in serde's messages, and their replacements.
const SERDE_PHRASES: [(&str, &str); 5] = [
    ("invalid type: map", "a table"),
    ("a sequence", "a list"),
    ("a map", "a table"),
    ("expected i64", "expected a whole number"),
    ("expected u64", "expected a whole number, 0 or more"),
];

/// Help for a value that must be a text.
const QUANTITY: &str = "a string in quotes; a quantity needs its unit, such as \"20mbit\", \"10ms\" or \"1500b\"";

/// Help for a value that must be a table.
const TABLE: &str = "its keys in braces, such as `queue = { limit = \"1bdp\" }`";

/// The diagnostic for one of serde's messages, with help.
fn serde_diagnostic(message: &str, span: Option<Range<usize>>) -> Diagnostic {
    let mut quoted = message.split('`').skip(1).step_by(2);
    let key_or_value = quoted.next().unwrap_or_default();
    let diagnostic = |message: String| Diagnostic::new(span.unwrap_or_default(), message);
    match message.split_once(" `").map(|(kind, _)| kind) {
        Some("unknown field") => diagnostic(format!("unknown key `{key_or_value}`"))
            .with_help(suggest(key_or_value, &quoted.collect::<Vec<_>>())),
        Some("unknown variant") => diagnostic(format!("unknown value `{key_or_value}`"))
            .with_help(suggest(key_or_value, &quoted.collect::<Vec<_>>())),
        Some("missing field") => {
            Diagnostic { missing_key: key_or_value.to_owned(), ..diagnostic(format!("missing key `{key_or_value}`")) }
        }
        _ => {
            let (message, help) = message.split_once('\n').unwrap_or((message, ""));
            let is_number =
                message.starts_with("invalid type: integer") || message.starts_with("invalid type: floating");
            let help = if help.is_empty() && is_number && message.ends_with("a string") { QUANTITY } else { help };
            // The name of a Rust type means nothing to the author of a file.
            let (message, help) = match message.split_once("expected struct ") {
                Some((before, _)) if help.is_empty() => (format!("{before}expected a table"), TABLE),
                _ => (message.to_owned(), help),
            };
            let replace = |message: String, (phrase, replacement): &(&str, &str)| message.replace(phrase, replacement);
            diagnostic(SERDE_PHRASES.iter().fold(message, replace)).with_help(help)
        }
    }
}

/// The `name` of an array's element, or its index if it has none.
#[must_use]
pub fn element_name(items: &[Node<'_>], index: usize) -> String {
    let name = items[index].get_ref().get("name").and_then(|name| name.get_ref().as_str());
    name.map_or_else(|| index.to_string(), str::to_owned)
}

/// The dotted key of the value at `span`: the value with exactly this position, or else the smallest value that
/// contains its beginning.
#[must_use]
pub fn key_at(root: &Node<'_>, span: &Range<usize>) -> String {
    let width = if root.span() == *span { 0 } else { usize::MAX };
    let mut smallest = SmallestValue { width, key: String::new() };
    smallest.search(root, "", span);
    smallest.key
}

/// Finds the smallest value at a position; of equally small values, the deepest.
struct SmallestValue {
    /// 0 for a value with exactly the position, else its length in bytes plus 1.
    width: usize,
    key: String,
}

impl SmallestValue {
    fn search(&mut self, node: &Node<'_>, key: &str, position: &Range<usize>) {
        let mut search_child = |name: &str, key_span: Option<Range<usize>>, child: &Node<'_>| {
            let key = if key.is_empty() { name.to_owned() } else { format!("{key}.{name}") };
            for span in key_span.into_iter().chain([child.span()]) {
                let width = if span == *position { 0 } else { 1 + span.len() };
                if span.contains(&position.start) && width <= self.width {
                    *self = Self { width, key: key.clone() };
                }
            }
            self.search(child, &key, position);
        };
        match node.get_ref() {
            DeValue::Table(table) => {
                table.iter().for_each(|(key, value)| search_child(key.get_ref(), Some(key.span()), value));
            }
            DeValue::Array(items) => {
                (0..items.len()).for_each(|index| search_child(&element_name(items, index), None, &items[index]));
            }
            _ => {}
        }
    }
}
