//! The runs that a driver makes of a scenario, and their division into shards.

use crate::{Driver, Error, checks, cost};
use scenario::Scenario;
use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};
use store::{Key, Shard};

/// The runs of a study, by cell and seed.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Cell and seed of each run.
    pub keys: Vec<Key>,
    /// The estimated cost of each run, in the order of `keys`: packets times the links that they cross.
    pub costs: Vec<u64>,
    /// The driver's notes about the scenario, for the user.
    pub notes: Vec<String>,
}

/// Plans every cell that `driver` runs with every seed. With `partial`, cells that it cannot run are left out.
///
/// # Errors
/// The driver cannot run a cell, and `partial` is not set.
pub fn plan(scenario: &Scenario, driver: &dyn Driver, partial: bool) -> Result<Plan, Error> {
    let checked = driver.check(scenario, partial)?;
    let mut plan = Plan { keys: Vec::new(), costs: Vec::new(), notes: checked.notes };
    plan.notes.extend(checks::algorithm_notes(scenario));
    for cell in checked.cells {
        let cost = cost::estimate(&scenario.cells[cell].experiment);
        plan.keys.extend(scenario.seeds.iter().map(|seed| (cell, *seed)));
        plan.costs.resize(plan.keys.len(), cost);
    }
    Ok(plan)
}

impl Plan {
    /// The runs for whose key `is_chosen` is true.
    #[must_use]
    pub fn only(&self, is_chosen: impl Fn(&Key) -> bool) -> Self {
        let runs = self.keys.iter().zip(&self.costs).filter(|(key, _)| is_chosen(key));
        let (keys, costs) = runs.map(|(key, cost)| (*key, *cost)).unzip();
        Self { keys, costs, notes: self.notes.clone() }
    }

    /// The runs of one shard. Shards are disjoint, together they are the plan, and the greatest estimated cost of a shard is
    /// at most 4/3 of the optimum. Runs are assigned in order of decreasing cost, each to the shard with the least cost so
    /// far (R. L. Graham, "Bounds on Multiprocessing Timing Anomalies", 1969).
    #[must_use]
    pub fn shard(&self, shard: Shard) -> Self {
        let mut by_cost: Vec<usize> = (0..self.keys.len()).collect();
        by_cost.sort_by_key(|run| (Reverse(self.costs[*run]), self.keys[*run]));
        let mut lightest: BinaryHeap<_> = (1..=shard.count).map(|index| Reverse((0_u64, 0_usize, index))).collect();
        let mut chosen = BTreeSet::new();
        for run in by_cost {
            let Some(Reverse((cost, runs, index))) = lightest.pop() else { break };
            if index == shard.index {
                chosen.insert(self.keys[run]);
            }
            lightest.push(Reverse((cost.saturating_add(self.costs[run]), runs + 1, index)));
        }
        self.only(|key| chosen.contains(key))
    }
}
