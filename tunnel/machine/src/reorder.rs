//! The reorder buffer: each stream is delivered in its own order, so that one flow's loss does not delay another.
//!
//! A fragment that arrives early is buffered until the missing ones before it have arrived. Missing fragments are given
//! up when
//!
//! - the reorder timeout has passed, which the sender computes (the difference of the paths' delays, their jitter, and
//!   the time of a retransmission); or, where the sender does not retransmit,
//! - every path in use has delivered a later fragment of the stream: a path keeps its order, so that the missing
//!   fragment is on none (draft-amend-iccrg-multipath-reordering, section 5.6); or
//! - the buffer is full: then only the head of a stream is given up (RFC 2890, section 2.2).

use super::config::MAX_PATHS;
use super::packet::{Delivery, FIRST_UNORDERED_STREAM, Fragment, Payload};
use super::status::EndpointCounters;
use std::collections::VecDeque;
use units::{Instant, PathId, Span};

/// Maximum distance of a fragment from the expected one: bounds the memory of a stream whatever a peer sends.
const MAX_REORDER_DISTANCE: u64 = 1 << 16;
/// Maximum number of ranges given up that are remembered, to tell late fragments from duplicates.
const MAX_SKIPPED_RANGES: usize = 16;

#[derive(Debug)]
enum Slot<P> {
    Missing,
    Buffered {
        arrival: Instant,
        delivery: Delivery<P>,
    },
    /// Delivered out of order.
    Delivered {
        arrival: Instant,
    },
}

/// Configuration, the same for all streams.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReorderConfig {
    pub(super) in_order: bool,
    pub(super) deliver_late: bool,
    /// Maximum wait for a missing fragment.
    pub(super) timeout: Span,
    /// Whether the sender retransmits: a fragment that every path has passed may still come.
    pub(super) retransmit: bool,
    /// Maximum size of the buffers, bytes.
    pub(super) memory_bytes: u64,
}

#[derive(Debug)]
struct Stream<P> {
    expected: u64,
    slots: VecDeque<Slot<P>>,
    buffered: u64,
    /// One past the largest number that each path delivered, without retransmissions.
    next_on_path: Vec<(PathId, u64)>,
    skipped_ranges: VecDeque<(u64, u64)>,
    /// Whether fragments were given up since the latest delivery.
    gap: bool,
    is_listed: bool,
}

impl<P> Default for Stream<P> {
    fn default() -> Self {
        Self {
            expected: 0,
            slots: VecDeque::new(),
            buffered: 0,
            next_on_path: Vec::new(),
            skipped_ranges: VecDeque::new(),
            gap: false,
            is_listed: false,
        }
    }
}

/// The reorder buffers of all streams.
#[derive(Debug)]
pub(super) struct ReorderBuffer<P> {
    pub(super) config: ReorderConfig,
    streams: Vec<Stream<P>>,
    /// Streams that wait for a fragment.
    waiting_streams: Vec<u8>,
    /// Fragments in the buffers.
    pub(super) buffered: u64,
    buffered_bytes: u64,
    /// When [`on_timeout`](Self::on_timeout) is due.
    pub(super) deadline: Instant,
    deliveries: VecDeque<Delivery<P>>,
}

impl<P: Payload> ReorderBuffer<P> {
    pub(super) fn new(config: ReorderConfig) -> Self {
        Self {
            config,
            streams: (0..super::ingress::STREAMS).map(|_| Stream::default()).collect(),
            waiting_streams: Vec::new(),
            buffered: 0,
            buffered_bytes: 0,
            deadline: Instant::NEVER,
            deliveries: VecDeque::new(),
        }
    }

    /// The next delivery.
    pub(super) fn pop(&mut self) -> Option<Delivery<P>> {
        self.deliveries.pop_front()
    }

    /// A fragment arrived on `path`; `is_in_use` returns whether a path has delivered data lately.
    pub(super) fn handle(
        &mut self,
        now: Instant,
        path: PathId,
        fragment: Fragment<P>,
        ce: bool,
        is_in_use: impl Fn(PathId) -> bool,
        counters: &mut EndpointCounters,
    ) {
        let index = fragment.stream;
        let config = self.config;
        let is_unordered = fragment.first && fragment.last && (!config.in_order || index >= FIRST_UNORDERED_STREAM);
        let stream = &mut self.streams[usize::from(index)];
        let Some(number) = stream.decode(fragment.sequence) else {
            counters.malformed_frames += 1;
            return;
        };
        if !fragment.retransmission {
            stream.update_next_on_path(path, number + 1);
        }
        let (first, last, payload) = (fragment.first, fragment.last, fragment.payload);
        let mut delivery = Delivery { stream: index, payload, first, last, gap: false, ce };
        let Some(distance) = number.checked_sub(stream.expected) else {
            return self.handle_late(number, delivery, counters);
        };
        if distance >= MAX_REORDER_DISTANCE {
            if !stream.slots.is_empty() {
                counters.reorder_dropped_fragments += 1;
                return;
            }
            // After so many losses no timer is set: the stream continues at this fragment.
            stream.skip(distance, counters);
        }
        if number == stream.expected && stream.slots.is_empty() {
            // The common case: in order, and nothing held.
            stream.expected += 1;
            delivery.gap = std::mem::take(&mut stream.gap);
            counters.delivered_fragments += 1;
            self.deliveries.push_back(delivery);
            return;
        }
        if !self.insert(now, index, distance as usize, is_unordered, delivery, counters) {
            return;
        }
        self.advance(now, index, counters);
        if !config.retransmit {
            self.give_up_overtaken(now, index, is_in_use, counters);
        }
        while self.buffered_bytes > config.memory_bytes && self.give_up_in_longest_stream(now, counters) {}
        self.reschedule();
    }

    /// A fragment before the expected one: a duplicate, or one that was given up.
    fn handle_late(&mut self, number: u64, delivery: Delivery<P>, counters: &mut EndpointCounters) {
        if !self.streams[usize::from(delivery.stream)].remove_skipped(number) {
            counters.duplicate_fragments += 1;
            return;
        }
        counters.late_fragments += 1;
        if self.config.deliver_late && delivery.first && delivery.last {
            counters.delivered_fragments += 1;
            self.deliveries.push_back(delivery);
        }
    }

    /// Buffers a fragment that is ahead of the expected one, or delivers it if `is_unordered`. False if it is a
    /// duplicate.
    fn insert(
        &mut self,
        now: Instant,
        index: u8,
        distance: usize,
        is_unordered: bool,
        delivery: Delivery<P>,
        counters: &mut EndpointCounters,
    ) -> bool {
        let stream = &mut self.streams[usize::from(index)];
        while stream.slots.len() <= distance {
            stream.slots.push_back(Slot::Missing);
        }
        let slot = &mut stream.slots[distance];
        if !matches!(slot, Slot::Missing) {
            counters.duplicate_fragments += 1;
            return false;
        }
        if is_unordered && distance > 0 {
            *slot = Slot::Delivered { arrival: now };
            counters.delivered_fragments += 1;
            self.deliveries.push_back(delivery);
        } else {
            stream.buffered += 1;
            self.buffered += 1;
            self.buffered_bytes += u64::from(delivery.payload.len());
            counters.reorder_buffered_fragments += u64::from(distance > 0);
            *slot = Slot::Buffered { arrival: now, delivery };
        }
        if !stream.is_listed {
            stream.is_listed = true;
            self.waiting_streams.push(index);
        }
        true
    }

    /// Delivers what is in order.
    fn advance(&mut self, now: Instant, index: u8, counters: &mut EndpointCounters) {
        let stream = &mut self.streams[usize::from(index)];
        while let Some(slot) = stream.slots.front() {
            if matches!(slot, Slot::Missing) {
                return;
            }
            stream.expected += 1;
            if let Some(Slot::Buffered { arrival, mut delivery }) = stream.slots.pop_front() {
                delivery.gap = std::mem::take(&mut stream.gap);
                stream.buffered -= 1;
                self.buffered -= 1;
                self.buffered_bytes -= u64::from(delivery.payload.len());
                counters.delivered_fragments += 1;
                counters.reorder_wait_ns += now.since(arrival).0;
                self.deliveries.push_back(delivery);
            }
        }
    }

    /// Gives up the missing fragments at the head of a stream.
    fn give_up(&mut self, now: Instant, index: u8, counters: &mut EndpointCounters) {
        let stream = &mut self.streams[usize::from(index)];
        let missing = stream.slots.iter().take_while(|slot| matches!(slot, Slot::Missing)).count();
        if missing == 0 {
            return;
        }
        stream.slots.drain(..missing);
        stream.skip(missing as u64, counters);
        self.advance(now, index, counters);
    }

    fn give_up_overtaken(
        &mut self,
        now: Instant,
        index: u8,
        is_in_use: impl Fn(PathId) -> bool,
        counters: &mut EndpointCounters,
    ) {
        loop {
            let stream = &self.streams[usize::from(index)];
            let is_overtaken_on = |path| {
                stream.next_on_path.iter().any(|(stream_path, end)| *stream_path == path && *end > stream.expected)
            };
            let is_overtaken = (0..MAX_PATHS as u16).map(PathId).all(|path| is_overtaken_on(path) || !is_in_use(path));
            if !is_overtaken || stream.slots.is_empty() {
                return;
            }
            self.give_up(now, index, counters);
        }
    }

    fn give_up_in_longest_stream(&mut self, now: Instant, counters: &mut EndpointCounters) -> bool {
        let Some(longest) =
            self.waiting_streams.iter().copied().max_by_key(|index| self.streams[usize::from(*index)].buffered)
        else {
            return false;
        };
        let buffered = self.buffered;
        self.give_up(now, longest, counters);
        self.buffered < buffered
    }

    /// Sets the deadline to the earliest timeout of a waiting stream.
    fn reschedule(&mut self) {
        self.deadline = Instant::NEVER;
        let (streams, deadline, timeout) = (&mut self.streams, &mut self.deadline, self.config.timeout);
        self.waiting_streams.retain(|index| {
            let stream = &mut streams[usize::from(*index)];
            stream.is_listed = !stream.slots.is_empty();
            if let Some(start) = stream.wait_start() {
                *deadline = (*deadline).min(start + timeout);
            }
            stream.is_listed
        });
    }

    /// Gives up the fragments whose timeout has passed.
    pub(super) fn on_timeout(&mut self, now: Instant, counters: &mut EndpointCounters) {
        if now < self.deadline {
            return;
        }
        for position in 0..self.waiting_streams.len() {
            let index = self.waiting_streams[position];
            while self.streams[usize::from(index)].wait_start().is_some_and(|start| start + self.config.timeout <= now)
            {
                self.give_up(now, index, counters);
            }
        }
        self.reschedule();
    }
}

impl<P> Stream<P> {
    /// The full sequence number: the one nearest to the expected number.
    fn decode(&self, sequence: u32) -> Option<u64> {
        let distance = sequence.wrapping_sub(self.expected as u32) as i32;
        self.expected.checked_add_signed(i64::from(distance))
    }

    fn update_next_on_path(&mut self, path: PathId, end: u64) {
        let index = self
            .next_on_path
            .iter()
            .position(|(stream_path, _)| *stream_path == path)
            .unwrap_or(self.next_on_path.len());
        if index == self.next_on_path.len() {
            self.next_on_path.push((path, end));
        }
        self.next_on_path[index].1 = self.next_on_path[index].1.max(end);
    }

    /// Gives up the next `missing` fragments.
    fn skip(&mut self, missing: u64, counters: &mut EndpointCounters) {
        self.push_skipped(self.expected, self.expected + missing);
        self.expected += missing;
        self.gap = true;
        counters.missing_fragments += missing;
    }

    fn push_skipped(&mut self, start: u64, end: u64) {
        if self.skipped_ranges.len() == MAX_SKIPPED_RANGES {
            self.skipped_ranges.pop_front();
        }
        self.skipped_ranges.push_back((start, end));
    }

    /// Whether the fragment was given up; true at most once for each.
    fn remove_skipped(&mut self, number: u64) -> bool {
        let Some(index) = self.skipped_ranges.iter().position(|(start, end)| (*start..*end).contains(&number)) else {
            return false;
        };
        let (start, end) = self.skipped_ranges[index];
        self.skipped_ranges[index] = (number + 1, end);
        if start < number {
            self.push_skipped(start, number);
        }
        true
    }

    /// When the wait for the fragment at the head began: the arrival of the first one after it.
    fn wait_start(&self) -> Option<Instant> {
        self.slots.iter().find_map(|slot| match slot {
            Slot::Buffered { arrival, .. } | Slot::Delivered { arrival } => Some(*arrival),
            Slot::Missing => None,
        })
    }
}

#[cfg(test)]
mod tests;
