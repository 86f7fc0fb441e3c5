//! Chains of pipes: a packet whose arrival at the next pipe is known is enqueued there at once, without an event.
//!
//! This changes no result under two conditions. The next pipe gets packets from this one alone and decides on arrival, so
//! that nothing happens in it between two packets. And no pipe is sampled or changed between now and the arrival: no packet
//! is forwarded to the time of the next change or sample of the links (the *horizon*), or beyond it. Events of the same
//! instant may come in another order than with one event per hop, for example a timer that expires as a packet arrives.

use crate::packet::Direction;
use crate::topology::Topology;
use std::collections::BTreeSet;

/// The pipes that forward.
#[derive(Debug)]
pub(super) struct Chains {
    /// Each after the ones that it feeds.
    last_first: Vec<u32>,
}

impl Chains {
    /// Finds them, and sets them in the topology.
    pub(super) fn new(topology: &mut Topology) -> Self {
        let count = topology.pipes.len();
        let mut before: Vec<BTreeSet<Option<u32>>> = vec![BTreeSet::new(); count];
        let mut after = before.clone();
        let mut hop = vec![0; count];
        for path in 0..topology.paths() {
            for direction in [Direction::Forward, Direction::Reverse] {
                let pipes = topology.pipes_of(path, direction);
                for (index, pipe) in pipes.iter().map(|pipe| *pipe as usize).enumerate() {
                    before[pipe].insert(index.checked_sub(1).map(|before| pipes[before]));
                    after[pipe].insert(pipes.get(index + 1).copied());
                    hop[pipe] = index.max(hop[pipe]);
                }
            }
        }
        let is_fed_alone = |pipe: u32, next: &Option<u32>| {
            next.is_some_and(|next| {
                before[next as usize] == BTreeSet::from([Some(pipe)])
                    && topology.pipes[next as usize].decides_on_arrival()
            })
        };
        let forwards = |pipe: u32| {
            let next = &after[pipe as usize];
            topology.pipes[pipe as usize].forwards()
                && !next.is_empty()
                && next.iter().all(|next| is_fed_alone(pipe, next))
        };
        let forwards: Vec<bool> = (0..count as u32).map(forwards).collect();
        let mut last_first: Vec<u32> = (0..count as u32).filter(|pipe| forwards[*pipe as usize]).collect();
        last_first.sort_by_key(|pipe| std::cmp::Reverse(hop[*pipe as usize]));
        topology.set_forwards(&forwards);
        Self { last_first }
    }

    /// The pipes that forward, each after the ones that it feeds.
    pub(super) fn last_first(&self) -> &[u32] {
        &self.last_first
    }
}
