//! The table of a flow of video.

use parse::{BitRate, Spanned, Time};
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
    pub(crate) rate: Option<Spanned<BitRate>>,
    /// Instead of `rate`: rates that it adapts between, ascending; it begins with the lowest.
    pub(crate) ladder: Option<Spanned<Vec<BitRate>>>,
    /// Frames a second.
    pub(crate) fps: Option<Spanned<u32>>,
    /// Frames of a group of pictures, which has one rate. Default: two seconds.
    pub(crate) gop: Option<Spanned<u32>>,
    /// The size of a group's first frame, as a multiple of the others'.
    pub(crate) intra: Option<Spanned<f64>>,
    /// Coefficient of variation of the frames' sizes around their mean, lognormal.
    pub(crate) variation: Option<Spanned<f64>>,
    /// Coefficient of variation of the groups' sizes around their mean, lognormal: quiet and busy scenes.
    pub(crate) group_variation: Option<Spanned<f64>>,
    /// stored: playback time that the player buffers before it starts.
    pub(crate) startup: Option<Spanned<Time>>,
    /// stored: playback time that it buffers before it continues after a stall. Default: as `startup`.
    pub(crate) resume: Option<Spanned<Time>>,
    /// stored: the most playback time that is written ahead of the player.
    pub(crate) ahead: Option<Spanned<Time>>,
    /// live: from the capture of a frame to its playback.
    pub(crate) latency: Option<Spanned<Time>>,
}

/// The kind of a video.
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
