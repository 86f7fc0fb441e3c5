//! Errors of a script.

use std::fmt;

/// A statement that is malformed, or that the machines do not support.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptError {
    /// Line of the script, from 1.
    pub line: usize,
    /// The fault.
    pub message: String,
    /// How to fix it.
    pub help: String,
}

impl ScriptError {
    pub(crate) fn new(line: usize, message: impl Into<String>, help: impl Into<String>) -> Self {
        Self { line, message: message.into(), help: help.into() }
    }
}

impl fmt::Display for ScriptError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}; {}", self.line, self.message, self.help)
    }
}

impl std::error::Error for ScriptError {}
