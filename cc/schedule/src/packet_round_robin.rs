//! Weighted packet round robin, as in MPT: stride scheduling.
//!
//! The stride of a path is the least common multiple of all weights divided by its own weight. The path with the
//! minimum next total carries the next packet (ties: the lower index). The cycle is complete when all totals are equal.
//! Each path occurs weight / gcd(weights) times in it.
//!
//! Source: draft-lencse-tsvwg-mpt section 5.1. Deviations: totals are 64-bit, and the cycle is computed step by step
//! instead of stored, so that no set of weights can overflow a table.

use crate::{Constructor, Fill, Needs, Pick, Scheduler, SchedulerEntry, SchedulerView};
use units::PathId;

pub(crate) const ENTRY: SchedulerEntry = SchedulerEntry {
    name: "packet-round-robin",
    aliases: &["mpt"],
    title: "weighted round robin that counts packets",
    source: "draft-lencse-tsvwg-mpt section 5.1",
    code_version: None,
    needs: Needs::Nothing,
    fill: Fill::Cwnd,
    parameters: &[],
    constructor: Constructor::Function(|setup| Box::new(PacketRoundRobin::new(setup.weights, setup.first))),
};

/// State of the scheduler.
#[derive(Clone, Debug)]
pub struct PacketRoundRobin {
    /// The stride of a path of weight 1.
    common_multiple: u64,
    strides: Vec<u64>,
    totals: Vec<u64>,
}

impl PacketRoundRobin {
    /// Paths with these weights (0 or none counts as 1), `first` steps into the cycle.
    #[must_use]
    pub fn new(weights: &[u32], first: u32) -> Self {
        let weights: Vec<u64> = weights.iter().map(|weight| u64::from((*weight).max(1))).collect();
        // Least common multiple, or a fixed-point substitute if it does not fit; the shares are then accurate to 2^-32.
        let multiple = weights.iter().try_fold(1u64, |lcm, weight| {
            (lcm / gcd(lcm, *weight)).checked_mul(*weight).filter(|multiple| *multiple < 1 << 48)
        });
        let multiple = multiple.unwrap_or(1 << 48);
        let strides: Vec<u64> = weights.iter().map(|weight| multiple / weight).collect();
        let mut scheduler = Self { common_multiple: multiple, totals: vec![0; strides.len()], strides };
        let cycle: u64 = weights.iter().sum();
        (0..u64::from(first) % cycle.max(1)).for_each(|_| {
            scheduler.step();
        });
        scheduler
    }

    /// One step of the cycle.
    fn step(&mut self) -> usize {
        let next = |path: usize| self.totals[path] + self.strides[path];
        let chosen = (0..self.totals.len()).min_by_key(|path| next(*path)).unwrap_or(0);
        self.totals[chosen] += self.strides[chosen];
        // Only differences matter: the common part is subtracted before it can overflow.
        let min = self.totals.iter().copied().min().unwrap_or(0);
        self.totals.iter_mut().for_each(|total| *total -= min);
        chosen
    }
}

/// The greatest common divisor.
pub(crate) fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

impl Scheduler for PacketRoundRobin {
    fn pick(&mut self, view: &SchedulerView<'_>) -> Option<Pick> {
        self.strides.resize(view.paths.len(), self.common_multiple);
        self.totals.resize(view.paths.len(), 0);
        view.paths_with_room().next().filter(|_| view.sendable_packets() > 0)?;
        // Steps of paths that are down are skipped, so that the others keep their proportions.
        loop {
            let path = PathId(self.step() as u16);
            if view.paths_with_room().any(|(id, _)| id == path) {
                return Some(Pick::next(path));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::tests::picks;

    fn cycle(weights: &[u32], steps: usize) -> Vec<usize> {
        let mut cycle = PacketRoundRobin::new(weights, 0);
        (0..steps).map(|_| cycle.step()).collect()
    }

    #[test]
    fn the_drafts_cycles() {
        assert_eq!(cycle(&[5, 2, 3], 10), [0, 2, 0, 1, 0, 2, 0, 0, 1, 2]);
        assert_eq!(cycle(&[100, 50], 3), [0, 0, 1]);
        assert_eq!(cycle(&[10, 1], 11), [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
    }

    #[test]
    fn large_coprime_weights_keep_their_shares() {
        let weights = [100, 99, 97, 91, 89];
        let sum: u32 = weights.iter().sum();
        let cycle = cycle(&weights, sum as usize);
        for (path, weight) in weights.iter().enumerate() {
            assert_eq!(cycle.iter().filter(|chosen| **chosen == path).count(), *weight as usize);
        }
    }

    #[test]
    fn a_dead_path_leaves_the_others_proportions() {
        let mut cycle = PacketRoundRobin::new(&[2, 5, 1], 0);
        let chosen = picks(&mut cycle, 30, 1500, [true, false, true]);
        assert_eq!(chosen.iter().filter(|path| **path == 0).count(), 20);
        assert_eq!(picks(&mut cycle, 1, 1500, [false; 3]), []);
    }
}
