//! The shortest script that differs as a given one does.

use super::judge::Judge;
use crate::Error;
use replay::{Difference, Recording, Script, Tolerance, candidates, first_difference, play};

/// Maximum number of rounds: each takes a boot of User-Mode Linux, or the time of a script.
const ROUNDS: usize = 12;

/// A script, both recordings, and their difference.
pub(super) struct Case {
    pub(super) script: Script,
    pub(super) ours: Recording,
    pub(super) kernel: Recording,
    pub(super) difference: Difference,
}

/// Removes parts of the script as long as the difference stays in the same class.
pub(super) fn shrink(judge: &Judge, mut case: Case, tolerance: Tolerance) -> Result<Case, Error> {
    let class = case.difference.class();
    for _ in 0..ROUNDS {
        let scripts = candidates(&case.script, &case.difference);
        let recordings = judge.play(&scripts)?;
        let differing = scripts.into_iter().zip(recordings).filter_map(|(script, kernel)| {
            let ours = play(&script).ok()?;
            let difference = first_difference(&script, &ours, &kernel, tolerance)?;
            (difference.class() == class).then_some(Case { script, ours, kernel, difference })
        });
        let shortest = differing.min_by_key(|case| case.script.acks.len());
        match shortest.filter(|shortest| is_simpler(&shortest.script, &case.script)) {
            Some(shortest) => case = shortest,
            None => break,
        }
    }
    Ok(case)
}

fn is_simpler(script: &Script, than: &Script) -> bool {
    script.acks.len() < than.acks.len() || script.acks.len() == than.acks.len() && script.setup != than.setup
}
