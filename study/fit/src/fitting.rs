//! The ensemble next to its noise floor, the naive links, and what was held out.

use crate::interval::{Interval, interval, median};
use crate::model::naive_links;
use crate::observe::{Distance, Logs, MAX_ERROR, Observables, is_held};
use crate::search::{Options, Problem, Progress, search};
use crate::{Error, Links, Model, Unknown, parallel};
use measured::Measured;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A member whose distance is so many times the median is left out: the surrogate does not hold where it is.
const OUTLIER: f64 = 1.5;
/// The widest interval of a parameter that is said to be known, as a share of its value.
const KNOWN: f64 = 0.5;
/// How near to an end of its range a parameter is at it, as a share of its value.
const END: f64 = 0.01;
/// The least number of simulated repetitions by which members are judged.
const MIN_REPEATS: u64 = 3;

/// Links fitted to a measurement: an ensemble, and how good it is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Fit {
    /// Version of the document: 1.
    pub version: u32,
    /// The members of the ensemble.
    pub members: Vec<Member>,
    /// What the ensemble says of each unknown.
    pub parameters: Vec<Parameter>,
    /// Each observable, measured and by the ensemble.
    pub observables: Vec<Compared>,
    /// The distance of the ensemble from the measurement: that of the members' mean.
    pub distance: Distance,
    /// The noise floor: the distance of two simulated measurements of the same links.
    pub noise: Distance,
    /// By how much the fits miss the measurement beyond what chance explains.
    #[serde(default)]
    pub model_error: ModelError,
    /// The distance of the naive links from the measurement.
    pub naive: Distance,
    /// The naive links.
    pub naive_links: Links,
    /// Points at which the measurement of each path was simulated.
    pub evaluations: usize,
    /// Members that were left out, because they are much farther from the measurement than the others.
    pub left_out: usize,
    /// The source address or the device of each path, where the measurement has it.
    #[serde(default)]
    pub sources: BTreeMap<String, String>,
    /// What of the measurement was not used, and why.
    pub notes: Vec<String>,
    /// Digest of all values; the same measurement, options and evaluations give it again.
    pub digest: String,
}

/// By how much fits miss a measurement beyond what chance explains, as the standard deviation of a logarithm: what no disagreement
/// among the fits shows. Predictions are as uncertain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ModelError {
    /// Of goodputs.
    pub goodput: f64,
    /// Of round-trip times.
    pub delay: f64,
}

/// A member of the ensemble.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Member {
    /// The value of each unknown, in the order of the parameters.
    pub values: Vec<f64>,
    /// The links.
    pub links: Links,
    /// The distance from the measurement.
    pub distance: Distance,
}

/// An unknown, and what the ensemble says of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Parameter {
    /// The unknown.
    pub unknown: Unknown,
    /// Median, and interval of 90 %.
    pub interval: Interval,
    /// Whether the measurement tells its value: the interval is not wider than half of the value to each side, and the median is not
    /// at an end of the range, beyond which the value may be.
    pub is_known: bool,
}

/// An observable, measured and by the ensemble.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Compared {
    /// The path.
    pub path: String,
    /// The observable.
    pub name: String,
    /// Its unit.
    pub unit: String,
    /// The mean of the repetitions.
    pub measured: f64,
    /// Median and interval of the members' means.
    pub simulated: Interval,
    /// By the naive links; none if they have no such value.
    pub naive: Option<f64>,
    /// Whether it was kept from the search.
    pub is_held_out: bool,
}

/// Fits a model to a measurement. `left` is asked after each generation of all searches which share of the budget is left, from 1
/// to 0: by a number of evaluations the result is the same everywhere, by a clock it is not.
///
/// # Errors
/// The measurement has nothing to fit, or a run fails.
pub fn fit(
    model: &Model,
    measured: &Measured,
    options: &Options,
    left: &mut dyn FnMut(&Progress) -> f64,
) -> Result<Fit, Error> {
    let mut problem = Problem::new(model, measured, options)?;
    let (values, evaluations) = search(&mut problem, left)?;
    let naive_links = naive_links(measured);
    let judged =
        parallel::map(options.threads, &values, |values| Judged::new(&problem, &model.links(values, None), true));
    let judged: Vec<Judged> = judged.into_iter().collect::<Result<_, _>>()?;
    let naive = Judged::new(&problem, &naive_links, false)?;
    let limit = OUTLIER * median(&judged.iter().map(|judged| judged.distance.fitted).collect::<Vec<_>>());
    let kept: Vec<usize> = (0..judged.len()).filter(|index| judged[*index].distance.fitted <= limit).collect();
    let members: Vec<Member> = kept
        .iter()
        .map(|index| Member {
            values: values[*index].clone(),
            links: model.links(&values[*index], None),
            distance: judged[*index].distance,
        })
        .collect();
    let judged: Vec<&Judged> = kept.iter().map(|index| &judged[*index]).collect();
    Ok(Fit {
        version: 1,
        parameters: parameters(model, &members),
        observables: compared(&problem, &judged, &naive),
        distance: distance(&problem, &mean_logs(&judged), &problem.measured()),
        noise: middle(judged.iter().filter_map(|judged| judged.noise)),
        model_error: model_error(&problem, &judged),
        naive: naive.distance,
        naive_links,
        evaluations,
        left_out: values.len() - members.len(),
        sources: measured.paths.iter().filter_map(|path| Some((path.name.clone(), path.source.clone()?))).collect(),
        notes: problem.notes.clone(),
        digest: digest(&members),
        members,
    })
}

/// Simulated measurements of some links, and how far they are from the measurement.
struct Judged {
    observed: Vec<Observables>,
    distance: Distance,
    /// The distance of two simulated measurements.
    noise: Option<Distance>,
}

/// The ends of the names of observables of one kind.
const KINDS: [&[&str]; 2] = [&[".goodput"], &["rtt mean", "rtt median", "rtt p95", "rtt p99"]];

impl Judged {
    fn new(problem: &Problem<'_>, links: &Links, with_noise: bool) -> Result<Self, Error> {
        let (repeats, first) = (problem.repeats().max(MIN_REPEATS), 3_000_000);
        let observe = |first: u64| problem.observe_links(links, &(first..first + repeats).collect::<Vec<_>>());
        let observed = observe(first)?;
        let logs: Vec<Logs> = observed.iter().map(Observables::logs).collect();
        let measured = problem.measured();
        let again = with_noise.then(|| observe(first + repeats)).transpose()?;
        let again = again.map(|again| again.iter().map(Observables::logs).collect::<Vec<Logs>>());
        let noise = again.map(|again| distance(problem, &logs, &again));
        Ok(Self { distance: distance(problem, &logs, &measured), noise, observed })
    }
}

/// The root mean square of the differences of what was measured, over all paths.
fn distance(problem: &Problem<'_>, one: &[Logs], other: &[Logs]) -> Distance {
    let of = |is_held_out: bool| {
        root_mean_square(problem, one, other, |name| is_held(name, &problem.options.hold) == is_held_out)
    };
    Distance { fitted: of(false).unwrap_or(0.0), held_out: of(true) }
}

/// The root mean square of the differences of those observables; none if there are none.
fn root_mean_square(
    problem: &Problem<'_>,
    one: &[Logs],
    other: &[Logs],
    is_wanted: impl Fn(&str) -> bool,
) -> Option<f64> {
    let mut squares = Vec::new();
    for ((target, one), other) in problem.targets.iter().zip(one).zip(other) {
        squares.extend(target.observables.names().filter(|name| is_wanted(name)).filter_map(|name| {
            let error = (one.0.get(name)? - other.0.get(name)?).clamp(-MAX_ERROR, MAX_ERROR);
            Some(error * error)
        }));
    }
    (!squares.is_empty()).then(|| (squares.iter().sum::<f64>() / squares.len() as f64).sqrt())
}

/// The deviation of the differences between the mean of the members and the measurement that is more than chance explains. Half of
/// the differences are to be less than the median of their distribution, so that one download which was out of luck decides
/// nothing.
fn model_error(problem: &Problem<'_>, judged: &[&Judged]) -> ModelError {
    let of = |ends: &[&str]| {
        let mut differences = Vec::new();
        for (path, target) in problem.targets.iter().enumerate() {
            let measured = target.observables.logs();
            let (logs, variances): (Vec<Logs>, Vec<_>) =
                judged.iter().map(|judged| (judged.observed[path].logs(), judged.observed[path].variances())).unzip();
            for (name, log) in measured.0.iter().filter(|(name, _)| ends.iter().any(|end| name.ends_with(end))) {
                let simulated: Vec<f64> = logs.iter().filter_map(|logs| logs.0.get(name).copied()).collect();
                let scatter: Vec<f64> = variances.iter().filter_map(|all| Some(all.get(name)?.0)).collect();
                let chance = mean(&scatter) / target.observables.repeats() as f64;
                differences.push((mean(&simulated) - log, chance));
            }
        }
        beyond_chance(&differences)
    };
    ModelError { goodput: of(KINDS[0]), delay: of(KINDS[1]) }
}

/// The deviation that, together with that of chance, makes the median of these normally distributed differences what it should be.
/// Each has its variance by chance.
fn beyond_chance(differences: &[(f64, f64)]) -> f64 {
    /// The median of the square of a standard normal number.
    const MEDIAN: f64 = 0.4549;
    let excess = |error: f64| {
        let squares =
            differences.iter().map(|(difference, chance)| difference * difference / (chance + error * error + 1e-12));
        median(&squares.collect::<Vec<_>>()) - MEDIAN
    };
    let (mut low, mut high) = (0.0, MAX_ERROR);
    if excess(low) <= 0.0 {
        return 0.0;
    }
    for _ in 0..40 {
        let middle = (low + high) / 2.0;
        if excess(middle) > 0.0 { low = middle } else { high = middle }
    }
    high
}

/// The means over the members, where a member has the observable.
fn mean_logs(judged: &[&Judged]) -> Vec<Logs> {
    let paths = judged.first().map_or(0, |judged| judged.observed.len());
    let of_path = |path: usize| {
        let mut all: BTreeMap<String, Vec<f64>> = BTreeMap::new();
        for judged in judged {
            judged.observed[path].logs().0.into_iter().for_each(|(name, log)| all.entry(name).or_default().push(log));
        }
        Logs(all.into_iter().map(|(name, logs)| (name, mean(&logs))).collect())
    };
    (0..paths).map(of_path).collect()
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

fn middle(distances: impl Iterator<Item = Distance>) -> Distance {
    let distances: Vec<Distance> = distances.collect();
    let held: Vec<f64> = distances.iter().filter_map(|distance| distance.held_out).collect();
    Distance {
        fitted: median(&distances.iter().map(|distance| distance.fitted).collect::<Vec<_>>()),
        held_out: (!held.is_empty()).then(|| median(&held)),
    }
}

fn parameters(model: &Model, members: &[Member]) -> Vec<Parameter> {
    let parameter = |(index, unknown): (usize, &Unknown)| {
        let values: Vec<f64> = members.iter().map(|member| member.values[index]).collect();
        let mut interval = interval(&values, 0.0);
        interval.low = interval.low.max(unknown.low);
        interval.high = interval.high.min(unknown.high);
        let is_within = interval.median > unknown.low * (1.0 + END) && interval.median * (1.0 + END) < unknown.high;
        let is_known = members.len() > 1 && is_within && interval.half_width() <= KNOWN;
        Parameter { unknown: unknown.clone(), interval, is_known }
    };
    model.unknowns.iter().enumerate().map(parameter).collect()
}

fn compared(problem: &Problem<'_>, judged: &[&Judged], naive: &Judged) -> Vec<Compared> {
    let mut all = Vec::new();
    for (path, target) in problem.targets.iter().enumerate() {
        for name in target.observables.names() {
            let of = |judged: &Judged| judged.observed[path].mean(name);
            let values: Vec<f64> = judged.iter().filter_map(|judged| of(judged)).collect();
            all.push(Compared {
                path: target.name.clone(),
                name: name.to_owned(),
                unit: target.observables.unit(name).to_owned(),
                measured: target.observables.mean(name).unwrap_or_default(),
                simulated: interval(&values, 0.0),
                naive: of(naive),
                is_held_out: is_held(name, &problem.options.hold),
            });
        }
    }
    all
}

fn digest(members: &[Member]) -> String {
    let mut digest = record::Digest::default();
    members.iter().flat_map(|member| &member.values).for_each(|value| digest.add(value.to_bits()));
    digest.hex()
}

impl Fit {
    /// Whether the ensemble is nearer to the measurement than the naive links are.
    #[must_use]
    pub fn beats_naive(&self) -> bool {
        self.distance.fitted < self.naive.fitted
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Normal;

    /// Differences by chance alone need no other error; those of a known error have about that one; a single outlier changes little.
    #[test]
    fn what_chance_does_not_explain_is_found_and_one_outlier_decides_nothing() {
        let mut normal = Normal::named(1, "differences");
        let mut draw = |error: f64| -> Vec<(f64, f64)> {
            (0..2001).map(|_| ((0.05_f64.powi(2) + error * error).sqrt() * normal.draw(), 0.05 * 0.05)).collect()
        };
        assert!(beyond_chance(&draw(0.0)) < 0.02);
        let mut differences = draw(0.2);
        let found = beyond_chance(&differences);
        assert!((found - 0.2).abs() < 0.01, "{found}");
        differences[0].0 = 10.0;
        assert!((beyond_chance(&differences) - found).abs() < 0.001);
        assert_eq!(beyond_chance(&[]), 0.0);
    }
}
