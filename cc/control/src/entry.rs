//! What an algorithm says of itself in its line of the registry.

use crate::{BadParameter, Controller, Parameter, PathController, Settings, Uncoupled, Value};
use std::collections::BTreeMap;

/// What the registry knows of one algorithm.
#[derive(Debug)]
pub struct Entry {
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
    pub make: Make,
}

/// How an algorithm is built.
#[derive(Clone, Copy, Debug)]
pub enum Make {
    /// For one path at a time.
    Single(fn(&Settings) -> Box<dyn PathController>),
    /// For a group of paths, which it couples.
    Group(fn(&Settings) -> Box<dyn Controller>),
}

impl Entry {
    /// Couples the paths of a connection; any other runs one instance a path, and none sees another.
    #[must_use]
    pub fn is_coupled(&self) -> bool {
        matches!(self.make, Make::Group(_))
    }

    /// A controller for a group of paths.
    ///
    /// # Errors
    /// A parameter that the algorithm does not have, or a value outside its range.
    pub fn controller(&self, given: &BTreeMap<String, Value>) -> Result<Box<dyn Controller>, BadParameter> {
        let settings = Settings::new(self.parameters, given)?;
        Ok(match self.make {
            Make::Single(make) => Box::new(Uncoupled::new(move || make(&settings))),
            Make::Group(make) => make(&settings),
        })
    }
}
