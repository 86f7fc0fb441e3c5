//! The byte stream that an end receives: chunks are put in order, and kept until the driver has consumed them.

use crate::chunks::Chunks;
use crate::event::Chunk;
use crate::memory::{INITIAL_WINDOW, Memory};
use std::collections::BTreeMap;
use units::{Instant, Span};
use wire::relay::Gaps;

/// Maximum size of the window, bytes: 1 Gbit/s for 134 ms.
const MAX_WINDOW: u64 = 16 << 20;
/// Maximum number of later chunks: storing a message takes a step for each that it overlaps. 16 MiB in chunks of 1 ms
/// at 100 Mbit/s are 1342.
const MAX_OUT_OF_ORDER: usize = 4096;
/// Time after which gaps are reported again: a message may have been lost. The sender sends none again sooner.
const GAPS_INTERVAL: Span = Span::from_millis(300);

/// One direction's receiving end.
#[derive(Debug)]
pub(crate) struct ReceiveStream<C> {
    /// In order, from `consumed` on.
    chunks: Chunks<C>,
    pub(crate) consumed: u64,
    /// The end of what arrived without a gap.
    received: u64,
    /// Later chunks by their offset; they do not overlap.
    out_of_order: BTreeMap<u64, C>,
    /// The later chunk up to which every gap was told, and when telling them began.
    told: u64,
    told_at: Instant,
    /// The offset at which the byte stream ends.
    end: Option<u64>,
    /// The window's end that was sent last.
    window_end: u64,
    /// Bytes charged for the chunks.
    pub(crate) held: u64,
}

/// The bytes `start..end` of a chunk; they keep no other bytes in memory.
fn part<C: Chunk>(chunk: &C, start: u64, end: u64) -> C {
    let mut part = chunk.slice(start as u32, end as u32);
    if part.len() < chunk.len() {
        part.detach();
    }
    part
}

impl<C: Chunk> ReceiveStream<C> {
    pub(crate) fn new() -> Self {
        Self {
            chunks: Chunks::new(),
            consumed: 0,
            received: 0,
            out_of_order: BTreeMap::new(),
            told: 0,
            told_at: Instant::ZERO,
            end: None,
            window_end: INITIAL_WINDOW,
            held: 0,
        }
    }

    /// A segment arrived. True if there is more in order, the end included. Bytes outside the window, beyond the end or
    /// above the memory limit are dropped.
    pub(crate) fn insert(&mut self, offset: u64, chunk: Option<C>, fin: bool, memory: &mut Memory) -> bool {
        let was_complete = self.is_complete();
        let segment_end = offset + chunk.as_ref().map_or(0, |chunk| u64::from(chunk.len()));
        if segment_end > self.window_end || self.end.is_some_and(|end| segment_end > end) {
            return false;
        }
        let before = self.received;
        let is_stored = chunk.is_none_or(|chunk| self.store(offset, &chunk, memory));
        if fin && is_stored {
            self.end.get_or_insert(segment_end);
        }
        self.received > before || self.is_complete() && !was_complete
    }

    /// Stores the bytes of a chunk that are new. False if some are dropped.
    fn store(&mut self, offset: u64, chunk: &C, memory: &mut Memory) -> bool {
        let end = offset + u64::from(chunk.len());
        let mut start = offset.max(self.received);
        if self.out_of_order.is_empty() && start == self.received {
            return start >= end || self.append(part(chunk, start - offset, end - offset), memory);
        }
        if let Some((previous, bytes)) = self.out_of_order.range(..=start).next_back() {
            start = start.max(previous + u64::from(bytes.len()));
        }
        let mut is_stored = true;
        while start < end {
            let following =
                self.out_of_order.range(start..).next().map(|(next, bytes)| (*next, u64::from(bytes.len())));
            let part_end = following.map_or(end, |(next, _)| next.min(end));
            if start < part_end {
                let charge = Memory::charge(part_end - start);
                let has_room = self.out_of_order.len() < MAX_OUT_OF_ORDER || start == self.received;
                is_stored = has_room && memory.admits(self.held, charge);
                if !is_stored {
                    break;
                }
                self.held += charge;
                memory.used += charge;
                self.out_of_order.insert(start, part(chunk, start - offset, part_end - offset));
            }
            start = following.map_or(end, |(next, length)| next + length);
        }
        while let Some(chunk) = self.out_of_order.remove(&self.received) {
            self.received += u64::from(chunk.len());
            self.chunks.push(chunk);
        }
        is_stored
    }

    /// Appends the next bytes in order.
    fn append(&mut self, chunk: C, memory: &mut Memory) -> bool {
        let length = u64::from(chunk.len());
        let is_admitted = memory.admits(self.held, Memory::charge(length));
        if is_admitted {
            self.held += Memory::charge(length);
            memory.used += Memory::charge(length);
            self.received += length;
            self.chunks.push(chunk);
        }
        is_admitted
    }

    /// The chunks in order that are not consumed.
    pub(crate) fn chunks(&self) -> impl Iterator<Item = &C> {
        self.chunks.iter()
    }

    /// Bytes in order that are not consumed.
    pub(crate) fn unread(&self) -> u64 {
        self.received - self.consumed
    }

    /// Forgets the next `bytes`.
    pub(crate) fn consume(&mut self, bytes: u64, memory: &mut Memory) {
        let target = self.received.min(self.consumed + bytes);
        self.chunks.release(target - self.consumed, &mut self.held, memory);
        self.consumed = target;
    }

    /// Whether everything has arrived, the end included.
    pub(crate) fn is_complete(&self) -> bool {
        self.end == Some(self.received)
    }

    /// Whether everything has been consumed, the end included.
    pub(crate) fn is_finished(&self) -> bool {
        self.end == Some(self.consumed)
    }

    /// The offset to be acknowledged: the end counts as one.
    pub(crate) fn acknowledgement(&self) -> u64 {
        self.received + u64::from(self.is_complete())
    }

    /// The end of the first gap; the acknowledged offset if there is none.
    pub(crate) fn gap_end(&self) -> u64 {
        self.out_of_order.keys().next().copied().unwrap_or_else(|| self.acknowledgement())
    }

    /// Gaps after the first one that were not told since [`GAPS_INTERVAL`]. Further calls return the others.
    pub(crate) fn next_gaps(&mut self, now: Instant) -> Option<Gaps> {
        if now.since(self.told_at) >= GAPS_INTERVAL {
            (self.told, self.told_at) = (0, now);
        }
        let start = self.told.max(self.gap_end());
        let (mut gaps, mut end) = (Gaps::new(start), start);
        for (start, chunk) in self.out_of_order.range(start..) {
            if *start > end && !gaps.push(end..*start) {
                break;
            }
            (self.told, end) = (*start, start + u64::from(chunk.len()));
        }
        (!gaps.is_empty()).then_some(gaps)
    }

    /// The window that could be sent now: half of the memory that may be held, because more is charged for a chunk than
    /// its bytes.
    fn next_window_end(&self, memory: &Memory) -> u64 {
        self.window_end.max(self.consumed + MAX_WINDOW.min(memory.limit(self.held) / 2))
    }

    /// Whether the window has opened by a quarter since it was sent.
    pub(crate) fn has_window_update(&self, memory: &Memory) -> bool {
        let opening = self.next_window_end(memory) - self.window_end;
        self.end.is_none() && opening > 0 && opening * 4 >= self.window_end - self.consumed
    }

    /// The window's end, which is sent now.
    pub(crate) fn send_window(&mut self, memory: &Memory) -> u64 {
        self.window_end = self.next_window_end(memory);
        self.window_end
    }

    /// Checks the charge of the chunks by counting again.
    pub(crate) fn check(&self) {
        let in_order: u64 = self.chunks.iter().map(|chunk| u64::from(chunk.len())).sum();
        assert_eq!(in_order, self.unread());
        let charges = self.chunks.iter().chain(self.out_of_order.values()).map(|chunk| u64::from(chunk.len()));
        assert_eq!(self.held, charges.map(Memory::charge).sum::<u64>());
        assert!(self.out_of_order.first_key_value().is_none_or(|(offset, _)| *offset > self.received));
        let mut end = self.received;
        for (offset, chunk) in &self.out_of_order {
            assert!(*offset >= end, "{offset} overlaps what ends at {end}");
            end = offset + u64::from(chunk.len());
        }
    }
}
