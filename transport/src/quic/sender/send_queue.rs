//! The data of all streams at the sender, by chunks: never sent, in flight on which paths, or to be sent again.

use crate::send_queue;
use std::collections::BTreeSet;
use units::Instant;

/// The state of a chunk that has been sent.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ChunkState {
    is_acked: bool,
    /// Packets with the chunk that are in flight or wait at a path, except those given up.
    copies: u32,
}

/// The state of a chunk before its assignment to a path.
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
    pub data: send_queue::SendQueue<ChunkState>,
    /// Chunks to be sent again.
    lost: BTreeSet<u64>,
    acknowledged: u64,
}

impl SendQueue {
    /// Chunks to be sent again.
    pub(super) fn lost(&self) -> u64 {
        self.lost.len() as u64
    }

    /// Chunks acknowledged.
    pub(super) fn acknowledged(&self) -> u64 {
        self.acknowledged
    }

    /// The oldest chunk to be sent again.
    pub(super) fn oldest_lost(&self) -> Option<u64> {
        self.lost.first().copied()
    }

    /// The oldest unacknowledged chunk, from `start` on, that was not assigned to a path.
    pub(super) fn oldest_not_assigned_to(&self, path: usize, start: u64) -> Option<u64> {
        self.data.oldest_not_assigned_to(path, start, |state| !state.is_acked)
    }

    /// Assigns a chunk to a path.
    pub(super) fn assign(&mut self, now: Instant, number: u64, path: usize) -> Assignment {
        let was_lost = self.lost.remove(&number);
        let paths = self.data.assign(now, number, path);
        self.data.sent_data(number).state.copies += 1;
        match (paths, was_lost) {
            (0, _) => Assignment::New,
            (paths, true) if paths & (1 << path) != 0 => Assignment::Retransmission,
            (_, true) => Assignment::Reinjection,
            _ => Assignment::Copy,
        }
    }

    /// Whether a chunk is acknowledged.
    pub(super) fn is_acked(&self, number: u64) -> bool {
        self.data.get(number).is_none_or(|chunk| chunk.state.is_acked)
    }

    /// Whether several packets with a chunk are in flight or wait at paths.
    pub(super) fn has_copies(&self, number: u64) -> bool {
        self.data.get(number).is_some_and(|chunk| chunk.state.copies > 1)
    }

    /// Called when a packet with a chunk was acknowledged. For the first such packet, returns when the chunk was first
    /// sent.
    pub(super) fn on_acked(&mut self, number: u64) -> Option<Instant> {
        if self.is_acked(number) {
            return None;
        }
        let chunk = self.data.sent_data(number);
        chunk.state.is_acked = true;
        let first_sent = chunk.first_sent;
        self.lost.remove(&number);
        self.acknowledged += 1;
        while self.data.pop_first_if(|chunk| chunk.state.is_acked).is_some() {}
        Some(first_sent)
    }

    /// Called when a packet with a chunk was lost or given up: the chunk must be sent again unless another packet has
    /// it.
    pub(super) fn on_lost(&mut self, number: u64) {
        if number < self.data.snd_una() {
            return;
        }
        let state = &mut self.data.sent_data(number).state;
        state.copies = state.copies.saturating_sub(1);
        if !state.is_acked && state.copies == 0 {
            self.lost.insert(number);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue(chunks: u64) -> SendQueue {
        let mut queue = SendQueue::default();
        queue.data.write(chunks);
        queue
    }

    #[test]
    fn chunks_are_acknowledged_in_any_order_and_each_once() {
        let mut queue = queue(4);
        (0..3).for_each(|chunk| assert_eq!(queue.assign(Instant(chunk + 7), chunk, 0), Assignment::New));
        assert_eq!((queue.on_acked(1), queue.on_acked(1)), (Some(Instant(8)), None));
        assert_eq!((queue.data.snd_una(), queue.acknowledged()), (0, 1));
        assert_eq!((queue.on_acked(0), queue.data.snd_una(), queue.data.unsent()), (Some(Instant(7)), 2, 1));
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
