//! The shortest script that differs as a given one does.

use super::judge::Judge;
use super::side::Side;
use crate::Error;
use replay::{Difference, Tolerance};

/// Maximum number of rounds: each takes a boot of User-Mode Linux, or the time of a script.
const ROUNDS: usize = 12;

/// A script, both recordings, and their difference.
pub(super) struct Case<S: Side> {
    pub(super) script: S::Script,
    pub(super) ours: S::Recording,
    pub(super) kernel: S::Recording,
    pub(super) difference: Difference,
}

impl<S: Side> Case<S> {
    /// The case in words.
    pub(super) fn timeline(&self) -> String {
        S::timeline(&self.script, &self.ours, &self.kernel, &self.difference)
    }
}

/// Removes parts of the script as long as the difference stays in the same class.
pub(super) fn shrink<S: Side>(judge: &Judge, mut case: Case<S>, tolerance: Tolerance) -> Result<Case<S>, Error> {
    let class = case.difference.class();
    for _ in 0..ROUNDS {
        let scripts = S::candidates(&case.script, &case.difference);
        let recordings = S::play(judge, &scripts)?;
        let differing = scripts.into_iter().zip(recordings).filter_map(|(script, kernel)| {
            let ours = S::ours(&script).ok()?;
            let difference = S::difference(&script, &ours, &kernel, tolerance)?;
            (difference.class() == class).then_some(Case { script, ours, kernel, difference })
        });
        let shortest = differing.min_by_key(|case| S::len(&case.script));
        match shortest.filter(|shortest| is_simpler::<S>(&shortest.script, &case.script)) {
            Some(shortest) => case = shortest,
            None => break,
        }
    }
    Ok(case)
}

/// Whether a script is shorter, or as long with other settings.
fn is_simpler<S: Side>(script: &S::Script, than: &S::Script) -> bool {
    S::len(script) < S::len(than) || S::len(script) == S::len(than) && script != than
}
