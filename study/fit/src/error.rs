//! Failures of a fit.

use std::fmt;

/// The reason why there is no fit or no advice.
#[derive(Debug)]
pub enum Error {
    /// The scenario is wrong, or a run failed.
    Run(runner::Error),
    /// The measurement, an option or a folder does not do; with what would.
    Input(String),
    /// A file or a folder cannot be written.
    Output(String),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Run(error) => write!(f, "{error}"),
            Self::Input(message) | Self::Output(message) => f.write_str(message),
        }
    }
}

impl std::error::Error for Error {}

impl From<runner::Error> for Error {
    fn from(error: runner::Error) -> Self {
        Self::Run(error)
    }
}

impl From<scenario::Error> for Error {
    fn from(error: scenario::Error) -> Self {
        Self::Run(runner::Error::Scenario(error))
    }
}
