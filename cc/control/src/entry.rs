//! What an algorithm says of itself in its line of the registry.

use crate::{Controller, ParamError, ParamValue, Parameter, Params, PathController, Uncoupled};
use std::collections::BTreeMap;

/// What the registry knows of one algorithm.
#[derive(Debug)]
pub struct AlgorithmEntry {
    /// The name, as in `net.ipv4.tcp_congestion_control`.
    pub name: &'static str,
    /// Names that papers use for it.
    pub aliases: &'static [&'static str],
    /// One line: what it is.
    pub title: &'static str,
    /// RFC, paper, kernel file.
    pub source: &'static str,
    /// What can be set.
    pub parameters: &'static [Parameter],
    /// Builds one instance.
    pub make: Constructor,
}

/// How an algorithm is built.
#[derive(Clone, Copy, Debug)]
pub enum Constructor {
    /// For one path at a time.
    Single(fn(&Params) -> Box<dyn PathController>),
    /// For a group of paths, which it couples.
    Group(fn(&Params) -> Box<dyn Controller>),
}

impl AlgorithmEntry {
    /// Couples the paths of a connection; any other runs one instance a path, and none sees another.
    #[must_use]
    pub fn is_coupled(&self) -> bool {
        matches!(self.make, Constructor::Group(_))
    }

    /// A controller for a group of paths.
    ///
    /// # Errors
    /// A parameter that the algorithm does not have, or a value outside its range.
    pub fn controller(&self, given: &BTreeMap<String, ParamValue>) -> Result<Box<dyn Controller>, ParamError> {
        let settings = Params::new(self.parameters, given)?;
        Ok(match self.make {
            Constructor::Single(make) => Box::new(Uncoupled::new(move || make(&settings))),
            Constructor::Group(make) => make(&settings),
        })
    }
}
