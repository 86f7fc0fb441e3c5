//! Searches from several starts, each to its own resampled measurement: the ensemble.

use crate::cma::Cma;
use crate::links;
use crate::model::Group;
use crate::observe::{Logs, Observables, Weights, is_held};
use crate::probe::{self, Probe};
use crate::random::Normal;
use crate::{Error, Links, Model, parallel};
use measured::{Measured, MeasuredPath};
use std::collections::BTreeMap;

/// Points of a generation.
const POPULATION: usize = 10;
/// Seeds of the simulator per point.
const SEEDS: u64 = 2;
/// Simulated measurements that tell the noise of each observable.
const NOISE_RUNS: u64 = 6;
/// Degrees of freedom that the simulated noise counts for next to that of the repetitions.
const NOISE_FREEDOM: f64 = 4.0;
/// The error that every model of links has, as a logarithm: without it, quiet observables such as the idle RTT would outweigh
/// goodput and losses, which decide among algorithms.
const MODEL_ERROR: f64 = 0.1;
/// The standard deviation of the first generation, as a share of the range.
const FIRST_STEP: f64 = 0.12;
/// The standard deviation of other starts about the direct estimates.
const START_SPREAD: f64 = 0.08;
/// Steps that set the rate at the end of a search, the longest of them as a logarithm, and their seeds of the simulator.
const RATE_STEPS: usize = 2;
const MAX_RATE_STEP: f64 = 0.3;
const RATE_SEEDS: u64 = 6;
/// The prefix of the names of probes' flows.
const PREFIX: &str = "ropewalk-probe-";

/// Options of a fit.
#[derive(Clone, Debug)]
pub struct Options {
    /// Number of searches, and so of members of the ensemble.
    pub starts: usize,
    /// Names of observables to hold out, by their first parts: `call`, `tcp.bbr.*.rtt p95`.
    pub hold: Vec<String>,
    /// Threads; the ensemble does not depend on their number.
    pub threads: usize,
    /// Seed of the searches.
    pub seed: u64,
}

/// The progress of a fit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Progress {
    /// Evaluations of each search so far.
    pub evaluations: usize,
    /// The median over the searches of the least error of the latest generation, as a logarithm of a ratio.
    pub error: f64,
}

/// The measured path with all that a search needs of it.
#[derive(Debug)]
pub(crate) struct Target {
    pub(crate) name: String,
    pub(crate) probes: Vec<Probe>,
    pub(crate) observables: Observables,
    pub(crate) weights: Weights,
    /// Standard deviation of one value of each observable, as a logarithm.
    deviations: BTreeMap<String, f64>,
}

/// All that searches share.
pub(crate) struct Problem<'a> {
    pub(crate) model: &'a Model,
    pub(crate) targets: Vec<Target>,
    pub(crate) options: &'a Options,
    /// What was not used, and why.
    pub(crate) notes: Vec<String>,
}

impl<'a> Problem<'a> {
    /// The problem of a measurement: its observables, with weights by their noise.
    pub(crate) fn new(model: &'a Model, measured: &Measured, options: &'a Options) -> Result<Self, Error> {
        let (mut targets, mut notes) = (Vec::new(), measured.not_measured.clone());
        for path in &measured.paths {
            let (probes, skipped) = probe::plan(path);
            notes.extend(skipped);
            let (name, observables) = (path.name.clone(), Observables::of(path));
            let (weights, deviations) = (Weights::default(), BTreeMap::new());
            targets.push(Target { name, probes, observables, weights, deviations });
        }
        let mut problem = Self { model, targets, options, notes };
        problem.weigh()?;
        Ok(problem)
    }

    /// Sets the weights by the noise of each observable: that of its repetitions, and that of the simulator at the direct
    /// estimates.
    fn weigh(&mut self) -> Result<(), Error> {
        let start: Vec<f64> = self.model.unknowns.iter().map(|unknown| unknown.start).collect();
        for group in &self.model.groups {
            let seeds: Vec<u64> = (0..NOISE_RUNS).map(|index| 1_000_000 + index).collect();
            let simulated = self.observe(&start, group, &seeds)?;
            for (index, simulated) in group.paths.iter().zip(simulated) {
                self.targets[*index].weigh(&simulated, &self.options.hold);
            }
        }
        match self.targets.iter().find(|target| target.weights.0.is_empty()) {
            Some(target) => Err(Error::Input(format!("nothing of `{}` is left to be fitted", target.name))),
            None => Ok(()),
        }
    }

    /// The fitted observables of the paths of a group with these values of all unknowns. Probes that are held out are not
    /// made.
    fn observe(&self, values: &[f64], group: &Group, seeds: &[u64]) -> Result<Vec<Observables>, Error> {
        let fitted = |probe: &&Probe| !is_held(&probe.prefix(), &self.options.hold);
        let plan = |index: &usize| {
            let target = &self.targets[*index];
            (target.name.as_str(), target.probes.iter().filter(fitted).cloned().collect())
        };
        let plans: Vec<(&str, Vec<Probe>)> = group.paths.iter().map(plan).collect();
        observe(&self.model.links(values, Some(&group.paths)), &plans, seeds)
    }

    /// All observables of the measured paths over links, each with a value per seed.
    pub(crate) fn observe_links(&self, links: &Links, seeds: &[u64]) -> Result<Vec<Observables>, Error> {
        let plans: Vec<(&str, Vec<Probe>)> =
            self.targets.iter().map(|target| (target.name.as_str(), target.probes.clone())).collect();
        observe(links, &plans, seeds)
    }

    /// The least number of repetitions of a measured path.
    pub(crate) fn repeats(&self) -> u64 {
        self.targets.iter().map(|target| target.observables.repeats()).min().unwrap_or(1).max(1) as u64
    }
}

fn observe(links: &Links, plans: &[(&str, Vec<Probe>)], seeds: &[u64]) -> Result<Vec<Observables>, Error> {
    Ok(measure(links, plans, seeds)?.iter().map(Observables::of).collect())
}

/// Simulated measurements by the probes of some paths over links, with one repetition per seed. Paths are measured one after
/// another, as if alone.
pub(crate) fn measure(links: &Links, plans: &[(&str, Vec<Probe>)], seeds: &[u64]) -> Result<Vec<MeasuredPath>, Error> {
    let mut all = Measured::default();
    for (path, probes) in plans {
        let (tables, seconds) = probe::flows(probes, path, PREFIX);
        let scenario = links.scenario(&tables, &probe::sets(seconds))?;
        for (repeat, seed) in seeds.iter().enumerate() {
            let run = links::run(&scenario.cells[0], *seed)?;
            let paths = vec![probe::results(probes, path, PREFIX, &run, repeat as u32)];
            all.merge(Measured { paths, ..Measured::default() });
        }
    }
    Ok(all.paths)
}

/// A measurement of paths over links in the simulator, as `ropewalk probe` measures them on real ones: for tests of a fit, and
/// for plans of measurements. One repetition per seed.
///
/// # Errors
/// The links are no scenario, or lack a path.
pub fn simulated_measurement(links: &Links, paths: &[&str], seeds: &[u64]) -> Result<Measured, Error> {
    let probes = probe::usual();
    let plans: Vec<(&str, Vec<Probe>)> = paths.iter().map(|path| (*path, probes.clone())).collect();
    let program = Some(format!("ropewalk {}, in virtual time", runner::VERSION));
    Ok(Measured { program, paths: measure(links, &plans, seeds)?, ..Measured::default() })
}

impl Target {
    fn weigh(&mut self, simulated: &Observables, hold: &[String]) {
        let (measured, simulated) = (self.observables.variances(), simulated.variances());
        let repeats = self.observables.repeats() as f64;
        for (name, (own, freedom)) in measured {
            let noise = simulated.get(&name).map_or(own, |(variance, _)| *variance);
            let variance = (NOISE_FREEDOM * noise + freedom * own) / (NOISE_FREEDOM + freedom);
            if !is_held(&name, hold) {
                self.weights.0.insert(name.clone(), 1.0 / (variance / repeats + MODEL_ERROR * MODEL_ERROR));
            }
            self.deviations.insert(name, variance.sqrt());
        }
    }

    /// The measurement once more: each observable moved by the noise of its mean. The first of the ensemble is the
    /// measurement itself.
    fn resampled(&self, seed: u64, member: usize) -> Logs {
        let mut logs = self.observables.logs();
        let mut normal = Normal::named(seed, &format!("resample {} {member}", self.name));
        for (name, log) in &mut logs.0 {
            let deviation = self.deviations.get(name).copied().unwrap_or(0.0);
            let moved = normal.draw() * deviation / (self.observables.repeats().max(1) as f64).sqrt();
            *log += if member == 0 { 0.0 } else { moved };
        }
        logs
    }
}

/// One search: one group of unknowns from one start.
struct Search<'a> {
    group: &'a Group,
    member: usize,
    cma: Cma,
    targets: Vec<Logs>,
}

/// A point to evaluate: its search, and its place in the cube of the group's unknowns.
struct Point {
    search: usize,
    place: Vec<f64>,
}

/// The values of all unknowns of each member, and the evaluations of each search. `keep_going` is asked after each generation
/// of all searches.
pub(crate) fn search(
    problem: &Problem<'_>,
    keep_going: &mut dyn FnMut(&Progress) -> bool,
) -> Result<(Vec<Vec<f64>>, usize), Error> {
    let mut searches = Vec::new();
    for member in 0..problem.options.starts.max(1) {
        let of_member = problem.model.groups.iter().map(|group| Search::new(problem, group, member));
        searches.extend(of_member);
    }
    let mut evaluations = 0;
    loop {
        let error = generation(problem, &mut searches)?;
        evaluations += POPULATION;
        if !keep_going(&Progress { evaluations, error }) {
            break;
        }
    }
    let found = parallel::map(problem.options.threads, &searches, |search| search.result(problem));
    let starts: Vec<f64> = problem.model.unknowns.iter().map(|unknown| unknown.start).collect();
    let mut members = vec![starts; problem.options.starts.max(1)];
    for (search, values) in searches.iter().zip(found) {
        let values = values?;
        search.group.unknowns.iter().for_each(|index| members[search.member][*index] = values[*index]);
    }
    Ok((members, evaluations))
}

/// One generation of all searches; the median of their least costs.
fn generation(problem: &Problem<'_>, searches: &mut [Search<'_>]) -> Result<f64, Error> {
    let points: Vec<Point> = searches
        .iter_mut()
        .enumerate()
        .flat_map(|(search, state)| state.cma.ask(POPULATION).into_iter().map(move |place| Point { search, place }))
        .collect();
    let costs =
        parallel::map(problem.options.threads, &points, |point| searches[point.search].cost(problem, &point.place));
    let costs: Vec<f64> = costs.into_iter().collect::<Result<_, _>>()?;
    let mut best = Vec::new();
    for (search, (points, costs)) in searches.iter_mut().zip(points.chunks(POPULATION).zip(costs.chunks(POPULATION))) {
        let places: Vec<Vec<f64>> = points.iter().map(|point| point.place.clone()).collect();
        search.cma.tell(&places, costs);
        best.push(costs.iter().copied().fold(f64::INFINITY, f64::min));
    }
    best.sort_by(f64::total_cmp);
    Ok(best[best.len() / 2])
}

impl<'a> Search<'a> {
    fn new(problem: &Problem<'a>, group: &'a Group, member: usize) -> Self {
        let (seed, name) = (problem.options.seed, format!("search {member} {:?}", group.paths));
        let mut normal = Normal::named(seed, &format!("start of {name}"));
        let start = group.unknowns.iter().map(|index| {
            let unknown = &problem.model.unknowns[*index];
            let moved = if member == 0 { 0.0 } else { START_SPREAD * normal.draw() };
            (unknown.place(unknown.start) + moved).clamp(0.02, 0.98)
        });
        let cma = Cma::new(start.collect(), FIRST_STEP, POPULATION, seed, &name);
        let targets = group.paths.iter().map(|index| problem.targets[*index].resampled(seed, member)).collect();
        Self { group, member, cma, targets }
    }

    /// The values at which the search has ended, of the unknowns of its group. A noisy search leaves the rate uncertain by more
    /// than the measurement does, so the rate is set to what makes the fastest downloads carry what was measured.
    fn result(&self, problem: &Problem<'_>) -> Result<Vec<f64>, Error> {
        let mut values = self.values(problem, self.cma.mean());
        let Some(capacity) = problem.model.capacity(self.group) else { return Ok(values) };
        let unknown = &problem.model.unknowns[capacity];
        let mut missing = self.missing_goodput(problem, &values)?;
        for _ in 0..RATE_STEPS {
            let mut moved = values.clone();
            moved[capacity] = (values[capacity] * libm::exp(missing.clamp(-MAX_RATE_STEP, MAX_RATE_STEP)))
                .clamp(unknown.low, unknown.high);
            let left = self.missing_goodput(problem, &moved)?;
            if left.abs() >= missing.abs() {
                break;
            }
            (values, missing) = (moved, left);
        }
        Ok(values)
    }

    /// How much less than in the target the fastest downloads of each path carry, as a mean of logarithms.
    fn missing_goodput(&self, problem: &Problem<'_>, values: &[f64]) -> Result<f64, Error> {
        let first = 4_000_000 + self.member as u64 * RATE_SEEDS;
        let seeds: Vec<u64> = (first..first + RATE_SEEDS).collect();
        let observed = problem.observe(values, self.group, &seeds)?;
        let missing = observed.iter().zip(&self.targets).filter_map(|(observed, target)| {
            let logs = observed.logs();
            let downloads = target.0.iter().filter(|(name, _)| {
                name.starts_with("tcp.") && name.ends_with(".down.goodput") && logs.0.contains_key(*name)
            });
            let (name, log) = downloads.max_by(|(_, one), (_, other)| one.total_cmp(other))?;
            Some(log - logs.0[name])
        });
        let missing: Vec<f64> = missing.collect();
        Ok(missing.iter().sum::<f64>() / missing.len().max(1) as f64)
    }

    /// The values of all unknowns with those of the group at a place.
    fn values(&self, problem: &Problem<'_>, place: &[f64]) -> Vec<f64> {
        let mut values: Vec<f64> = problem.model.unknowns.iter().map(|unknown| unknown.start).collect();
        for (index, place) in self.group.unknowns.iter().zip(place) {
            values[*index] = problem.model.unknowns[*index].value(*place);
        }
        values
    }

    /// The error of a point, with fresh seeds in each generation and the same for all its points.
    fn cost(&self, problem: &Problem<'_>, place: &[f64]) -> Result<f64, Error> {
        let values = self.values(problem, place);
        let first = (self.member as u64 * 10_000 + u64::from(self.cma.generation())) * SEEDS + 2_000_000;
        let seeds: Vec<u64> = (first..first + SEEDS).collect();
        let observed = problem.observe(&values, self.group, &seeds)?;
        let pairs = observed.iter().zip(&self.targets).zip(&self.group.paths);
        let costs =
            pairs.map(|((observed, target), index)| observed.logs().cost(target, &problem.targets[*index].weights));
        let costs: Vec<f64> = costs.collect();
        Ok((costs.iter().map(|cost| cost * cost).sum::<f64>() / costs.len() as f64).sqrt())
    }
}
