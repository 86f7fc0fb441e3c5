//! Reading the file, and collecting all of its errors.

use super::mask::mask_secrets;
use super::model::TunnelConfig;
use super::resolve;
use super::tables::ConfigFile;
use parse::{Diagnostic, Error, Node, key_at};
use std::fmt;
use std::ops::Range;
use std::path::Path;
use toml::de::DeValue;

/// All errors of a configuration, in the file's order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigErrors(Vec<Error>);

impl From<Error> for ConfigErrors {
    fn from(error: Error) -> Self {
        Self(vec![error])
    }
}

impl fmt::Display for ConfigErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let errors: Vec<_> = self.0.iter().map(Error::to_string).collect();
        f.write_str(&errors.join("\n\n"))
    }
}

impl std::error::Error for ConfigErrors {}

/// Reads the configuration at `path`, and the key files that it names.
///
/// # Errors
/// All errors, each with file, line, key and fix. They contain no secret.
pub fn load(path: &Path) -> Result<TunnelConfig, ConfigErrors> {
    let origin = path.display().to_string();
    let to_error =
        |error| ConfigErrors(vec![Error::unreadable(&origin, format!("cannot read the configuration: {error}"))]);
    let file = super::secrets::read(path).map_err(to_error)?;
    parse_file(&origin, &file.text, path, file.loose_mode)
}

/// Reads a configuration from `text`, which errors call `origin`. The stem of `path` is the interface's default name,
/// and relative key files are in its folder.
///
/// # Errors
/// As [`load`], but for the mode of the configuration itself.
pub fn parse(origin: &str, text: &str, path: &Path) -> Result<TunnelConfig, ConfigErrors> {
    parse_file(origin, text, path, None)
}

/// [`parse`] of a file, with its mode if group or others may read it.
fn parse_file(origin: &str, text: &str, path: &Path, loose_mode: Option<u32>) -> Result<TunnelConfig, ConfigErrors> {
    let masked_text = mask_secrets(text);
    let errors = |diagnostics: Vec<Diagnostic>| {
        ConfigErrors(diagnostics.into_iter().map(|diagnostic| Error::new(origin, &masked_text, diagnostic)).collect())
    };
    let tree = parse::parse(text).map_err(|diagnostic| errors(vec![diagnostic]))?;
    let (file, mut diagnostics) = read_tables(&tree);
    let config = resolve::config(&file, path, loose_mode, &mut diagnostics);
    if diagnostics.is_empty() {
        return Ok(config);
    }
    for diagnostic in &mut diagnostics {
        let parts = [key_at(&tree, &diagnostic.span), diagnostic.missing_key.clone()];
        diagnostic.key = parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(".");
    }
    diagnostics.sort_by_key(|diagnostic| diagnostic.span.start);
    // A key that is missing only because its value was refused has been reported already.
    let mut reported: Vec<Diagnostic> = Vec::new();
    for diagnostic in diagnostics {
        if diagnostic.missing_key.is_empty() || reported.iter().all(|earlier| earlier.key != diagnostic.key) {
            reported.push(diagnostic);
        }
    }
    Err(errors(reported))
}

/// Reads the tables. Removes each faulty key and reads the rest again, until no error is left.
fn read_tables(tree: &Node<'_>) -> (ConfigFile, Vec<Diagnostic>) {
    let (mut tree, mut diagnostics) = (tree.clone(), Vec::new());
    loop {
        match parse::deserialize::<ConfigFile>(tree.clone()) {
            Ok(file) => return (file, diagnostics),
            Err(diagnostic) => {
                let diagnostic = with_unit(diagnostic, &tree);
                let removed = remove(&mut tree, &diagnostic.span);
                diagnostics.push(diagnostic);
                if !removed {
                    return (ConfigFile::default(), diagnostics);
                }
            }
        }
    }
}

/// Improves the error of a number in place of a quantity, which is a string with a unit.
fn with_unit(diagnostic: Diagnostic, tree: &Node<'_>) -> Diagnostic {
    let key = key_at(tree, &diagnostic.span);
    let is_number = diagnostic.message.contains("integer") || diagnostic.message.contains("float");
    match key.rsplit('.').next() {
        Some("rate") if is_number => diagnostic.with_help("a number with its unit, such as `\"20mbit\"`"),
        Some("max-reorder-timeout" | "keepalive-time" | "dead-time") if is_number => {
            diagnostic.with_help("a number with its unit, such as `\"300ms\"`")
        }
        _ => diagnostic,
    }
}

/// Removes the key whose name or value is at `span`.
fn remove(node: &mut Node<'_>, span: &Range<usize>) -> bool {
    match node.get_mut() {
        DeValue::Table(table) => {
            let faulty = table.iter().find(|(key, value)| key.span() == *span || value.span() == *span);
            match faulty.map(|(key, _)| key.get_ref().clone().into_owned()) {
                Some(key) => table.remove(key.as_str()).is_some(),
                None => table.iter_mut().any(|(_, value)| remove(value, span)),
            }
        }
        DeValue::Array(items) => {
            let faulty = items.iter().any(|item| !item.get_ref().is_table() && item.span() == *span);
            if faulty {
                *items = toml::de::DeArray::new();
            }
            faulty || items.iter_mut().any(|item| remove(item, span))
        }
        _ => false,
    }
}
