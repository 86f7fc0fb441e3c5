//! Measurements of links: one versioned JSON document, whatever measured them.
//!
//! ```text
//! document  the document and what it says of its making
//! path      what was measured of one path alone
//! together  what was measured of several paths at once
//! summary   a distribution in few numbers, and samples of round-trip times
//! check     what a document has to keep to, with the key of what does not
//! import    files of other programs: iperf3, ping, irtt, flent, ss, traces of rates, a tunnel's history and speed test
//! read      files, and errors that name file, line and key
//! ```
//!
//! A value without a measurement is absent. `down` is the direction towards the measuring end, `up` the other one.

mod check;
mod document;
mod import;
mod path;
mod read;
mod summary;
mod together;

pub use document::{Ends, Measured, Options, Stage, StageKind, VERSION};
pub use path::{BulkCall, Direction, IdleRtt, MeasuredPath, Parallel, Policer, STREAMS, TcpFlow, UdpStream};
pub use read::{Error, parse, read};
pub use summary::{RttSample, Summary};
pub use together::{SharedFlow, Together};

/// The JSON Schema of a document.
pub fn schema() -> serde_json::Value {
    schemars::schema_for!(Measured).into()
}
