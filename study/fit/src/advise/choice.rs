//! Choosing among candidates: who is best, or too near to the best to tell, in how many fits.

use super::candidate::{Candidate, Mode};
use super::outcome::Outcome;
use crate::ModelError;
use crate::interval::{Interval, interval, median};
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;

/// A candidate whose goodput or delay is so near to the best counts as the best: chance moves means by as much.
pub(super) const NEAR: f64 = 0.05;
/// For calls, a candidate has to carry at least this share of the best goodput.
const CALL_SHARE: f64 = 0.5;
/// A choice that is near the best in fewer fits is none.
const DECIDED: f64 = 0.5;

/// What the connection is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Goal {
    /// The most goodput.
    #[default]
    Throughput,
    /// The least 95th percentile of the delay, of what carries at least half of the best goodput.
    Calls,
    /// The shortest time of an answer of 200 kB.
    Web,
    /// The greatest geometric mean of the connection's goodput and that of CUBIC downloads next to it.
    Fair,
}

impl Goal {
    /// The merit of an outcome, of which more is better; `best_goodput` is that of all candidates over the same links, Mbit/s.
    #[must_use]
    pub fn merit(self, outcome: &Outcome, best_goodput: f64) -> f64 {
        match self {
            Self::Throughput => outcome.goodput_mbps,
            Self::Calls if outcome.goodput_mbps < CALL_SHARE * best_goodput => 0.0,
            Self::Calls => 1.0 / outcome.delay_p95_ms.max(1e-3),
            Self::Web => 1.0 / outcome.response_ms.max(1e-3),
            Self::Fair => (outcome.goodput_mbps * outcome.rival_mbps).sqrt(),
        }
    }
}

/// A candidate with what it promises.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ranked {
    /// The candidate.
    pub candidate: Candidate,
    /// Goodput, Mbit/s: median over the fits, and interval of 90 %.
    pub goodput_mbps: Interval,
    /// 95th percentile of the delay, ms.
    pub delay_p95_ms: Interval,
    /// For the web: time of an answer, ms.
    pub response_ms: Interval,
    /// For fairness: mean goodput of the competing downloads, Mbit/s.
    pub rival_mbps: Interval,
    /// The median over the fits of its merit as a share of the best one's.
    pub share_of_best: f64,
    /// The number of fits in which it is within 5 % of the best.
    pub near_best: usize,
}

/// The advice for a goal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Advice {
    /// The goal.
    pub goal: Goal,
    /// The number of fits.
    pub fits: usize,
    /// The finalists, the best first.
    pub ranked: Vec<Ranked>,
    /// What there is without the advice, if it was tried: the tunnel as it is configured, or MPTCP as Linux does it by default.
    pub default: Option<Ranked>,
    /// Whether the first of the finalists is near the best in at least half of the fits.
    pub is_decided: bool,
    /// What to measure so that more is known.
    pub measure: Vec<String>,
    /// What was not tried, and why.
    pub left_out: Vec<String>,
}

/// Ranks candidates by their outcomes, by candidate and fit. Of those that are alike, `default` comes first: nothing has to be
/// changed for it. `error` is what the fits miss beyond what they differ by.
pub(super) fn rank(
    goal: Goal,
    candidates: &[Candidate],
    outcomes: &[Vec<Outcome>],
    default: &Candidate,
    error: ModelError,
) -> Vec<Ranked> {
    let fits = outcomes.first().map_or(0, Vec::len);
    let shares: Vec<Vec<f64>> = transposed_shares(goal, outcomes, fits);
    let mut ranked: Vec<Ranked> = candidates
        .iter()
        .enumerate()
        .map(|(index, candidate)| {
            let of = |value: fn(&Outcome) -> f64, error: f64| {
                interval(&outcomes[index].iter().map(value).collect::<Vec<_>>(), error)
            };
            Ranked {
                candidate: candidate.clone(),
                goodput_mbps: of(|outcome| outcome.goodput_mbps, error.goodput),
                delay_p95_ms: of(|outcome| outcome.delay_p95_ms, error.delay),
                response_ms: of(|outcome| outcome.response_ms, error.delay.hypot(error.goodput)),
                rival_mbps: of(|outcome| outcome.rival_mbps, error.goodput),
                share_of_best: median(&shares[index]),
                near_best: shares[index].iter().filter(|share| **share >= 1.0 - NEAR).count(),
            }
        })
        .collect();
    let order = |ranked: &Ranked| order(ranked, default);
    ranked.sort_by(|a, b| order(a).cmp(&order(b)).then(b.share_of_best.total_cmp(&a.share_of_best)));
    ranked
}

/// Who is near the best in more fits comes first; of those that are alike, the default, then who needs less.
fn order(ranked: &Ranked, default: &Candidate) -> (Reverse<usize>, bool, u8) {
    (Reverse(ranked.near_best), ranked.candidate != *default, needs(&ranked.candidate.mode))
}

/// How much a mode needs: one path least, then MPTCP, then a tunnel, then its relay.
pub(super) fn needs(mode: &Mode) -> u8 {
    match mode {
        Mode::Single(_) => 0,
        Mode::Mptcp => 1,
        Mode::Tunnel => 2,
        Mode::Relay => 3,
    }
}

/// The merit of each candidate in each fit as a share of the best one's.
pub(super) fn transposed_shares(goal: Goal, outcomes: &[Vec<Outcome>], fits: usize) -> Vec<Vec<f64>> {
    let merits = |fit: usize| {
        let best_goodput = outcomes.iter().map(|of| of[fit].goodput_mbps).fold(0.0, f64::max);
        let merits: Vec<f64> = outcomes.iter().map(|of| goal.merit(&of[fit], best_goodput)).collect();
        let best = merits.iter().copied().fold(0.0, f64::max).max(1e-12);
        merits.into_iter().map(|merit| merit / best).collect::<Vec<f64>>()
    };
    let by_fit: Vec<Vec<f64>> = (0..fits).map(merits).collect();
    (0..outcomes.len()).map(|candidate| by_fit.iter().map(|shares| shares[candidate]).collect()).collect()
}

/// Whether a choice that is near the best in so many fits is one.
pub(super) fn is_decided(near_best: usize, fits: usize) -> bool {
    near_best as f64 >= DECIDED * fits as f64 && fits > 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(goodput_mbps: f64, delay_p95_ms: f64) -> Outcome {
        Outcome { goodput_mbps, delay_p95_ms, ..Outcome::default() }
    }

    fn candidate(name: &str) -> Candidate {
        Candidate { mode: Mode::Mptcp, congestion: name.to_owned(), scheduler: Some("minrtt".to_owned()) }
    }

    #[test]
    fn the_best_is_who_is_near_the_best_in_most_fits() {
        let names = ["a", "b", "c"].map(candidate);
        // `a` is the best twice, `b` once by far; `c` is quick and carries too little.
        let outcomes = [
            vec![outcome(10.0, 100.0), outcome(10.0, 100.0), outcome(10.0, 100.0)],
            vec![outcome(9.0, 50.0), outcome(9.0, 60.0), outcome(20.0, 70.0)],
            vec![outcome(3.0, 10.0), outcome(3.0, 10.0), outcome(3.0, 10.0)],
        ];
        let ranked = rank(Goal::Throughput, &names, &outcomes, &names[2], ModelError::default());
        assert_eq!((ranked[0].candidate.congestion.as_str(), ranked[0].near_best), ("a", 2));
        assert_eq!((ranked[1].candidate.congestion.as_str(), ranked[1].near_best), ("b", 1));
        let ranked = rank(Goal::Calls, &names, &outcomes, &names[2], ModelError::default());
        assert_eq!((ranked[0].candidate.congestion.as_str(), ranked[0].near_best), ("b", 3));
        let alike = [vec![outcome(10.0, 100.0)], vec![outcome(10.2, 100.0)]];
        let ranked = rank(Goal::Throughput, &names[..2], &alike, &names[0], ModelError::default());
        assert_eq!(ranked[0].candidate, names[0], "nothing has to be changed for it");
        assert!(is_decided(2, 3) && !is_decided(1, 3) && !is_decided(0, 0));
    }
}
