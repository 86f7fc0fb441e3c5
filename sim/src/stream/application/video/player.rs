//! The player: when it starts, and what it does if a frame is incomplete at its playback time.
//!
//! - Stored video starts when `startup` of media is buffered, and plays a frame every 1/fps. If the next frame is
//!   incomplete at its playback time, the player stalls until `resume` of media is buffered, and continues with that
//!   frame: nothing is skipped.
//! - Live video plays a frame `latency` after its capture. A frame that is incomplete then is late and skipped.
//!
//! The player needs no events of its own: its state between two deliveries is computed by [`Player::advance`] when it
//! is called. A frame that completes exactly at its playback time is in time.

use scenario::model::Playback;
use units::{Instant, Span};

/// The player's state and counters.
#[derive(Debug)]
pub(super) struct Player {
    playback: Playback,
    fps: u64,
    start: Instant,
    state: State,
    /// The next frame to be played or skipped.
    pub position: u64,
    pub startup: Option<Span>,
    pub stalls: u64,
    /// Total time of the stalls.
    pub stalled: Span,
    /// Live frames that were incomplete at their playback time.
    pub late: u64,
}

/// The player's state.
#[derive(Clone, Copy, Debug)]
enum State {
    /// Buffering until `frames` frames from its position on are complete.
    Buffering {
        start_time: Instant,
        frames: u64,
    },
    /// Playing; `first_frame` is played at `first_playback`, the others every 1/fps.
    Playing {
        first_playback: Instant,
        first_frame: u64,
    },
    Stopped,
}

impl Player {
    pub(super) fn new(playback: Playback, fps: u32, start: Instant) -> Self {
        let mut player = Self {
            playback,
            fps: u64::from(fps),
            start,
            state: State::Stopped,
            position: 0,
            startup: None,
            stalls: 0,
            stalled: Span::ZERO,
            late: 0,
        };
        player.state = match playback {
            Playback::Live { latency } => State::Playing { first_playback: start + latency, first_frame: 0 },
            Playback::Stored { startup, .. } => State::Buffering { start_time: start, frames: player.frames(startup) },
        };
        player
    }

    /// Number of frames in a playback time, rounded up.
    pub(super) fn frames(&self, media: Span) -> u64 {
        (media.0 * self.fps).div_ceil(1_000_000_000)
    }

    /// Playback time of a number of frames.
    pub(super) fn media(&self, frames: u64) -> Span {
        Span(frames * 1_000_000_000 / self.fps)
    }

    /// The playback time of a frame; [`Instant::NEVER`] while the player is buffering.
    pub(super) fn playback_time(&self, frame: u64) -> Instant {
        match self.state {
            State::Playing { first_playback, first_frame } => {
                first_playback + self.media(frame.saturating_sub(first_frame))
            }
            State::Buffering { .. } | State::Stopped => Instant::NEVER,
        }
    }

    /// Advances to `now`, with the frames before `complete` complete. Calls `on_frame` for each frame that was due,
    /// with whether it was played.
    pub(super) fn advance(&mut self, now: Instant, complete: u64, mut on_frame: impl FnMut(u64, bool)) {
        while self.playback_time(self.position) < now {
            let (playback_time, is_complete) = (self.playback_time(self.position), self.position < complete);
            match self.playback {
                Playback::Stored { resume, .. } if !is_complete => {
                    self.stalls += 1;
                    self.state = State::Buffering { start_time: playback_time, frames: self.frames(resume) };
                }
                _ => {
                    if is_complete {
                        self.startup = self.startup.or(Some(playback_time.since(self.start)));
                    }
                    self.late += u64::from(!is_complete);
                    on_frame(self.position, is_complete);
                    self.position += 1;
                }
            }
        }
    }

    /// Called when the frames before `complete` are complete: ends buffering if they are enough.
    pub(super) fn on_complete(&mut self, now: Instant, complete: u64) {
        if let State::Buffering { start_time, frames } = self.state
            && complete >= self.position + frames
        {
            self.state = State::Playing { first_playback: now, first_frame: self.position };
            self.count_stall(now.since(start_time));
        }
    }

    /// Stops the player.
    pub(super) fn stop(&mut self, now: Instant) {
        if let State::Buffering { start_time, .. } = std::mem::replace(&mut self.state, State::Stopped) {
            self.count_stall(now.since(start_time));
        }
    }

    /// Counts a time of buffering, if it was a stall and not the startup.
    fn count_stall(&mut self, span: Span) {
        if self.stalls > 0 {
            self.stalled += span;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Instant {
        Instant::ZERO + Span::from_millis(ms)
    }

    fn span(ms: u64) -> Span {
        Span::from_millis(ms)
    }

    /// Frames every 100 ms.
    fn player(playback: Playback) -> Player {
        Player::new(playback, 10, ms(1000))
    }

    #[test]
    fn stored_video_buffers_and_skips_nothing() {
        let mut player = player(Playback::Stored { startup: span(250), resume: span(100), ahead: span(5000) });
        player.on_complete(ms(1400), 2);
        assert_eq!(player.playback_time(0), Instant::NEVER, "three frames make 250 ms");
        player.on_complete(ms(1500), 3);
        let mut played_frames = Vec::new();
        // Frames 0, 1, 2 at 1500, 1600, 1700; frame 3 would be due at 1800.
        player.advance(ms(1900), 3, |frame, played| played_frames.push((frame, played)));
        assert_eq!((player.startup, player.stalls, player.position), (Some(span(500)), 1, 3));
        player.on_complete(ms(2000), 4);
        player.advance(ms(2001), 4, |frame, played| played_frames.push((frame, played)));
        assert_eq!((player.stalled, player.late, player.playback_time(4)), (span(200), 0, ms(2100)));
        assert_eq!(played_frames, [0, 1, 2, 3].map(|frame| (frame, true)));
        // A stall that has not ended counts as far as it went.
        player.advance(ms(2400), 4, |_, _| {});
        player.stop(ms(2400));
        assert_eq!((player.stalls, player.stalled), (2, span(500)));
    }

    #[test]
    fn live_video_skips_late_frames_and_keeps_its_clock() {
        let mut player = player(Playback::Live { latency: span(300) });
        let mut played_frames = Vec::new();
        // Frame 0 is due at 1300 and completes then; frame 1 is incomplete at 1400.
        player.advance(ms(1300), 0, |frame, played| played_frames.push((frame, played)));
        player.advance(ms(1450), 1, |frame, played| played_frames.push((frame, played)));
        player.advance(ms(1501), 3, |frame, played| played_frames.push((frame, played)));
        assert_eq!(played_frames, [(0, true), (1, false), (2, true)]);
        assert_eq!((player.late, player.stalls, player.startup), (1, 0, Some(span(300))));
        assert_eq!(player.playback_time(3), ms(1600));
    }
}
