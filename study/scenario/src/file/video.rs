//! The table of a flow of video.

use parse::{At, BitRate, Time};
use schemars::JsonSchema;
use serde::Deserialize;

/// A video: frames at a rate, and the player that waits for them.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "video")]
pub(crate) struct Video {
    /// stored: written ahead, and the player stalls when nothing is left. live: written when captured, and
    /// what is late is skipped.
    #[serde(default)]
    pub(crate) kind: VideoKind,
    /// Mean rate.
    pub(crate) rate: Option<At<BitRate>>,
    /// Instead of `rate`: rates that it adapts between, ascending; it begins with the lowest.
    pub(crate) ladder: Option<At<Vec<BitRate>>>,
    /// Frames a second.
    pub(crate) fps: Option<At<u32>>,
    /// Frames of a group of pictures, which has one rate. Default: two seconds.
    pub(crate) gop: Option<At<u32>>,
    /// How many times as large as the others a group's first frame is.
    pub(crate) intra: Option<At<f64>>,
    /// Coefficient of variation of the frames' sizes around their mean, lognormal.
    pub(crate) variation: Option<At<f64>>,
    /// The same of whole groups: quiet and busy scenes.
    pub(crate) group_variation: Option<At<f64>>,
    /// stored: media that the player has before it begins.
    pub(crate) startup: Option<At<Time>>,
    /// stored: media that it has before it goes on after a stall. Default: as `startup`.
    pub(crate) resume: Option<At<Time>>,
    /// stored: most media that are written ahead of what is played.
    pub(crate) ahead: Option<At<Time>>,
    /// live: from a frame's capture to its turn.
    pub(crate) latency: Option<At<Time>>,
}

/// Where a video comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "video-kind")]
pub(crate) enum VideoKind {
    /// From a disk.
    #[default]
    Stored,
    /// From a camera.
    Live,
}
