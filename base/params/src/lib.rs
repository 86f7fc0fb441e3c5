//! Parameters: declared once with meaning, default and range; checked when set; shown by `list algorithms`.

use std::collections::BTreeMap;
use std::fmt;

/// One tunable of an algorithm.
#[derive(Clone, Copy, Debug)]
pub struct Parameter {
    /// The scenario key.
    pub name: &'static str,
    /// Its meaning in one line, with the unit.
    pub meaning: &'static str,
    /// Default and what is allowed.
    pub default: ParamDefault,
}

/// A parameter's default and range.
#[derive(Clone, Copy, Debug)]
pub enum ParamDefault {
    /// A number within `least..=most`.
    Number {
        /// The default.
        value: f64,
        /// Least allowed value.
        least: f64,
        /// Greatest allowed value.
        most: f64,
    },
    /// One of a few words; the first is the default.
    Word(&'static [&'static str]),
}

/// A parameter's value as a scenario gives it.
#[derive(Clone, Debug, PartialEq)]
pub enum ParamValue {
    /// A number (booleans count as 0 and 1).
    Number(f64),
    /// A word.
    Word(String),
}

impl fmt::Display for ParamValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => write!(f, "{number}"),
            Self::Word(word) => f.write_str(word),
        }
    }
}

/// An algorithm of a registry by name, with parameters.
#[derive(Clone, Debug, PartialEq)]
pub struct AlgorithmChoice {
    /// Name or alias in the registry.
    pub name: String,
    /// The parameters that are given; the registry checks them.
    pub parameters: BTreeMap<String, ParamValue>,
}

impl From<&str> for AlgorithmChoice {
    fn from(name: &str) -> Self {
        Self { name: name.to_owned(), parameters: BTreeMap::new() }
    }
}

/// A parameter that does not exist or a value that is not allowed; its text says what would be right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParamError {
    /// The offending key.
    pub key: String,
    /// The mistake, and the allowed values.
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
    /// The defaults of `declared`, with `given` laid over them.
    ///
    /// # Errors
    /// A key that is not declared, or a value outside its range.
    pub fn new(declared: &[Parameter], given: &BTreeMap<String, ParamValue>) -> Result<Self, ParamError> {
        let mut params: BTreeMap<&'static str, ParamValue> =
            declared.iter().map(|parameter| (parameter.name, parameter.default_value())).collect();
        for (key, value) in given {
            let parameter = declared.iter().find(|parameter| parameter.name == key).ok_or_else(|| {
                let known: Vec<_> = declared.iter().map(|parameter| parameter.name).collect();
                let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
                ParamError { key: key.clone(), message: format!("no parameter `{key}`; there is: {known}") }
            })?;
            parameter.check(value)?;
            params.insert(parameter.name, value.clone());
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

    /// A word parameter.
    ///
    /// # Panics
    /// If the algorithm did not declare it as a word: a mistake in the algorithm's own file.
    #[must_use]
    pub fn word(&self, name: &str) -> &str {
        match self.0.get(name) {
            Some(ParamValue::Word(word)) => word,
            _ => panic!("`{name}` is not declared as a word"),
        }
    }
}

impl Parameter {
    /// The default as a value.
    #[must_use]
    pub fn default_value(&self) -> ParamValue {
        match self.default {
            ParamDefault::Number { value, .. } => ParamValue::Number(value),
            ParamDefault::Word(words) => ParamValue::Word(words[0].to_owned()),
        }
    }

    /// The allowed values in words: `0.1 to 1`, or `one of on, off`.
    #[must_use]
    pub fn range(&self) -> String {
        match self.default {
            ParamDefault::Number { least, most, .. } => format!("{least} to {most}"),
            ParamDefault::Word(words) => format!("one of {}", words.join(", ")),
        }
    }

    fn check(&self, value: &ParamValue) -> Result<(), ParamError> {
        let allowed = match (self.default, value) {
            (ParamDefault::Number { least, most, .. }, ParamValue::Number(number)) => (least..=most).contains(number),
            (ParamDefault::Word(words), ParamValue::Word(word)) => words.contains(&word.as_str()),
            _ => false,
        };
        if allowed {
            return Ok(());
        }
        let message = format!("`{}` cannot be {value}: {}", self.name, self.range());
        Err(ParamError { key: self.name.to_owned(), message })
    }
}
