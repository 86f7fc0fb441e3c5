//! Errors of a testbed.

use std::fmt;

/// An error of a testbed.
#[derive(Debug)]
pub enum Error {
    /// A link's description is invalid.
    Shape(String),
    /// A command failed.
    Command {
        /// The command line.
        line: String,
        /// The error output of the command.
        reason: String,
    },
    /// A link refused a change, or its process has ended.
    Link(String),
}

impl Error {
    pub(super) fn command(line: &str, reason: impl fmt::Display) -> Self {
        Self::Command { line: line.to_owned(), reason: reason.to_string() }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Shape(reason) => write!(f, "link: {reason}"),
            Self::Command { line, reason } => write!(f, "`{line}`: {}", reason.trim_end()),
            Self::Link(reason) => write!(f, "link: {reason}"),
        }
    }
}

impl std::error::Error for Error {}
