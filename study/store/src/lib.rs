//! Results folders: what a study leaves on disk.
//!
//! ```text
//! manifest.json         what was run, with what, and whether it is complete
//! runs.parquet          one row a run: parameters, seed, digest, work
//! flows.parquet         one row a flow of a run
//! subflows.parquet      one row a subflow of a run
//! paths.parquet         one row a path of a run
//! tunnels.parquet       one row a run with a tunnel
//! histograms.parquet    where delays were counted, one row a bucket: cell, seed, subject, column, max_ms, count
//! series.parquet        where there are series, one row a sample: cell, seed, subject, column, time_s, value
//! baseline/             where the study is compared with another one: a copy of that one's files
//! raw/                  of runs on a kernel: what each of them left
//! parts/                while it runs: one file a finished run
//! ```
//!
//! Every file appears under its name only when it is whole, so a study killed at any moment goes on where it was:
//! while the manifest says "incomplete" the parts hold every finished run, and from the moment it says "complete"
//! the tables do. The tables are the truth; a [`record::Run`] read back from them is the one that was written.

mod error;
mod events;
mod files;
pub mod frame;
mod histograms;
mod manifest;
mod names;
mod parts;
mod results;
mod rows;
mod series;
mod shard;
mod table;
mod tables;

pub use error::Error;
pub use events::{EventRow, events_frame, write_events};
pub use manifest::Manifest;
pub use results::{Key, Results, Runs, digest};
pub use shard::{Shard, ShardManifest};
