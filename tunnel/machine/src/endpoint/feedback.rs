//! What the peer is told: what has arrived, how long to wait; and whether the paths are there.

use super::{Endpoint, FIRST_HOLD, LEAST_HOLD};
use crate::path::{BASE, Path};
use crate::vocabulary::{Content, Event, Payload, SEAL_BYTES, Transmit};
use units::{Instant, PathId, Span};
use wire::frame::Frame;

/// Feedback goes by each regular path at least this often while there is any.
const FEED: Span = Span::from_millis(25);
/// The peer is told how long to wait this often at most, and eight times less often if nothing changed.
const HOLD_NEWS: Span = Span::from_millis(25);
/// Bytes of frames that a datagram may have on every path.
const MOST_FRAMES: usize = (BASE - SEAL_BYTES) as usize;

impl<P: Payload> Endpoint<P> {
    pub(super) fn poll_control(&mut self, now: Instant) -> Option<Transmit<P>> {
        let habits = self.habits(now);
        for index in 0..self.paths.len() {
            let Some(path) = &mut self.paths[index] else { continue };
            let was_up = path.is_up();
            let ping = path.poll_ping(now, habits, &mut self.random);
            let failed = was_up && !path.is_up();
            let id = PathId(index as u16);
            if failed {
                self.fail_path(now, id);
                self.events.push_back(Event::PathDown(id));
                continue;
            }
            if let Some((token, size)) = ping {
                self.control.clear();
                self.control.push(Frame::Ping { token });
                let pad_to = size.map_or(0, |size| size - SEAL_BYTES);
                return self.frames_leave(now, id, pad_to);
            }
        }
        self.poll_feedback(now)
    }

    /// Frames that are bound to a path leave on it. What has arrived is told on the fastest path that seems to be there;
    /// now and then on each of the others too, so that no single path's failure silences all.
    pub(super) fn poll_feedback(&mut self, now: Instant) -> Option<Transmit<P>> {
        let bound = self.paths.iter().position(|path| path.as_ref().is_some_and(|path| !path.frames.is_empty()));
        if let Some(index) = bound {
            let frames = &mut self.paths[index].as_mut()?.frames;
            self.control.clear();
            self.control.extend(frames.drain(..fitting(frames)));
            return self.frames_leave(now, PathId(index as u16), 0);
        }
        let news = self.hold_news(now);
        if news.is_none() && !self.paths.iter().flatten().any(|path| path.receipt.due() <= now) {
            return None;
        }
        let fastest = self.feedback_path()?;
        let starved = |path: &Path| path.is_up() && !path.is_backup() && now.since(path.fed) > FEED;
        let other = self.paths.iter().position(|path| path.as_ref().is_some_and(starved));
        let other = other.map(|index| PathId(index as u16)).filter(|other| *other != fastest);
        let chosen = other.unwrap_or(fastest);
        self.control.clear();
        self.control.extend(news);
        for (index, path) in self.paths.iter_mut().enumerate() {
            let Some(path) = path else { continue };
            let due = path.receipt.due();
            if due > now {
                continue;
            }
            self.control.extend(path.receipt.tell(now, index as u8).map(Frame::Ack));
            let too_much = fitting(&self.control) < self.control.len();
            if too_much || other.is_some() {
                path.receipt.tell_again(due);
            }
            if too_much {
                self.control.pop();
                break;
            }
        }
        self.paths[chosen.index()].as_mut()?.fed = now;
        self.frames_leave(now, chosen, 0)
    }

    /// The path with the least round trip, among those that work and have lately been heard of; else the one that was
    /// heard of last.
    pub(super) fn feedback_path(&self) -> Option<PathId> {
        let paths = || (0..).map(PathId).zip(&self.paths).filter_map(|(id, path)| Some((id, path.as_ref()?)));
        let latest = paths().filter_map(|(_, path)| path.heard()).max()?;
        let present = |path: &Path| path.heard().is_some_and(|heard| latest.since(heard) < path.patience());
        let fastest = paths().filter(|(_, path)| path.is_up() && present(path)).min_by_key(|(_, path)| path.srtt());
        fastest.or_else(|| paths().max_by_key(|(_, path)| path.heard())).map(|(id, _)| id)
    }

    pub(super) fn frames_leave(&mut self, now: Instant, id: PathId, pad_to: u32) -> Option<Transmit<P>> {
        let number = self.paths[id.index()].as_mut()?.send_control(now);
        Some(Transmit { path: id, number, content: Content::Control { pad_to } })
    }

    /// How long the peer should wait for a missing piece, if it is time to tell: while data is on its way, and when there
    /// is something new.
    pub(super) fn hold_news(&mut self, now: Instant) -> Option<Frame> {
        let (told, at) = self.told;
        if now.since(at) < HOLD_NEWS || self.pieces.bytes() == 0 {
            return None;
        }
        self.aim();
        let hold = self.hold();
        if hold.0.abs_diff(told.0) < told.0 / 8 && now.since(at) < HOLD_NEWS * 8 {
            return None;
        }
        self.told = (hold, now);
        Some(Frame::Hold { wait_us: hold.as_micros().min(u64::from(u32::MAX)) as u32 })
    }

    /// What waits at the entrance until the slow paths are worth their delay is no standing queue: CoDel's target is so much
    /// later, and its interval a round trip at least.
    fn aim(&mut self) {
        let up = || self.paths.iter().flatten().filter(|path| path.is_up());
        let round_trip = up().map(Path::srtt).max().unwrap_or(Span::ZERO);
        let (target, interval) = self.aim;
        let target = target + self.spread(0);
        self.entrance.aim(target, interval.max(round_trip + target));
    }

    /// How much later the slowest path delivers than the fastest, with so many deviations of jitter.
    fn spread(&self, deviations: u64) -> Span {
        let up = self.paths.iter().flatten().filter(|path| path.is_up());
        up.map(|path| self.lateness(path) + path.jitter() * deviations).max().unwrap_or(Span::ZERO)
    }

    /// How much later a path delivers than the fastest. The peer's clock tells, where data has gone by both; else half of what
    /// their round trips differ by.
    pub(super) fn lateness(&self, path: &Path) -> Span {
        let up = || self.paths.iter().flatten().filter(|path| path.is_up());
        let later = |delay: u32| up().filter_map(Path::one_way).map(|other| delay.wrapping_sub(other) as i32).max();
        if let Some(later) = path.one_way().and_then(later) {
            return Span::from_micros(later.max(0) as u64);
        }
        let least = up().map(Path::srtt).min().unwrap_or(Span::ZERO);
        path.srtt().saturating_sub(least) / 2
    }

    /// The difference of the paths' delays and their jitter; where lost pieces are sent again, the time to doubt a path that
    /// fails (its last acknowledgement may come nearly as late again) and to send what was on it, all of it, by another.
    pub(super) fn hold(&self) -> Span {
        let up = || self.paths.iter().flatten().filter(|path| path.is_up());
        let spread = self.spread(4);
        if !self.repair {
            return spread + LEAST_HOLD;
        }
        let find = up().map(Path::doubtful_after).max().unwrap_or(FIRST_HOLD);
        let repair = up().map(Path::patience).min().unwrap_or(FIRST_HOLD);
        spread + find * 2 + repair * 2 + LEAST_HOLD
    }
}

/// How many of the first frames fit a datagram; at least one, as none is so long.
fn fitting(frames: &[Frame]) -> usize {
    let mut bytes = 0;
    let fits = |frame: &&Frame| {
        bytes += frame.len();
        bytes <= MOST_FRAMES
    };
    frames.iter().take_while(fits).count().max(1)
}
