//! Where parcels wait for a path: fair queueing with CoDel (RFC 8290), a queue for each stream.
//!
//! The tunnel's paths have windows, so that what they cannot carry waits here and not in the network's buffers. A stream that
//! sends little goes first and never waits behind another's backlog; a stream that fills its queue is told so by marks or
//! losses once its parcels wait for longer than the target. Streams take turns by bytes (deficit round robin).

use super::vocabulary::{Counters, Payload};
use link::{CoDelAction, CoDelState};
use std::collections::VecDeque;
use units::{Instant, Span};

/// Streams there can be.
pub(super) const STREAMS: usize = 256;
/// Bytes of a turn: a full packet (RFC 8290, section 5.2.3).
const QUANTUM: i64 = 1514;
/// CoDel leaves so many bytes alone (RFC 8289: one packet's worth).
const NEARLY_EMPTY: u64 = 1514;

#[derive(Debug)]
struct Waiting<P> {
    since: Instant,
    parcel: P,
}

#[derive(Debug)]
struct Lane<P> {
    waiting: VecDeque<Waiting<P>>,
    bytes: u64,
    deficit: i64,
    listed: bool,
    codel: CoDelState,
}

/// The queues.
#[derive(Debug)]
pub(super) struct Entrance<P> {
    lanes: Vec<Lane<P>>,
    new: VecDeque<u8>,
    old: VecDeque<u8>,
    parcels: u64,
    bytes: u64,
    most_bytes: u64,
    /// CoDel's target and interval now.
    aim: (Span, Span),
}

impl<P: Payload> Entrance<P> {
    /// Empty queues that hold so many bytes together.
    pub(super) fn new(target: Span, interval: Span, most_bytes: u64) -> Self {
        let lane = || Lane {
            waiting: VecDeque::new(),
            bytes: 0,
            deficit: 0,
            listed: false,
            codel: CoDelState::new(target, interval),
        };
        let lanes = (0..STREAMS).map(|_| lane()).collect();
        Self {
            lanes,
            new: VecDeque::new(),
            old: VecDeque::new(),
            parcels: 0,
            bytes: 0,
            most_bytes,
            aim: (target, interval),
        }
    }

    pub(super) fn parcels(&self) -> u64 {
        self.parcels
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// CoDel's target and interval from now on.
    pub(super) fn aim(&mut self, target: Span, interval: Span) {
        self.aim = (target, interval);
    }

    /// A parcel comes from the device. The fullest queue makes room if there is none.
    pub(super) fn push(&mut self, now: Instant, stream: u8, parcel: P, counters: &mut Counters) {
        let bytes = u64::from(parcel.len());
        let lane = &mut self.lanes[usize::from(stream)];
        lane.waiting.push_back(Waiting { since: now, parcel });
        lane.bytes += bytes;
        if !lane.listed {
            (lane.listed, lane.deficit) = (true, QUANTUM);
            self.new.push_back(stream);
        }
        self.parcels += 1;
        self.bytes += bytes;
        counters.parcels += 1;
        while self.bytes > self.most_bytes && self.prune(counters) {}
    }

    fn prune(&mut self, counters: &mut Counters) -> bool {
        let listed = self.new.iter().chain(&self.old);
        let Some(fullest) = listed.copied().max_by_key(|stream| self.lanes[usize::from(*stream)].bytes) else {
            return false;
        };
        counters.dropped += 1;
        self.pull(fullest).is_some()
    }

    fn pull(&mut self, stream: u8) -> Option<Waiting<P>> {
        let lane = &mut self.lanes[usize::from(stream)];
        let head = lane.waiting.pop_front()?;
        let bytes = u64::from(head.parcel.len());
        lane.bytes -= bytes;
        self.bytes -= bytes;
        self.parcels -= 1;
        Some(head)
    }

    /// The next parcel is one of a stream that sends little, and has at most so many bytes.
    pub(super) fn next_is_sparse(&self, most_bytes: u32) -> bool {
        let head = self.new.front().map(|stream| &self.lanes[usize::from(*stream)]);
        head.filter(|lane| lane.deficit > 0)
            .and_then(|lane| lane.waiting.front())
            .is_some_and(|head| head.parcel.len() <= most_bytes)
    }

    /// The parcel whose turn it is, with its stream.
    pub(super) fn pop(&mut self, now: Instant, counters: &mut Counters) -> Option<(u8, P)> {
        loop {
            let is_new = !self.new.is_empty();
            let list = if is_new { &mut self.new } else { &mut self.old };
            let stream = *list.front()?;
            let lane = &mut self.lanes[usize::from(stream)];
            if lane.deficit <= 0 {
                lane.deficit += QUANTUM;
                list.pop_front();
                self.old.push_back(stream);
                continue;
            }
            if let Some(parcel) = self.leave(now, stream, counters) {
                self.lanes[usize::from(stream)].deficit -= i64::from(parcel.len());
                return Some((stream, parcel));
            }
            let list = if is_new { &mut self.new } else { &mut self.old };
            list.pop_front();
            if is_new && !self.old.is_empty() {
                self.old.push_back(stream);
            } else {
                self.lanes[usize::from(stream)].listed = false;
            }
        }
    }

    /// What CoDel lets go from the head of a queue. A signal that costs only a part of a parcel lets the rest go.
    fn leave(&mut self, now: Instant, stream: u8, counters: &mut Counters) -> Option<P> {
        loop {
            let Some(mut head) = self.pull(stream) else {
                self.lanes[usize::from(stream)].codel.on_empty();
                return None;
            };
            let nearly_empty = self.bytes <= NEARLY_EMPTY;
            let (target, interval) = self.aim;
            let codel = &mut self.lanes[usize::from(stream)].codel;
            codel.set_params(target, interval);
            let ok_to_drop = codel.ok_to_drop(now, now.since(head.since), nearly_empty);
            let action = codel.next_action(now, ok_to_drop);
            if action == CoDelAction::Pass {
                return Some(head.parcel);
            }
            if action == CoDelAction::Drop {
                codel.schedule_next_drop();
            }
            if head.parcel.signal() {
                counters.signalled += 1;
                return Some(head.parcel);
            }
            counters.dropped += 1;
        }
    }
}

#[cfg(test)]
mod tests;
