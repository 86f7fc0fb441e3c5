//! The send queue of a connection: which data is unacknowledged, which subflows carry it, what is still unsent.

use std::collections::VecDeque;
use units::Instant;

/// The data from the oldest unacknowledged segment on. Numbers count segments.
#[derive(Debug, Default)]
pub(super) struct SendQueue {
    /// From `snd_una` to the newest that was sent.
    sent: VecDeque<SentData>,
    snd_una: u64,
    /// The oldest segment that was never sent.
    snd_nxt: u64,
    /// The end of what the application has written.
    write_seq: u64,
    /// Segments sent beyond `snd_nxt`.
    sent_ahead: u64,
}

/// A segment of data.
#[derive(Clone, Copy, Debug)]
pub(super) struct SentData {
    /// Bit mask of the subflows that it was assigned to.
    pub subflows: u32,
    /// When it was assigned to the first of them.
    pub first_sent: Instant,
    /// Bit mask of the subflows that have failed since it was assigned to them, so that it was or is to be reinjected.
    pub failed_subflows: u32,
}

const UNSENT: SentData = SentData { subflows: 0, first_sent: Instant::NEVER, failed_subflows: 0 };

impl SendQueue {
    /// The oldest unacknowledged segment.
    pub(super) fn snd_una(&self) -> u64 {
        self.snd_una
    }

    /// The oldest segment that was never sent.
    pub(super) fn snd_nxt(&self) -> u64 {
        self.snd_nxt
    }

    /// The end of the data sent.
    pub(super) fn end(&self) -> u64 {
        self.snd_una + self.sent.len() as u64
    }

    /// Segments never sent.
    pub(super) fn unsent(&self) -> u64 {
        self.write_seq - self.snd_nxt - self.sent_ahead
    }

    /// True if nothing is unacknowledged.
    pub(super) fn is_empty(&self) -> bool {
        self.sent.is_empty()
    }

    pub(super) fn write(&mut self, segments: u64) {
        self.write_seq = self.write_seq.saturating_add(segments);
    }

    /// The application ends.
    pub(super) fn stop(&mut self) {
        self.write_seq = self.write_seq.min(self.end());
    }

    /// The segment `data`, between `snd_una` and `end`.
    pub(super) fn sent_data(&mut self, data: u64) -> &mut SentData {
        &mut self.sent[(data - self.snd_una) as usize]
    }

    /// The unsent segment after `skip` other ones, if it exists and lies below `limit`.
    pub(super) fn unsent_after(&self, skip: u32, limit: u64) -> Option<u64> {
        let limit = limit.min(self.write_seq);
        if skip == 0 {
            return Some(self.snd_nxt).filter(|data| *data < limit);
        }
        let sent_beyond = self.sent.range((self.snd_nxt - self.snd_una) as usize..).zip(self.snd_nxt..);
        let gaps = sent_beyond.filter(|(sent, _)| sent.subflows == 0).map(|(_, data)| data);
        gaps.chain(self.end()..limit).nth(skip as usize).filter(|data| *data < limit)
    }

    /// The oldest existing segment from `start` on that was not assigned to a subflow.
    pub(super) fn oldest_not_assigned_to(&self, subflow: usize, start: u64) -> Option<u64> {
        let start = start.max(self.snd_una);
        let mut candidates = self.sent.range((start.min(self.end()) - self.snd_una) as usize..).zip(start..);
        let candidate = candidates.find(|(sent, _)| sent.subflows & (1 << subflow) == 0).map(|(_, data)| data);
        candidate.or(Some(self.end().max(start))).filter(|data| *data < self.write_seq)
    }

    /// Assigns a segment to a subflow. Returns whether it was assigned to another one before.
    pub(super) fn assign(&mut self, now: Instant, data: u64, subflow: usize) -> bool {
        while self.end() <= data {
            self.sent.push_back(UNSENT);
        }
        let next = self.snd_nxt;
        let sent = self.sent_data(data);
        let copy = sent.subflows != 0;
        if !copy {
            sent.first_sent = now;
        }
        sent.subflows |= 1 << subflow;
        sent.failed_subflows &= !(1 << subflow);
        if !copy && data == next {
            self.snd_nxt += 1;
            self.skip_sent();
        } else if !copy {
            self.sent_ahead += 1;
        }
        copy
    }

    fn skip_sent(&mut self) {
        while self.snd_nxt < self.end() && self.sent_data(self.snd_nxt).subflows != 0 {
            self.snd_nxt += 1;
            self.sent_ahead -= 1;
        }
    }

    /// Removes everything below `data`, which has arrived; `on_segment` is called with every one.
    pub(super) fn acknowledge(&mut self, data: u64, mut on_segment: impl FnMut(&SentData)) {
        while self.snd_una < data
            && let Some(sent) = self.sent.pop_front()
        {
            on_segment(&sent);
            self.snd_una += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue(segments: u64) -> SendQueue {
        let mut queue = SendQueue::default();
        queue.write(segments);
        queue
    }

    #[test]
    fn data_sent_ahead_leaves_a_gap_that_is_sent_next() {
        let mut queue = queue(10);
        assert_eq!(queue.unsent_after(3, u64::MAX), Some(3));
        assert!(!queue.assign(Instant::ZERO, 3, 1));
        assert_eq!((queue.snd_nxt(), queue.end(), queue.unsent()), (0, 4, 9));
        assert_eq!([0, 2, 3].map(|skip| queue.unsent_after(skip, u64::MAX)), [Some(0), Some(2), Some(4)]);
        (0..3).for_each(|data| assert!(!queue.assign(Instant::ZERO, data, 0)));
        assert_eq!((queue.snd_nxt(), queue.unsent()), (4, 6));
        assert_eq!((queue.unsent_after(6, u64::MAX), queue.unsent_after(0, 4)), (None, None));
    }

    #[test]
    fn the_oldest_data_not_assigned_to_a_subflow_is_found() {
        let mut queue = queue(4);
        assert!((0..3).all(|data| !queue.assign(Instant::ZERO, data, 0)));
        assert!(queue.assign(Instant::ZERO, 1, 1), "a copy");
        assert_eq!([0, 1, 3].map(|start| queue.oldest_not_assigned_to(1, start)), [Some(0), Some(2), Some(3)]);
        assert_eq!((queue.oldest_not_assigned_to(0, 0), queue.oldest_not_assigned_to(0, 4)), (Some(3), None));
    }

    #[test]
    fn acknowledged_data_is_forgotten_oldest_first() {
        let mut queue = queue(4);
        assert!((0..3).all(|data| !queue.assign(Instant(data), data, 0)));
        let mut first = Vec::new();
        queue.acknowledge(2, |sent| first.push(sent.first_sent.0));
        assert_eq!((first, queue.snd_una(), queue.is_empty()), (vec![0, 1], 2, false));
        queue.acknowledge(9, |_| ());
        assert_eq!((queue.snd_una(), queue.snd_nxt()), (3, 3), "no more than was sent");
    }
}
