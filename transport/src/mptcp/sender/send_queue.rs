//! The data of a connection: what is unacknowledged, who carries it, what is still to be sent.

use std::collections::VecDeque;
use units::Instant;

/// Data from the oldest that is not acknowledged on.
#[derive(Debug, Default)]
pub(super) struct SendQueue {
    /// From `una` to the newest that was sent.
    records: VecDeque<SentData>,
    una: u64,
    /// The oldest that was never sent.
    next: u64,
    /// The end of what the application has written.
    available: u64,
    /// Sent beyond `next`.
    ahead: u64,
}

/// One segment of data.
#[derive(Clone, Copy, Debug)]
pub(super) struct SentData {
    /// The subflows that it was given to, a bit each.
    pub carriers: u32,
    /// When it was given to the first of them.
    pub first: Instant,
    /// The subflows that gave it up since they were given it, so that it was or is to be sent again.
    pub given_up: u32,
}

const UNSENT: SentData = SentData { carriers: 0, first: Instant::NEVER, given_up: 0 };

impl SendQueue {
    /// The oldest that is not acknowledged.
    pub(super) fn una(&self) -> u64 {
        self.una
    }

    /// The oldest that was never sent.
    pub(super) fn next(&self) -> u64 {
        self.next
    }

    /// The end of what was sent.
    pub(super) fn end(&self) -> u64 {
        self.una + self.records.len() as u64
    }

    /// Segments never sent.
    pub(super) fn unsent(&self) -> u64 {
        self.available - self.next - self.ahead
    }

    /// Nothing is unacknowledged.
    pub(super) fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    pub(super) fn write(&mut self, segments: u64) {
        self.available = self.available.saturating_add(segments);
    }

    /// The application ends.
    pub(super) fn stop(&mut self) {
        self.available = self.available.min(self.end());
    }

    /// Data between `una` and `end`.
    pub(super) fn record(&mut self, data: u64) -> &mut SentData {
        &mut self.records[(data - self.una) as usize]
    }

    /// The segment that lies so many unsent ones after `next`, if it exists and lies below `limit`.
    pub(super) fn unsent_after(&self, skip: u32, limit: u64) -> Option<u64> {
        let limit = limit.min(self.available);
        if skip == 0 {
            return Some(self.next).filter(|data| *data < limit);
        }
        let known = self.records.range((self.next - self.una) as usize..).zip(self.next..);
        let gaps = known.filter(|(record, _)| record.carriers == 0).map(|(_, data)| data);
        gaps.chain(self.end()..limit).nth(skip as usize).filter(|data| *data < limit)
    }

    /// The oldest from `from` on that a subflow was not given, and that exists.
    pub(super) fn oldest_without(&self, subflow: usize, from: u64) -> Option<u64> {
        let from = from.max(self.una);
        let mut known = self.records.range((from.min(self.end()) - self.una) as usize..).zip(from..);
        let known = known.find(|(record, _)| record.carriers & (1 << subflow) == 0).map(|(_, data)| data);
        known.or(Some(self.end().max(from))).filter(|data| *data < self.available)
    }

    /// A subflow is given a segment. True if another one was given it before.
    pub(super) fn give(&mut self, now: Instant, data: u64, subflow: usize) -> bool {
        while self.end() <= data {
            self.records.push_back(UNSENT);
        }
        let next = self.next;
        let record = self.record(data);
        let copy = record.carriers != 0;
        if !copy {
            record.first = now;
        }
        record.carriers |= 1 << subflow;
        record.given_up &= !(1 << subflow);
        if !copy && data == next {
            self.next += 1;
            self.skip_sent();
        } else if !copy {
            self.ahead += 1;
        }
        copy
    }

    fn skip_sent(&mut self) {
        while self.next < self.end() && self.record(self.next).carriers != 0 {
            self.next += 1;
            self.ahead -= 1;
        }
    }

    /// Everything below `data` has arrived; `each` is told of it.
    pub(super) fn acknowledge(&mut self, data: u64, mut each: impl FnMut(&SentData)) {
        while self.una < data
            && let Some(record) = self.records.pop_front()
        {
            each(&record);
            self.una += 1;
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
    fn what_is_sent_ahead_leaves_a_gap_that_is_sent_next() {
        let mut queue = queue(10);
        assert_eq!(queue.unsent_after(3, u64::MAX), Some(3));
        assert!(!queue.give(Instant::ZERO, 3, 1));
        assert_eq!((queue.next(), queue.end(), queue.unsent()), (0, 4, 9));
        assert_eq!([0, 2, 3].map(|skip| queue.unsent_after(skip, u64::MAX)), [Some(0), Some(2), Some(4)]);
        (0..3).for_each(|data| assert!(!queue.give(Instant::ZERO, data, 0)));
        assert_eq!((queue.next(), queue.unsent()), (4, 6));
        assert_eq!((queue.unsent_after(6, u64::MAX), queue.unsent_after(0, 4)), (None, None));
    }

    #[test]
    fn a_subflow_finds_what_it_has_not_carried() {
        let mut queue = queue(4);
        assert!((0..3).all(|data| !queue.give(Instant::ZERO, data, 0)));
        assert!(queue.give(Instant::ZERO, 1, 1), "a copy");
        assert_eq!([0, 1, 3].map(|from| queue.oldest_without(1, from)), [Some(0), Some(2), Some(3)]);
        assert_eq!((queue.oldest_without(0, 0), queue.oldest_without(0, 4)), (Some(3), None));
    }

    #[test]
    fn acknowledged_data_is_forgotten_oldest_first() {
        let mut queue = queue(4);
        assert!((0..3).all(|data| !queue.give(Instant(data), data, 0)));
        let mut first = Vec::new();
        queue.acknowledge(2, |record| first.push(record.first.0));
        assert_eq!((first, queue.una(), queue.is_empty()), (vec![0, 1], 2, false));
        queue.acknowledge(9, |_| ());
        assert_eq!((queue.una(), queue.next()), (3, 3), "no more than was sent");
    }
}
