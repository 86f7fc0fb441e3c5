//! The event queue: two winner trees over the components' pending instants.
//!
//! Each component (a pipe, an endpoint) has at most one pending instant, so there is nothing to cancel and nothing
//! stale to skip: a new instant replays one component's matches, from its leaf to the root. Each match
//! reads one neighbour and writes one winner, `log2(components)` of them and no branch that could be mispredicted.
//!
//! Nearly all events are those of pipes. Pipes have a tree of their own, in which one leaf stands for the earliest of all
//! other components, so that the cost of a packet does not grow with the number of flows.
//!
//! **Order**: by instant; among equal instants in the order of the `schedule` calls that set them. A `schedule` call
//! with a later instant than the pending one changes nothing.

use std::hint::select_unpredictable;
use units::Instant;

/// One pending instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Key {
    time: Instant,
    /// Number of the `schedule` call and, in the low [`ID_BITS`], the component.
    order: u64,
}

const ID_BITS: u32 = 20;
/// The key of a component with nothing pending: later than every other.
const IDLE: Key = Key { time: Instant::NEVER, order: u64::MAX };

impl Key {
    fn id(self) -> u32 {
        self.order as u32 & ((1 << ID_BITS) - 1)
    }

    /// The earlier of two keys, without a branch.
    #[inline(always)]
    fn earlier(self, other: Self) -> Self {
        // With `&&` and `||`, or with one number of 128 bits, the compiler makes a branch.
        let is_before = (self.time < other.time) | ((self.time == other.time) & (self.order < other.order));
        select_unpredictable(is_before, self, other)
    }
}

/// A winner tree.
#[derive(Clone, Debug)]
struct WinnerTree {
    /// Node `n` holds the earlier of nodes `2n` and `2n + 1`, which are pair `n`; node 1 is the root, the upper half are the
    /// leaves.
    pairs: Vec<[Key; 2]>,
    /// Node 1.
    first: Key,
}

impl WinnerTree {
    fn new(leaves: u32) -> Self {
        Self { pairs: vec![[IDLE; 2]; leaves.next_power_of_two().max(2) as usize], first: IDLE }
    }

    #[inline(always)]
    fn leaf(&mut self, index: u32) -> &mut Key {
        let node = self.pairs.len() + index as usize;
        &mut self.pairs.as_flattened_mut()[node]
    }

    /// Sets a leaf and replays its matches.
    #[inline(never)]
    fn replay(&mut self, index: u32, key: Key) {
        let (mut node, mut winner) = (self.pairs.len() + index as usize, key);
        while node > 1 {
            let pair = &mut self.pairs[node / 2];
            pair[node % 2] = winner;
            winner = winner.earlier(pair[1 - node % 2]);
            node /= 2;
        }
        self.first = winner;
    }
}

/// The pending instants of all components.
#[derive(Clone, Debug)]
pub(crate) struct EventQueue {
    /// Components 0 to `first_other - 1`; the last leaf is the first of all others.
    pipes: WinnerTree,
    others: WinnerTree,
    first_other: u32,
    /// The component popped last, until its matches are replayed: when it is scheduled again, which is the usual case, or
    /// at the next `pop_until`.
    popped: Option<u32>,
    /// Number of the next `schedule` call. It has 44 bits, enough for 17 trillion calls.
    sequence: u64,
}

impl EventQueue {
    /// An empty queue for components 0 to `components - 1`, of which the first `pipes` are pipes.
    ///
    /// # Panics
    /// With more than 2^20 components.
    #[must_use]
    pub(crate) fn new(pipes: u32, components: u32) -> Self {
        assert!(components <= 1 << ID_BITS, "no more than 2^20 components");
        let others = WinnerTree::new(components - pipes);
        Self { pipes: WinnerTree::new(pipes + 1), others, first_other: pipes, popped: None, sequence: 0 }
    }

    /// Makes component `id` due at `time`, unless it is due earlier.
    #[inline(always)]
    pub(crate) fn schedule(&mut self, id: u32, time: Instant) {
        if time < self.pending(id).time {
            let key = self.key(id, time);
            self.replay(id, key);
        }
    }

    /// As [`schedule`](Self::schedule), of a pipe.
    #[inline(always)]
    pub(crate) fn schedule_pipe(&mut self, pipe: u32, time: Instant) {
        if time < self.pipes.leaf(pipe).time {
            let key = self.key(pipe, time);
            self.pipes.replay(pipe, key);
        }
    }

    /// The key of the next `schedule` call.
    #[inline(always)]
    fn key(&mut self, id: u32, time: Instant) -> Key {
        let order = self.sequence << ID_BITS | u64::from(id);
        self.sequence += 1;
        self.popped.take_if(|popped| *popped == id);
        Key { time, order }
    }

    /// Removes and returns the component that is due first, if it is due by `end`.
    #[inline]
    pub(crate) fn pop_until(&mut self, end: Instant) -> Option<(Instant, u32)> {
        if let Some(popped) = self.popped.take() {
            self.replay(popped, IDLE);
        }
        let first = self.pipes.first;
        if first.time > end || first.time == Instant::NEVER {
            return None;
        }
        let id = first.id();
        self.popped = Some(id);
        *self.pending(id) = IDLE;
        Some((first.time, id))
    }

    /// The time at which a component is due first; [`Instant::NEVER`] if none is.
    pub(crate) fn first(&mut self) -> Instant {
        if let Some(popped) = self.popped.take() {
            self.replay(popped, IDLE);
        }
        self.pipes.first.time
    }

    /// The pending key of a component.
    #[inline(always)]
    fn pending(&mut self, id: u32) -> &mut Key {
        match id.checked_sub(self.first_other) {
            None => self.pipes.leaf(id),
            Some(index) => self.others.leaf(index),
        }
    }

    #[inline(never)]
    fn replay(&mut self, id: u32, key: Key) {
        match id.checked_sub(self.first_other) {
            None => self.pipes.replay(id, key),
            Some(index) => {
                self.others.replay(index, key);
                self.pipes.replay(self.first_other, self.others.first);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    #[test]
    fn a_new_queue_is_empty_and_never_schedules_nothing() {
        let mut queue = EventQueue::new(1, 3);
        queue.schedule(1, Instant::NEVER);
        assert_eq!(queue.pop_until(Instant::NEVER), None);
        assert_eq!(EventQueue::new(0, 0).pop_until(Instant::NEVER), None);
    }

    #[test]
    fn equal_instants_come_in_the_order_in_which_they_were_set() {
        let mut queue = EventQueue::new(2, 5);
        queue.schedule(2, Instant(9));
        for id in [3, 0, 4, 1] {
            queue.schedule(id, Instant(7));
        }
        queue.schedule(3, Instant(7)); // no earlier: keeps its place
        queue.schedule(0, Instant(9)); // likewise
        queue.schedule(2, Instant(7)); // brought forward: the last
        let order: Vec<_> = std::iter::from_fn(|| queue.pop_until(Instant::NEVER)).map(|(_, id)| id).collect();
        assert_eq!(order, [3, 0, 4, 1, 2]);
    }

    #[test]
    fn what_is_due_later_than_the_end_stays() {
        let mut queue = EventQueue::new(1, 2);
        queue.schedule(1, Instant(7));
        assert_eq!(queue.pop_until(Instant(6)), None);
        queue.schedule(0, Instant(5));
        assert_eq!(queue.pop_until(Instant(6)), Some((Instant(5), 0)));
        assert_eq!(queue.first(), Instant(7));
        assert_eq!(queue.pop_until(Instant(6)), None);
        assert_eq!(queue.pop_until(Instant(7)), Some((Instant(7), 1)));
    }

    #[derive(Clone, Debug)]
    enum Step {
        Schedule(u32, u64),
        Pop,
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            4 => (any::<u32>(), 0..6u64).prop_map(|(id, time)| Step::Schedule(id, time)),
            3 => Just(Step::Pop)
        ]
    }

    /// The event queue's model: a sorted map from (time, sequence) to component.
    #[derive(Default)]
    struct Model {
        pending: BTreeMap<(u64, u64), u32>,
        sequence: u64,
    }

    impl Model {
        fn schedule(&mut self, id: u32, time: u64) {
            let pending = self.pending.iter().find(|(_, pending_id)| **pending_id == id).map(|(key, _)| *key);
            if pending.is_some_and(|(pending_time, _)| pending_time <= time) {
                return;
            }
            pending.map(|key| self.pending.remove(&key));
            self.sequence += 1;
            self.pending.insert((time, self.sequence), id);
        }

        fn pop(&mut self) -> Option<(Instant, u32)> {
            self.pending.pop_first().map(|((time, _), id)| (Instant(time), id))
        }
    }

    proptest! {
        #[test]
        fn behaves_like_a_sorted_map(pipes in 0..20u32, others in 1..40u32, steps in proptest::collection::vec(step(), 0..300)) {
            let components = pipes + others;
            let (mut queue, mut model) = (EventQueue::new(pipes, components), Model::default());
            for step in steps {
                match step {
                    Step::Schedule(id, time) => {
                        queue.schedule(id % components, Instant(time));
                        model.schedule(id % components, time);
                    }
                    Step::Pop => prop_assert_eq!(queue.pop_until(Instant::NEVER), model.pop()),
                }
            }
            while let Some(due) = model.pop() {
                prop_assert_eq!(queue.pop_until(Instant::NEVER), Some(due));
            }
            prop_assert_eq!(queue.pop_until(Instant::NEVER), None);
        }
    }
}
