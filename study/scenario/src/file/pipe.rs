//! The tables of a link's direction as the scenario file has them, but for its queue.
//!
//! Like those of `file`, the doc comments here are descriptions in the JSON Schema.

use parse::{BitRate, Quantity, Size, Spanned, Time};
use schemars::JsonSchema;
use serde::Deserialize;
use std::num::NonZeroU32;

/// Grants of a cellular uplink (3GPP TS 36.321, sections 5.4.4 and 5.4.5): the rate is used in batches, after a
/// request.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "grants")]
pub(crate) struct Grants {
    /// The time between two grants; each carries what the rate carries in it.
    pub(crate) period: Spanned<Time>,
    /// The time from the arrival of a packet at an idle device until a grant can carry it.
    pub(crate) request: Time,
}

/// Hand-overs of a low-orbit satellite: a short outage, then another delay.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "handover")]
pub(crate) struct Handover {
    /// The time between two hand-overs, and until the first.
    pub(crate) period: Spanned<Time>,
    /// The time for which the link is down.
    pub(crate) outage: Option<Spanned<Time>>,
    /// The least and the greatest delay: after a hand-over it is uniform between them, in both directions.
    pub(crate) delay: Option<Spanned<[Time; 2]>>,
}

/// A rate that follows Brownian motion between bounds that reflect it (Winstein, Sivaraman and Balakrishnan 2013).
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "rate-walk")]
pub(crate) struct RateWalk {
    /// The least rate.
    pub(crate) min: BitRate,
    /// The greatest rate.
    pub(crate) max: Spanned<BitRate>,
    /// The standard deviation of the rate's change in one second.
    pub(crate) deviation: BitRate,
    /// The time between two changes.
    pub(crate) interval: Spanned<Time>,
}

/// Slots in which packets leave the wire, as netem's `slot` (a Wi-Fi channel, a DOCSIS uplink).
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "slot")]
pub(crate) struct Slot {
    /// Least time from the end of a slot to the next one.
    pub(crate) min: Time,
    /// Greatest time; without it always `min`.
    pub(crate) max: Option<Spanned<Time>>,
    /// Packets of a slot.
    pub(crate) packets: Option<NonZeroU32>,
    /// Bytes after which a slot ends, with the packet that reaches them.
    pub(crate) bytes: Option<Spanned<Size>>,
}

/// Where in a trace a run begins.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(try_from = "String")]
#[schemars(with = "String", rename = "trace-offset")]
pub(crate) enum TraceOffset {
    /// There.
    At(Time),
    /// Anywhere, drawn from the seed.
    Random,
}

impl TryFrom<String> for TraceOffset {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        match text.as_str() {
            "random" => Ok(Self::Random),
            text => Time::parse(text).map(Self::At).map_err(|error| format!("{error}, or \"random\"")),
        }
    }
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
