//! Failures of commands, by exit code.

use std::fmt;
use std::process::ExitCode;

/// The failure of a command, with a message for the user.
#[derive(Debug)]
pub(crate) enum Failure {
    /// A run or a test failed.
    #[cfg(any(feature = "study", feature = "tunnel"))]
    Run(String),
    /// The command line names something that does not exist.
    Usage(String),
    /// The scenario is wrong.
    #[cfg(feature = "study")]
    Scenario(scenario::Error),
    /// A script or a file of measurements is wrong, or has what does not apply.
    #[cfg(feature = "study")]
    Script(String),
    /// The tunnel's configuration is wrong.
    #[cfg(feature = "tunnel")]
    Configuration(daemon::config::ConfigErrors),
    /// A running daemon found the tunnel's configuration wrong: all of its errors.
    #[cfg(feature = "tunnel")]
    ReloadedConfiguration(String),
    /// Something outside the program is missing or fails.
    Environment(String),
}

impl Failure {
    /// The exit code, as `--help` lists it.
    pub(crate) fn code(&self) -> ExitCode {
        ExitCode::from(match self {
            #[cfg(any(feature = "study", feature = "tunnel"))]
            Self::Run(_) => 1,
            Self::Usage(_) => 2,
            #[cfg(feature = "study")]
            Self::Scenario(_) | Self::Script(_) => 3,
            #[cfg(feature = "tunnel")]
            Self::Configuration(_) | Self::ReloadedConfiguration(_) => 3,
            Self::Environment(_) => 4,
        })
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            #[cfg(feature = "study")]
            Self::Scenario(error) => write!(f, "{error}"),
            #[cfg(feature = "tunnel")]
            Self::Configuration(faults) => write!(f, "{faults}"),
            #[cfg(feature = "tunnel")]
            Self::ReloadedConfiguration(faults) => f.write_str(faults),
            #[cfg(feature = "study")]
            Self::Script(message) => write!(f, "error: {message}"),
            #[cfg(any(feature = "study", feature = "tunnel"))]
            Self::Run(message) => write!(f, "error: {message}"),
            Self::Usage(message) | Self::Environment(message) => write!(f, "error: {message}"),
        }
    }
}

#[cfg(feature = "study")]
impl From<scenario::Error> for Failure {
    fn from(error: scenario::Error) -> Self {
        Self::Scenario(error)
    }
}

#[cfg(feature = "study")]
impl From<store::Error> for Failure {
    fn from(error: store::Error) -> Self {
        match error {
            store::Error::Refused { .. } => Self::Run(error.to_string()),
            _ => Self::Environment(error.to_string()),
        }
    }
}

#[cfg(feature = "study")]
impl From<runner::Error> for Failure {
    fn from(error: runner::Error) -> Self {
        match error {
            runner::Error::Scenario(error) => Self::Scenario(error),
            runner::Error::Run(message) => Self::Run(message),
            runner::Error::Environment(message) => Self::Environment(message),
        }
    }
}
