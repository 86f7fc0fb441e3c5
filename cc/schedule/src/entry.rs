//! A scheduler's registration.

use crate::Scheduler;
use params::{Entry, ParamError, ParamKind, ParamValue, Parameter, Params};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// One scheduler. Its file declares it; [`crate::REGISTRY`] lists it, or [`crate::register`] adds it.
#[derive(Debug)]
pub struct SchedulerEntry {
    /// The name in scenarios.
    pub name: &'static str,
    /// The aliases.
    pub aliases: &'static [&'static str],
    /// One line that says what the scheduler does.
    pub title: &'static str,
    /// The source: RFC, paper or kernel file.
    pub source: &'static str,
    /// The version of the code of a scheduler that is registered at run time, such as a hash of its source. A results
    /// folder records it, so that it never mixes runs of different code.
    pub code_version: Option<&'static str>,
    /// The scheduler's input from the paths.
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
    /// By a function that may refuse a parameter's value: the contents of a file.
    Fallible(fn(&SchedulerSetup<'_>) -> Result<Box<dyn Scheduler>, ParamError>),
    /// By a value: for schedulers that are registered at run time.
    Dyn(Arc<DynConstructor>),
}

/// A value that builds a scheduler.
pub type DynConstructor = dyn Fn(&SchedulerSetup<'_>) -> Box<dyn Scheduler> + Send + Sync;

impl fmt::Debug for Constructor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Function(_) => "Function",
            Self::Fallible(_) => "Fallible",
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

/// The information about paths that a scheduler needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Needs {
    /// Only which paths have room. A tunnel without measurements can use the scheduler, too.
    Nothing,
    /// RTTs, windows, rates and acknowledgements: what an MPTCP connection knows of each subflow.
    Measurements,
}

/// The limit of a path's queue: the meaning of [`PathView::has_room`](crate::PathView::has_room) for a connection with
/// windows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fill {
    /// A path has room while it has fewer [buffered packets](crate::PathView::buffered_packets) than its congestion
    /// window. Packets wait at the connection, and their path is decided late (out-of-tree MPTCP kernel).
    Cwnd,
    /// A path has room while its send buffer has room. Packets wait at the path, so that their path is decided early
    /// (upstream MPTCP kernel).
    SendBuffer,
}

/// Arguments of a scheduler's constructor.
#[derive(Clone, Copy, Debug)]
pub struct SchedulerSetup<'a> {
    /// One weight per path. A path without one gets the scheduler's default (1, unless the scheduler has another).
    pub weights: &'a [u32],
    /// Position in the scheduler's cycle at which it starts.
    pub first: u32,
    /// Parameters.
    pub params: &'a Params,
}

impl SchedulerEntry {
    /// Whether the scheduler needs a parameter that has no default: a file.
    #[must_use]
    pub fn needs_file(&self) -> bool {
        self.parameters.iter().any(|parameter| matches!(parameter.kind, ParamKind::File))
    }

    /// A scheduler for paths with these weights (none: `&[]`), `first` steps into its cycle.
    ///
    /// # Errors
    /// A parameter that the scheduler does not have, or a value outside its range or that it refuses.
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
            Constructor::Fallible(construct) => construct(&setup)?,
            Constructor::Dyn(construct) => construct(&setup),
        })
    }
}
