//! Congestion controls and schedulers by name.

use params::ParamValue;
use std::collections::BTreeMap;

/// A congestion control or a scheduler by name, with its parameters.
#[derive(Clone, Debug, PartialEq)]
pub struct Algorithm {
    /// Name or alias in the registry.
    pub name: String,
    /// Parameters that were given; the registry checks them.
    pub parameters: BTreeMap<String, ParamValue>,
}

impl Algorithm {
    /// The algorithm of this name with its own defaults.
    #[must_use]
    pub fn named(name: &str) -> Self {
        Self { name: name.to_owned(), parameters: BTreeMap::new() }
    }
}
