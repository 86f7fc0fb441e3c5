//! The reorder buffer: each stream is delivered in its own order, so that one flow's loss does not delay another.
//!
//! A fragment that arrives early is buffered until the missing ones before it have arrived. Missing fragments are given
//! up when
//!
//! - the reorder timeout has passed, which the sender computes (the difference of the paths' delays, their jitter, and
//!   the time of a retransmission); or, where the sender does not retransmit,
//! - every path in use has delivered a later fragment of the stream: paths keep the order, so that the missing fragment
//!   is in flight on none (draft-amend-iccrg-multipath-reordering, section 5.6); or
//! - the buffer is full: then only the head of a stream is given up (RFC 2890, section 2.2).
//!
//! All memory is charged to [`ReorderConfig::memory_bytes`]: the memory of a fragment, plus [`ENTRY_BYTES`] for each
//! fragment and for each number that was delivered out of order. A missing number costs nothing. Handling a fragment
//! takes time logarithmic in the number of entries of its stream, apart from deliveries.

mod out_of_order_queue;

use super::config::MAX_PATHS;
use super::packet::{Delivery, FIRST_UNORDERED_STREAM, Fragment, Payload};
use super::status::EndpointCounters;
use crate::streams::StreamTable;
use out_of_order_queue::OutOfOrderQueue;
use std::collections::{BTreeSet, VecDeque};
use units::{Instant, PathId, Span};

/// Maximum distance of a fragment from the expected one.
const MAX_REORDER_DISTANCE: u64 = 1 << 16;
/// Maximum number of given-up ranges that are remembered, to distinguish late fragments from duplicates.
const MAX_SKIPPED_RANGES: usize = 16;

/// Bytes charged for an entry in addition to the memory of its fragment: its share of the nodes of a map, which may be
/// half empty, or of a queue, which may be two thirds empty; and its share of the queue of deliveries.
const ENTRY_BYTES: u64 = 256;
/// Maximum capacity that the queue of deliveries keeps once it is empty, fragments.
const MAX_IDLE_DELIVERIES: usize = 1024;

/// A fragment that arrived before an earlier one, or the number of such a fragment that was delivered out of order.
#[derive(Debug)]
struct Entry<P> {
    arrival: Instant,
    /// `None` if it was delivered out of order.
    delivery: Option<Delivery<P>>,
}

impl<P: Payload> Entry<P> {
    /// The memory charged for the entry, bytes.
    fn memory(&self) -> u64 {
        ENTRY_BYTES + self.delivery.as_ref().map_or(0, |delivery| delivery.payload.memory_bytes())
    }
}

/// Configuration, the same for all streams.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReorderConfig {
    pub(super) in_order: bool,
    pub(super) deliver_late: bool,
    /// Maximum wait for a missing fragment.
    pub(super) timeout: Span,
    /// Whether the sender retransmits. If so, a missing fragment may still arrive after every path has delivered a
    /// later one.
    pub(super) retransmit: bool,
    /// Maximum size of the buffers, bytes.
    pub(super) memory_bytes: u64,
}

#[derive(Debug)]
struct Stream<P> {
    expected: u64,
    /// By number, all larger than the expected one between two calls.
    entries: OutOfOrderQueue<Entry<P>>,
    /// The memory charged for the entries, bytes.
    memory: u64,
    /// One past the largest number that each path delivered, without retransmissions.
    next_on_path: Vec<(PathId, u64)>,
    skipped_ranges: VecDeque<(u64, u64)>,
    /// Whether fragments were given up since the latest delivery.
    gap: bool,
    /// The stream's place in [`ReorderBuffer::waiting`]: when the wait for the fragment at the head began, and the
    /// order in which streams began to wait.
    waiting: Option<(Instant, u64)>,
}

impl<P> Default for Stream<P> {
    fn default() -> Self {
        Self {
            expected: 0,
            entries: OutOfOrderQueue::default(),
            memory: 0,
            next_on_path: Vec::new(),
            skipped_ranges: VecDeque::new(),
            gap: false,
            waiting: None,
        }
    }
}

/// The reorder buffers of all streams.
#[derive(Debug)]
pub(super) struct ReorderBuffer<P> {
    pub(super) config: ReorderConfig,
    streams: StreamTable<Stream<P>>,
    /// Streams that wait for a fragment: since when, the order in which they began to wait, and the stream.
    waiting: BTreeSet<(Instant, u64, u8)>,
    /// The number of the next stream that begins to wait.
    next_waiting: u64,
    /// Fragments in the buffers.
    pub(super) buffered: u64,
    /// The memory charged for all entries, bytes.
    pub(super) memory: u64,
    /// When [`on_timeout`](Self::on_timeout) is due.
    pub(super) deadline: Instant,
    /// Fragments in order: at most those that one call has released, because the driver takes all of them before the
    /// next call.
    deliveries: VecDeque<Delivery<P>>,
}

impl<P: Payload> ReorderBuffer<P> {
    pub(super) fn new(config: ReorderConfig) -> Self {
        Self {
            config,
            streams: StreamTable::new(),
            waiting: BTreeSet::new(),
            next_waiting: 0,
            buffered: 0,
            memory: 0,
            deadline: Instant::NEVER,
            deliveries: VecDeque::new(),
        }
    }

    /// The next delivery.
    pub(super) fn pop(&mut self) -> Option<Delivery<P>> {
        let delivery = self.deliveries.pop_front();
        if delivery.is_none() && self.deliveries.capacity() > MAX_IDLE_DELIVERIES {
            self.deliveries = VecDeque::new();
        }
        delivery
    }

    /// A fragment arrived on `path`; `is_in_use` returns whether a path has recently delivered data.
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
        let stream = self.streams.get_or_insert_with(index, Stream::default);
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
            if !stream.entries.is_empty() {
                counters.reorder_dropped_fragments += 1;
                return;
            }
            // After so many losses no timer is set: the stream continues at this fragment.
            stream.skip(distance, counters);
        }
        if number == stream.expected {
            stream.expected += 1;
            delivery.gap = std::mem::take(&mut stream.gap);
            counters.delivered_fragments += 1;
            self.deliveries.push_back(delivery);
            if stream.entries.is_empty() {
                return; // the common case
            }
        } else if stream.entries.contains(number) {
            counters.duplicate_fragments += 1;
            return;
        } else {
            self.insert(now, number, is_unordered, delivery, counters);
        }
        self.advance(now, index, counters);
        if !config.retransmit {
            self.give_up_overtaken(now, index, is_in_use, counters);
        }
        self.update_waiting(index);
        while self.memory > config.memory_bytes && self.give_up_in_longest_stream(now, counters) {}
        self.update_deadline();
    }

    /// Handles a fragment before the expected one: a duplicate, or one that was given up.
    fn handle_late(&mut self, number: u64, delivery: Delivery<P>, counters: &mut EndpointCounters) {
        if !self.streams[delivery.stream].remove_skipped(number) {
            counters.duplicate_fragments += 1;
            return;
        }
        counters.late_fragments += 1;
        if self.config.deliver_late && delivery.first && delivery.last {
            counters.delivered_fragments += 1;
            self.deliveries.push_back(delivery);
        }
    }

    /// Buffers a fragment that is not the expected one, or delivers it if `is_unordered`.
    fn insert(
        &mut self,
        now: Instant,
        number: u64,
        is_unordered: bool,
        mut delivery: Delivery<P>,
        counters: &mut EndpointCounters,
    ) {
        let stream = &mut self.streams[delivery.stream];
        let mut entry = Entry { arrival: now, delivery: None };
        if is_unordered {
            counters.delivered_fragments += 1;
            self.deliveries.push_back(delivery);
        } else {
            delivery.payload.detach();
            counters.reorder_buffered_fragments += 1;
            self.buffered += 1;
            entry.delivery = Some(delivery);
        }
        let memory = entry.memory();
        stream.entries.insert(number, entry);
        stream.memory += memory;
        self.memory += memory;
    }

    /// Delivers the fragments that are in order.
    fn advance(&mut self, now: Instant, index: u8, counters: &mut EndpointCounters) {
        let stream = &mut self.streams[index];
        while let Some(entry) = stream.entries.remove_first(stream.expected) {
            let memory = entry.memory();
            stream.expected += 1;
            stream.memory -= memory;
            self.memory -= memory;
            if let Entry { arrival, delivery: Some(mut delivery) } = entry {
                delivery.gap = std::mem::take(&mut stream.gap);
                self.buffered -= 1;
                counters.delivered_fragments += 1;
                counters.reorder_wait_ns += now.since(arrival).0;
                self.deliveries.push_back(delivery);
            }
        }
    }

    /// Gives up the missing fragments at the head of a stream.
    fn give_up(&mut self, now: Instant, index: u8, counters: &mut EndpointCounters) {
        let stream = &mut self.streams[index];
        let Some((first, _)) = stream.entries.first() else { return };
        let missing = first - stream.expected;
        if missing > 0 {
            stream.skip(missing, counters);
            self.advance(now, index, counters);
        }
    }

    fn give_up_overtaken(
        &mut self,
        now: Instant,
        index: u8,
        is_in_use: impl Fn(PathId) -> bool,
        counters: &mut EndpointCounters,
    ) {
        loop {
            let stream = &self.streams[index];
            let is_overtaken_on = |path| {
                stream.next_on_path.iter().any(|(stream_path, end)| *stream_path == path && *end > stream.expected)
            };
            let is_overtaken = (0..MAX_PATHS as u16).map(PathId).all(|path| is_overtaken_on(path) || !is_in_use(path));
            if !is_overtaken || stream.entries.is_empty() {
                return;
            }
            self.give_up(now, index, counters);
        }
    }

    /// Gives up the head of the stream that holds the most. False if none holds anything.
    fn give_up_in_longest_stream(&mut self, now: Instant, counters: &mut EndpointCounters) -> bool {
        let memory = |index: u8| self.streams[index].memory;
        let longest = self.waiting.iter().max_by_key(|(_, order, index)| (memory(*index), *order));
        let Some((_, _, longest)) = longest.copied() else { return false };
        self.give_up(now, longest, counters);
        self.update_waiting(longest);
        true
    }

    /// Lists a stream that waits for a fragment, after it has changed.
    fn update_waiting(&mut self, index: u8) {
        let stream = &mut self.streams[index];
        let start = stream.wait_start();
        if start == stream.waiting.map(|(start, _)| start) {
            return;
        }
        if let Some((start, order)) = stream.waiting {
            self.waiting.remove(&(start, order, index));
        } else {
            self.next_waiting += 1;
        }
        stream.waiting = start.map(|start| (start, stream.waiting.map_or(self.next_waiting, |(_, order)| order)));
        self.waiting.extend(stream.waiting.map(|(start, order)| (start, order, index)));
    }

    /// Sets the deadline to the earliest timeout of a waiting stream.
    fn update_deadline(&mut self) {
        self.deadline = self.waiting.first().map_or(Instant::NEVER, |(start, ..)| *start + self.config.timeout);
    }

    /// Gives up the fragments whose timeout has passed.
    pub(super) fn on_timeout(&mut self, now: Instant, counters: &mut EndpointCounters) {
        if now < self.deadline {
            return;
        }
        let timeout = self.config.timeout;
        let mut due: Vec<_> = self.waiting.iter().take_while(|(start, ..)| *start + timeout <= now).copied().collect();
        due.sort_unstable_by_key(|(_, order, _)| *order);
        for (_, _, index) in due {
            while self.streams[index].wait_start().is_some_and(|start| start + timeout <= now) {
                self.give_up(now, index, counters);
            }
            self.update_waiting(index);
        }
        self.update_deadline();
    }

    /// Checks the counts of fragments and memory by counting again.
    pub(super) fn check(&self) {
        let entries = || self.streams.iter().flat_map(|(_, stream)| stream.entries.iter().map(|(_, entry)| entry));
        assert_eq!(self.memory, entries().map(Entry::memory).sum::<u64>());
        assert_eq!(self.buffered, entries().filter(|entry| entry.delivery.is_some()).count() as u64);
        assert!(self.memory <= self.config.memory_bytes, "{} bytes", self.memory);
        let is_waiting = |(_, stream): &(u8, &Stream<P>)| !stream.entries.is_empty();
        assert_eq!(self.waiting.len(), self.streams.iter().filter(is_waiting).count());
        for (index, stream) in self.streams.iter() {
            assert_eq!(stream.memory, stream.entries.iter().map(|(_, entry)| entry.memory()).sum::<u64>());
            assert!(stream.entries.iter().all(|(number, _)| number > stream.expected));
            assert_eq!(stream.waiting.map(|(start, _)| start), stream.wait_start());
            let place = stream.waiting.map(|(start, order)| (start, order, index));
            assert!(place.is_none_or(|place| self.waiting.contains(&place)));
        }
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
        self.entries.first().map(|(_, entry)| entry.arrival)
    }
}

#[cfg(test)]
mod tests;
