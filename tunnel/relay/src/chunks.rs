//! Chunks of a byte stream in order, charged to the memory that all connections share.

use crate::event::Chunk;
use crate::memory::Memory;
use std::collections::VecDeque;

/// Chunks from some offset on.
#[derive(Debug)]
pub(crate) struct Chunks<C> {
    queue: VecDeque<C>,
    /// The length that the front chunk had when its bytes were last moved; 0 if it was never cut.
    front_length: u32,
}

impl<C: Chunk> Chunks<C> {
    pub(crate) fn new() -> Self {
        Self { queue: VecDeque::new(), front_length: 0 }
    }

    pub(crate) fn push(&mut self, chunk: C) {
        self.queue.push_back(chunk);
    }

    pub(crate) fn get(&self, index: usize) -> Option<&C> {
        self.queue.get(index)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &C> {
        self.queue.iter()
    }

    /// Forgets the first `bytes`; the chunk in which they end is cut. Returns the number of forgotten chunks, and
    /// subtracts their charge from `held` and `memory`.
    pub(crate) fn release(&mut self, bytes: u64, held: &mut u64, memory: &mut Memory) -> usize {
        let (mut remaining, mut forgotten) = (bytes, 0);
        while let Some(front) = self.queue.front_mut().filter(|_| remaining > 0) {
            let length = u64::from(front.len());
            let released = length.min(remaining);
            let mut freed = released;
            if released == length {
                self.queue.pop_front();
                self.front_length = 0;
                forgotten += 1;
                freed = Memory::charge(length);
            } else {
                let cut_length = self.front_length.max(front.len());
                *front = front.slice(released as u32, length as u32);
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
        forgotten
    }
}
