//! A flow of video: as the file has it, and as the model.

use crate::model::{self, Playback};
use crate::resolve::positive;
use parse::At;
use parse::Fault;
use parse::{BitRate, Time};
use schemars::JsonSchema;
use serde::Deserialize;
use std::ops::Range;
use units::{Rate, Span};

/// What is not said: 25 frames a second, in groups of two seconds.
const FPS: u32 = 25;
/// A frame more often than this would be shorter than a packet.
const MOST_FPS: u32 = 1000;

/// A video: frames at a rate, and the player that waits for them.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "video")]
pub(crate) struct Video {
    /// stored (default): written ahead, and the player stalls when nothing is left. live: written when captured, and
    /// what is late is skipped.
    #[serde(default)]
    kind: Kind,
    /// Mean rate.
    rate: Option<At<BitRate>>,
    /// Instead of `rate`: rates that it adapts between, ascending; it begins with the lowest.
    ladder: Option<At<Vec<BitRate>>>,
    /// Frames a second. Default: 25.
    fps: Option<At<u32>>,
    /// Frames of a group of pictures, which has one rate. Default: two seconds.
    gop: Option<At<u32>>,
    /// How many times as large as the others a group's first frame is. Default: 1.
    intra: Option<At<f64>>,
    /// Coefficient of variation of the frames' sizes around their mean, lognormal. Default: 0, a constant bit rate.
    variation: Option<At<f64>>,
    /// The same of whole groups: quiet and busy scenes. Default: 0.
    group_variation: Option<At<f64>>,
    /// stored: media that the player has before it begins. Default: "2s".
    startup: Option<At<Time>>,
    /// stored: media that it has before it goes on after a stall. Default: as `startup`.
    resume: Option<At<Time>>,
    /// stored: most media that are written ahead of what is played. Default: "30s".
    ahead: Option<At<Time>>,
    /// live: from a frame's capture to its turn. Default: "500ms".
    latency: Option<At<Time>>,
}

/// Where a video comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "video-kind")]
enum Kind {
    /// From a disk.
    #[default]
    Stored,
    /// From a camera.
    Live,
}

impl Video {
    /// For the model; the table stands at `place`.
    pub(crate) fn resolve(&self, place: Range<usize>) -> Result<model::Video, Fault> {
        let fps = *self.fps.as_ref().map_or(Ok(&FPS), |fps| positive("fps", fps, |fps| u64::from(*fps)))?;
        if let Some(fast) = self.fps.as_ref().filter(|fps| *fps.get() > MOST_FPS) {
            return Err(Fault::at(fast.span(), format!("at most {MOST_FPS} frames a second")));
        }
        let gop = self.gop.as_ref().map(|gop| positive("gop", gop, |gop| u64::from(*gop))).transpose()?;
        let gop = gop.copied().unwrap_or(2 * fps);
        Ok(model::Video {
            ladder: self.ladder(place)?,
            fps,
            gop,
            intra: factor("intra", self.intra.as_ref(), 1.0, 1.0)?,
            variation: factor("variation", self.variation.as_ref(), 0.0, 0.0)?,
            group_variation: factor("group_variation", self.group_variation.as_ref(), 0.0, 0.0)?,
            playback: match self.kind {
                Kind::Stored => self.stored(Span(1_000_000_000 * u64::from(gop) / u64::from(fps)))?,
                Kind::Live => self.live()?,
            },
        })
    }

    /// Its rates: one, or several to choose from.
    fn ladder(&self, place: Range<usize>) -> Result<Vec<Rate>, Fault> {
        match (&self.rate, &self.ladder) {
            (Some(rate), None) => Ok(vec![rate.get().0]),
            (None, Some(ladder)) => {
                let rates: Vec<Rate> = ladder.get().iter().map(|rate| rate.0).collect();
                match !rates.is_empty() && rates.is_sorted_by(|one, next| one < next) {
                    true => Ok(rates),
                    false => Err(Fault::at(ladder.span(), "a ladder has rates, and they ascend")
                        .help("ladder = [\"1mbit\", \"2.5mbit\", \"5mbit\", \"8mbit\"]")),
                }
            }
            (Some(_), Some(ladder)) => Err(Fault::at(ladder.span(), "`rate` or `ladder`, not both")),
            (None, None) => Err(Fault::at(place, "a video needs `rate`, or a `ladder` of rates to adapt between")
                .help("for example rate = \"5mbit\"")),
        }
    }

    fn stored(&self, group: Span) -> Result<Playback, Fault> {
        foreign("stored", [("latency", self.latency.as_ref())])?;
        let startup = time("startup", self.startup.as_ref(), Span::from_secs(2))?;
        let resume = time("resume", self.resume.as_ref(), startup)?;
        let ahead = time("ahead", self.ahead.as_ref(), Span::from_secs(30))?;
        let least = startup.max(resume) + group;
        match [&self.ahead, &self.startup, &self.resume].into_iter().flatten().next() {
            Some(key) if ahead < least => {
                let message = format!("a player with {ahead} of buffer never has what it waits for");
                Err(Fault::at(key.span(), message).help(format!(
                    "`ahead` holds `startup`, or `resume` if that is more, and a group of {group}: {least}"
                )))
            }
            _ => Ok(Playback::Stored { startup, resume, ahead: ahead.max(least) }),
        }
    }

    fn live(&self) -> Result<Playback, Fault> {
        let stored = [("startup", self.startup.as_ref()), ("resume", self.resume.as_ref())];
        foreign("live", stored)?;
        foreign("live", [("ahead", self.ahead.as_ref())])?;
        Ok(Playback::Live { latency: time("latency", self.latency.as_ref(), Span::from_millis(500))? })
    }
}

fn time(key: &str, given: Option<&At<Time>>, default: Span) -> Result<Span, Fault> {
    given.map_or(Ok(default), |time| positive(key, time, |time| time.0.0).map(|time| time.0))
}

/// A number, finite and not below `least`.
fn factor(key: &str, given: Option<&At<f64>>, default: f64, least: f64) -> Result<f64, Fault> {
    match given {
        Some(at) if !at.get().is_finite() || *at.get() < least => {
            Err(Fault::at(at.span(), format!("`{key}` is a number, at least {least}")))
        }
        given => Ok(given.map_or(default, |at| *at.get())),
    }
}

/// Refuses keys of the other kind of video.
fn foreign<const N: usize>(kind: &str, keys: [(&str, Option<&At<Time>>); N]) -> Result<(), Fault> {
    match keys.into_iter().find_map(|(key, given)| Some((key, given?.span()))) {
        Some((key, span)) => Err(Fault::at(span, format!("{kind} video has no `{key}`"))),
        None => Ok(()),
    }
}
