//! The tables of a link's direction as the scenario file has them, but for its queue.
//!
//! Like those of `file`, the doc comments here are descriptions in the JSON Schema.

use parse::{BitRate, Size, Spanned};
use schemars::JsonSchema;
use serde::Deserialize;

/// A token-bucket policer (RFC 2697, `tc police`): drops what exceeds it, and queues nothing.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "policer")]
pub(crate) struct Policer {
    /// The rate at which tokens come.
    pub(crate) rate: BitRate,
    /// The size of the bucket, which is full at first.
    pub(crate) burst: Spanned<Size>,
}
