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
    /// Time between two grants. Grants come at multiples of it. Each carries as much as the rate carries in this time,
    /// for packets that wait before it.
    pub(crate) period: Spanned<Time>,
    /// Time from the arrival of a packet at an idle device until a grant can carry it.
    pub(crate) request: Time,
}

/// Handovers of a low-orbit satellite: a short outage, then another delay.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "handover")]
pub(crate) struct Handover {
    /// Time between two handovers, and until the first one.
    pub(crate) period: Spanned<Time>,
    /// Time after each handover during which everything in the link is lost. Either this or `delay` is required.
    /// Default: none.
    pub(crate) outage: Option<Spanned<Time>>,
    /// Smallest and largest delay. After a handover the delay is uniform between them, in both directions. Default:
    /// the delay stays.
    pub(crate) delay: Option<Spanned<[Time; 2]>>,
}

/// A rate that follows Brownian motion between bounds that reflect it (Winstein, Sivaraman and Balakrishnan 2013).
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "rate-walk")]
pub(crate) struct RateWalk {
    /// Smallest rate. The walk is reflected here.
    pub(crate) min: BitRate,
    /// Largest rate. The walk is reflected here.
    pub(crate) max: Spanned<BitRate>,
    /// Standard deviation of the change of the rate per second.
    pub(crate) deviation: BitRate,
    /// Time between two changes.
    pub(crate) interval: Spanned<Time>,
}

/// Slots in which packets leave the wire, as netem's `slot` (a Wi-Fi channel, a DOCSIS uplink).
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "slot")]
pub(crate) struct Slot {
    /// Shortest time from the end of a slot to the next one.
    pub(crate) min: Time,
    /// Longest such time. The time is uniform between the two. Default: `min`.
    pub(crate) max: Option<Spanned<Time>>,
    /// Packets of a slot. Either this or `bytes` is required. Default: no limit.
    pub(crate) packets: Option<NonZeroU32>,
    /// Bytes after which a slot ends. The packet that reaches them still belongs to the slot. Default: no limit.
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
    /// Rate at which tokens arrive.
    pub(crate) rate: BitRate,
    /// Size of the bucket, which is full at first.
    pub(crate) burst: Spanned<Size>,
}
