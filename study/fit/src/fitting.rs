//! The ensemble next to its noise floor, the naive links, and what was held out.

use crate::interval::{Interval, interval, median};
use crate::model::naive_links;
use crate::observe::{Distance, Logs, Observables, is_held};
use crate::search::{Options, Problem, Progress, search};
use crate::{Error, Links, Model, Unknown, parallel};
use measured::Measured;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The greatest error that one observable counts for in a distance, as a logarithm.
const MAX_ERROR: f64 = 1.5;
/// A member whose distance is so many times the median is left out: its search ended elsewhere.
const OUTLIER: f64 = 1.5;
/// The widest interval of a parameter that is said to be known, as a share of its value.
const KNOWN: f64 = 0.5;
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
    /// The distance of the ensemble from the measurement: the median over the members.
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
    /// Evaluations of each search.
    pub evaluations: usize,
    /// Searches whose result was left out, because it is much farther from the measurement than the others.
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
    /// Whether the measurement tells its value: the interval is not wider than half of the value to each side.
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

/// Fits a model to a measurement. `keep_going` is asked after each generation of all searches whether another one shall follow:
/// by a number of evaluations the result is the same everywhere, by a clock it is not.
///
/// # Errors
/// The measurement has nothing to fit, or a run fails.
pub fn fit(
    model: &Model,
    measured: &Measured,
    options: &Options,
    keep_going: &mut dyn FnMut(&Progress) -> bool,
) -> Result<Fit, Error> {
    let problem = Problem::new(model, measured, options)?;
    let (values, evaluations) = search(&problem, keep_going)?;
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
        distance: middle(judged.iter().map(|judged| judged.distance)),
        noise: middle(judged.iter().filter_map(|judged| judged.noise)),
        model_error: model_error(&judged),
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
    /// Both distances, of goodputs and of round-trip times alone.
    by_kind: [[f64; 2]; 2],
}

/// The ends of the names of observables of one kind.
const KINDS: [&[&str]; 2] = [&[".goodput"], &["rtt mean", "rtt median", "rtt p95", "rtt p99"]];

impl Judged {
    fn new(problem: &Problem<'_>, links: &Links, with_noise: bool) -> Result<Self, Error> {
        let (repeats, first) = (problem.repeats().max(MIN_REPEATS), 3_000_000);
        let observe = |first: u64| problem.observe_links(links, &(first..first + repeats).collect::<Vec<_>>());
        let observed = observe(first)?;
        let logs: Vec<Logs> = observed.iter().map(Observables::logs).collect();
        let measured: Vec<Logs> = problem.targets.iter().map(|target| target.observables.logs()).collect();
        let again = with_noise.then(|| observe(first + repeats)).transpose()?;
        let again = again.map(|again| again.iter().map(Observables::logs).collect::<Vec<Logs>>());
        let of_kind = |ends: &[&str], other: &[Logs]| {
            let is_wanted = |name: &str| ends.iter().any(|end| name.ends_with(end));
            root_mean_square(problem, &logs, other, is_wanted).unwrap_or(0.0)
        };
        let by_kind =
            KINDS.map(|ends| [of_kind(ends, &measured), again.as_ref().map_or(0.0, |again| of_kind(ends, again))]);
        let noise = again.map(|again| distance(problem, &logs, &again));
        Ok(Self { distance: distance(problem, &logs, &measured), noise, by_kind, observed })
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

/// The medians over the members; what two simulated measurements differ by is chance.
fn model_error(judged: &[&Judged]) -> ModelError {
    let of = |kind: usize| {
        let [missed, chance] =
            [0, 1].map(|which| median(&judged.iter().map(|judged| judged.by_kind[kind][which]).collect::<Vec<_>>()));
        (missed * missed - chance * chance).max(0.0).sqrt()
    };
    ModelError { goodput: of(0), delay: of(1) }
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
        let is_known = members.len() > 1 && interval.half_width() <= KNOWN;
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
