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
    /// Size of an answer.
    pub(crate) size: Spanned<Random<Size>>,
    /// Time between an answer and the next request.
    pub(crate) think: Option<Spanned<Random<Time>>>,
    /// Whether each request has a connection of its own.
    #[serde(default)]
    pub(crate) connection: Connection,
}

/// On which connection a request goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "connection")]
pub(crate) enum Connection {
    /// All on one.
    #[default]
    Persistent,
    /// Each on a new one; not over MPTCP.
    New,
}
