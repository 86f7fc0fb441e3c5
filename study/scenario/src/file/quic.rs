//! The table of a multipath QUIC flow.

use parse::Spanned;
use schemars::JsonSchema;
use serde::Deserialize;

/// The other settings of a multipath QUIC connection.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "quic")]
pub(crate) struct Quic {
    /// Number of streams, over which the data is spread evenly. Missing data of one stream does not hold up the
    /// others. Default: 1.
    pub(crate) streams: Option<Spanned<u32>>,
    /// Packet and time thresholds of loss detection on each path (RFC 9002, section 6.1). Default: `"adaptive"`.
    pub(crate) loss_thresholds: Option<LossThresholds>,
    /// Undo a reduction of the window once all the losses that caused it have arrived. Default: `true`.
    pub(crate) undo: Option<bool>,
    /// One weight per path, for schedulers that have weights. Default: the rates of the paths (`weighted`), or all 1.
    pub(crate) weights: Option<Spanned<Vec<u32>>>,
}

/// Packet and time threshold of QUIC's loss detection (RFC 9002, section 6.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "loss-thresholds")]
pub(crate) enum LossThresholds {
    /// The thresholds begin at 3 packets and 9/8 of the RTT, and grow to the reordering that the path shows.
    #[default]
    Adaptive,
    /// The thresholds stay at 3 packets and 9/8 of the RTT.
    Static,
}
