//! The player: from when on it plays, and what happens if a frame is not there at its turn.
//!
//! - Stored video is played from the moment at which `startup` of media is there, a frame every 1/fps. If the next one is
//!   not complete at its turn, the player stalls until `resume` of media is there, and goes on where it stood: nothing is
//!   skipped, everything is later.
//! - Live video has a clock of its own: a frame's turn is `latency` after its capture. If it is not complete then, it is
//!   late and skipped.
//!
//! Between two deliveries nothing happens that could not be worked out later, so the player costs no events: whoever
//! wants to know calls [`Player::advance`] first. A frame that is complete at its turn to the nanosecond is in time.

use scenario::model::Playback;
use units::{Instant, Span};

/// What is played, and what was.
#[derive(Debug)]
pub(super) struct Player {
    playback: Playback,
    fps: u64,
    start: Instant,
    state: State,
    /// The next frame whose turn comes.
    pub position: u64,
    pub startup: Option<Span>,
    pub stalls: u64,
    /// Time stood still.
    pub stalled: Span,
    pub late: u64,
}

/// What the player is doing.
#[derive(Clone, Copy, Debug)]
enum State {
    /// It waits until so many frames from its position on are there.
    Waiting { since: Instant, frames: u64 },
    /// The turn of frame `first` is at `from`.
    Playing { from: Instant, first: u64 },
    /// Nobody watches.
    Over,
}

impl Player {
    pub(super) fn new(playback: Playback, fps: u32, start: Instant) -> Self {
        let mut player = Self {
            playback,
            fps: u64::from(fps),
            start,
            state: State::Over,
            position: 0,
            startup: None,
            stalls: 0,
            stalled: Span::ZERO,
            late: 0,
        };
        player.state = match playback {
            Playback::Live { latency } => State::Playing { from: start + latency, first: 0 },
            Playback::Stored { startup, .. } => State::Waiting { since: start, frames: player.frames(startup) },
        };
        player
    }

    /// Frames that show for so long, rounded up.
    pub(super) fn frames(&self, media: Span) -> u64 {
        (media.0 * self.fps).div_ceil(1_000_000_000)
    }

    /// How long so many frames show.
    pub(super) fn media(&self, frames: u64) -> Span {
        Span(frames * 1_000_000_000 / self.fps)
    }

    /// The turn of a frame, as things stand; never, while the player waits.
    pub(super) fn turn(&self, frame: u64) -> Instant {
        match self.state {
            State::Playing { from, first } => from + self.media(frame.saturating_sub(first)),
            State::Waiting { .. } | State::Over => Instant::NEVER,
        }
    }

    /// Plays on until `now`; the frames below `complete` are there. Each frame whose turn came goes to `seen`, and
    /// whether it was played.
    pub(super) fn advance(&mut self, now: Instant, complete: u64, mut seen: impl FnMut(u64, bool)) {
        while self.turn(self.position) < now {
            let (turn, there) = (self.turn(self.position), self.position < complete);
            match self.playback {
                Playback::Stored { resume, .. } if !there => {
                    self.stalls += 1;
                    self.state = State::Waiting { since: turn, frames: self.frames(resume) };
                }
                _ => {
                    if there {
                        self.startup = self.startup.or(Some(turn.since(self.start)));
                    }
                    self.late += u64::from(!there);
                    seen(self.position, there);
                    self.position += 1;
                }
            }
        }
    }

    /// Frames have become complete.
    pub(super) fn supply(&mut self, now: Instant, complete: u64) {
        if let State::Waiting { since, frames } = self.state
            && complete >= self.position + frames
        {
            self.state = State::Playing { from: now, first: self.position };
            self.wait(now.since(since));
        }
    }

    /// Nobody watches any more.
    pub(super) fn leave(&mut self, now: Instant) {
        if let State::Waiting { since, .. } = std::mem::replace(&mut self.state, State::Over) {
            self.wait(now.since(since));
        }
    }

    /// It has waited for so long: for its start, or in a stall.
    fn wait(&mut self, span: Span) {
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
    fn stored_video_waits_for_its_buffer_and_loses_nothing() {
        let mut player = player(Playback::Stored { startup: span(250), resume: span(100), ahead: span(5000) });
        player.supply(ms(1400), 2);
        assert_eq!(player.turn(0), Instant::NEVER, "three frames make 250 ms");
        player.supply(ms(1500), 3);
        let mut seen = Vec::new();
        // Frames 0, 1, 2 at 1500, 1600, 1700; the turn of frame 3 would be at 1800.
        player.advance(ms(1900), 3, |frame, played| seen.push((frame, played)));
        assert_eq!((player.startup, player.stalls, player.position), (Some(span(500)), 1, 3));
        player.supply(ms(2000), 4);
        player.advance(ms(2001), 4, |frame, played| seen.push((frame, played)));
        assert_eq!((player.stalled, player.late, player.turn(4)), (span(200), 0, ms(2100)));
        assert_eq!(seen, [0, 1, 2, 3].map(|frame| (frame, true)));
        // A stall that has not ended counts as far as it went.
        player.advance(ms(2400), 4, |_, _| {});
        player.leave(ms(2400));
        assert_eq!((player.stalls, player.stalled), (2, span(500)));
    }

    #[test]
    fn live_video_skips_what_is_late_and_keeps_its_clock() {
        let mut player = player(Playback::Live { latency: span(300) });
        let mut seen = Vec::new();
        // Frame 0 has its turn at 1300, and comes at that very moment; frame 1 is missing at 1400.
        player.advance(ms(1300), 0, |frame, played| seen.push((frame, played)));
        player.advance(ms(1450), 1, |frame, played| seen.push((frame, played)));
        player.advance(ms(1501), 3, |frame, played| seen.push((frame, played)));
        assert_eq!(seen, [(0, true), (1, false), (2, true)]);
        assert_eq!((player.late, player.stalls, player.startup), (1, 0, Some(span(300))));
        assert_eq!(player.turn(3), ms(1600));
    }
}
