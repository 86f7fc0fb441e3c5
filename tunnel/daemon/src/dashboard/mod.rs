//! The history of the tunnel, and the dashboard that shows it.
//!
//! - `sample`: the record of a second or of a minute.
//! - `ring`: the samples of one series at fixed steps.
//! - `series`: the series of a tunnel, and the counters from which rates are computed.
//! - `file`: the history in a file of fixed size.
//! - `recorder`: takes a status per second and answers queries.
//! - `access`: who may see the dashboard. `guard`: limits on the number of connections, and on their time without an
//!   answer.
//! - `web`: the page, the history and the stream over HTTP.

mod access;
mod file;
mod guard;
mod query;
mod recorder;
mod ring;
mod sample;
mod series;
#[cfg(test)]
mod situations;
mod web;

pub use access::Access;
pub(crate) use access::parse_token;
pub use file::HistoryFile;
pub use guard::{Accept, ClientAddress, GuardedListener, MAX_CLIENTS};
pub use query::{Query, QueryError};
pub use recorder::{Recorder, unix_seconds};
pub use ring::{MINUTES, SECONDS};
pub use sample::{Sample, State};
pub use series::{MAX_SERIES, SeriesKey};
pub(crate) use web::{Dashboard, page_routes, read_routes, serve};
