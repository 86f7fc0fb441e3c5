//! The reorder buffer: each stream is delivered in its own order, so that one flow's loss does not delay another.
//!
//! A fragment that arrives early is held until the missing ones before it have arrived. Missing fragments are given up when
//!
//! - the reorder timeout has passed, which the sender computes (the difference of the paths' delays, their jitter, and
//!   the time
//!   of a retransmission); or, where the sender does not retransmit,
//! - every path in use has delivered a later fragment of the stream: a path keeps its order, so that the missing fragment
//!   is on
//!   none (draft-amend-iccrg-multipath-reordering, section 5.6); or
//! - the buffer is full: then only the head of a stream is given up (RFC 2890, section 2.2).

use super::config::MAX_PATHS;
use super::packet::{Delivery, FIRST_UNORDERED_STREAM, Fragment, Payload};
use super::status::EndpointCounters;
use std::collections::VecDeque;
use units::{Instant, PathId, Span};

/// Furthest that a fragment may be ahead of the expected one: bounds the memory of a stream whatever a peer sends.
const MAX_AHEAD: u64 = 1 << 16;
/// Ranges given up that are remembered, to tell late fragments from duplicates.
const MAX_SKIPPED_RANGES: usize = 16;

#[derive(Debug)]
enum Slot<P> {
    Missing,
    Held {
        since: Instant,
        delivery: Delivery<P>,
    },
    /// Delivered out of order.
    Delivered {
        since: Instant,
    },
}

/// Configuration, the same for all streams.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReorderConfig {
    pub(super) in_order: bool,
    pub(super) deliver_late: bool,
    /// Longest wait for a missing fragment.
    pub(super) timeout: Span,
    /// Whether the sender retransmits: a fragment that every path has passed may still come.
    pub(super) retransmit: bool,
    /// Bytes that may be held.
    pub(super) memory_bytes: u64,
}

#[derive(Debug)]
struct Stream<P> {
    expected: u64,
    slots: VecDeque<Slot<P>>,
    held: u64,
    /// By path, one past the greatest number that it delivered, without retransmissions.
    next_on_path: Vec<(PathId, u64)>,
    skipped: VecDeque<(u64, u64)>,
    /// Whether fragments were given up since the latest delivery.
    gap: bool,
    is_listed: bool,
}

impl<P> Default for Stream<P> {
    fn default() -> Self {
        Self {
            expected: 0,
            slots: VecDeque::new(),
            held: 0,
            next_on_path: Vec::new(),
            skipped: VecDeque::new(),
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
    waiting: Vec<u8>,
    /// Fragments held.
    pub(super) held: u64,
    held_bytes: u64,
    /// When [`on_timeout`](Self::on_timeout) is due.
    pub(super) deadline: Instant,
    deliveries: VecDeque<Delivery<P>>,
}

impl<P: Payload> ReorderBuffer<P> {
    pub(super) fn new(config: ReorderConfig) -> Self {
        Self {
            config,
            streams: (0..super::ingress::STREAMS).map(|_| Stream::default()).collect(),
            waiting: Vec::new(),
            held: 0,
            held_bytes: 0,
            deadline: Instant::NEVER,
            deliveries: VecDeque::new(),
        }
    }

    /// The next delivery.
    pub(super) fn pop(&mut self) -> Option<Delivery<P>> {
        self.deliveries.pop_front()
    }

    /// A fragment arrived on `path`; `in_use` tells whether a path has delivered data lately.
    pub(super) fn handle(
        &mut self,
        now: Instant,
        path: PathId,
        fragment: Fragment<P>,
        ce: bool,
        in_use: impl Fn(PathId) -> bool,
        counters: &mut EndpointCounters,
    ) {
        let index = fragment.stream;
        let config = self.config;
        let unordered = fragment.first && fragment.last && (!config.in_order || index >= FIRST_UNORDERED_STREAM);
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
        let Some(ahead) = number.checked_sub(stream.expected) else {
            return self.handle_late(number, delivery, counters);
        };
        if ahead >= MAX_AHEAD {
            if !stream.slots.is_empty() {
                counters.reorder_dropped_fragments += 1;
                return;
            }
            // After so many losses no timer waits: the stream goes on at this fragment.
            stream.skip(ahead, counters);
        }
        if number == stream.expected && stream.slots.is_empty() {
            // The common case: in order, and nothing held.
            stream.expected += 1;
            delivery.gap = std::mem::take(&mut stream.gap);
            counters.delivered_fragments += 1;
            self.deliveries.push_back(delivery);
            return;
        }
        if !self.hold(now, index, ahead as usize, unordered, delivery, counters) {
            return;
        }
        self.advance(now, index, counters);
        if !config.retransmit {
            self.give_up_overtaken(now, index, in_use, counters);
        }
        while self.held_bytes > config.memory_bytes && self.give_up_largest(now, counters) {}
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

    /// Holds a fragment that is ahead of the expected one, or delivers it if it is `unordered`. False if it is a duplicate.
    fn hold(
        &mut self,
        now: Instant,
        index: u8,
        ahead: usize,
        unordered: bool,
        delivery: Delivery<P>,
        counters: &mut EndpointCounters,
    ) -> bool {
        let stream = &mut self.streams[usize::from(index)];
        while stream.slots.len() <= ahead {
            stream.slots.push_back(Slot::Missing);
        }
        let slot = &mut stream.slots[ahead];
        if !matches!(slot, Slot::Missing) {
            counters.duplicate_fragments += 1;
            return false;
        }
        if unordered && ahead > 0 {
            *slot = Slot::Delivered { since: now };
            counters.delivered_fragments += 1;
            self.deliveries.push_back(delivery);
        } else {
            stream.held += 1;
            self.held += 1;
            self.held_bytes += u64::from(delivery.payload.len());
            counters.reorder_buffered_fragments += u64::from(ahead > 0);
            *slot = Slot::Held { since: now, delivery };
        }
        if !stream.is_listed {
            stream.is_listed = true;
            self.waiting.push(index);
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
            if let Some(Slot::Held { since, mut delivery }) = stream.slots.pop_front() {
                delivery.gap = std::mem::take(&mut stream.gap);
                stream.held -= 1;
                self.held -= 1;
                self.held_bytes -= u64::from(delivery.payload.len());
                counters.delivered_fragments += 1;
                counters.reorder_wait_ns += now.since(since).0;
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
        in_use: impl Fn(PathId) -> bool,
        counters: &mut EndpointCounters,
    ) {
        loop {
            let stream = &self.streams[usize::from(index)];
            let overtaken_on = |path| stream.next_on_path.iter().any(|(of, end)| *of == path && *end > stream.expected);
            let overtaken = (0..MAX_PATHS as u16).map(PathId).all(|path| overtaken_on(path) || !in_use(path));
            if !overtaken || stream.slots.is_empty() {
                return;
            }
            self.give_up(now, index, counters);
        }
    }

    fn give_up_largest(&mut self, now: Instant, counters: &mut EndpointCounters) -> bool {
        let Some(largest) = self.waiting.iter().copied().max_by_key(|index| self.streams[usize::from(*index)].held)
        else {
            return false;
        };
        let before = self.held;
        self.give_up(now, largest, counters);
        self.held < before
    }

    /// Sets the deadline to the earliest timeout of a waiting stream.
    fn reschedule(&mut self) {
        self.deadline = Instant::NEVER;
        let (streams, deadline, timeout) = (&mut self.streams, &mut self.deadline, self.config.timeout);
        self.waiting.retain(|index| {
            let stream = &mut streams[usize::from(*index)];
            stream.is_listed = !stream.slots.is_empty();
            if let Some(since) = stream.waiting_since() {
                *deadline = (*deadline).min(since + timeout);
            }
            stream.is_listed
        });
    }

    /// Gives up the fragments whose timeout has passed.
    pub(super) fn on_timeout(&mut self, now: Instant, counters: &mut EndpointCounters) {
        if now < self.deadline {
            return;
        }
        for position in 0..self.waiting.len() {
            let index = self.waiting[position];
            while self.streams[usize::from(index)]
                .waiting_since()
                .is_some_and(|since| since + self.config.timeout <= now)
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
        let index = self.next_on_path.iter().position(|(of, _)| *of == path).unwrap_or(self.next_on_path.len());
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

    fn push_skipped(&mut self, from: u64, to: u64) {
        if self.skipped.len() == MAX_SKIPPED_RANGES {
            self.skipped.pop_front();
        }
        self.skipped.push_back((from, to));
    }

    /// Whether the fragment was given up; true at most once for each.
    fn remove_skipped(&mut self, number: u64) -> bool {
        let Some(at) = self.skipped.iter().position(|(from, to)| (*from..*to).contains(&number)) else { return false };
        let (from, to) = self.skipped[at];
        self.skipped[at] = (number + 1, to);
        if from < number {
            self.push_skipped(from, number);
        }
        true
    }

    /// When the wait for the fragment at the head began: the arrival of the first one behind it.
    fn waiting_since(&self) -> Option<Instant> {
        self.slots.iter().find_map(|slot| match slot {
            Slot::Held { since, .. } | Slot::Delivered { since } => Some(*since),
            Slot::Missing => None,
        })
    }
}

#[cfg(test)]
mod tests;
