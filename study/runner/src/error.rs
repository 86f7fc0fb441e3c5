//! Errors of studies, by cause.

use std::fmt;

/// The reason why a study does not start, or why it stops.
#[derive(Debug)]
pub enum Error {
    /// The scenario is wrong.
    Scenario(scenario::Error),
    /// A run failed.
    Run(String),
    /// Something outside the program is missing or fails: a folder, a thread.
    Environment(String),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Scenario(error) => write!(f, "{error}"),
            Self::Run(message) | Self::Environment(message) => f.write_str(message),
        }
    }
}

impl std::error::Error for Error {}

impl From<scenario::Error> for Error {
    fn from(error: scenario::Error) -> Self {
        Self::Scenario(error)
    }
}

impl From<store::Error> for Error {
    fn from(error: store::Error) -> Self {
        match error {
            store::Error::Refused { .. } => Self::Run(error.to_string()),
            _ => Self::Environment(error.to_string()),
        }
    }
}
