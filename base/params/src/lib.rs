//! Parameters of algorithms: an algorithm declares them with description, default and range; values are checked against
//! that; `ropewalk list` shows them.

use std::collections::BTreeMap;
use std::fmt;

/// A parameter of an algorithm.
#[derive(Clone, Copy, Debug)]
pub struct Parameter {
    /// The scenario key.
    pub name: &'static str,
    /// One line for `ropewalk list`, with the unit.
    pub description: &'static str,
    /// Default value and allowed values.
    pub kind: ParamKind,
}

/// Default value and allowed values of a parameter.
#[derive(Clone, Copy, Debug)]
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
}

/// A parameter's value as a scenario gives it.
#[derive(Clone, Debug, PartialEq)]
pub enum ParamValue {
    /// A number (booleans count as 0 and 1).
    Number(f64),
    /// One of the strings of [`ParamKind::Choice`].
    Choice(String),
}

impl fmt::Display for ParamValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => write!(f, "{number}"),
            Self::Choice(choice) => f.write_str(choice),
        }
    }
}

/// Name and parameters of an algorithm in a registry.
#[derive(Clone, Debug, PartialEq)]
pub struct AlgorithmChoice {
    /// Name or alias in the registry.
    pub name: String,
    /// Parameters that were given; the registry checks them.
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
    /// A key that is not declared, or a value outside its range.
    pub fn new(declared: &[Parameter], given: &BTreeMap<String, ParamValue>) -> Result<Self, ParamError> {
        let mut params: BTreeMap<&'static str, ParamValue> =
            declared.iter().map(|parameter| (parameter.name, parameter.default_value())).collect();
        for (key, value) in given {
            let parameter = declared.iter().find(|parameter| parameter.name == key).ok_or_else(|| {
                let known_names: Vec<_> = declared.iter().map(|parameter| parameter.name).collect();
                let known_names = if known_names.is_empty() { "none".to_owned() } else { known_names.join(", ") };
                ParamError { key: key.clone(), message: format!("no parameter `{key}`; there is: {known_names}") }
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
}

impl Parameter {
    /// The default as a value.
    #[must_use]
    pub fn default_value(&self) -> ParamValue {
        match self.kind {
            ParamKind::Number { default, .. } => ParamValue::Number(default),
            ParamKind::Choice(choices) => ParamValue::Choice(choices[0].to_owned()),
        }
    }

    /// The allowed values as text: `0.1 to 1`, or `one of on, off`.
    #[must_use]
    pub fn range(&self) -> String {
        match self.kind {
            ParamKind::Number { min, max, .. } => format!("{min} to {max}"),
            ParamKind::Choice(choices) => format!("one of {}", choices.join(", ")),
        }
    }

    fn check(&self, value: &ParamValue) -> Result<(), ParamError> {
        let is_allowed = match (self.kind, value) {
            (ParamKind::Number { min, max, .. }, ParamValue::Number(number)) => (min..=max).contains(number),
            (ParamKind::Choice(choices), ParamValue::Choice(choice)) => choices.contains(&choice.as_str()),
            _ => false,
        };
        if is_allowed {
            return Ok(());
        }
        let message = format!("`{}` cannot be {value}: {}", self.name, self.range());
        Err(ParamError { key: self.name.to_owned(), message })
    }
}
