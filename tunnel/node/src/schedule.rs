//! Tracks the peers that have something to do, and the deadlines of the others. The cost of a datagram does not depend
//! on the number of idle peers.

use seal::PeerId;
use std::collections::{BTreeMap, BTreeSet};
use units::Instant;

/// The peers that are polled, and the timers of all.
#[derive(Debug, Default)]
pub(crate) struct Schedule {
    /// The peers that are polled, and whether something has happened to each since the last [`Self::settle`].
    ready: BTreeMap<PeerId, bool>,
    /// The deadline of each peer that has one, as of the last [`Self::settle`].
    deadlines: BTreeMap<PeerId, Instant>,
    by_deadline: BTreeSet<(Instant, PeerId)>,
}

impl Schedule {
    /// Something has happened to a peer: it is polled until two turns have passed without anything.
    pub(crate) fn touch(&mut self, id: PeerId) {
        self.ready.insert(id, true);
    }

    pub(crate) fn remove(&mut self, id: PeerId) {
        self.ready.remove(&id);
        self.set_deadline(id, Instant::NEVER);
    }

    /// The peers that are polled, in the order of their ids.
    pub(crate) fn ready(&self) -> impl Iterator<Item = PeerId> {
        self.ready.keys().copied()
    }

    /// The peers that are polled, from `first` on and then from the beginning.
    pub(crate) fn ready_from(&self, first: PeerId) -> impl Iterator<Item = PeerId> {
        self.ready.range(first..).chain(self.ready.range(..first)).map(|(id, _)| *id)
    }

    /// A turn ends: updates the deadlines of the peers that were polled.
    pub(crate) fn settle(&mut self, deadline: impl Fn(PeerId) -> Instant) {
        let ready = std::mem::take(&mut self.ready);
        for id in ready.keys() {
            self.set_deadline(*id, deadline(*id));
        }
        self.ready = ready;
        self.ready.retain(|_, touched| std::mem::take(touched));
    }

    fn set_deadline(&mut self, id: PeerId, deadline: Instant) {
        let earlier =
            if deadline < Instant::NEVER { self.deadlines.insert(id, deadline) } else { self.deadlines.remove(&id) };
        if earlier == Some(deadline) {
            return;
        }
        if let Some(earlier) = earlier {
            self.by_deadline.remove(&(earlier, id));
        }
        if deadline < Instant::NEVER {
            self.by_deadline.insert((deadline, id));
        }
    }

    /// The first deadline of the peers that are not polled.
    pub(crate) fn first_deadline_of_others(&self) -> Instant {
        let mut others = self.by_deadline.iter().filter(|(_, id)| !self.ready.contains_key(id));
        others.next().map_or(Instant::NEVER, |(deadline, _)| *deadline)
    }

    /// Polls the peers whose deadline has passed.
    pub(crate) fn wake(&mut self, now: Instant) {
        for (_, id) in self.by_deadline.iter().take_while(|(deadline, _)| *deadline <= now) {
            self.ready.insert(*id, true);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use units::Span;

    #[test]
    fn only_peers_that_something_happened_to_are_polled() {
        let mut schedule = Schedule::default();
        (0..1000).for_each(|id| schedule.touch(PeerId(id)));
        let deadline = |id: PeerId| Instant::ZERO + Span::from_millis(u64::from(id.0));
        schedule.settle(deadline);
        assert_eq!(schedule.ready().count(), 1000, "what happened while they were polled is seen in the next turn");
        schedule.settle(deadline);
        assert_eq!(schedule.ready().count(), 0);
        assert_eq!(schedule.first_deadline_of_others(), Instant::ZERO);
        schedule.touch(PeerId(7));
        schedule.touch(PeerId(3));
        assert!(schedule.ready_from(PeerId(5)).eq([7, 3].map(PeerId)));
        schedule.wake(Instant::ZERO + Span::from_millis(1));
        assert!(schedule.ready().eq([0, 1, 3, 7].map(PeerId)));
        assert_eq!(schedule.first_deadline_of_others(), deadline(PeerId(2)));
        schedule.settle(|_| Instant::NEVER);
        schedule.remove(PeerId(2));
        schedule.settle(|_| Instant::NEVER);
        assert_eq!(schedule.first_deadline_of_others(), deadline(PeerId(4)));
    }
}
