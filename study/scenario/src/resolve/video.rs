//! Flows of video.

use super::checks::check_positive;
use crate::file::{Video, VideoKind};
use crate::model::{self, Playback};
use parse::{Diagnostic, Spanned, Time};
use std::ops::Range;
use units::{Rate, Span};

/// Frames per second.
pub(crate) const FPS: u32 = 25;
/// Length of a group of pictures, seconds.
const GOP_S: u32 = 2;
/// The playback time that the player of a stored video buffers before it starts.
pub(crate) const STARTUP: Span = Span::from_secs(2);
/// The maximum playback time of a stored video that is written ahead.
pub(crate) const AHEAD: Span = Span::from_secs(30);
/// From the capture of a live frame to its playback.
pub(crate) const LATENCY: Span = Span::from_millis(500);
/// The first frame of a group is as large as the others.
pub(crate) const INTRA: f64 = 1.0;
/// A constant bit rate.
pub(crate) const VARIATION: f64 = 0.0;
/// The maximum number of frames per second: at more, a frame is shorter than a packet.
const MAX_FPS: u32 = 1000;

impl Video {
    /// The video for the model; the table is at `span`.
    pub(super) fn resolve(&self, span: Range<usize>) -> Result<model::Video, Diagnostic> {
        let fps = *self.fps.as_ref().map_or(Ok(&FPS), |fps| check_positive("fps", fps, |fps| u64::from(*fps)))?;
        if let Some(fast) = self.fps.as_ref().filter(|fps| *fps.get() > MAX_FPS) {
            return Err(Diagnostic::new(fast.span(), format!("at most {MAX_FPS} frames per second")));
        }
        let gop = self.gop.as_ref().map(|gop| check_positive("gop", gop, |gop| u64::from(*gop))).transpose()?;
        let gop = gop.copied().unwrap_or(GOP_S * fps);
        Ok(model::Video {
            ladder: self.ladder(span)?,
            fps,
            gop,
            intra: factor("intra", self.intra.as_ref(), INTRA, 1.0)?,
            variation: factor("variation", self.variation.as_ref(), VARIATION, 0.0)?,
            group_variation: factor("group_variation", self.group_variation.as_ref(), VARIATION, 0.0)?,
            playback: match self.kind {
                VideoKind::Stored => self.stored(Span(1_000_000_000 * u64::from(gop) / u64::from(fps)))?,
                VideoKind::Live => self.live()?,
            },
        })
    }

    /// Its rates: one, or several to choose from.
    fn ladder(&self, span: Range<usize>) -> Result<Vec<Rate>, Diagnostic> {
        match (&self.rate, &self.ladder) {
            (Some(rate), None) => Ok(vec![rate.get().0]),
            (None, Some(ladder)) => {
                let rates: Vec<Rate> = ladder.get().iter().map(|rate| rate.0).collect();
                match !rates.is_empty() && rates.is_sorted_by(|lower, upper| lower < upper) {
                    true => Ok(rates),
                    false => Err(Diagnostic::new(ladder.span(), "a ladder is a list of ascending rates")
                        .with_help("ladder = [\"1mbit\", \"2.5mbit\", \"5mbit\", \"8mbit\"]")),
                }
            }
            (Some(_), Some(ladder)) => Err(Diagnostic::new(ladder.span(), "`rate` or `ladder`, not both")),
            (None, None) => Err(Diagnostic::new(span, "a video needs `rate`, or a `ladder` of rates to adapt between")
                .with_help("for example rate = \"5mbit\"")),
        }
    }

    fn stored(&self, group: Span) -> Result<Playback, Diagnostic> {
        refuse_keys("stored", [("latency", self.latency.as_ref())])?;
        let startup = time("startup", self.startup.as_ref(), STARTUP)?;
        let resume = time("resume", self.resume.as_ref(), startup)?;
        let ahead = time("ahead", self.ahead.as_ref(), AHEAD)?;
        let min_ahead = startup.max(resume) + group;
        match [&self.ahead, &self.startup, &self.resume].into_iter().flatten().next() {
            Some(key) if ahead < min_ahead => {
                let message = format!("a player with {ahead} of buffer would wait forever");
                Err(Diagnostic::new(key.span(), message).with_help(format!(
                    "`ahead` is at least `startup`, or `resume` if that is more, plus a group of {group}: {min_ahead}"
                )))
            }
            _ => Ok(Playback::Stored { startup, resume, ahead: ahead.max(min_ahead) }),
        }
    }

    fn live(&self) -> Result<Playback, Diagnostic> {
        let stored = [("startup", self.startup.as_ref()), ("resume", self.resume.as_ref())];
        refuse_keys("live", stored)?;
        refuse_keys("live", [("ahead", self.ahead.as_ref())])?;
        Ok(Playback::Live { latency: time("latency", self.latency.as_ref(), LATENCY)? })
    }
}

fn time(key: &str, value: Option<&Spanned<Time>>, default: Span) -> Result<Span, Diagnostic> {
    value.map_or(Ok(default), |time| check_positive(key, time, |time| time.0.0).map(|time| time.0))
}

/// A number, finite and not below `min`.
fn factor(key: &str, value: Option<&Spanned<f64>>, default: f64, min: f64) -> Result<f64, Diagnostic> {
    match value {
        Some(factor) if !factor.get().is_finite() || *factor.get() < min => {
            Err(Diagnostic::new(factor.span(), format!("`{key}` is a number, at least {min}")))
        }
        value => Ok(value.map_or(default, |factor| *factor.get())),
    }
}

/// Refuses keys of the other kind of video.
fn refuse_keys<const N: usize>(kind: &str, keys: [(&str, Option<&Spanned<Time>>); N]) -> Result<(), Diagnostic> {
    match keys.into_iter().find_map(|(key, value)| Some((key, value?.span()))) {
        Some((key, span)) => Err(Diagnostic::new(span, format!("{kind} video has no `{key}`"))),
        None => Ok(()),
    }
}
