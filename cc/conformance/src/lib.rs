//! The rules for every congestion controller and every scheduler, as checks of a registry entry: a built-in one, or one
//! that a plug-in or a notebook has registered.
//!
//! ```text
//! controller::check    random events and worked episodes: invariants, determinism, one reduction per window, undo
//! scheduler::check     random connections: picks that the sender can carry out, no wait without a reason
//! ```

pub mod controller;
mod panics;
pub mod scheduler;

use std::fmt;

/// A rule that an entry breaks, and how to reproduce it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The rule, in a few words.
    pub rule: &'static str,
    /// The observed behaviour.
    pub message: String,
    /// The steps that led to it, in order.
    pub steps: Vec<String>,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.rule, self.message)?;
        self.steps.iter().enumerate().try_for_each(|(index, step)| write!(f, "\n  {}. {step}", index + 1))
    }
}

impl std::error::Error for Violation {}
