//! Units: instants, spans, rates, path ids, and named random streams.
//!
//! Every quantity that crosses a room's border carries its unit in its type. Time starts at zero and is counted in
//! nanoseconds, so that a test can write down an absolute time and a run is the same on every machine.

mod random;
mod rate;
mod time;

pub use random::RngStream;
pub use rate::Rate;
pub use time::{Instant, Span};

/// Slow-start threshold of a path that has seen no congestion, packets (Linux `TCP_INFINITE_SSTHRESH`).
pub const INFINITE_SSTHRESH: u32 = 0x7fff_ffff;

/// A path of a connection: the index the driver gave it. Addresses and sockets belong to the driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default, serde::Serialize, serde::Deserialize)]
pub struct PathId(pub u16);

impl PathId {
    /// The path's position in a slice of paths.
    #[must_use]
    pub fn index(self) -> usize {
        usize::from(self.0)
    }
}
