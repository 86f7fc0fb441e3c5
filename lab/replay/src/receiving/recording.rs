//! The acknowledgements that a receiver sent while a script was played.

use serde::{Deserialize, Serialize};
use std::fmt;

/// The recording of a script, of our machine or of a kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recording {
    /// The acknowledgements sent after the handshake.
    pub acks: Vec<SentAck>,
    /// The greatest lateness of an event of the script, microseconds: a busy machine in real time causes it.
    #[serde(default)]
    pub late_us: u64,
}

/// An acknowledgement that was sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SentAck {
    /// Time of sending, microseconds.
    pub at_us: u64,
    /// The first segment that the receiver lacks.
    pub ack: u64,
    /// The window, bytes.
    pub window: u64,
    /// SACK blocks `[start, end)`, the first of which may report a duplicate.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sack: Vec<(u64, u64)>,
    /// ECN echo.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ece: bool,
}

impl fmt::Display for SentAck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{:.1} window {}", self.ack, self.at_us as f64 / 1000.0, self.window)?;
        self.sack.iter().try_for_each(|(start, end)| write!(f, " sack {start}-{end}"))?;
        if self.ece { write!(f, " ECE") } else { Ok(()) }
    }
}
