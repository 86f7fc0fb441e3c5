//! A video: the source that writes frames, and the player at the other end.
//!
//! **Live** frames are written whole when they are captured. **Stored** frames are written up to `ahead` of the player,
//! whose buffer then is full and whose receive window closes. With a bitrate ladder stored video is requested group by
//! group, each when the one before is complete, as adaptive streaming over HTTP does; the player's request is carried
//! by an acknowledgement. The source sees the player's buffer without delay, but acts when an acknowledgement or its
//! own timer wakes it: at most half an RTT too early.
//!
//! **Bytes.** A frame begins with a new segment and ends with a short one, which is sent at once as with `TCP_NODELAY`.
//! Bytes are exact; the cost is that a frame which waits behind others shares no segment with them (Linux would fill
//! the segment): half a packet more per frame on average, or 26 bytes of headers. Windows and pacing count the short segment
//! as full. Segments of frames whose playback time is over count as full if they are retransmitted.

mod encoder;
mod ladder;
mod player;

use encoder::Encoder;
use ladder::Ladder;
use player::Player;
use record::Distribution;
use scenario::model::{self, Playback};
use std::collections::VecDeque;
use units::{Instant, Rate, RngStream, Span};

/// Both ends of a flow of video.
#[derive(Debug)]
pub(crate) struct Video {
    playback: Playback,
    gop: u64,
    /// Playback time of a group.
    group: Span,
    start: Instant,
    mss: u64,
    encoder: Encoder,
    ladder: Ladder,
    player: Player,
    /// Frames from number `first` on, the first one that has not arrived or not been played.
    frames: VecDeque<Frame>,
    first: u64,
    /// Frames written.
    written: u64,
    /// Segments of the frames written.
    segments: u64,
    /// Frames delivered in order.
    complete: u64,
    /// Bytes of the frames delivered in order.
    delivered_bytes: u64,
    /// Number of the segment after the last one of the next frame.
    next_end: u64,
    /// Instant and delivered bytes when the latest group was written.
    last_group: (Instant, u64),
    pub(crate) delay: Distribution,
    min_delay: Span,
    /// Frames played, and their bytes.
    played: u64,
    played_bytes: u64,
    stopped: bool,
}

/// A frame in transit or in the player's buffer.
#[derive(Clone, Copy, Debug)]
struct Frame {
    /// Number of the first segment, and of the one after the last.
    first: u64,
    end: u64,
    bytes: u64,
    written: Instant,
}

impl Video {
    pub(crate) fn new(video: &model::Video, start: Instant, mss: u32, rng: RngStream) -> Self {
        let player = Player::new(video.playback, video.fps, start);
        let gop = u64::from(video.gop);
        Self {
            playback: video.playback,
            gop,
            group: player.media(gop),
            start,
            mss: u64::from(mss),
            encoder: Encoder::new(video, rng),
            ladder: Ladder::new(video.ladder.clone()),
            player,
            frames: VecDeque::new(),
            first: 0,
            written: 0,
            segments: 0,
            complete: 0,
            delivered_bytes: 0,
            next_end: u64::MAX,
            last_group: (start, 0),
            delay: Distribution::default(),
            min_delay: Span::MAX,
            played: 0,
            played_bytes: 0,
            stopped: false,
        }
    }

    /// The time at which the next frame is to be written; it may be in the past.
    pub(crate) fn due(&self) -> Instant {
        match self.playback {
            _ if self.stopped => Instant::NEVER,
            Playback::Live { .. } => self.start + self.player.media(self.written),
            Playback::Stored { ahead, .. } => self.room_time(ahead),
        }
    }

    /// The time at which the player's buffer has room for the next frame; with a bitrate ladder for the next group,
    /// once the group before is complete.
    fn room_time(&self, ahead: Span) -> Instant {
        let index_in_group = self.written % self.gop;
        let end = match self.ladder.adapts() {
            true if index_in_group == 0 && self.complete < self.written => return Instant::NEVER,
            true => self.written - index_in_group + self.gop,
            false => self.written + 1,
        };
        let capacity = self.player.frames(ahead);
        match end.checked_sub(capacity + 1) {
            Some(last) if last >= self.player.position => self.player.playback_time(last),
            _ => self.start,
        }
    }

    /// Writes what is due. Returns the segments, and the bytes that the last one lacks.
    pub(crate) fn write(&mut self, now: Instant) -> Option<(u64, u32)> {
        self.play(now);
        let prior_segments = self.segments;
        let mut lacking = 0;
        while self.due() <= now {
            lacking = self.write_frame(now);
        }
        (self.segments > prior_segments).then_some((self.segments - prior_segments, lacking))
    }

    /// Writes the next frame. Returns the bytes that its last segment lacks.
    fn write_frame(&mut self, now: Instant) -> u32 {
        if self.written.is_multiple_of(self.gop) && self.ladder.adapts() {
            self.choose_rate(now);
        }
        let bytes = self.encoder.frame(self.written, self.ladder.rate());
        let first = self.segments;
        self.segments += bytes.div_ceil(self.mss);
        self.frames.push_back(Frame { first, end: self.segments, bytes, written: now });
        if self.complete == self.written {
            self.next_end = self.segments;
        }
        self.written += 1;
        (bytes.next_multiple_of(self.mss) - bytes) as u32
    }

    /// Chooses the next group's rate.
    fn choose_rate(&mut self, now: Instant) {
        match self.playback {
            Playback::Stored { ahead, .. } => {
                let level = self.player.media(self.complete.saturating_sub(self.player.position));
                self.ladder.choose_by_buffer(level, ahead.saturating_sub(self.group));
            }
            Playback::Live { latency } => {
                let (last_time, last_bytes) = std::mem::replace(&mut self.last_group, (now, self.delivered_bytes));
                let delivered = Rate::of(self.delivered_bytes - last_bytes, now.since(last_time));
                let age = self.incomplete().map_or(Span::ZERO, |frame| now.since(frame.written));
                self.ladder.choose_by_backlog(age.saturating_sub(self.min_delay), latency, delivered);
            }
        }
    }

    /// Called when all segments before `delivered` have arrived in order. Returns whether the player requests a group
    /// now.
    #[inline]
    pub(crate) fn deliver(&mut self, now: Instant, delivered: u64) -> bool {
        delivered >= self.next_end && self.complete_frames(now, delivered)
    }

    fn complete_frames(&mut self, now: Instant, delivered: u64) -> bool {
        self.play(now);
        while let Some(frame) = self.incomplete().filter(|frame| frame.end <= delivered).copied() {
            self.complete += 1;
            self.delivered_bytes += frame.bytes;
            let delay = now.since(frame.written);
            self.delay.add(delay);
            self.min_delay = self.min_delay.min(delay);
        }
        self.next_end = self.incomplete().map_or(u64::MAX, |frame| frame.end);
        self.player.on_complete(now, self.complete);
        self.drop_played();
        self.ladder.adapts() && self.complete == self.written && self.due() <= now
    }

    /// The oldest frame that has not arrived completely.
    fn incomplete(&self) -> Option<&Frame> {
        self.frames.get((self.complete - self.first) as usize)
    }

    /// Advances the player to `now`.
    fn play(&mut self, now: Instant) {
        let Self { player, frames, first, played, played_bytes, .. } = self;
        player.advance(now, self.complete, |frame, is_complete| {
            if is_complete {
                *played += 1;
                *played_bytes += frames[(frame - *first) as usize].bytes;
            }
        });
    }

    /// Drops the frames that have arrived and whose playback time is over.
    fn drop_played(&mut self) {
        while self.first < self.complete.min(self.player.position) {
            self.frames.pop_front();
            self.first += 1;
        }
    }

    /// Stops source and player.
    pub(crate) fn stop(&mut self, now: Instant) {
        self.play(now);
        self.player.stop(now);
        self.stopped = true;
    }

    /// The frame that a segment belongs to, if it has not been dropped.
    fn frame(&self, segment: u64) -> Option<&Frame> {
        let index = self.frames.partition_point(|frame| frame.end <= segment);
        self.frames.get(index).filter(|frame| frame.first <= segment)
    }

    /// Bytes that a segment carries.
    pub(crate) fn payload(&self, segment: u64) -> u32 {
        let remaining = self.frame(segment).map(|frame| frame.bytes - (segment - frame.first) * self.mss);
        remaining.map_or(self.mss, |bytes| bytes.min(self.mss)) as u32
    }

    /// Bytes that precede a segment, all of which have been delivered.
    pub(crate) fn bytes_below(&self, segment: u64) -> u64 {
        let part = self.incomplete().map_or(0, |frame| segment.saturating_sub(frame.first) * self.mss);
        self.delivered_bytes + part
    }

    /// The video's part of the flow's record.
    pub(crate) fn record(&self) -> record::Video {
        let Player { position, startup, stalls, stalled, late, .. } = &self.player;
        record::Video {
            startup_s: startup.map(Span::as_secs_f64),
            stalls: *stalls,
            stall_s: stalled.as_secs_f64(),
            frames: *position,
            late_frames: *late,
            frame_delay_ms: self.delay.summary(),
            video_mbps: Rate::of(self.played_bytes, self.player.media(self.played)).as_mbps(),
            rate_switches: self.ladder.rate_switches,
        }
    }
}
