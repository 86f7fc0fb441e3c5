//! Why an experiment cannot be run.

use std::fmt;

/// Why an experiment cannot be run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// No algorithm of this name is registered.
    UnknownAlgorithm {
        /// The flow that asks for it.
        flow: String,
        /// The name.
        name: String,
    },
    /// No scheduler of this name is registered.
    UnknownScheduler {
        /// The name.
        name: String,
    },
    /// A setting that the algorithm does not take.
    BadParameter {
        /// The flow that sets it.
        flow: String,
        /// The algorithm.
        algorithm: &'static str,
        /// What is wrong.
        source: control::BadParameter,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownAlgorithm { flow, name } => write!(f, "flow {flow}: no congestion control is called `{name}`"),
            Self::UnknownScheduler { name } => write!(f, "tunnel: no scheduler is called `{name}`"),
            Self::BadParameter { flow, algorithm, source } => write!(f, "flow {flow}: {algorithm}: {source}"),
        }
    }
}

impl std::error::Error for Error {}
