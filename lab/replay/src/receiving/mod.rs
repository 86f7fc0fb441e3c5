//! The same for a receiver: random situations of a TCP receiver, as scripts that our machine and a kernel can both play, and
//! the comparison of their acknowledgements.
//!
//! - `script`: the segments that arrive and the application's reads, with their times.
//! - `situation`: the segments and reads of a seed, drawn while our receiver plays them, so that a sender keeps to its window.
//! - `machine`: our receiver in virtual time; `recording`: the acknowledgements that it sends.
//! - `difference`: the first difference of two recordings; `timeline`: the events before it, in words; `shrink`: shorter
//!   scripts to try.

mod difference;
mod machine;
mod recording;
mod script;
mod shrink;
mod situation;
mod timeline;

/// A script that is kept with a kernel's recording.
pub type Golden = crate::Golden<Script, Recording>;

pub use difference::first_difference;
pub use machine::play;
pub use recording::{Recording, SentAck};
pub use script::{Arrival, Event, Kind, Script, Setup};
pub use shrink::candidates;
pub use situation::script_of;
pub use timeline::timeline;
