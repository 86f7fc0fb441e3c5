//! A TOML text as a tree of values with positions, and its deserialization.

use crate::error::{Fault, suggest};
use serde::de::DeserializeOwned;
use std::ops::Range;
use toml::Spanned;
use toml::de::{DeTable, DeValue, ValueDeserializer};

/// A value with its position.
pub type Node<'t> = Spanned<DeValue<'t>>;

/// The tree of a text.
///
/// # Errors
/// The text is not TOML.
pub fn parse(text: &str) -> Result<Node<'_>, Fault> {
    let tree = DeTable::parse(text).map_err(|error| {
        let message = error.message().trim().replace('\n', ", ");
        Fault::at(error.span().unwrap_or(0..0), format!("not TOML: {message}"))
    })?;
    Ok(Spanned::new(tree.span(), DeValue::Table(tree.into_inner())))
}

/// Deserializes a tree.
///
/// # Errors
/// The first unknown or missing key, or value of the wrong type.
pub fn typed<T: DeserializeOwned>(tree: Node<'_>) -> Result<T, Fault> {
    T::deserialize(ValueDeserializer::from(tree)).map_err(|error| plain(error.message(), error.span()))
}

/// Messages of serde, and their replacements.
const PLAINER: [(&str, &str); 4] = [
    ("a sequence", "a list"),
    ("a map", "a table"),
    ("expected i64", "expected a whole number"),
    ("expected u64", "expected a whole number"),
];

/// The error for a message of serde, with help.
fn plain(message: &str, span: Option<Range<usize>>) -> Fault {
    let mut quoted = message.split('`').skip(1).step_by(2);
    let wrong = quoted.next().unwrap_or_default();
    let fault = |message: String| Fault::at(span.unwrap_or_default(), message);
    match message.split_once(" `").map(|(kind, _)| kind) {
        Some("unknown field") => {
            fault(format!("unknown key `{wrong}`")).help(suggest(wrong, &quoted.collect::<Vec<_>>()))
        }
        Some("unknown variant") => {
            fault(format!("unknown value `{wrong}`")).help(suggest(wrong, &quoted.collect::<Vec<_>>()))
        }
        Some("missing field") => Fault { missing: wrong.to_owned(), ..fault(format!("missing key `{wrong}`")) },
        _ => {
            let (message, help) = message.split_once('\n').unwrap_or((message, ""));
            let plainer = |message: String, (theirs, ours): &(&str, &str)| message.replace(theirs, ours);
            fault(PLAINER.iter().fold(message.to_owned(), plainer)).help(help)
        }
    }
}

/// Name of an array's element.
#[must_use]
pub fn name(items: &[Node<'_>], index: usize) -> String {
    let name = items[index].get_ref().get("name").and_then(|name| name.get_ref().as_str());
    name.map_or_else(|| index.to_string(), str::to_owned)
}

/// The dotted key of the value at `span`: exactly there, else the smallest value around its beginning.
#[must_use]
pub fn key_at(root: &Node<'_>, span: &Range<usize>) -> String {
    let mut found = (if root.span() == *span { 0 } else { usize::MAX }, String::new());
    search(root, "", span, &mut found);
    found.1
}

/// Finds the smallest value; of equal ones the deepest.
fn search(node: &Node<'_>, key: &str, wanted: &Range<usize>, found: &mut (usize, String)) {
    let mut below = |part: &str, span: Option<Range<usize>>, node: &Node<'_>| {
        let key = if key.is_empty() { part.to_owned() } else { format!("{key}.{part}") };
        for span in span.into_iter().chain([node.span()]) {
            let width = if span == *wanted { 0 } else { 1 + span.len() };
            if span.contains(&wanted.start) && width <= found.0 {
                *found = (width, key.clone());
            }
        }
        search(node, &key, wanted, found);
    };
    match node.get_ref() {
        DeValue::Table(table) => table.iter().for_each(|(key, value)| below(key.get_ref(), Some(key.span()), value)),
        DeValue::Array(items) => (0..items.len()).for_each(|i| below(&name(items, i), None, &items[i])),
        _ => {}
    }
}
