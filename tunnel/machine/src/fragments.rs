//! Fragments in flight: kept until the peer has acknowledged them, so that any path can retransmit a fragment lost on
//! another.

use super::packet::{Fragment, Payload};
use std::collections::VecDeque;
use units::{Instant, PathId};

/// A fragment that has been sent.
#[derive(Clone, Debug)]
pub(super) struct SentFragment<P> {
    pub stream: u8,
    pub sequence: u32,
    pub first: bool,
    pub last: bool,
    /// `None` once acknowledged or given up.
    payload: Option<P>,
    bytes: u32,
    /// The memory charged for it, bytes.
    memory: u64,
    /// Bit set of the paths that it was sent on.
    sent_paths: u64,
    /// Transmissions neither acknowledged nor lost.
    transmissions: u32,
    first_sent: Instant,
    /// The path of its copy, if it is a real-time packet of which a copy was sent.
    copy: Option<PathId>,
    /// Whether it is of the real-time class.
    is_realtime: bool,
    /// Whether it is in the retransmission queue.
    is_queued: bool,
}

impl<P: Payload> SentFragment<P> {
    fn fragment(&self, retransmission: bool) -> Option<Fragment<P>> {
        let payload = self.payload.clone()?;
        let Self { stream, sequence, first, last, .. } = *self;
        Some(Fragment { stream, sequence, first, last, retransmission, payload })
    }
}

/// All fragments in flight, numbered over all streams in the order of their first transmission.
#[derive(Clone, Debug)]
pub(super) struct FragmentsInFlight<P> {
    /// Number of the oldest unacknowledged fragment.
    pub(super) base: u64,
    fragments: VecDeque<SentFragment<P>>,
    /// Payload in flight, bytes.
    pub(super) bytes: u64,
    /// The memory charged for the payload in flight, bytes.
    pub(super) memory: u64,
    /// Retransmission queue, oldest loss first.
    retransmissions: VecDeque<u64>,
}

impl<P> Default for FragmentsInFlight<P> {
    fn default() -> Self {
        Self { base: 0, fragments: VecDeque::new(), bytes: 0, memory: 0, retransmissions: VecDeque::new() }
    }
}

impl<P: Payload> FragmentsInFlight<P> {
    /// Number of the next fragment.
    pub(super) fn next_number(&self) -> u64 {
        self.base + self.fragments.len() as u64
    }

    /// Notes that the copy of a fragment was not sent.
    pub(super) fn forget_copy(&mut self, number: u64) {
        if let Some(fragment) = self.get_mut(number) {
            fragment.copy = None;
        }
    }

    /// Whether a fragment was sent on a path.
    pub(super) fn was_sent_on(&self, number: u64, path: PathId) -> bool {
        let index = number.checked_sub(self.base).map(|index| index as usize);
        let fragment = index.and_then(|index| self.fragments.get(index));
        fragment.is_some_and(|fragment| fragment.sent_paths & (1 << path.0) != 0)
    }

    /// Adds a fragment, for which `memory` bytes are charged; returns its number.
    pub(super) fn push(&mut self, now: Instant, fragment: &Fragment<P>, memory: u64, is_realtime: bool) -> u64 {
        let number = self.next_number();
        let bytes = fragment.payload.len();
        self.bytes += u64::from(bytes);
        self.memory += memory;
        self.fragments.push_back(SentFragment {
            stream: fragment.stream,
            sequence: fragment.sequence,
            first: fragment.first,
            last: fragment.last,
            payload: Some(fragment.payload.clone()),
            bytes,
            memory,
            sent_paths: 0,
            transmissions: 0,
            first_sent: now,
            copy: None,
            is_realtime,
            is_queued: false,
        });
        number
    }

    /// Checks the charged memory by counting again.
    pub(super) fn check(&self) {
        let held = || self.fragments.iter().filter(|fragment| fragment.payload.is_some());
        assert_eq!(self.bytes, held().map(|fragment| u64::from(fragment.bytes)).sum::<u64>());
        assert_eq!(self.memory, held().map(|fragment| fragment.memory).sum::<u64>());
    }

    fn get_mut(&mut self, number: u64) -> Option<&mut SentFragment<P>> {
        let index = number.checked_sub(self.base)?;
        self.fragments.get_mut(index as usize)
    }

    /// A fragment was sent on `path`.
    pub(super) fn on_sent(&mut self, number: u64, path: PathId) {
        if let Some(fragment) = self.get_mut(number) {
            fragment.sent_paths |= 1 << path.0;
            fragment.transmissions += 1;
        }
    }

    /// A transmission on `path` was acknowledged. If it is the first acknowledged transmission of a fragment with a
    /// copy, returns whether it was the copy's.
    pub(super) fn on_acked(&mut self, number: u64, path: PathId) -> Option<bool> {
        let fragment = self.get_mut(number)?;
        fragment.transmissions = fragment.transmissions.saturating_sub(1);
        let is_copy = fragment.copy.filter(|_| fragment.payload.is_some()).map(|copy| copy == path);
        self.remove(number);
        is_copy
    }

    /// Whether a fragment was neither acknowledged nor given up.
    pub(super) fn is_unacked(&self, number: u64) -> bool {
        let index = number.checked_sub(self.base).map(|index| index as usize);
        index.and_then(|index| self.fragments.get(index)).is_some_and(|fragment| fragment.payload.is_some())
    }

    /// A copy of a fragment for `path`, unless it was acknowledged, has a copy or was sent on that path.
    pub(super) fn copy(&mut self, number: u64, path: PathId) -> Option<Fragment<P>> {
        let fragment = self.get_mut(number)?;
        if fragment.copy.is_some() || fragment.sent_paths & (1 << path.0) != 0 {
            return None;
        }
        let copy = fragment.fragment(true)?;
        fragment.copy = Some(path);
        Some(copy)
    }

    /// Removes a fragment that is acknowledged or given up.
    fn remove(&mut self, number: u64) {
        let Some(fragment) = self.get_mut(number) else { return };
        if fragment.payload.take().is_some() {
            let (bytes, memory) = (u64::from(fragment.bytes), fragment.memory);
            self.bytes -= bytes;
            self.memory -= memory;
        }
        while self.fragments.front().is_some_and(|fragment| fragment.payload.is_none()) {
            self.fragments.pop_front();
            self.base += 1;
        }
    }

    /// A transmission was lost. The fragment is retransmitted if `may_retransmit` is true for the time of its first
    /// transmission; false if it is given up.
    pub(super) fn on_lost(&mut self, number: u64, may_retransmit: impl Fn(Instant) -> bool) -> bool {
        let Some(fragment) = self.get_mut(number) else { return true };
        fragment.transmissions = fragment.transmissions.saturating_sub(1);
        if fragment.payload.is_none() || fragment.transmissions > 0 || fragment.is_queued {
            return true;
        }
        if !may_retransmit(fragment.first_sent) {
            self.remove(number);
            return false;
        }
        fragment.is_queued = true;
        self.retransmissions.push_back(number);
        true
    }

    /// The probe timeout of a path expired: the fragment is retransmitted, although its transmission may still arrive
    /// (tail loss: no later packet shows a gap).
    pub(super) fn on_pto(&mut self, number: u64) {
        let Some(fragment) = self.get_mut(number) else { return };
        if fragment.payload.is_some() && !fragment.is_queued {
            fragment.is_queued = true;
            self.retransmissions.push_back(number);
        }
    }

    /// Whether the retransmission queue may hold a fragment.
    pub(super) fn has_retransmissions(&self) -> bool {
        !self.retransmissions.is_empty()
    }

    /// Bytes of the next retransmission, and whether it is of the real-time class; it stays in the queue.
    pub(super) fn next_retransmission(&mut self) -> Option<(u32, bool)> {
        loop {
            let number = *self.retransmissions.front()?;
            match self.get_mut(number) {
                Some(fragment) if fragment.payload.is_some() => return Some((fragment.bytes, fragment.is_realtime)),
                _ => self.retransmissions.pop_front(),
            };
        }
    }

    /// Takes the next retransmission out of the queue.
    pub(super) fn pop_retransmission(&mut self) -> Option<(u64, Fragment<P>)> {
        let number = self.retransmissions.pop_front()?;
        let fragment = self.get_mut(number)?;
        fragment.is_queued = false;
        Some((number, fragment.fragment(true)?))
    }

    /// The next retransmission, if it has this number; it stays in the queue.
    pub(super) fn peek_retransmission(&mut self, number: u64) -> Option<Fragment<P>> {
        self.next_retransmission().filter(|_| self.retransmissions.front() == Some(&number))?;
        self.get_mut(number)?.fragment(true)
    }

    /// Gives up the next retransmission, which no longer fits any path.
    pub(super) fn give_up_retransmission(&mut self) {
        if let Some(number) = self.retransmissions.pop_front() {
            self.remove(number);
        }
    }

    /// The oldest unacknowledged fragment from number `first` on that was not sent on `path`. `carries` gets whether a
    /// fragment is of the real-time class, and returns whether the path carries it.
    pub(super) fn oldest_not_sent_on(
        &self,
        path: PathId,
        first: u64,
        carries: impl Fn(bool) -> bool,
    ) -> Option<(u64, Fragment<P>)> {
        let skip = first.saturating_sub(self.base) as usize;
        let mut candidates = self.fragments.iter().enumerate().skip(skip);
        let is_candidate = |fragment: &SentFragment<P>| {
            fragment.payload.is_some() && fragment.sent_paths & (1 << path.0) == 0 && carries(fragment.is_realtime)
        };
        let (index, fragment) = candidates.find(|(_, fragment)| is_candidate(fragment))?;
        Some((self.base + index as u64, fragment.fragment(true)?))
    }
}
