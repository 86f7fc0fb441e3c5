//! Errors of studies, by what is at fault.

use std::fmt;

/// The reason why a study does not run, or stops.
#[derive(Debug)]
pub enum Error {
    /// The scenario is wrong.
    Scenario(scenario::Error),
    /// A run failed.
    Run(String),
    /// Something outside is missing or refuses: a folder, a thread.
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
