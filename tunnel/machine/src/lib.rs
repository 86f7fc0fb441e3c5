//! The tunnel: packets laid over several paths, and put back into order at the far end.
//!
//! Generic over the payload, which it does not look into. [`Endpoint`] is the whole machine of Ropewalk's own tunnel;
//! [`Striper`] and [`Resequencer`] are the two halves of an MPT tunnel, which tells nothing back.

mod endpoint;
mod entrance;
mod exit;
mod path;
mod pieces;
mod resequencer;
mod striper;
pub mod usual;
mod vocabulary;

pub use endpoint::{Endpoint, MOST_PATHS};
pub use resequencer::{Counters as ResequencerCounters, Release, Resequencer};
pub use striper::Striper;
pub use vocabulary::{
    Arrival, Content, Counters, DATA_HEADER_BYTES, Data, Delivery, Event, FIRST_UNORDERED, PathSetup, PathStatus,
    Payload, SEAL_BYTES, Setup, Status, Transmit,
};
