//! Chunks of a byte stream in order, charged to the memory that all connections share.

use crate::event::Chunk;
use crate::memory::Memory;
use std::collections::VecDeque;

/// Chunks from some offset on.
#[derive(Debug)]
pub(crate) struct Chunks<C> {
    /// Each with the offset of its first byte.
    queue: VecDeque<(u64, C)>,
    /// The offset after the last byte.
    end: u64,
    /// The length that the front chunk had when its bytes were last moved; 0 if it was never cut.
    front_length: u32,
}

impl<C: Chunk> Chunks<C> {
    pub(crate) fn new() -> Self {
        Self { queue: VecDeque::new(), end: 0, front_length: 0 }
    }

    pub(crate) fn push(&mut self, chunk: C) {
        let start = self.end;
        self.end += u64::from(chunk.len());
        self.queue.push_back((start, chunk));
    }

    /// The bytes of `start..end` that are in the chunk of the first of them, `max_bytes` at most; `None` if it is not there.
    pub(crate) fn part(&self, start: u64, end: u64, max_bytes: u32) -> Option<C> {
        let index = self.queue.partition_point(|(first, _)| *first <= start).checked_sub(1)?;
        let (first, chunk) = &self.queue[index];
        let from = (start - first) as u32;
        let to = u64::from(chunk.len()).min(end - first) as u32;
        (from < to).then(|| chunk.slice(from, to.min(from.saturating_add(max_bytes))))
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &C> {
        self.queue.iter().map(|(_, chunk)| chunk)
    }

    /// Forgets the first `bytes`; the chunk in which they end is cut. Their charge is subtracted from `held` and `memory`.
    pub(crate) fn release(&mut self, bytes: u64, held: &mut u64, memory: &mut Memory) {
        let mut remaining = bytes;
        while let Some((start, front)) = self.queue.front_mut().filter(|_| remaining > 0) {
            let length = u64::from(front.len());
            let released = length.min(remaining);
            let mut freed = released;
            if released == length {
                self.queue.pop_front();
                self.front_length = 0;
                freed = Memory::charge(length);
            } else {
                let cut_length = self.front_length.max(front.len());
                *front = front.slice(released as u32, length as u32);
                *start += released;
                // At least half of its memory is charged.
                self.front_length = if front.len() < cut_length / 2 {
                    front.detach();
                    front.len()
                } else {
                    cut_length
                };
            }
            remaining -= released;
            *held -= freed;
            memory.used -= freed;
        }
    }
}
