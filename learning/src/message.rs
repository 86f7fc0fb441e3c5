//! Reads a configuration; errors of the reader in the words of its user, by key.

use crate::config::{ConfigError, File};
use serde_json::Value;

/// Reads a configuration in JSON. An error names a key instead of a position, because no user has written JSON.
pub(crate) fn read(json: &str) -> Result<File, ConfigError> {
    let no_json = |error: serde_json::Error| ConfigError { key: String::new(), problem: error.to_string() };
    let value: Value = serde_json::from_str(json).map_err(no_json)?;
    serde_path_to_error::deserialize(value).map_err(|error| {
        let path = error.path().to_string();
        let (key, message) = (if path == "." { "" } else { &path }, error.inner().to_string());
        match message.strip_prefix("missing field `").and_then(|rest| rest.split_once('`')) {
            Some((field, _)) => {
                let key = if key.is_empty() { field.to_owned() } else { format!("{key}.{field}") };
                ConfigError { key, problem: "is missing".to_owned() }
            }
            None => ConfigError { key: key.to_owned(), problem: plain(&message) },
        }
    })
}

/// A message of serde without its words.
fn plain(message: &str) -> String {
    for (beginning, noun) in [("unknown field ", "key"), ("unknown variant ", "value")] {
        if let Some((given, known)) = message.strip_prefix(beginning).and_then(|rest| rest.split_once(", expected ")) {
            let names: Vec<&str> = known.split('`').skip(1).step_by(2).collect();
            let help = parse::suggest(given.trim_matches('`'), &names);
            return format!("no {noun} is called {given}; {help}");
        }
    }
    let typed = ["invalid type: ", "invalid value: "].iter().find_map(|beginning| message.strip_prefix(beginning));
    match typed.and_then(|rest| rest.rsplit_once(", expected ")) {
        Some((given, expected)) => format!("{} is expected, not {}", replaced(expected), replaced(given)),
        None => message.to_owned(),
    }
}

fn replaced(text: &str) -> String {
    WORDS.iter().fold(text.to_owned(), |text, (serde, plain)| text.replace(serde, plain))
}

/// Words of serde's errors, and plain ones for them.
const WORDS: [(&str, &str); 14] = [
    ("f64", "a number"),
    ("usize", "a whole number, 0 or more,"),
    ("a sequence", "a list"),
    ("sequence", "a list"),
    ("a string", "a text"),
    ("string ", "the text "),
    ("struct PathRanges", "a table with the keys of a path"),
    ("struct Rivals", "a table with the keys of rivals"),
    ("struct File", "a table"),
    ("floating point ", "the number "),
    ("integer ", "the number "),
    ("boolean ", ""),
    ("null", "None"),
    ("map", "a table"),
];

/// A value, shortened for an error message.
pub(crate) fn shortened(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(60) {
        Some((end, _)) => format!("{}\u{2026}", &text[..end]),
        None => text,
    }
}
