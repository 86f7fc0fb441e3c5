//! The table of a multipath QUIC flow.

use parse::Spanned;
use schemars::JsonSchema;
use serde::Deserialize;

/// The other settings of a multipath QUIC connection.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "quic")]
pub(crate) struct Quic {
    /// Streams, over which the data is spread evenly: what is missing of one does not hold up the others.
    pub(crate) streams: Option<Spanned<u32>>,
    /// Thresholds of loss detection: "adaptive" ones grow to the reordering that a path shows, "static" ones stay at 3
    /// packets and 9/8 of the RTT.
    pub(crate) loss_thresholds: Option<LossThresholds>,
    /// Whether a reduction of the window is undone once all the losses that it answered have arrived.
    pub(crate) undo: Option<bool>,
    /// One weight a path, for schedulers that have weights. Default: their rates (weighted), or all 1.
    pub(crate) weights: Option<Spanned<Vec<u32>>>,
}

/// Packet and time threshold of QUIC's loss detection (RFC 9002, section 6.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "loss-thresholds")]
pub(crate) enum LossThresholds {
    /// Grow to the reordering that a path shows.
    #[default]
    Adaptive,
    /// 3 packets and 9/8 of the RTT.
    Static,
}
