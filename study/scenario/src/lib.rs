//! An experiment as data: paths, queues, flows, events, sweep, seeds.
//!
//! A scenario file (TOML) goes in, [`Scenario`] comes out: one resolved [`model::Experiment`] per cell of its sweep. Errors
//! name the line, and say how to fix it ([`Error`]).
//!
//! The steps: `keys` reads the text into a tree that knows its positions; `sweep` puts swept and `--set` values into
//! it; `file` types it and reads the units; `resolve` turns names into indices and fills in defaults. The layout of the
//! report is in the same file; the crate that makes the report reads that part ([`Scenario::section`]).

mod built_in;
mod defaults;
mod edit;
mod file;
mod files;
mod free;
mod ibox;
mod keys;
mod renamed;
mod resolve;
mod scenario;
mod schema;
mod sets;
mod several;
mod source;
mod sweep;
mod trace;
mod values;

pub mod model;

pub use built_in::{BuiltIn, built_in};
pub use files::trace_file;
pub use free::Free;
pub use ibox::{IboxProfile, of_ibox};
pub use link::RateTrace;
pub use parse::{Error, did_you_mean};
pub use scenario::{Cell, Overrides, Scenario, load, load_confined, parse, read_text};
pub use schema::schema;
pub use sweep::{Sweep, SweptKey};
pub use trace::rate_trace;
