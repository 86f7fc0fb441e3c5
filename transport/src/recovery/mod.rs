//! The ledger of what was sent, acked and lost, and what is measured from it, once for every algorithm:
//! round-trip time, delivery rate, loss detection by time (RACK) or by count (FACK), reordering, pacing, and what limits the sender.

mod fack;
mod limited;
mod min_filter;
mod pacing;
mod rack;
mod rate;
mod round_trip;
mod scoreboard;

pub use fack::Fack;
pub use limited::WindowUse;
pub use min_filter::WindowedMin;
pub use pacing::Pacer;
pub use rack::Rack;
pub use rate::{RateSampler, Sample, Snapshot, Totals};
pub use round_trip::RoundTrip;
pub use scoreboard::{Counts, Record, Scoreboard};
