//! Congestion controls and schedulers by name.

use std::collections::BTreeMap;

/// A congestion control or a scheduler by name, with its settings.
#[derive(Clone, Debug, PartialEq)]
pub struct Algorithm {
    /// Name or alias in the registry.
    pub name: String,
    /// Settings; the registry checks them.
    pub parameters: BTreeMap<String, Parameter>,
}

impl Algorithm {
    /// The algorithm of this name with its own defaults.
    #[must_use]
    pub fn named(name: &str) -> Self {
        Self { name: name.to_owned(), parameters: BTreeMap::new() }
    }
}

/// The value of one algorithm parameter.
#[derive(Clone, Debug, PartialEq)]
pub enum Parameter {
    /// A number.
    Number(f64),
    /// A word.
    Word(String),
}
