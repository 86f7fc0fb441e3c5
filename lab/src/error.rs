//! Errors of the lab.

use std::fmt;

/// Why an experiment cannot be run on a kernel.
#[derive(Debug)]
pub enum Error {
    /// There is no kernel to run it on.
    NoKernel(String),
    /// The experiment has a feature that the lab does not support.
    Unsupported {
        /// The scenario's key.
        key: String,
        /// The missing feature.
        what: String,
    },
    /// The run failed.
    Failed {
        /// The reason.
        why: String,
        /// The end of the messages of the run.
        output: String,
    },
}

impl Error {
    pub(crate) fn failed(why: impl fmt::Display) -> Self {
        Self::Failed { why: why.to_string(), output: String::new() }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoKernel(why) => write!(f, "{why}"),
            Self::Unsupported { key, what } => write!(f, "{key}: the lab has no {what}"),
            Self::Failed { why, output } if output.is_empty() => write!(f, "{why}"),
            Self::Failed { why, output } => write!(f, "{why}; the end of its messages:\n{output}"),
        }
    }
}

impl std::error::Error for Error {}
