//! Where pieces go up: each stream in its own order, so that one flow's loss does not hold up another's.
//!
//! A piece that comes early is held until what is missing before it has come. What is missing is given up when
//!
//! - it was waited for as long as the sender says that it may take (the difference of the paths' delays, their jitter, and
//!   the time to send again); or, where the sender does not send again,
//! - every path that carries anything has delivered a later piece of the stream: a path keeps its order, so that the missing
//!   piece is on none (draft-amend-iccrg-multipath-reordering, section 5.6); or
//! - too much is held: then only the head is given up (RFC 2890, section 2.2).

use super::endpoint::MOST_PATHS;
use super::vocabulary::{Counters, Data, Delivery, FIRST_UNORDERED, Payload};
use std::collections::VecDeque;
use units::{Instant, PathId, Span};

/// Pieces that may be awaited in one stream: memory stays bounded whatever a peer sends.
const MOST_AHEAD: u64 = 1 << 16;
/// Gaps that were given up and are remembered, to tell late pieces from copies.
const REMEMBERED: usize = 16;

#[derive(Debug)]
enum Slot<P> {
    Missing,
    Held {
        since: Instant,
        delivery: Delivery<P>,
    },
    /// It went up out of order.
    Passed {
        since: Instant,
    },
}

/// What holds for all streams.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rules {
    pub(super) order: bool,
    pub(super) deliver_late: bool,
    /// A missing piece is waited for so long.
    pub(super) hold: Span,
    /// The sender sends lost pieces again: that every path has passed it does not mean that a piece is lost.
    pub(super) repair: bool,
    /// Bytes that may be held.
    pub(super) memory: u64,
}

#[derive(Debug)]
struct Stream<P> {
    expected: u64,
    slots: VecDeque<Slot<P>>,
    held: u64,
    /// The number behind the last piece that each path carried first.
    passed: Vec<(PathId, u64)>,
    skipped: VecDeque<(u64, u64)>,
    /// A gap was given up since the last delivery.
    gap: bool,
    listed: bool,
}

impl<P> Default for Stream<P> {
    fn default() -> Self {
        Self {
            expected: 0,
            slots: VecDeque::new(),
            held: 0,
            passed: Vec::new(),
            skipped: VecDeque::new(),
            gap: false,
            listed: false,
        }
    }
}

/// All streams.
#[derive(Debug)]
pub(super) struct Exit<P> {
    pub(super) rules: Rules,
    streams: Vec<Stream<P>>,
    /// Streams that hold something.
    waiting: Vec<u8>,
    held: u64,
    held_bytes: u64,
    deadline: Instant,
    up: VecDeque<Delivery<P>>,
}

impl<P: Payload> Exit<P> {
    pub(super) fn new(rules: Rules) -> Self {
        Self {
            rules,
            streams: (0..super::entrance::STREAMS).map(|_| Stream::default()).collect(),
            waiting: Vec::new(),
            held: 0,
            held_bytes: 0,
            deadline: Instant::NEVER,
            up: VecDeque::new(),
        }
    }

    /// Pieces held now.
    pub(super) fn held(&self) -> u64 {
        self.held
    }

    /// What goes up next.
    pub(super) fn pop(&mut self) -> Option<Delivery<P>> {
        self.up.pop_front()
    }

    /// When [`on_timeout`](Self::on_timeout) is due.
    pub(super) fn deadline(&self) -> Instant {
        self.deadline
    }

    /// A piece came by `path`; `in_use` tells whether data has lately come by a path.
    pub(super) fn handle(
        &mut self,
        now: Instant,
        path: PathId,
        data: Data<P>,
        marked: bool,
        in_use: impl Fn(PathId) -> bool,
        counters: &mut Counters,
    ) {
        let index = data.stream;
        let rules = self.rules;
        let alone = data.first && data.last && (!rules.order || index >= FIRST_UNORDERED);
        let stream = &mut self.streams[usize::from(index)];
        let Some(number) = stream.expand(data.sequence) else {
            counters.nonsense += 1;
            return;
        };
        if !data.again {
            stream.note_passing(path, number + 1);
        }
        let (first, last, payload) = (data.first, data.last, data.payload);
        let mut delivery = Delivery { stream: index, payload, first, last, gap: false, marked };
        let Some(ahead) = number.checked_sub(stream.expected) else {
            return self.handle_late(number, delivery, counters);
        };
        if ahead >= MOST_AHEAD {
            if !stream.slots.is_empty() {
                counters.refused += 1;
                return;
            }
            // So many were lost that no timer waits for any: the stream goes on here.
            stream.skip(ahead, counters);
        }
        if number == stream.expected && stream.slots.is_empty() {
            // The usual case.
            stream.expected += 1;
            delivery.gap = std::mem::take(&mut stream.gap);
            counters.delivered += 1;
            self.up.push_back(delivery);
            return;
        }
        if !self.hold(now, index, ahead as usize, alone, delivery, counters) {
            return;
        }
        self.advance(now, index, counters);
        if !rules.repair {
            self.give_up_passed(now, index, in_use, counters);
        }
        while self.held_bytes > rules.memory && self.give_up_fullest(now, counters) {}
        self.reschedule();
    }

    /// A piece that is behind what is expected: a copy, or one that was given up.
    fn handle_late(&mut self, number: u64, delivery: Delivery<P>, counters: &mut Counters) {
        if !self.streams[usize::from(delivery.stream)].was_skipped(number) {
            counters.duplicates += 1;
            return;
        }
        counters.late += 1;
        if self.rules.deliver_late && delivery.first && delivery.last {
            counters.delivered += 1;
            self.up.push_back(delivery);
        }
    }

    /// A piece that comes before its turn takes its place, and goes up from there if it is not held to the order (`alone`).
    /// False if it is a copy.
    fn hold(
        &mut self,
        now: Instant,
        index: u8,
        ahead: usize,
        alone: bool,
        delivery: Delivery<P>,
        counters: &mut Counters,
    ) -> bool {
        let stream = &mut self.streams[usize::from(index)];
        while stream.slots.len() <= ahead {
            stream.slots.push_back(Slot::Missing);
        }
        let slot = &mut stream.slots[ahead];
        if !matches!(slot, Slot::Missing) {
            counters.duplicates += 1;
            return false;
        }
        if alone && ahead > 0 {
            *slot = Slot::Passed { since: now };
            counters.delivered += 1;
            self.up.push_back(delivery);
        } else {
            stream.held += 1;
            self.held += 1;
            self.held_bytes += u64::from(delivery.payload.len());
            counters.held += u64::from(ahead > 0);
            *slot = Slot::Held { since: now, delivery };
        }
        if !stream.listed {
            stream.listed = true;
            self.waiting.push(index);
        }
        true
    }

    /// Everything in order goes up.
    fn advance(&mut self, now: Instant, index: u8, counters: &mut Counters) {
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
                counters.delivered += 1;
                counters.held_ns += now.since(since).0;
                self.up.push_back(delivery);
            }
        }
    }

    /// The missing pieces at the head of a stream are given up.
    fn give_up(&mut self, now: Instant, index: u8, counters: &mut Counters) {
        let stream = &mut self.streams[usize::from(index)];
        let missing = stream.slots.iter().take_while(|slot| matches!(slot, Slot::Missing)).count();
        if missing == 0 {
            return;
        }
        stream.slots.drain(..missing);
        stream.skip(missing as u64, counters);
        self.advance(now, index, counters);
    }

    fn give_up_passed(&mut self, now: Instant, index: u8, in_use: impl Fn(PathId) -> bool, counters: &mut Counters) {
        loop {
            let stream = &self.streams[usize::from(index)];
            let has_passed = |path| stream.passed.iter().any(|(of, end)| *of == path && *end > stream.expected);
            let passed = (0..MOST_PATHS as u16).map(PathId).all(|path| has_passed(path) || !in_use(path));
            if !passed || stream.slots.is_empty() {
                return;
            }
            self.give_up(now, index, counters);
        }
    }

    fn give_up_fullest(&mut self, now: Instant, counters: &mut Counters) -> bool {
        let Some(fullest) = self.waiting.iter().copied().max_by_key(|index| self.streams[usize::from(*index)].held)
        else {
            return false;
        };
        let before = self.held;
        self.give_up(now, fullest, counters);
        self.held < before
    }

    /// Streams without anything held need no timer.
    fn reschedule(&mut self) {
        self.deadline = Instant::NEVER;
        let (streams, deadline, hold) = (&mut self.streams, &mut self.deadline, self.rules.hold);
        self.waiting.retain(|index| {
            let stream = &mut streams[usize::from(*index)];
            stream.listed = !stream.slots.is_empty();
            if let Some(since) = stream.waits_since() {
                *deadline = (*deadline).min(since + hold);
            }
            stream.listed
        });
    }

    /// What was waited for long enough is given up.
    pub(super) fn on_timeout(&mut self, now: Instant, counters: &mut Counters) {
        if now < self.deadline {
            return;
        }
        for position in 0..self.waiting.len() {
            let index = self.waiting[position];
            while self.streams[usize::from(index)].waits_since().is_some_and(|since| since + self.rules.hold <= now) {
                self.give_up(now, index, counters);
            }
        }
        self.reschedule();
    }
}

impl<P> Stream<P> {
    /// The whole number of a piece, the one nearest to what is expected.
    fn expand(&self, sequence: u32) -> Option<u64> {
        let distance = sequence.wrapping_sub(self.expected as u32) as i32;
        self.expected.checked_add_signed(i64::from(distance))
    }

    fn note_passing(&mut self, path: PathId, end: u64) {
        let index = self.passed.iter().position(|(known, _)| *known == path).unwrap_or(self.passed.len());
        if index == self.passed.len() {
            self.passed.push((path, end)); // at most one a path, of which there are few
        }
        self.passed[index].1 = self.passed[index].1.max(end);
    }

    /// The next ones are given up.
    fn skip(&mut self, missing: u64, counters: &mut Counters) {
        self.remember(self.expected, self.expected + missing);
        self.expected += missing;
        self.gap = true;
        counters.missed += missing;
    }

    fn remember(&mut self, from: u64, to: u64) {
        if self.skipped.len() == REMEMBERED {
            self.skipped.pop_front();
        }
        self.skipped.push_back((from, to));
    }

    /// It was given up, and comes only now. It can come so once.
    fn was_skipped(&mut self, number: u64) -> bool {
        let Some(at) = self.skipped.iter().position(|(from, to)| (*from..*to).contains(&number)) else { return false };
        let (from, to) = self.skipped[at];
        self.skipped[at] = (number + 1, to);
        if from < number {
            self.remember(from, number);
        }
        true
    }

    /// Since when the stream waits for the piece at its head: the first one behind it is held since then.
    fn waits_since(&self) -> Option<Instant> {
        self.slots.iter().find_map(|slot| match slot {
            Slot::Held { since, .. } | Slot::Passed { since } => Some(*since),
            Slot::Missing => None,
        })
    }
}

#[cfg(test)]
mod tests;
