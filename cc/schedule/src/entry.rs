//! A scheduler's registration.

use crate::Scheduler;
use params::{Entry, ParamError, ParamValue, Parameter, Params};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// One scheduler: its file declares it, [`crate::REGISTRY`] lists it or [`crate::register`] adds it.
#[derive(Debug)]
pub struct SchedulerEntry {
    /// Name in scenarios.
    pub name: &'static str,
    /// Other names.
    pub aliases: &'static [&'static str],
    /// What the scheduler does, in one line.
    pub title: &'static str,
    /// RFC, paper, kernel file.
    pub source: &'static str,
    /// Of a scheduler that is registered at run time: which version of its code this is, such as a hash of its source. A
    /// results folder keeps it, so that runs of different code do not meet in one.
    pub code_version: Option<&'static str>,
    /// What the scheduler must know of the paths.
    pub needs: Needs,
    /// Where packets wait that a path cannot send at once.
    pub fill: Fill,
    /// Declared parameters.
    pub parameters: &'static [Parameter],
    /// Builds an instance.
    pub constructor: Constructor,
}

/// How a scheduler is built.
#[derive(Clone)]
pub enum Constructor {
    /// By a function.
    Function(fn(&SchedulerSetup<'_>) -> Box<dyn Scheduler>),
    /// By a value: for schedulers that are registered at run time.
    Dyn(Arc<DynConstructor>),
}

/// A value that builds a scheduler.
pub type DynConstructor = dyn Fn(&SchedulerSetup<'_>) -> Box<dyn Scheduler> + Send + Sync;

impl fmt::Debug for Constructor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Function(_) => "Function",
            Self::Dyn(_) => "Dyn",
        })
    }
}

impl Entry for SchedulerEntry {
    fn name(&self) -> &'static str {
        self.name
    }

    fn aliases(&self) -> &'static [&'static str] {
        self.aliases
    }

    fn parameters(&self) -> &'static [Parameter] {
        self.parameters
    }

    fn code_version(&self) -> Option<&'static str> {
        self.code_version
    }
}

/// What a scheduler must know of the paths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Needs {
    /// Which paths have room. A tunnel that measures nothing can use it, too.
    Nothing,
    /// Round-trip times, windows, rates, what has arrived: what an MPTCP connection knows of each subflow.
    Measurements,
}

/// How far a path is filled: what [`PathView::has_room`](crate::PathView::has_room) means to a connection with windows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fill {
    /// A path has room while fewer packets are [buffered](crate::PathView::buffered_packets) than its congestion
    /// window. Packets wait at the connection and their path is decided late (out-of-tree MPTCP kernel).
    Cwnd,
    /// A path has room while its send buffer has. Packets wait at the path, so that their path is decided early
    /// (upstream MPTCP kernel).
    SendBuffer,
}

/// Arguments of a scheduler's constructor.
#[derive(Clone, Copy, Debug)]
pub struct SchedulerSetup<'a> {
    /// One weight a path; a path without one counts as the scheduler says (1, if it says nothing).
    pub weights: &'a [u32],
    /// Position in the scheduler's cycle at which it starts.
    pub first: u32,
    /// Parameters.
    pub params: &'a Params,
}

impl SchedulerEntry {
    /// A scheduler for paths with these weights (none: `&[]`), `first` steps into its cycle.
    ///
    /// # Errors
    /// A parameter that the scheduler does not have, or a value outside its range.
    pub fn scheduler(
        &self,
        weights: &[u32],
        first: u32,
        given: &BTreeMap<String, ParamValue>,
    ) -> Result<Box<dyn Scheduler>, ParamError> {
        let params = &Params::new(self.parameters, given)?;
        let setup = SchedulerSetup { weights, first, params };
        Ok(match &self.constructor {
            Constructor::Function(construct) => construct(&setup),
            Constructor::Dyn(construct) => construct(&setup),
        })
    }
}
