//! The table of a flow of requests.

use super::random::Random;
use parse::{Size, Spanned, Time};
use schemars::JsonSchema;
use serde::Deserialize;

/// Requests and answers, one after the other.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "requests")]
pub(crate) struct Requests {
    /// Size of an answer. It may be drawn for each answer: `{ mean = "20kB", distribution = "exponential" }`.
    pub(crate) size: Spanned<Random<Size>>,
    /// Time from the end of an answer to the next request. It may be drawn, as `size` may. Default: `"0s"`.
    pub(crate) think: Option<Spanned<Random<Time>>>,
    /// The connection on which a request goes.
    #[serde(default)]
    pub(crate) connection: Connection,
    /// Of a hosted connection: the number of requests that are under way at once, each on a stream of its own. Default: 1.
    pub(crate) streams: Option<Spanned<u32>>,
}

/// On which connection a request goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "connection")]
pub(crate) enum Connection {
    /// All requests use one connection.
    #[default]
    Persistent,
    /// Each request opens a new connection, with the initial window and nothing learned. Not over MPTCP.
    New,
}
