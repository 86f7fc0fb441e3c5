//! The contest of all candidates: rounds of which each leaves fewer, so that the last ones meet all fits.

use super::candidate::{Candidate, Mode};
use super::choice::{Advice, Goal, NEAR, is_decided, needs, rank, transposed_shares};
use super::outcome::{Outcome, Trial, outcomes};
use crate::{Error, Links, ModelError};
use runner::Simulator;

/// Candidates that are run between two looks at the budget.
const PIECE: usize = 16;
/// The rounds before the last: the share of the budget at which each has to end, and the candidates that it leaves.
const ROUNDS: [(f64, usize); 2] = [(0.45, 40), (0.65, 12)];
/// Length of a run in these rounds and in the last one, seconds.
const SHORT: f64 = 8.0;
const LONG: f64 = 15.0;
/// Seeds of the last round.
const SEEDS: [u64; 2] = [1, 2];

/// Options of advice.
#[derive(Clone, Debug)]
pub struct AdviseOptions {
    /// What the connection is for.
    pub goal: Goal,
    /// What there is without the advice.
    pub default: Candidate,
    /// Threads; the advice does not depend on their number.
    pub threads: usize,
    /// By how much the fits miss what was measured: intervals are wider by it.
    pub error: ModelError,
}

/// The advice over an ensemble of links. `is_within` is asked whether a share of the budget, 0 to 1, is left unspent; a budget
/// that is always left gives the same advice everywhere.
///
/// # Errors
/// The links are no scenario or lack a path, or a run fails.
pub fn advise(
    ensemble: &[Links],
    paths: &[String],
    candidates: &[Candidate],
    options: &AdviseOptions,
    is_within: &mut dyn FnMut(f64) -> bool,
) -> Result<Advice, Error> {
    let can_run = |candidate: &Candidate| options.goal != Goal::Web || candidate.mode != Mode::Relay;
    let mut alive: Vec<Candidate> = candidates.iter().filter(|candidate| can_run(candidate)).cloned().collect();
    let mut left_out = Vec::new();
    if alive.len() < candidates.len() {
        let count = candidates.len() - alive.len();
        left_out.push(format!("{count} candidates: the simulator's relay carries no requests and answers"));
    }
    for (round, (share, keep)) in ROUNDS.into_iter().enumerate() {
        let links = &ensemble[round % ensemble.len().max(1)..][..1];
        let trial = options.trial(paths, SHORT, &[1]);
        let (tried, results) = try_all(links, &alive, &trial, &mut || is_within(share))?;
        if tried.len() < alive.len() && round == 0 {
            left_out.push(untried(&alive[tried.len()..]));
        }
        let done =
            if tried.len() < alive.len() && round > 0 { alive } else { best(options.goal, &tried, &results, keep) };
        alive = done.into_iter().take(keep).collect();
    }
    let default = &options.default;
    if can_run(default) && candidates.contains(default) && !alive.contains(default) {
        alive.push(default.clone());
    }
    let (fits, results) = last_round(ensemble, paths, &alive, options, is_within)?;
    if fits < ensemble.len() {
        left_out.push(format!("{} of {} fits: the time was over", ensemble.len() - fits, ensemble.len()));
    }
    let mut ranked = rank(options.goal, &alive, &results, default, options.error);
    let default = ranked.iter().find(|of| of.candidate == *default).cloned();
    ranked.truncate(ROUNDS[1].1);
    let is_decided = ranked.first().is_some_and(|first| is_decided(first.near_best, fits));
    Ok(Advice { goal: options.goal, fits, ranked, default, is_decided, measure: Vec::new(), left_out })
}

impl AdviseOptions {
    fn trial<'a>(&self, paths: &'a [String], seconds: f64, seeds: &'a [u64]) -> Trial<'a> {
        Trial { paths, goal: self.goal, seconds, seeds, driver: &Simulator, threads: self.threads }
    }
}

/// Runs candidates until all are done, or the budget of the round is spent: at least one piece of them.
fn try_all(
    links: &[Links],
    candidates: &[Candidate],
    trial: &Trial<'_>,
    is_within: &mut dyn FnMut() -> bool,
) -> Result<(Vec<Candidate>, Vec<Vec<Outcome>>), Error> {
    let (links, mut results): (Vec<&Links>, _) = (links.iter().collect(), Vec::new());
    for piece in candidates.chunks(PIECE) {
        if !results.is_empty() && !is_within() {
            break;
        }
        results.extend(outcomes(&links, piece, trial)?);
    }
    Ok((candidates[..results.len()].to_vec(), results))
}

/// All finalists over one fit after another, at least over one; the number of fits, and the outcomes by candidate.
fn last_round(
    ensemble: &[Links],
    paths: &[String],
    finalists: &[Candidate],
    options: &AdviseOptions,
    is_within: &mut dyn FnMut(f64) -> bool,
) -> Result<(usize, Vec<Vec<Outcome>>), Error> {
    let (mut fits, mut results) = (0, vec![Vec::new(); finalists.len()]);
    for links in ensemble {
        if fits > 0 && !is_within(1.0) {
            break;
        }
        let of_fit = outcomes(&[links], finalists, &options.trial(paths, LONG, &SEEDS))?;
        results.iter_mut().zip(of_fit).for_each(|(results, of_fit)| results.extend(of_fit));
        fits += 1;
    }
    Ok((fits, results))
}

/// At most `keep` candidates: half of them by their merit, the others those near the best that need least and are most common.
fn best(goal: Goal, candidates: &[Candidate], results: &[Vec<Outcome>], keep: usize) -> Vec<Candidate> {
    let shares: Vec<f64> = transposed_shares(goal, results, 1).into_iter().map(|of_fit| of_fit[0]).collect();
    let mut by_merit: Vec<usize> = (0..candidates.len()).collect();
    by_merit.sort_by(|a, b| shares[*b].total_cmp(&shares[*a]));
    let others = by_merit.split_off(by_merit.len().min(keep / 2));
    let (mut near, far): (Vec<usize>, Vec<usize>) =
        others.into_iter().partition(|index| shares[*index] >= 1.0 - 2.0 * NEAR);
    near.sort_by_key(|index| (needs(&candidates[*index].mode), *index));
    by_merit.into_iter().chain(near).chain(far).take(keep).map(|index| candidates[index].clone()).collect()
}

fn untried(candidates: &[Candidate]) -> String {
    let names: Vec<String> = candidates.iter().take(3).map(ToString::to_string).collect();
    let more = if candidates.len() > names.len() { ", ..." } else { "" };
    format!("{} candidates: the time was over ({}{more})", candidates.len(), names.join(", "))
}
