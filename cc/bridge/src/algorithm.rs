//! An algorithm with its parameters, checked against what a stack can carry out.

use crate::Group;
use control::{AlgorithmEntry, Context, Controller, Ecn, ParamError, ParamValue, PathEvent, PathInfo};
use std::collections::BTreeMap;
use std::fmt;
use units::{Instant, PathId, RngStream};

/// What a stack does with a controller's decisions, and tells it.
#[derive(Clone, Copy, Debug)]
pub struct StackLimits {
    /// Name of the stack with its version, for errors.
    pub name: &'static str,
    /// Whether it paces by the controller's rate.
    pub paces: bool,
    /// Whether it tells the number of CE-marked packets, and sends ECT(1) where an algorithm needs it.
    pub counts_marks: bool,
}

/// An algorithm of the registry with its parameters.
#[derive(Clone, Debug)]
pub struct Algorithm {
    entry: &'static AlgorithmEntry,
    params: BTreeMap<String, ParamValue>,
}

/// Why there is no such controller.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Error {
    /// No algorithm has this name.
    Unknown(String),
    /// A parameter is wrong.
    Param(ParamError),
    /// The stack cannot carry out what the algorithm decides, or does not tell what it needs. The sentence says what.
    Unsupported(String),
}

impl Algorithm {
    /// The algorithm with this name and these parameters, which `ropewalk list algorithms` describes, in `stack`.
    ///
    /// # Errors
    /// The name is unknown, a parameter is wrong, or `stack` cannot carry out what the algorithm decides.
    pub fn new(name: &str, params: &BTreeMap<String, ParamValue>, stack: StackLimits) -> Result<Self, Error> {
        let entry = control::registry::find(name).ok_or_else(|| Error::Unknown(name.to_owned()))?;
        let controller = entry.controller(params).map_err(Error::Param)?;
        let (name, stack_name) = (entry.name, stack.name);
        if !stack.paces && is_rate_based(controller) {
            let reason = format!("`{name}` sets a pacing rate, which {stack_name} ignores");
            return Err(Error::Unsupported(reason));
        }
        if !stack.counts_marks && entry.ecn(params).map_err(Error::Param)? != Ecn::Classic {
            let reason =
                format!("`{name}` needs the number of ECN marks, and {stack_name} tells only that there are any");
            return Err(Error::Unsupported(reason));
        }
        Ok(Self { entry, params: params.clone() })
    }

    /// Whether the algorithm couples the paths of a connection.
    #[must_use]
    pub fn is_coupled(&self) -> bool {
        self.entry.is_coupled()
    }

    /// A controller for the paths of one connection, which draws random numbers from `seed`.
    ///
    /// # Panics
    /// If the algorithm refuses the parameters that it has accepted before: a mistake in the algorithm.
    #[must_use]
    pub fn group(&self, seed: u64) -> Group {
        Group::new(self.entry.controller(&self.params).expect("the parameters were checked"), seed)
    }
}

/// Whether the algorithm sets a pacing rate on a new path.
fn is_rate_based(mut controller: Box<dyn Controller>) -> bool {
    let mut context = Context { now: Instant::ZERO, rng: &mut RngStream::named(0, "controller") };
    controller.on_event(PathId(0), &PathEvent::PathUp(PathInfo::DEFAULT), &mut context);
    controller.decision(PathId(0)).pacing_rate.is_some()
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown(name) => {
                let known: Vec<_> = control::registry::names().collect();
                write!(f, "there is no algorithm `{name}`; there are: {}", known.join(", "))
            }
            Self::Param(error) => error.fmt(f),
            Self::Unsupported(reason) => f.write_str(reason),
        }
    }
}

impl std::error::Error for Error {}
