//! The search for the links of a measurement, and the ensemble: the links of resampled measurements, by a surrogate.

use crate::cma::Cma;
use crate::links;
use crate::model::Group;
use crate::observe::{Logs, Observables, Weights, is_held};
use crate::probe::{self, Probe};
use crate::random::Normal;
use crate::surrogate::{self, Simulated, Surrogate};
use crate::{Error, Links, Model, parallel};
use measured::{Measured, MeasuredPath};
use runner::{Driver, Simulator};
use std::sync::Arc;

/// Points of a generation of each search.
const POPULATION: usize = 40;
/// The shares of the budget after which the search for the optimum ends, and the first exploration.
const LOOK: f64 = 0.5;
const EXPLORE: f64 = 0.75;
/// The standard deviation of explored points, as a share of the range.
const EXPLORED: f64 = 0.1;
/// Seeds of the simulator per point.
const SEEDS: u64 = 2;
/// Simulated measurements that tell the noise of each observable.
const NOISE_RUNS: u64 = 6;
/// Degrees of freedom that the simulated noise counts for next to that of the repetitions.
const NOISE_FREEDOM: f64 = 4.0;
/// The error that every model of links has, as a logarithm: without it, quiet observables would outweigh goodput and losses, which
/// decide among algorithms. What no traffic moves, the least and the median RTT without load, it has less.
const MODEL_ERROR: f64 = 0.1;
const IDLE_ERROR: f64 = 0.03;
/// The standard deviation of the first generation, as a share of the range.
const FIRST_STEP: f64 = 0.12;
/// The prefix of the names of probes' flows.
const PREFIX: &str = "ropewalk-probe-";

/// Options of a fit.
#[derive(Clone, Debug)]
pub struct Options {
    /// Number of members of the ensemble.
    pub members: usize,
    /// Names of observables to hold out, by their first parts: `call`, `tcp.bbr.*.rtt p95`.
    pub hold: Vec<String>,
    /// Threads; the ensemble does not depend on their number.
    pub threads: usize,
    /// Seed of the search.
    pub seed: u64,
}

/// The progress of a fit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Progress {
    /// Evaluations so far: points at which the measurement of each path was simulated.
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
            targets.push(Target { name, probes, observables, weights: Weights::default() });
        }
        let mut problem = Self { model, targets, options, notes };
        problem.weigh(&problem.estimates())?;
        Ok(problem)
    }

    /// The direct estimates of all unknowns.
    fn estimates(&self) -> Vec<f64> {
        self.model.unknowns.iter().map(|unknown| unknown.start).collect()
    }

    /// Sets the weights by the noise of each observable: that of its repetitions, and that of the simulator with these values of
    /// all unknowns.
    fn weigh(&mut self, values: &[f64]) -> Result<(), Error> {
        for group in &self.model.groups {
            let seeds: Vec<u64> = (0..NOISE_RUNS).map(|index| 1_000_000 + index).collect();
            let simulated = self.observe(values, group, &seeds)?;
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

    /// The measurement as it could have come out as well, once for each member: moved by what chance makes simulated measurements of
    /// these links differ from their mean (a parametric bootstrap).
    fn resampled(&self, values: &[f64], group: &Group, members: usize) -> Result<Vec<Vec<Logs>>, Error> {
        let repeats = self.repeats();
        let simulate = |member: &usize| {
            let draw = self.options.seed.wrapping_mul(members as u64).wrapping_add(*member as u64) % 1_000_000;
            let first = 5_000_000 + draw * repeats;
            self.observe(values, group, &(first..first + repeats).collect::<Vec<_>>())
        };
        let simulated = parallel::map(self.options.threads, &(0..members).collect::<Vec<_>>(), simulate);
        let simulated: Vec<Vec<Observables>> = simulated.into_iter().collect::<Result<_, _>>()?;
        let logs: Vec<Vec<Logs>> =
            simulated.iter().map(|paths| paths.iter().map(Observables::logs).collect()).collect();
        let of_path = |member: usize, place: usize| {
            let mut target = self.targets[group.paths[place]].observables.logs();
            for (name, log) in &mut target.0 {
                let others: Vec<f64> = logs.iter().filter_map(|paths| paths[place].0.get(name).copied()).collect();
                let mean = others.iter().sum::<f64>() / others.len() as f64;
                *log += logs[member][place].0.get(name).map_or(0.0, |own| own - mean);
            }
            target
        };
        Ok((0..members).map(|member| (0..group.paths.len()).map(|place| of_path(member, place)).collect()).collect())
    }

    /// The measurement of each path.
    pub(crate) fn measured(&self) -> Vec<Logs> {
        self.targets.iter().map(|target| target.observables.logs()).collect()
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
    Ok(measure(&Simulator, links, plans, seeds, 1)?.iter().map(Observables::of).collect())
}

/// Measurements by the probes of some paths over links, with one repetition per seed. Each path is measured alone.
fn measure(
    driver: &dyn Driver,
    links: &Links,
    plans: &[(&str, Vec<Probe>)],
    seeds: &[u64],
    threads: usize,
) -> Result<Vec<MeasuredPath>, Error> {
    let mut jobs = Vec::new();
    for (path, probes) in plans {
        let (tables, seconds) = probe::flows(probes, path, PREFIX);
        let cell = Arc::new(links.scenario(&tables, &probe::sets(seconds))?.cells.remove(0));
        jobs.extend(seeds.iter().zip(0..).map(|(seed, repeat)| (*path, probes, Arc::clone(&cell), *seed, repeat)));
    }
    let done: Vec<Result<MeasuredPath, Error>> = parallel::map(threads, &jobs, |(path, probes, cell, seed, repeat)| {
        Ok(probe::results(probes, path, PREFIX, &links::run(driver, cell, *seed)?, *repeat))
    });
    let mut all = Measured::default();
    for path in done {
        all.merge(Measured { paths: vec![path?], ..Measured::default() });
    }
    Ok(all.paths)
}

/// A measurement of paths over links in the simulator, as `ropewalk probe` measures them on real ones: for tests of a fit, and
/// for plans of measurements. One repetition per seed.
///
/// # Errors
/// The links are no scenario, or lack a path.
pub fn simulated_measurement(links: &Links, paths: &[&str], seeds: &[u64]) -> Result<Measured, Error> {
    measurement(&Simulator, links, paths, &[], seeds, 1)
}

/// As [`simulated_measurement`], with the runs of any driver, such as the lab's kernels. Probes whose names begin with one of
/// `without` are not made: a driver may not have all of them.
///
/// # Errors
/// The links are no scenario, lack a path, or a run fails.
pub fn measurement(
    driver: &dyn Driver,
    links: &Links,
    paths: &[&str],
    without: &[String],
    seeds: &[u64],
    threads: usize,
) -> Result<Measured, Error> {
    let mut probes = probe::usual();
    probes.retain(|probe| !is_held(&probe.prefix(), without));
    let plans: Vec<(&str, Vec<Probe>)> = paths.iter().map(|path| (*path, probes.clone())).collect();
    let program = Some(format!("ropewalk {}, in virtual time", runner::VERSION));
    Ok(Measured { program, paths: measure(driver, links, &plans, seeds, threads)?, ..Measured::default() })
}

impl Target {
    fn weigh(&mut self, simulated: &Observables, hold: &[String]) {
        let (measured, simulated) = (self.observables.variances(), simulated.variances());
        let repeats = self.observables.repeats() as f64;
        self.weights = Weights::default();
        for (name, (own, freedom)) in measured {
            let noise = simulated.get(&name).map_or(own, |(variance, _)| *variance);
            let variance = (NOISE_FREEDOM * noise + freedom * own) / (NOISE_FREEDOM + freedom);
            let error = if name == "idle.rtt min" || name == "idle.rtt median" { IDLE_ERROR } else { MODEL_ERROR };
            if !is_held(&name, hold) {
                self.weights.0.insert(name, 1.0 / (variance / repeats + error * error));
            }
        }
    }
}

/// The search of one group of unknowns.
struct Search<'a> {
    group: &'a Group,
    /// The places of the direct estimates.
    estimates: Vec<f64>,
    cma: Cma,
    /// All points so far.
    points: Vec<Simulated>,
    /// Where an optimum is expected.
    centre: Vec<f64>,
}

/// Which points a generation has.
#[derive(Clone, Copy, PartialEq)]
enum Stage {
    /// Those of CMA-ES, which looks for the optimum.
    Look,
    /// About the centre, for the surrogate.
    Explore,
}

/// The values of all unknowns of each member, and the number of evaluations. CMA-ES looks for the links of the measurement; points
/// about them are explored; of all points a [`Surrogate`] is made. By it the optimum of each member is found: of the measurement
/// as it could have come out as well, and with other values assumed before (randomised maximum likelihood: D. Oliver, N. He and
/// A. Reynolds, Conditioning permeability fields to pressure data, ECMOR V (1996)). `left` tells after each generation which share
/// of the budget is left.
pub(crate) fn search(
    problem: &mut Problem<'_>,
    left: &mut dyn FnMut(&Progress) -> f64,
) -> Result<(Vec<Vec<f64>>, usize), Error> {
    let (members, groups) = (problem.options.members.max(1), &problem.model.groups);
    let (mut generations, mut rest) = (0, 1.0);
    let mut searches: Vec<Search<'_>> = groups.iter().map(|group| Search::new(problem, group)).collect();
    for (stage, share) in [(Stage::Look, LOOK), (Stage::Explore, EXPLORE), (Stage::Explore, 1.0)] {
        while rest > 1.0 - share {
            let error = generation(problem, &mut searches, stage, generations)?;
            generations += 1;
            rest = left(&Progress { evaluations: generations as usize * POPULATION, error });
        }
        if stage == Stage::Look {
            let found = all_values(problem, &searches, |search| search.centre.clone());
            problem.weigh(&found)?;
        } else {
            searches.iter_mut().for_each(|search| search.centre = search.optimum(problem));
        }
    }
    let found = all_values(problem, &searches, |search| search.centre.clone());
    let mut of_searches = Vec::new();
    for search in &searches {
        let targets = problem.resampled(&found, search.group, members)?;
        of_searches.push(search.optima(problem, &targets));
    }
    let of_member = |member: usize| {
        let mut places = of_searches.iter().map(|places| places[member].clone());
        all_values(problem, &searches, |_| places.next().unwrap_or_default())
    };
    Ok(((0..members).map(of_member).collect(), generations as usize * POPULATION))
}

/// The values of all unknowns, each from a place of its search.
fn all_values(
    problem: &Problem<'_>,
    searches: &[Search<'_>],
    mut place: impl FnMut(&Search<'_>) -> Vec<f64>,
) -> Vec<f64> {
    let mut all = problem.estimates();
    for search in searches {
        for (index, place) in search.group.unknowns.iter().zip(place(search)) {
            all[*index] = problem.model.unknowns[*index].value(place);
        }
    }
    all
}

/// One generation of all searches, with fresh seeds that are the same for all its points; the median of their least costs.
fn generation(problem: &Problem<'_>, searches: &mut [Search<'_>], stage: Stage, generation: u64) -> Result<f64, Error> {
    let first = generation * SEEDS + 2_000_000;
    let seeds: Vec<u64> = (first..first + SEEDS).collect();
    let places: Vec<(usize, Vec<f64>)> = searches
        .iter_mut()
        .enumerate()
        .flat_map(|(index, search)| search.ask(problem, stage, generation).into_iter().map(move |place| (index, place)))
        .collect();
    let simulated = parallel::map(problem.options.threads, &places, |(index, place)| {
        searches[*index].simulate(problem, place, &seeds)
    });
    let simulated: Vec<Simulated> = simulated.into_iter().collect::<Result<_, _>>()?;
    let mut best = Vec::new();
    for (search, simulated) in searches.iter_mut().zip(simulated.chunks(POPULATION)) {
        let costs: Vec<f64> = simulated.iter().map(|point| search.cost(problem, &point.logs)).collect();
        if stage == Stage::Look {
            let places: Vec<Vec<f64>> = simulated.iter().map(|point| point.place.clone()).collect();
            search.cma.tell(&places, &costs);
            search.centre = search.cma.mean().iter().map(|x| x.clamp(0.0, 1.0)).collect();
        }
        best.push(costs.iter().copied().fold(f64::INFINITY, f64::min));
        search.points.extend_from_slice(simulated);
    }
    best.sort_by(f64::total_cmp);
    Ok(best[best.len() / 2])
}

impl<'a> Search<'a> {
    /// A search from the direct estimates.
    fn new(problem: &Problem<'a>, group: &'a Group) -> Self {
        let unknowns = group.unknowns.iter().map(|index| &problem.model.unknowns[*index]);
        let estimates: Vec<f64> = unknowns.map(|unknown| unknown.place(unknown.start)).collect();
        let centre: Vec<f64> = estimates.iter().map(|place| place.clamp(0.02, 0.98)).collect();
        let name = format!("search {:?}", group.paths);
        let cma = Cma::new(centre.clone(), FIRST_STEP, POPULATION, problem.options.seed, &name);
        Self { group, estimates, cma, points: Vec::new(), centre }
    }

    fn ask(&mut self, problem: &Problem<'_>, stage: Stage, generation: u64) -> Vec<Vec<f64>> {
        if stage == Stage::Look {
            return self.cma.ask(POPULATION);
        }
        let name = format!("exploration {:?} {generation}", self.group.paths);
        let mut normal = Normal::named(problem.options.seed, &name);
        let mut about = |centre: &f64| (centre + EXPLORED * normal.draw()).clamp(0.0, 1.0);
        (0..POPULATION).map(|_| self.centre.iter().map(&mut about).collect()).collect()
    }

    fn simulate(&self, problem: &Problem<'_>, place: &[f64], seeds: &[u64]) -> Result<Simulated, Error> {
        let mut values = problem.estimates();
        for (index, place) in self.group.unknowns.iter().zip(place) {
            values[*index] = problem.model.unknowns[*index].value(*place);
        }
        let observed = problem.observe(&values, self.group, seeds)?;
        Ok(Simulated { place: place.to_vec(), logs: observed.iter().map(Observables::logs).collect() })
    }

    /// The error of a point.
    fn cost(&self, problem: &Problem<'_>, logs: &[Logs]) -> f64 {
        let targets = self.group.paths.iter().map(|index| &problem.targets[*index]);
        let costs = targets.zip(logs).map(|(target, logs)| logs.cost(&target.observables.logs(), &target.weights));
        let costs: Vec<f64> = costs.collect();
        (costs.iter().map(|cost| cost * cost).sum::<f64>() / costs.len() as f64).sqrt()
    }

    fn weights<'p>(&self, problem: &'p Problem<'_>) -> Vec<&'p Weights> {
        self.group.paths.iter().map(|index| &problem.targets[*index].weights).collect()
    }

    /// The optimum of the measurement, by a surrogate of the points so far.
    fn optimum(&self, problem: &Problem<'_>) -> Vec<f64> {
        let weights = self.weights(problem);
        let targets: Vec<Logs> =
            self.group.paths.iter().map(|index| problem.targets[*index].observables.logs()).collect();
        let surrogate = Surrogate::new(&self.points, &self.centre, &weights);
        let name = format!("optimum {:?}", self.group.paths);
        surrogate.optimum(&targets, &weights, &self.estimates, (problem.options.seed, &name))
    }

    /// The optimum of each member's targets, with other values assumed before.
    fn optima(&self, problem: &Problem<'_>, targets: &[Vec<Logs>]) -> Vec<Vec<f64>> {
        let (weights, seed) = (self.weights(problem), problem.options.seed);
        let surrogate = Surrogate::new(&self.points, &self.centre, &weights);
        let members: Vec<usize> = (0..targets.len()).collect();
        parallel::map(problem.options.threads, &members, |member| {
            let name = format!("member {member} {:?}", self.group.paths);
            let assumed = surrogate::assumed(&self.estimates, seed, &name);
            surrogate.optimum(&targets[*member], &weights, &assumed, (seed, &name))
        })
    }
}
