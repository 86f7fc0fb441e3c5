//! The sender's data of a connection over several paths: which data is unacknowledged, to which paths it was assigned,
//! and which data was never sent.

use std::collections::VecDeque;
use units::Instant;

/// The data from the oldest unacknowledged segment on. Numbers count segments (chunks in QUIC). `T` is the state that a
/// protocol keeps per segment.
#[derive(Debug, Default)]
pub(crate) struct SendQueue<T> {
    /// From `snd_una` to the newest sent segment.
    sent: VecDeque<SentData<T>>,
    snd_una: u64,
    /// The oldest segment that was never sent.
    snd_nxt: u64,
    /// The end of the data that the application has written.
    write_seq: u64,
    /// Segments sent beyond `snd_nxt`.
    sent_ahead: u64,
}

/// A segment of data.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SentData<T> {
    /// Bit mask of the paths to which the segment was assigned.
    pub paths: u32,
    /// Time of its first assignment.
    pub first_sent: Instant,
    /// The protocol's state for the segment.
    pub state: T,
}

impl<T: Default> SendQueue<T> {
    /// The oldest unacknowledged segment.
    pub(crate) fn snd_una(&self) -> u64 {
        self.snd_una
    }

    /// The oldest segment that was never sent.
    pub(crate) fn snd_nxt(&self) -> u64 {
        self.snd_nxt
    }

    /// The end of the data sent.
    pub(crate) fn end(&self) -> u64 {
        self.snd_una + self.sent.len() as u64
    }

    /// The end of the data that the application has written.
    pub(crate) fn write_seq(&self) -> u64 {
        self.write_seq
    }

    /// Segments never sent.
    pub(crate) fn unsent(&self) -> u64 {
        self.write_seq - self.snd_nxt - self.sent_ahead
    }

    /// True if nothing is unacknowledged.
    pub(crate) fn is_empty(&self) -> bool {
        self.sent.is_empty()
    }

    pub(crate) fn write(&mut self, segments: u64) {
        self.write_seq = self.write_seq.saturating_add(segments);
    }

    /// Ends the application's data.
    pub(crate) fn stop(&mut self) {
        self.write_seq = self.write_seq.min(self.end());
    }

    /// The segment `data`; `None` outside of `snd_una` to `end`.
    pub(crate) fn get(&self, data: u64) -> Option<&SentData<T>> {
        self.sent.get(usize::try_from(data.checked_sub(self.snd_una)?).ok()?)
    }

    /// The segment `data`, between `snd_una` and `end`.
    pub(crate) fn sent_data(&mut self, data: u64) -> &mut SentData<T> {
        &mut self.sent[(data - self.snd_una) as usize]
    }

    /// The unsent segment after `skip` others, if it exists and is below `limit`.
    pub(crate) fn unsent_after(&self, skip: u32, limit: u64) -> Option<u64> {
        let limit = limit.min(self.write_seq);
        if skip == 0 {
            return Some(self.snd_nxt).filter(|data| *data < limit);
        }
        let sent_beyond = self.sent.range((self.snd_nxt - self.snd_una) as usize..).zip(self.snd_nxt..);
        let gaps = sent_beyond.filter(|(sent, _)| sent.paths == 0).map(|(_, data)| data);
        gaps.chain(self.end()..limit).nth(skip as usize).filter(|data| *data < limit)
    }

    /// The oldest existing segment from `start` on that was not assigned to a path and satisfies `is_wanted`.
    pub(crate) fn oldest_not_assigned_to(
        &self,
        path: usize,
        start: u64,
        is_wanted: impl Fn(&T) -> bool,
    ) -> Option<u64> {
        let start = start.max(self.snd_una);
        let mut candidates = self.sent.range((start.min(self.end()) - self.snd_una) as usize..).zip(start..);
        let is_candidate = |sent: &SentData<T>| sent.paths & (1 << path) == 0 && is_wanted(&sent.state);
        let candidate = candidates.find(|(sent, _)| is_candidate(sent)).map(|(_, data)| data);
        candidate.or(Some(self.end().max(start))).filter(|data| *data < self.write_seq)
    }

    /// Assigns a segment to a path. Returns the bit mask of the paths to which it was assigned before.
    pub(crate) fn assign(&mut self, now: Instant, data: u64, path: usize) -> u32 {
        while self.end() <= data {
            self.sent.push_back(SentData { paths: 0, first_sent: Instant::NEVER, state: T::default() });
        }
        let next = self.snd_nxt;
        let sent = self.sent_data(data);
        let paths = sent.paths;
        sent.paths |= 1 << path;
        if paths == 0 {
            sent.first_sent = now;
            if data == next {
                self.snd_nxt += 1;
                self.skip_sent();
            } else {
                self.sent_ahead += 1;
            }
        }
        paths
    }

    fn skip_sent(&mut self) {
        while self.snd_nxt < self.end() && self.sent_data(self.snd_nxt).paths != 0 {
            self.snd_nxt += 1;
            self.sent_ahead -= 1;
        }
    }

    /// Removes the oldest segment if `is_done`, because it has arrived.
    pub(crate) fn pop_first_if(&mut self, is_done: impl FnOnce(&SentData<T>) -> bool) -> Option<SentData<T>> {
        if !is_done(self.sent.front()?) {
            return None;
        }
        self.snd_una += 1;
        self.sent.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue(segments: u64) -> SendQueue<()> {
        let mut queue = SendQueue::default();
        queue.write(segments);
        queue
    }

    #[test]
    fn data_sent_ahead_leaves_a_gap_that_is_sent_next() {
        let mut queue = queue(10);
        assert_eq!(queue.unsent_after(3, u64::MAX), Some(3));
        assert_eq!(queue.assign(Instant::ZERO, 3, 1), 0);
        assert_eq!((queue.snd_nxt(), queue.end(), queue.unsent()), (0, 4, 9));
        assert_eq!([0, 2, 3].map(|skip| queue.unsent_after(skip, u64::MAX)), [Some(0), Some(2), Some(4)]);
        (0..3).for_each(|data| assert_eq!(queue.assign(Instant::ZERO, data, 0), 0));
        assert_eq!((queue.snd_nxt(), queue.unsent()), (4, 6));
        assert_eq!((queue.unsent_after(6, u64::MAX), queue.unsent_after(0, 4)), (None, None));
    }

    #[test]
    fn the_oldest_data_not_assigned_to_a_subflow_is_found() {
        let mut queue = queue(4);
        assert!((0..3).all(|data| queue.assign(Instant::ZERO, data, 0) == 0));
        assert_eq!(queue.assign(Instant::ZERO, 1, 1), 1, "a copy");
        let oldest = |path, start| queue.oldest_not_assigned_to(path, start, |()| true);
        assert_eq!([0, 1, 3].map(|start| oldest(1, start)), [Some(0), Some(2), Some(3)]);
        assert_eq!((oldest(0, 0), oldest(0, 4)), (Some(3), None));
    }

    #[test]
    fn acknowledged_data_is_forgotten_oldest_first() {
        let mut queue = queue(4);
        assert!((0..3).all(|data| queue.assign(Instant(data), data, 0) == 0));
        let mut acknowledged = || queue.pop_first_if(|sent| sent.first_sent < Instant(2)).map(|sent| sent.first_sent.0);
        assert_eq!([acknowledged(), acknowledged(), acknowledged()], [Some(0), Some(1), None]);
        assert_eq!((queue.snd_una(), queue.is_empty()), (2, false));
        queue.pop_first_if(|_| true);
        assert!(queue.pop_first_if(|_| true).is_none());
        assert_eq!((queue.snd_una(), queue.snd_nxt()), (3, 3), "no more than was sent");
    }
}
