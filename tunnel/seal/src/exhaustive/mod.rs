//! The sessions of two peers, searched exhaustively over a small scope: every sequence of actions up to a depth. The
//! actions are initiations by either end, deliveries of any message ever sent (so also loss, reordering and replay),
//! and sealed datagrams; time steps over the limits of pending handshakes, rekeying and expiry; and restarts of either
//! end (at most one each). Devices, ciphers and messages are the real ones, with fixed random bytes.
//!
//! Sequences that lead to the same state are continued once; [`state`] says what a state is. A device cannot be copied,
//! so each state is reached by repeating its actions.
//!
//! The search covers sequences of 6 actions from no session, and of 5 actions after one handshake and after two that
//! cross. In total these are 12 108 states, 29 530 steps between them, and 84 883 sequences that these stand for. With
//! debug assertions, which are slow, the depths are 4 and 3 actions: 692 states, 1326 steps, 1797 sequences.

mod state;
mod world;

use std::collections::{BTreeMap, BTreeSet};

use world::{Action, World};

/// What was searched.
#[derive(Debug, PartialEq, Eq)]
struct Scope {
    states: usize,
    /// Steps from a state by one action.
    steps: usize,
    /// Sequences of actions that they stand for.
    sequences: u64,
}

/// Searches all sequences of at most `depth` actions after those of `start`. Checks the invariants of [`World`] after
/// each step, and that both ends get a common session again from every new state, whichever of them initiates.
fn search(start: &[Action], depth: usize) -> Scope {
    let mut frontier = vec![(start.to_vec(), 1)];
    let mut seen = BTreeSet::from([World::replay(start).state()]);
    let mut scope = Scope { states: 1, steps: 0, sequences: 0 };
    for _ in 0..depth {
        let mut next: Vec<(Vec<Action>, u64)> = Vec::new();
        // Index into `next` of each state that this depth is the first to reach.
        let mut positions = BTreeMap::new();
        for (actions, sequences) in &frontier {
            for action in World::replay(actions).actions() {
                let longer = [actions.as_slice(), &[action]].concat();
                let mut world = World::replay(actions);
                world.apply(action);
                scope.steps += 1;
                scope.sequences += sequences;
                let state = world.state();
                if let Some(position) = positions.get(&state) {
                    let (_, count): &mut (Vec<Action>, u64) = &mut next[*position];
                    *count += sequences;
                    continue;
                }
                if seen.insert(state.clone()) {
                    world.settle(&[0, 1]);
                    World::replay(&longer).settle(&[0]);
                    scope.states += 1;
                    positions.insert(state, next.len());
                    next.push((longer, *sequences));
                }
            }
        }
        frontier = next;
    }
    scope
}

/// Searches, and compares the scope with the numbers in the text above, so that it cannot shrink unnoticed.
fn check(start: &[Action], debug: (usize, Scope), release: (usize, Scope)) {
    let (depth, scope) = if cfg!(debug_assertions) { debug } else { release };
    assert_eq!(search(start, depth), scope);
}

const fn scope(states: usize, steps: usize, sequences: u64) -> Scope {
    Scope { states, steps, sequences }
}

#[test]
fn two_ends_without_a_session_agree_after_any_short_sequence() {
    check(&[], (4, scope(276, 450, 689)), (6, scope(4007, 8227, 25_203)));
}

#[test]
fn two_ends_with_a_session_agree_after_any_short_sequence() {
    use Action::{Deliver, Initiate, Seal};
    let established = [Initiate(0), Deliver(0), Deliver(1), Seal(0), Deliver(2)];
    check(&established, (3, scope(218, 466, 595)), (5, scope(4205, 11_296, 35_168)));
}

#[test]
fn two_ends_with_two_crossing_handshakes_agree_after_any_short_sequence() {
    use Action::{Deliver, Initiate};
    let crossing = [Initiate(0), Initiate(1), Deliver(0), Deliver(1)];
    check(&crossing, (3, scope(198, 410, 513)), (5, scope(3896, 10_007, 24_512)));
}
