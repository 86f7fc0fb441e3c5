//! Why a tunnel does not start.

use super::state_file::StateFile;
use std::fmt;
use std::io;

/// Why a tunnel does not start.
#[derive(Debug)]
pub enum Error {
    /// The tunnel is running already.
    Running(StateFile),
    /// A system call failed.
    System {
        /// The attempt.
        action: String,
        /// The system's error.
        cause: io::Error,
    },
}

impl Error {
    /// Turns an I/O error into the failure of `action`.
    pub(crate) fn system(action: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        |cause| Self::System { action: action.into(), cause }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Running(StateFile { interface, pid, .. }) => {
                write!(f, "{interface} is up already (process {pid}): `ropewalk down {interface}` ends it")
            }
            Self::System { action, cause } => write!(f, "{action}: {cause}"),
        }
    }
}

impl std::error::Error for Error {}
