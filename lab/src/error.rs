//! Why an experiment cannot be run on a kernel.

use std::fmt;

/// Why an experiment cannot be run on a kernel.
#[derive(Debug)]
pub enum Error {
    /// There is no kernel to run it on.
    NoKernel(String),
    /// The experiment asks for something that the lab cannot do.
    Lacks {
        /// The scenario's key.
        key: String,
        /// What is lacking.
        what: String,
    },
    /// The run failed: what happened, and the end of what the guest said.
    Guest {
        /// What happened.
        why: String,
        /// The end of the guest's messages.
        said: String,
    },
}

impl Error {
    pub(crate) fn guest(why: impl fmt::Display) -> Self {
        Self::Guest { why: why.to_string(), said: String::new() }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoKernel(why) => write!(f, "{why}"),
            Self::Lacks { key, what } => write!(f, "{key}: the lab has no {what}"),
            Self::Guest { why, said } if said.is_empty() => write!(f, "{why}"),
            Self::Guest { why, said } => write!(f, "{why}; its last words:\n{said}"),
        }
    }
}

impl std::error::Error for Error {}
