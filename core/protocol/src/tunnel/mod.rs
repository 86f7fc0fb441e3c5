//! The tunnel: one stream of packets laid over several paths, and put back into order at the far end.
//!
//! Generic over the payload, which it does not look into.

mod resequencer;
mod striper;

pub use resequencer::{Counters, Release, Resequencer};
pub use striper::Striper;
