//! The table of a flow of video.

use parse::{BitRate, Spanned, Time};
use schemars::JsonSchema;
use serde::Deserialize;

/// A video: frames at a rate, and the player that waits for them.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "video")]
pub(crate) struct Video {
    /// Stored video is written ahead of the player, which stalls when its next frame is missing. Live video is written
    /// as it is captured, and late frames are skipped.
    #[serde(default)]
    pub(crate) kind: VideoKind,
    /// Mean rate. Either this or `ladder` is required.
    pub(crate) rate: Option<Spanned<BitRate>>,
    /// Instead of `rate`: rates between which the video adapts, ascending. It begins with the lowest: `["1mbit",
    /// "2.5mbit", "5mbit"]`.
    pub(crate) ladder: Option<Spanned<Vec<BitRate>>>,
    /// Frames per second. Default: 25.
    pub(crate) fps: Option<Spanned<u32>>,
    /// Frames in a group of pictures. A group has one rate. Default: two seconds of frames.
    pub(crate) gop: Option<Spanned<u32>>,
    /// Size of the first frame of a group, as a multiple of the other frames. The mean rate stays the same. Default:
    /// 1.
    pub(crate) intra: Option<Spanned<f64>>,
    /// Coefficient of variation of the sizes of frames (lognormal, with the mean kept). Zero is a constant bit rate.
    /// Default: 0.
    pub(crate) variation: Option<Spanned<f64>>,
    /// Coefficient of variation of the sizes of groups (lognormal, with the mean kept): quiet and busy scenes.
    /// Default: 0.
    pub(crate) group_variation: Option<Spanned<f64>>,
    /// Stored video: playback time that the player buffers before it starts. Default: `"2s"`.
    pub(crate) startup: Option<Spanned<Time>>,
    /// Stored video: playback time that the player buffers before it continues after a stall. Default: as `startup`.
    pub(crate) resume: Option<Spanned<Time>>,
    /// Stored video: the most playback time that is written ahead of the player. It is at least `startup`, `resume`
    /// and a group. Default: `"30s"`.
    pub(crate) ahead: Option<Spanned<Time>>,
    /// Live video: time from the capture of a frame to its playback. Default: `"500ms"`.
    pub(crate) latency: Option<Spanned<Time>>,
}

/// The kind of a video.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "video-kind")]
pub(crate) enum VideoKind {
    /// A stored video.
    #[default]
    Stored,
    /// A live video, from a camera.
    Live,
}
