//! The tables of a link's direction as the scenario file has them, but for its queue.
//!
//! Like those of `file`, the doc comments here are descriptions in the JSON Schema.

use parse::{BitRate, Size, Spanned, Time};
use schemars::JsonSchema;
use serde::Deserialize;

/// Grants of a cellular uplink (3GPP TS 36.321, sections 5.4.4 and 5.4.5): the rate is used in batches, after a request.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "grants")]
pub(crate) struct Grants {
    /// The time between two grants; each carries what the rate carries in it.
    pub(crate) period: Spanned<Time>,
    /// The time from the arrival of a packet at an idle device until a grant can carry it.
    pub(crate) request: Time,
}

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
