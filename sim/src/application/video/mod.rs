//! A video: the source that writes frames, and the player at the other end.
//!
//! **Live** frames are written whole at the moment of their capture. **Stored** ones are written `ahead` of the player as
//! far as its buffer goes: it takes no more, and closes its window. With a ladder of rates stored video is asked for group
//! by group, each when the one before is complete, as adaptive streaming over HTTP does; what the player asks rides on an
//! acknowledgement. The source sees the player's buffer without delay, but acts when an acknowledgement or its own clock
//! wakes it: half a round trip too early at most.
//!
//! **Bytes.** TCP moves segments. A frame begins a segment and its last one is short, as with `TCP_NODELAY`: its end
//! leaves at once. Bytes are exact; what it costs is that a frame which waits behind others shares no segment with them
//! (Linux would fill it up): half a packet more a frame on average, 26 bytes of headers. Windows and pacing take the short
//! one for a full one. Segments of frames whose turn is over count as full if they are sent again.

mod encoder;
mod ladder;
mod player;

use crate::distribution::Distribution;
use encoder::Encoder;
use ladder::Ladder;
use player::Player;
use scenario::model::{self, Playback};
use std::collections::VecDeque;
use units::{Instant, Rate, Span, Stream};

/// Both ends of a flow of video.
#[derive(Debug)]
pub(crate) struct Video {
    playback: Playback,
    gop: u64,
    /// Media of a group.
    group: Span,
    start: Instant,
    mss: u64,
    encoder: Encoder,
    ladder: Ladder,
    player: Player,
    /// Frames from the first on that has still to arrive or to be played; `first` is its number.
    frames: VecDeque<Frame>,
    first: u64,
    /// Frames written; segments of them.
    written: u64,
    segments: u64,
    /// Frames delivered, in order; bytes of them; the segment after the next one.
    complete: u64,
    bytes: u64,
    next_end: u64,
    /// Instant and bytes when the latest group was written.
    last_group: (Instant, u64),
    delay: Distribution,
    least_delay: Span,
    /// Frames played, and bytes of them.
    played: u64,
    played_bytes: u64,
    over: bool,
}

/// A frame on its way, or in the player's buffer.
#[derive(Clone, Copy, Debug)]
struct Frame {
    /// Its first segment, and the one after its last.
    first: u64,
    end: u64,
    bytes: u64,
    written: Instant,
}

impl Video {
    pub(crate) fn new(video: &model::Video, start: Instant, mss: u32, luck: Stream) -> Self {
        let player = Player::new(video.playback, video.fps, start);
        let gop = u64::from(video.gop);
        Self {
            playback: video.playback,
            gop,
            group: player.media(gop),
            start,
            mss: u64::from(mss),
            encoder: Encoder::new(video, luck),
            ladder: Ladder::new(video.ladder.clone()),
            player,
            frames: VecDeque::new(),
            first: 0,
            written: 0,
            segments: 0,
            complete: 0,
            bytes: 0,
            next_end: u64::MAX,
            last_group: (start, 0),
            delay: Distribution::default(),
            least_delay: Span::MAX,
            played: 0,
            played_bytes: 0,
            over: false,
        }
    }

    /// When the next frame is to be written, as things stand; it may be in the past.
    pub(crate) fn due(&self) -> Instant {
        match self.playback {
            _ if self.over => Instant::NEVER,
            Playback::Live { .. } => self.start + self.player.media(self.written),
            Playback::Stored { ahead, .. } => self.room(ahead),
        }
    }

    /// When the player has room for the next frame; if it asks for groups, for the next group, once it has the one before.
    fn room(&self, ahead: Span) -> Instant {
        let into = self.written % self.gop;
        let end = match self.ladder.adapts() {
            true if into == 0 && self.complete < self.written => return Instant::NEVER,
            true => self.written - into + self.gop,
            false => self.written + 1,
        };
        let capacity = self.player.frames(ahead);
        match end.checked_sub(capacity + 1) {
            Some(last) if last >= self.player.position => self.player.turn(last),
            _ => self.start,
        }
    }

    /// Writes what is due. Returns the segments, and whether the last one is short.
    pub(crate) fn write(&mut self, now: Instant) -> Option<(u64, bool)> {
        self.play(now);
        let before = self.segments;
        let mut short = false;
        while self.due() <= now {
            short = self.write_frame(now);
        }
        (self.segments > before).then_some((self.segments - before, short))
    }

    /// Returns whether its last segment is short.
    fn write_frame(&mut self, now: Instant) -> bool {
        if self.written.is_multiple_of(self.gop) && self.ladder.adapts() {
            self.choose(now);
        }
        let bytes = self.encoder.frame(self.written, self.ladder.rate());
        let first = self.segments;
        self.segments += bytes.div_ceil(self.mss);
        self.frames.push_back(Frame { first, end: self.segments, bytes, written: now });
        if self.complete == self.written {
            self.next_end = self.segments;
        }
        self.written += 1;
        !bytes.is_multiple_of(self.mss)
    }

    /// The next group's rate.
    fn choose(&mut self, now: Instant) {
        match self.playback {
            Playback::Stored { ahead, .. } => {
                let level = self.player.media(self.complete.saturating_sub(self.player.position));
                self.ladder.choose_by_buffer(level, ahead.saturating_sub(self.group));
            }
            Playback::Live { latency } => {
                let (since, bytes) = std::mem::replace(&mut self.last_group, (now, self.bytes));
                let delivered = Rate::of(self.bytes - bytes, now.since(since));
                let age = self.incomplete().map_or(Span::ZERO, |frame| now.since(frame.written));
                self.ladder.choose_by_backlog(age.saturating_sub(self.least_delay), latency, delivered);
            }
        }
    }

    /// Everything below a segment has arrived in order. Returns whether the player asks for something now.
    #[inline]
    pub(crate) fn deliver(&mut self, now: Instant, delivered: u64) -> bool {
        delivered >= self.next_end && self.complete_frames(now, delivered)
    }

    fn complete_frames(&mut self, now: Instant, delivered: u64) -> bool {
        self.play(now);
        while let Some(frame) = self.incomplete().filter(|frame| frame.end <= delivered).copied() {
            self.complete += 1;
            self.bytes += frame.bytes;
            let delay = now.since(frame.written);
            self.delay.add(delay);
            self.least_delay = self.least_delay.min(delay);
        }
        self.next_end = self.incomplete().map_or(u64::MAX, |frame| frame.end);
        self.player.supply(now, self.complete);
        self.forget();
        self.ladder.adapts() && self.complete == self.written && self.due() <= now
    }

    /// The oldest frame that has not arrived.
    fn incomplete(&self) -> Option<&Frame> {
        self.frames.get((self.complete - self.first) as usize)
    }

    /// The player plays on.
    fn play(&mut self, now: Instant) {
        let Self { player, frames, first, played, played_bytes, .. } = self;
        player.advance(now, self.complete, |frame, there| {
            if there {
                *played += 1;
                *played_bytes += frames[(frame - *first) as usize].bytes;
            }
        });
    }

    /// Drops the frames that have arrived and whose turn is over.
    fn forget(&mut self) {
        while self.first < self.complete.min(self.player.position) {
            self.frames.pop_front();
            self.first += 1;
        }
    }

    /// The viewer leaves: no more frames, and nothing is played any more.
    pub(crate) fn leave(&mut self, now: Instant) {
        self.play(now);
        self.player.leave(now);
        self.over = true;
    }

    /// The frame that a segment belongs to, if it is not over.
    fn frame(&self, segment: u64) -> Option<&Frame> {
        let index = self.frames.partition_point(|frame| frame.end <= segment);
        self.frames.get(index).filter(|frame| frame.first <= segment)
    }

    /// Bytes that a segment carries.
    pub(crate) fn payload(&self, segment: u64) -> u32 {
        let left = self.frame(segment).map(|frame| frame.bytes - (segment - frame.first) * self.mss);
        left.map_or(self.mss, |left| left.min(self.mss)) as u32
    }

    /// Bytes of it that lie below a segment, all of which have been delivered.
    pub(crate) fn bytes_below(&self, segment: u64) -> u64 {
        let part = self.incomplete().map_or(0, |frame| segment.saturating_sub(frame.first) * self.mss);
        self.bytes + part
    }

    /// What was seen of it, in the flow's record; everything else there is empty.
    pub(crate) fn record(&self) -> record::Flow {
        let Player { position, startup, stalls, stalled, late, .. } = &self.player;
        record::Flow {
            startup_s: startup.map(Span::as_secs_f64),
            stalls: *stalls,
            stall_s: stalled.as_secs_f64(),
            frames: *position,
            late_frames: *late,
            frame_delay_ms: self.delay.summary(),
            video_mbps: Rate::of(self.played_bytes, self.player.media(self.played)).as_mbps(),
            switches: self.ladder.switches,
            ..record::Flow::default()
        }
    }
}
