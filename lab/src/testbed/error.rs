//! Errors of a testbed.

use std::fmt;

/// An error of a testbed.
#[derive(Debug)]
pub enum Error {
    /// A link's description cannot be read.
    Shape(String),
    /// A command failed.
    Command {
        /// The command line.
        line: String,
        /// Its error output.
        why: String,
    },
    /// A link refused a change, or its process is gone.
    Link(String),
}

impl Error {
    pub(super) fn command(line: &str, why: impl fmt::Display) -> Self {
        Self::Command { line: line.to_owned(), why: why.to_string() }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Shape(why) => write!(f, "link: {why}"),
            Self::Command { line, why } => write!(f, "`{line}`: {}", why.trim_end()),
            Self::Link(why) => write!(f, "link: {why}"),
        }
    }
}

impl std::error::Error for Error {}
