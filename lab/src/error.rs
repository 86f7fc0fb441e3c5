//! Errors of the lab.

use std::fmt;

/// Why an experiment cannot be run on a kernel.
#[derive(Debug)]
pub enum Error {
    /// There is no kernel to run it on.
    NoKernel(String),
    /// The kernel does not run on this processor.
    Processor(String),
    /// The experiment has a feature that the lab does not support.
    Unsupported {
        /// The scenario's key.
        key: String,
        /// The missing feature.
        feature: String,
    },
    /// The run failed.
    Failed {
        /// The reason.
        reason: String,
        /// The end of the messages of the run.
        output: String,
    },
}

impl Error {
    pub(crate) fn failed(reason: impl fmt::Display) -> Self {
        Self::Failed { reason: reason.to_string(), output: String::new() }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoKernel(reason) | Self::Processor(reason) => write!(f, "{reason}"),
            Self::Unsupported { key, feature } => write!(f, "{key}: the lab has no {feature}"),
            Self::Failed { reason, output } if output.is_empty() => write!(f, "{reason}"),
            Self::Failed { reason, output } => write!(f, "{reason}; the end of its messages:\n{output}"),
        }
    }
}

impl std::error::Error for Error {}
