//! Units: instants, spans, rates, path ids, and named random streams.
//!
//! Quantities in the interfaces of crates have their unit in their type. Time starts at zero and is counted in
//! nanoseconds, so that runs are the same on every machine.

mod random;
mod rate;
mod time;

pub use random::RngStream;
pub use rate::Rate;
pub use time::{Instant, Span};

/// Slow-start threshold of a path that has seen no congestion, packets (Linux `TCP_INFINITE_SSTHRESH`).
pub const INFINITE_SSTHRESH: u32 = 0x7fff_ffff;

/// The id of a path: its index in the driver, which has the addresses and sockets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default, serde::Serialize, serde::Deserialize)]
pub struct PathId(pub u16);

impl PathId {
    /// The path's index in a slice of paths.
    #[must_use]
    pub fn index(self) -> usize {
        usize::from(self.0)
    }
}
