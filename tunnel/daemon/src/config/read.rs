//! Reading the file, and all that is wrong with it at once.

use super::file::File;
use super::mask::masked;
use super::{Config, resolve};
use parse::{Error, Fault, Node, key_at};
use std::fmt;
use std::ops::Range;
use std::path::Path;
use toml::de::DeValue;

/// All that is wrong with a configuration, in the file's order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Faults(Vec<Error>);

impl Faults {
    /// Each by itself.
    #[must_use]
    pub fn each(&self) -> &[Error] {
        &self.0
    }
}

impl From<Error> for Faults {
    fn from(error: Error) -> Self {
        Self(vec![error])
    }
}

impl fmt::Display for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let told: Vec<_> = self.0.iter().map(Error::to_string).collect();
        f.write_str(&told.join("\n\n"))
    }
}

impl std::error::Error for Faults {}

/// Reads the configuration at `path`, and the key files that it names.
///
/// # Errors
/// All that is wrong, each with file, line, key and what would be right. No secret is among the words.
pub fn load(path: &Path) -> Result<Config, Faults> {
    let origin = path.display().to_string();
    let unreadable =
        |error| Faults(vec![Error::unreadable(&origin, format!("cannot read the configuration: {error}"))]);
    let text = std::fs::read_to_string(path).map_err(unreadable)?;
    let mut config = parse(&origin, &text, path)?;
    if super::secrets::is_within(&text) && super::secrets::others_may_read(path) {
        config.warnings.push(format!("{origin} holds a secret and others may read it: chmod 600 {origin}"));
    }
    Ok(config)
}

/// Reads a configuration from `text`, which errors call `origin`. The stem of `path` is the interface's default name,
/// and relative key files are looked for beside it.
///
/// # Errors
/// As [`load`].
pub fn parse(origin: &str, text: &str, path: &Path) -> Result<Config, Faults> {
    let shown = masked(text);
    let tell = |faults: Vec<Fault>| Faults(faults.into_iter().map(|fault| Error::new(origin, &shown, fault)).collect());
    let tree = parse::parse(text).map_err(|fault| tell(vec![fault]))?;
    let (file, mut faults) = typed(&tree);
    let config = resolve::config(&file, path, &mut faults);
    if faults.is_empty() {
        return Ok(config);
    }
    for fault in &mut faults {
        let parts = [key_at(&tree, &fault.span), fault.missing.clone()];
        fault.key = parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(".");
    }
    faults.sort_by_key(|fault| fault.span.start);
    // What is missing only because its value was refused has been told already.
    let mut told: Vec<Fault> = Vec::new();
    for fault in faults {
        if fault.missing.is_empty() || told.iter().all(|other| other.key != fault.key) {
            told.push(fault);
        }
    }
    Err(tell(told))
}

/// The file's form. What is faulty is taken out, and the rest read again, until nothing is.
fn typed(tree: &Node<'_>) -> (File, Vec<Fault>) {
    let (mut tree, mut faults) = (tree.clone(), Vec::new());
    loop {
        match parse::typed::<File>(tree.clone()) {
            Ok(file) => return (file, faults),
            Err(fault) => {
                let gone = take_out(&mut tree, &fault.span);
                faults.push(fault);
                if !gone {
                    return (File::default(), faults);
                }
            }
        }
    }
}

/// Takes the key out whose name or value was written at `span`.
fn take_out(node: &mut Node<'_>, span: &Range<usize>) -> bool {
    match node.get_mut() {
        DeValue::Table(table) => {
            let faulty = table.iter().find(|(key, value)| key.span() == *span || value.span() == *span);
            match faulty.map(|(key, _)| key.get_ref().clone().into_owned()) {
                Some(key) => table.remove(key.as_str()).is_some(),
                None => table.iter_mut().any(|(_, value)| take_out(value, span)),
            }
        }
        DeValue::Array(items) => {
            let faulty = items.iter().any(|item| !item.get_ref().is_table() && item.span() == *span);
            if faulty {
                *items = toml::de::DeArray::new();
            }
            faulty || items.iter_mut().any(|item| take_out(item, span))
        }
        _ => false,
    }
}
