//! What is kept of a kernel.

use crate::recording::Recording;
use crate::script::Script;
use serde::{Deserialize, Serialize};

/// A script that is kept with a kernel's recording: of a sender, or of a [receiver](crate::receiving).
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Golden<S = Script, R = Recording> {
    /// The kernel in words.
    pub kernel: String,
    /// The script.
    pub script: S,
    /// The kernel's recording.
    pub recording: R,
}
