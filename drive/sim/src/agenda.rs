//! What happens next: a winner tree over the components' pending instants.
//!
//! Each component (a pipe, an endpoint) has at most one pending instant, so there is nothing to cancel and nothing
//! stale to skip: setting a new instant plays one component's matches again, from its leaf to the root. Each match
//! reads one neighbour and writes one winner, `log2(components)` of them and no branch that could be mispredicted.
//!
//! **Order**: by instant; among equal instants, first come first served: in the order of the `set` calls that gave
//! the components these instants. Setting the instant that a component already has leaves it in its place.

use std::hint::select_unpredictable;
use units::Instant;

/// One pending instant.
#[derive(Clone, Copy, Debug)]
struct Key {
    at: Instant,
    /// Number of the `set` call and, in the low [`ID_BITS`], the component.
    order: u64,
}

const ID_BITS: u32 = 20;
/// Later than everything.
const IDLE: Key = Key { at: Instant::NEVER, order: u64::MAX };

impl Key {
    /// Written without `&&` and `||`, so that the compiler makes no branches of them: twice as fast.
    fn is_before(self, other: Self) -> bool {
        (self.at < other.at) | ((self.at == other.at) & (self.order < other.order))
    }
}

/// The pending instants of all components.
#[derive(Clone, Debug)]
pub(crate) struct Agenda {
    /// Node `n` holds the earlier of nodes `2n` and `2n + 1`; node 1 is the root, the upper half are the leaves.
    nodes: Vec<Key>,
    components: u32,
    /// Number of the next `set` call. 44 bits of it count: 17 million million calls.
    sequence: u64,
}

impl Agenda {
    /// Without components.
    #[must_use]
    pub(crate) fn new() -> Self {
        Self { nodes: vec![IDLE; 2], components: 0, sequence: 0 }
    }

    /// A new component with nothing pending; ids count up from 0.
    pub(crate) fn add(&mut self) -> u32 {
        let id = self.components;
        assert!(id < 1 << ID_BITS, "no more than 2^20 components");
        self.components += 1;
        if self.components as usize > self.leaves() {
            self.grow();
        }
        id
    }

    /// `id` is next due at `at`, and no longer at what was set before; [`Instant::NEVER`]: not at all.
    #[inline]
    pub(crate) fn set(&mut self, id: u32, at: Instant) {
        debug_assert!(id < self.components);
        let leaf = self.leaves() + id as usize;
        if self.nodes[leaf].at != at {
            let order = self.sequence << ID_BITS | u64::from(id);
            self.sequence += 1;
            self.play(leaf, Key { at, order });
        }
    }

    /// What is due first. To serve a component and arm it again, `peek` and one `set` are cheaper than `pop`.
    #[inline]
    #[must_use]
    pub(crate) fn peek(&self) -> Option<(Instant, u32)> {
        let first = self.nodes[1];
        (first.at != Instant::NEVER).then_some((first.at, first.order as u32 & ((1 << ID_BITS) - 1)))
    }

    /// Takes what is due first off the agenda.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<(Instant, u32)> {
        let (at, id) = self.peek()?;
        self.play(self.leaves() + id as usize, IDLE);
        Some((at, id))
    }

    fn leaves(&self) -> usize {
        self.nodes.len() / 2
    }

    fn play(&mut self, leaf: usize, key: Key) {
        let (mut node, mut winner) = (leaf, key);
        self.nodes[node] = winner;
        while node > 1 {
            let other = self.nodes[node ^ 1];
            winner = select_unpredictable(winner.is_before(other), winner, other);
            node /= 2;
            self.nodes[node] = winner;
        }
    }

    /// Twice the leaves; all matches are played again.
    fn grow(&mut self) {
        let leaves = self.nodes.split_off(self.leaves());
        let count = leaves.len() * 2;
        self.nodes = vec![IDLE; count];
        self.nodes.extend(leaves);
        self.nodes.resize(count * 2, IDLE);
        for node in (1..count).rev() {
            let (left, right) = (self.nodes[2 * node], self.nodes[2 * node + 1]);
            self.nodes[node] = if left.is_before(right) { left } else { right };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn agenda(components: u32) -> Agenda {
        let mut agenda = Agenda::new();
        assert!((0..components).all(|id| agenda.add() == id));
        agenda
    }

    #[test]
    fn nothing_is_pending_at_first_and_never_means_nothing() {
        let mut agenda = agenda(3);
        agenda.set(1, Instant(5));
        agenda.set(1, Instant::NEVER);
        assert_eq!(agenda.peek(), None);
        assert_eq!(agenda.pop(), None);
        assert_eq!(Agenda::new().pop(), None);
    }

    #[test]
    fn equal_instants_come_in_the_order_in_which_they_were_set() {
        let mut agenda = agenda(5);
        for id in [3, 0, 4, 1] {
            agenda.set(id, Instant(7));
        }
        agenda.set(3, Instant(7)); // keeps its place
        agenda.set(0, Instant(9));
        agenda.set(0, Instant(7)); // comes back as the last
        let order: Vec<_> = std::iter::from_fn(|| agenda.pop()).map(|(_, id)| id).collect();
        assert_eq!(order, [3, 4, 1, 0]);
    }

    #[derive(Clone, Debug)]
    enum Step {
        Add,
        Set(u32, Option<u64>),
        Pop,
    }

    fn step() -> impl Strategy<Value = Step> {
        let instant = proptest::option::weighted(0.9, 0..6u64);
        prop_oneof![
            1 => Just(Step::Add),
            4 => (any::<u32>(), instant).prop_map(|(id, at)| Step::Set(id, at)),
            3 => Just(Step::Pop)
        ]
    }

    /// The same, as a sorted map from (time, sequence) to component.
    #[derive(Default)]
    struct Model {
        pending: BTreeMap<(u64, u64), u32>,
        sequence: u64,
    }

    impl Model {
        fn set(&mut self, id: u32, at: Option<u64>) {
            let old = self.pending.iter().find(|(_, other)| **other == id).map(|(key, _)| *key);
            if old.map(|(time, _)| time) == at {
                return;
            }
            old.map(|key| self.pending.remove(&key));
            self.sequence += 1;
            at.map(|time| self.pending.insert((time, self.sequence), id));
        }

        fn pop(&mut self) -> Option<(Instant, u32)> {
            self.pending.pop_first().map(|((time, _), id)| (Instant(time), id))
        }
    }

    proptest! {
        #[test]
        fn behaves_like_a_sorted_map(steps in proptest::collection::vec(step(), 0..300)) {
            let (mut agenda, mut model) = (agenda(1), Model::default());
            for step in steps {
                match step {
                    Step::Add => { agenda.add(); }
                    Step::Set(pick, at) => {
                        let id = pick % agenda.components;
                        agenda.set(id, at.map_or(Instant::NEVER, Instant));
                        model.set(id, at);
                    }
                    Step::Pop => prop_assert_eq!(agenda.pop(), model.pop()),
                }
            }
            while let Some(due) = model.pop() {
                prop_assert_eq!(agenda.peek(), Some(due));
                prop_assert_eq!(agenda.pop(), Some(due));
            }
            prop_assert_eq!(agenda.pop(), None);
        }
    }
}
