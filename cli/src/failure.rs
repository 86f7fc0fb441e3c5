//! Failures of verbs, by exit code.

use std::fmt;
use std::process::ExitCode;

/// The failure of a verb, with a message for the user.
#[derive(Debug)]
pub(crate) enum Failure {
    /// A run failed.
    Run(String),
    /// The command line names something that does not exist.
    Usage(String),
    /// The scenario is wrong.
    Scenario(scenario::Error),
    /// The tunnel's configuration is wrong.
    #[cfg(feature = "tunnel")]
    Configuration(daemon::config::ConfigErrors),
    /// Something outside is missing or refuses.
    Environment(String),
}

impl Failure {
    /// The exit code, as `--help` tells it.
    pub(crate) fn code(&self) -> ExitCode {
        ExitCode::from(match self {
            Self::Run(_) => 1,
            Self::Usage(_) => 2,
            Self::Scenario(_) => 3,
            #[cfg(feature = "tunnel")]
            Self::Configuration(_) => 3,
            Self::Environment(_) => 4,
        })
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Scenario(error) => write!(f, "{error}"),
            #[cfg(feature = "tunnel")]
            Self::Configuration(faults) => write!(f, "{faults}"),
            Self::Run(message) | Self::Usage(message) | Self::Environment(message) => write!(f, "error: {message}"),
        }
    }
}

impl From<scenario::Error> for Failure {
    fn from(error: scenario::Error) -> Self {
        Self::Scenario(error)
    }
}

impl From<store::Error> for Failure {
    fn from(error: store::Error) -> Self {
        match error {
            store::Error::Refused { .. } => Self::Run(error.to_string()),
            _ => Self::Environment(error.to_string()),
        }
    }
}

impl From<runner::Error> for Failure {
    fn from(error: runner::Error) -> Self {
        match error {
            runner::Error::Scenario(error) => Self::Scenario(error),
            runner::Error::Run(message) => Self::Run(message),
            runner::Error::Environment(message) => Self::Environment(message),
        }
    }
}
