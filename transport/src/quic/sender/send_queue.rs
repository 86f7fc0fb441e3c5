//! The data of all streams at the sender, by chunks: what was never sent, what is in flight and where, what is to be sent
//! again.

use std::collections::{BTreeSet, VecDeque};
use units::Instant;

/// A chunk that was sent, or lies before one that was.
#[derive(Clone, Copy, Debug)]
struct Chunk {
    is_acked: bool,
    /// Bit mask of the paths that it was ever assigned to.
    paths: u32,
    /// Packets with it that are in flight or wait at a path, those given up left out.
    copies: u32,
    first_sent: Instant,
}

const UNSENT: Chunk = Chunk { is_acked: false, paths: 0, copies: 0, first_sent: Instant::NEVER };

/// What a chunk was before it was assigned to a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Assignment {
    /// Never sent.
    New,
    /// Lost on this path.
    Retransmission,
    /// Lost or given up on another path.
    Reinjection,
    /// In flight on another path.
    Copy,
}

/// The chunks from the oldest unacknowledged one on.
#[derive(Debug, Default)]
pub(super) struct SendQueue {
    chunks: VecDeque<Chunk>,
    snd_una: u64,
    /// The oldest chunk that was never sent.
    snd_nxt: u64,
    /// The end of what the application has written.
    write_seq: u64,
    /// Chunks sent beyond `snd_nxt`.
    sent_ahead: u64,
    /// Chunks to be sent again.
    lost: BTreeSet<u64>,
    acknowledged: u64,
}

impl SendQueue {
    pub(super) fn snd_una(&self) -> u64 {
        self.snd_una
    }

    pub(super) fn snd_nxt(&self) -> u64 {
        self.snd_nxt
    }

    /// The end of the chunks sent.
    pub(super) fn end(&self) -> u64 {
        self.snd_una + self.chunks.len() as u64
    }

    /// Chunks never sent.
    pub(super) fn unsent(&self) -> u64 {
        self.write_seq - self.snd_nxt - self.sent_ahead
    }

    /// Chunks to be sent again.
    pub(super) fn lost(&self) -> u64 {
        self.lost.len() as u64
    }

    /// Chunks acknowledged.
    pub(super) fn acknowledged(&self) -> u64 {
        self.acknowledged
    }

    pub(super) fn write(&mut self, chunks: u64) {
        self.write_seq = self.write_seq.saturating_add(chunks);
    }

    /// The application ends.
    pub(super) fn stop(&mut self) {
        self.write_seq = self.write_seq.min(self.end());
    }

    /// The oldest chunk to be sent again.
    pub(super) fn oldest_lost(&self) -> Option<u64> {
        self.lost.first().copied()
    }

    /// The unsent chunk after `skip` other ones, if it exists and lies below `limit`.
    pub(super) fn unsent_after(&self, skip: u32, limit: u64) -> Option<u64> {
        let limit = limit.min(self.write_seq);
        if skip == 0 {
            return Some(self.snd_nxt).filter(|chunk| *chunk < limit);
        }
        let sent_beyond = self.chunks.range((self.snd_nxt - self.snd_una) as usize..).zip(self.snd_nxt..);
        let gaps = sent_beyond.filter(|(chunk, _)| chunk.paths == 0).map(|(_, number)| number);
        gaps.chain(self.end()..limit).nth(skip as usize).filter(|chunk| *chunk < limit)
    }

    /// The oldest unacknowledged chunk from `start` on that was not assigned to a path.
    pub(super) fn oldest_not_assigned_to(&self, path: usize, start: u64) -> Option<u64> {
        let start = start.max(self.snd_una);
        let mut candidates = self.chunks.range((start.min(self.end()) - self.snd_una) as usize..).zip(start..);
        let is_candidate = |chunk: &Chunk| !chunk.is_acked && chunk.paths & (1 << path) == 0;
        let candidate = candidates.find(|(chunk, _)| is_candidate(chunk)).map(|(_, number)| number);
        candidate.or(Some(self.end().max(start))).filter(|chunk| *chunk < self.write_seq)
    }

    /// Assigns a chunk to a path.
    pub(super) fn assign(&mut self, now: Instant, number: u64, path: usize) -> Assignment {
        while self.end() <= number {
            self.chunks.push_back(UNSENT);
        }
        let was_lost = self.lost.remove(&number);
        let is_next = number == self.snd_nxt;
        let chunk = &mut self.chunks[(number - self.snd_una) as usize];
        let assignment = match (chunk.paths, was_lost) {
            (0, _) => Assignment::New,
            (paths, true) if paths & (1 << path) != 0 => Assignment::Retransmission,
            (_, true) => Assignment::Reinjection,
            _ => Assignment::Copy,
        };
        if assignment == Assignment::New {
            chunk.first_sent = now;
        }
        chunk.paths |= 1 << path;
        chunk.copies += 1;
        if assignment == Assignment::New && is_next {
            self.snd_nxt += 1;
            self.skip_sent();
        } else if assignment == Assignment::New {
            self.sent_ahead += 1;
        }
        assignment
    }

    fn skip_sent(&mut self) {
        while self.snd_nxt < self.end() && self.chunks[(self.snd_nxt - self.snd_una) as usize].paths != 0 {
            self.snd_nxt += 1;
            self.sent_ahead -= 1;
        }
    }

    /// Whether a chunk is acknowledged.
    pub(super) fn is_acked(&self, number: u64) -> bool {
        number < self.snd_una || self.chunks[(number - self.snd_una) as usize].is_acked
    }

    /// Whether several packets with a chunk are in flight or wait at paths.
    pub(super) fn has_copies(&self, number: u64) -> bool {
        number >= self.snd_una && self.chunks[(number - self.snd_una) as usize].copies > 1
    }

    /// A packet with a chunk was acknowledged. Returns when the chunk was first sent, if it is the first such packet.
    pub(super) fn on_acked(&mut self, number: u64) -> Option<Instant> {
        let index = number.checked_sub(self.snd_una)? as usize;
        let chunk = &mut self.chunks[index];
        if std::mem::replace(&mut chunk.is_acked, true) {
            return None;
        }
        let first_sent = chunk.first_sent;
        self.lost.remove(&number);
        self.acknowledged += 1;
        while self.chunks.front().is_some_and(|chunk| chunk.is_acked) {
            self.chunks.pop_front();
            self.snd_una += 1;
        }
        Some(first_sent)
    }

    /// A packet with a chunk was lost or given up: the chunk is to be sent again unless another packet
    /// has it.
    pub(super) fn on_lost(&mut self, number: u64) {
        let Some(index) = number.checked_sub(self.snd_una) else { return };
        let chunk = &mut self.chunks[index as usize];
        chunk.copies = chunk.copies.saturating_sub(1);
        if !chunk.is_acked && chunk.copies == 0 {
            self.lost.insert(number);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue(chunks: u64) -> SendQueue {
        let mut queue = SendQueue::default();
        queue.write(chunks);
        queue
    }

    #[test]
    fn chunks_are_acknowledged_in_any_order_and_each_once() {
        let mut queue = queue(4);
        (0..3).for_each(|chunk| assert_eq!(queue.assign(Instant(chunk + 7), chunk, 0), Assignment::New));
        assert_eq!((queue.on_acked(1), queue.on_acked(1)), (Some(Instant(8)), None));
        assert_eq!((queue.snd_una(), queue.acknowledged()), (0, 1));
        assert_eq!((queue.on_acked(0), queue.snd_una(), queue.unsent()), (Some(Instant(7)), 2, 1));
        assert_eq!((queue.is_acked(1), queue.is_acked(2)), (true, false));
    }

    #[test]
    fn a_lost_chunk_is_sent_again_unless_a_copy_is_in_flight_or_it_was_late() {
        let mut queue = queue(4);
        (0..3).for_each(|chunk| assert_eq!(queue.assign(Instant::ZERO, chunk, 0), Assignment::New));
        assert_eq!(queue.assign(Instant::ZERO, 2, 1), Assignment::Copy);
        (0..3).for_each(|chunk| queue.on_lost(chunk));
        assert_eq!((queue.lost(), queue.oldest_lost()), (2, Some(0)), "path 1 carries chunk 2");
        queue.on_acked(0);
        assert_eq!((queue.oldest_lost(), queue.assign(Instant::ZERO, 1, 0)), (Some(1), Assignment::Retransmission));
        queue.on_lost(2);
        assert_eq!((queue.oldest_lost(), queue.assign(Instant::ZERO, 2, 2)), (Some(2), Assignment::Reinjection));
    }
}
