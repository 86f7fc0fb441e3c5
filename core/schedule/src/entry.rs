//! What a scheduler says of itself in its line of the registry.

use crate::Scheduler;
use settings::{BadParameter, Parameter, Settings, Value};
use std::collections::BTreeMap;

/// What the registry knows of one scheduler.
#[derive(Debug)]
pub struct Entry {
    /// Its name in scenarios.
    pub name: &'static str,
    /// Other names.
    pub aliases: &'static [&'static str],
    /// One line: what it does.
    pub title: &'static str,
    /// Where it comes from.
    pub source: &'static str,
    /// What it must be told of the paths.
    pub needs: Needs,
    /// What can be set.
    pub parameters: &'static [Parameter],
    /// Builds one.
    pub make: fn(&Setup<'_>) -> Box<dyn Scheduler>,
}

/// What a scheduler must be told of the paths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Needs {
    /// Which paths are open. A tunnel that measures nothing can use it, too.
    Nothing,
    /// Round-trip times, windows, rates: what an MPTCP connection measures on each subflow.
    Measurements,
}

/// Where packets wait that a scheduler has given to a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fill {
    /// A path is open while its congestion window has room: packets wait in the connection.
    Window,
    /// A path is open while its send buffer has room: packets wait at the path.
    Buffer,
}

/// What a scheduler is built from.
#[derive(Clone, Copy, Debug)]
pub struct Setup<'a> {
    /// One weight a path.
    pub weights: &'a [u32],
    /// Position in its cycle at which it starts.
    pub first: u32,
    /// Its parameters.
    pub settings: &'a Settings,
}

impl Entry {
    /// A scheduler for paths with these weights, `first` steps into its cycle.
    ///
    /// # Errors
    /// A parameter that the scheduler does not have, or a value outside its range.
    pub fn scheduler(
        &self,
        weights: &[u32],
        first: u32,
        given: &BTreeMap<String, Value>,
    ) -> Result<Box<dyn Scheduler>, BadParameter> {
        let settings = Settings::new(self.parameters, given)?;
        Ok((self.make)(&Setup { weights, first, settings: &settings }))
    }
}
