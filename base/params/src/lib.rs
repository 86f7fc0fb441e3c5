//! Parameters of algorithms. An algorithm declares each with description, default and range. Values are checked against
//! the declaration, and `ropewalk list` shows it.

mod failure;
mod kept;
mod registration;

pub use failure::AlgorithmError;
pub use kept::{Kept, kept_text};
pub use registration::{Entry, RegisterError, Registered, code_version};

use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The name of every parameter of [`ParamKind::File`], and of no other. A reader of scenarios or configurations
/// therefore knows which value names a file without knowing the algorithm.
pub const FILE: &str = "file";
/// The largest file that a parameter may name, bytes.
pub const MAX_FILE_BYTES: usize = 16 << 20;

/// A parameter of an algorithm.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Parameter {
    /// The scenario key.
    pub name: &'static str,
    /// One line for `ropewalk list`, with the unit.
    pub description: &'static str,
    /// Default value and allowed values.
    pub kind: ParamKind,
}

/// Default value and allowed values of a parameter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ParamKind {
    /// A number within `min..=max`.
    Number {
        /// Default value.
        default: f64,
        /// Smallest allowed value.
        min: f64,
        /// Largest allowed value.
        max: f64,
    },
    /// One of several strings; the first is the default.
    Choice(&'static [&'static str]),
    /// The contents of a file. It has no default, and its name is [`FILE`].
    File,
}

/// A parameter's value as a scenario gives it.
#[derive(Clone, PartialEq)]
pub enum ParamValue {
    /// A number (booleans count as 0 and 1).
    Number(f64),
    /// One of the strings of [`ParamKind::Choice`].
    Choice(String),
    /// A file, read by the reader of the scenario or configuration.
    File {
        /// The path from which it was read.
        path: PathBuf,
        /// Its contents, at most [`MAX_FILE_BYTES`].
        bytes: Arc<[u8]>,
    },
}

impl ParamValue {
    /// Reads the file at `path`.
    ///
    /// # Errors
    /// The file cannot be read, is not a regular file, or is longer than [`MAX_FILE_BYTES`].
    #[expect(
        clippy::disallowed_methods,
        clippy::disallowed_types,
        reason = "a parameter may be a file, which the reader of the scenario opens here"
    )]
    pub fn read_file(path: &Path) -> io::Result<Self> {
        // `filesystem::read` would add features of nix, so that each choice of packages would build everything again.
        if !path.metadata()?.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "it must be a regular file"));
        }
        let mut bytes = Vec::new();
        std::fs::File::open(path)?.take(MAX_FILE_BYTES as u64 + 1).read_to_end(&mut bytes)?;
        if bytes.len() > MAX_FILE_BYTES {
            return Err(io::Error::other(format!("longer than {} MiB", MAX_FILE_BYTES >> 20)));
        }
        Ok(Self::File { path: path.to_owned(), bytes: bytes.into() })
    }
}

impl fmt::Debug for ParamValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => write!(f, "Number({number:?})"),
            Self::Choice(choice) => write!(f, "Choice({choice:?})"),
            Self::File { path, bytes } => write!(f, "File({path:?}, {} bytes)", bytes.len()),
        }
    }
}

impl fmt::Display for ParamValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => write!(f, "{number}"),
            Self::Choice(choice) => f.write_str(choice),
            Self::File { path, .. } => write!(f, "{}", path.display()),
        }
    }
}

/// Name and parameters of an algorithm in a registry.
#[derive(Clone, Debug, PartialEq)]
pub struct AlgorithmChoice {
    /// Name or alias in the registry.
    pub name: String,
    /// The given parameters; the registry checks them.
    pub parameters: BTreeMap<String, ParamValue>,
}

impl From<&str> for AlgorithmChoice {
    fn from(name: &str) -> Self {
        Self { name: name.to_owned(), parameters: BTreeMap::new() }
    }
}

/// An unknown parameter or a value that is not allowed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParamError {
    /// The wrong key.
    pub key: String,
    /// What is wrong, and what is allowed.
    pub message: String,
}

impl fmt::Display for ParamError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for ParamError {}

/// The checked parameters of one algorithm: every declared one has a value.
#[derive(Clone, Debug, PartialEq)]
pub struct Params(BTreeMap<&'static str, ParamValue>);

impl Params {
    /// The defaults of `declared`, overridden by `given`.
    ///
    /// # Errors
    /// A key that is not declared, a value outside its range, or a file that is not given.
    pub fn new(declared: &[Parameter], given: &BTreeMap<String, ParamValue>) -> Result<Self, ParamError> {
        let defaults = declared.iter().filter_map(|parameter| Some((parameter.name, parameter.default_value()?)));
        let mut params: BTreeMap<&'static str, ParamValue> = defaults.collect();
        for (key, value) in given {
            let parameter = declared.iter().find(|parameter| parameter.name == key).ok_or_else(|| {
                let known_names: Vec<_> = declared.iter().map(|parameter| parameter.name).collect();
                let known_names = if known_names.is_empty() { "none".to_owned() } else { known_names.join(", ") };
                ParamError { key: key.clone(), message: format!("no parameter `{key}`; there is: {known_names}") }
            })?;
            parameter.check(value)?;
            params.insert(parameter.name, value.clone());
        }
        if let Some(missing) = declared.iter().find(|parameter| !params.contains_key(parameter.name)) {
            let message = format!("`{0}` is missing: {0} = \"...\" names {1}", missing.name, missing.description);
            return Err(ParamError { key: missing.name.to_owned(), message });
        }
        Ok(Self(params))
    }

    /// A numeric parameter.
    ///
    /// # Panics
    /// If the algorithm did not declare it as a number: a mistake in the algorithm's own file.
    #[must_use]
    pub fn number(&self, name: &str) -> f64 {
        match self.0.get(name) {
            Some(ParamValue::Number(number)) => *number,
            _ => panic!("`{name}` is not declared as a number"),
        }
    }

    /// A parameter with several choices.
    ///
    /// # Panics
    /// If the algorithm did not declare it as a choice: a mistake in the algorithm's own file.
    #[must_use]
    pub fn choice(&self, name: &str) -> &str {
        match self.0.get(name) {
            Some(ParamValue::Choice(choice)) => choice,
            _ => panic!("`{name}` is not declared as a choice"),
        }
    }

    /// The contents of the [`FILE`].
    ///
    /// # Panics
    /// If the algorithm did not declare a parameter of [`ParamKind::File`]: a mistake in the algorithm's own file.
    #[must_use]
    pub fn file(&self) -> &Arc<[u8]> {
        match self.0.get(FILE) {
            Some(ParamValue::File { bytes, .. }) => bytes,
            _ => panic!("no file is declared"),
        }
    }
}

impl Parameter {
    /// The default as a value; `None` for a file, which has none.
    #[must_use]
    pub fn default_value(&self) -> Option<ParamValue> {
        match self.kind {
            ParamKind::Number { default, .. } => Some(ParamValue::Number(default)),
            ParamKind::Choice(choices) => Some(ParamValue::Choice(choices[0].to_owned())),
            ParamKind::File => None,
        }
    }

    /// The allowed values as text: `0.1 to 1`, or `one of on, off`.
    #[must_use]
    pub fn range(&self) -> String {
        match self.kind {
            ParamKind::Number { min, max, .. } => format!("{min} to {max}"),
            ParamKind::Choice(choices) => format!("one of {}", choices.join(", ")),
            ParamKind::File => "the path of a file".to_owned(),
        }
    }

    fn check(&self, value: &ParamValue) -> Result<(), ParamError> {
        let is_allowed = match (self.kind, value) {
            (ParamKind::Number { min, max, .. }, ParamValue::Number(number)) => (min..=max).contains(number),
            (ParamKind::Choice(choices), ParamValue::Choice(choice)) => choices.contains(&choice.as_str()),
            (ParamKind::File, ParamValue::File { .. }) => true,
            _ => false,
        };
        if is_allowed {
            return Ok(());
        }
        let message = format!("`{}` cannot be {value}: {}", self.name, self.range());
        Err(ParamError { key: self.name.to_owned(), message })
    }
}
