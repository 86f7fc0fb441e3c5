//! A surrogate of simulated measurements: the logarithm of each observable as a quadratic function of the unknowns.
//!
//! It is fitted by weighted least squares to all points that a search has simulated, the near ones first, so that the noise of single
//! runs is averaged. A quadratic needs no run, so that the optimum of every member of an ensemble can be looked for.

use crate::cma::Cma;
use crate::observe::{Logs, MAX_ERROR, Weights};
use crate::random::Normal;
use std::collections::BTreeMap;

/// The unit of length, as a share of each unknown's range: points this far from the centre count for a good half.
const SCALE: f64 = 0.1;
/// The standard deviation of one value of an observable, and what is assumed of its coefficients before any point: of a term of
/// first order and of second order. These are logarithms.
const NOISE: f64 = 0.15;
const SLOPE: f64 = 0.5;
const CURVATURE: f64 = 0.2;
/// The standard deviation of an unknown about its direct estimate before any measurement, as a share of its range.
const PRIOR: f64 = 0.15;
/// How far from the centre an optimum is looked for, as a share of the range.
const REACH: f64 = 0.3;
/// Points of a generation, and generations, of the search of an optimum.
const POPULATION: usize = 12;
const GENERATIONS: usize = 120;

/// A simulated point: its place in the cube of the unknowns, and the observables of each path.
#[derive(Clone, Debug)]
pub(crate) struct Simulated {
    pub(crate) place: Vec<f64>,
    pub(crate) logs: Vec<Logs>,
}

/// The surrogate of the measurements of some paths.
#[derive(Debug)]
pub(crate) struct Surrogate {
    centre: Vec<f64>,
    /// The coefficients of the observables of each path that have a weight.
    paths: Vec<BTreeMap<String, Vec<f64>>>,
}

impl Surrogate {
    /// The surrogate about a centre for the observables that have weights.
    pub(crate) fn new(points: &[Simulated], centre: &[f64], weights: &[&Weights]) -> Self {
        let near = |point: &Simulated| {
            let squares: f64 = point.place.iter().zip(centre).map(|(x, centre)| (x - centre) * (x - centre)).sum();
            libm::exp(-0.5 * squares / (centre.len() as f64 * SCALE * SCALE))
        };
        let rows: Vec<(f64, Vec<f64>)> =
            points.iter().map(|point| (near(point), terms(&point.place, centre))).collect();
        let of = |path: usize, name: &String| {
            let values = points.iter().map(|point| point.logs[path].0.get(name).copied());
            let known = rows.iter().zip(values).filter_map(|((near, terms), value)| Some((*near, terms, value?)));
            least_squares(known, centre.len())
        };
        let of_path = |(path, weights): (usize, &&Weights)| {
            weights.0.keys().map(|name| (name.clone(), of(path, name))).collect::<BTreeMap<_, _>>()
        };
        Self { centre: centre.to_vec(), paths: weights.iter().enumerate().map(of_path).collect() }
    }

    /// The place where the surrogate agrees best with targets, and with a place that is assumed before any measurement.
    pub(crate) fn optimum(
        &self,
        targets: &[Logs],
        weights: &[&Weights],
        assumed: &[f64],
        (seed, name): (u64, &str),
    ) -> Vec<f64> {
        let cost = |place: &Vec<f64>| {
            let terms = terms(place, &self.centre);
            let mut sum = 0.0;
            for ((coefficients, targets), weights) in self.paths.iter().zip(targets).zip(weights) {
                for (name, coefficients) in coefficients {
                    if let Some(target) = targets.0.get(name) {
                        let value: f64 = coefficients.iter().zip(&terms).map(|(a, b)| a * b).sum();
                        let error = (value - target).clamp(-MAX_ERROR, MAX_ERROR);
                        sum += weights.0[name] * error * error;
                    }
                }
            }
            let far = |x: f64, from: f64, unit: f64| (x - from) * (x - from) / (unit * unit);
            let beyond = |x: f64, centre: f64| far(((x - centre).abs() - REACH).max(0.0), 0.0, 0.01);
            let prior = place.iter().zip(assumed).map(|(x, assumed)| far(*x, *assumed, PRIOR)).sum::<f64>();
            sum + prior + place.iter().zip(&self.centre).map(|(x, centre)| beyond(*x, *centre)).sum::<f64>()
        };
        let mut cma = Cma::new(self.centre.clone(), SCALE, POPULATION, seed, name);
        for _ in 0..GENERATIONS {
            let places = cma.ask(POPULATION);
            let costs: Vec<f64> = places.iter().map(cost).collect();
            cma.tell(&places, &costs);
        }
        cma.mean().iter().map(|x| x.clamp(0.0, 1.0)).collect()
    }
}

/// A place that could be assumed as well as the direct estimates.
pub(crate) fn assumed(estimates: &[f64], seed: u64, name: &str) -> Vec<f64> {
    let mut normal = Normal::named(seed, name);
    estimates.iter().map(|estimate| (estimate + PRIOR * normal.draw()).clamp(0.0, 1.0)).collect()
}

/// The terms of a quadratic function: 1, each coordinate, and the product of each two.
fn terms(place: &[f64], centre: &[f64]) -> Vec<f64> {
    let z: Vec<f64> = place.iter().zip(centre).map(|(x, centre)| (x - centre) / SCALE).collect();
    let mut terms = vec![1.0];
    terms.extend(&z);
    terms.extend((0..z.len()).flat_map(|i| (0..=i).map(move |j| (i, j))).map(|(i, j)| z[i] * z[j]));
    terms
}

/// The coefficients for which the sum of weighted squares is least, with what is assumed of them.
fn least_squares<'a>(rows: impl Iterator<Item = (f64, &'a Vec<f64>, f64)>, dimensions: usize) -> Vec<f64> {
    let count = 1 + dimensions + dimensions * (dimensions + 1) / 2;
    let (mut matrix, mut right) = (vec![vec![0.0; count]; count], vec![0.0; count]);
    for (weight, terms, value) in rows {
        for i in 0..count {
            right[i] += weight * terms[i] * value;
            for j in 0..=i {
                matrix[i][j] += weight * terms[i] * terms[j];
            }
        }
    }
    for (index, row) in matrix.iter_mut().enumerate() {
        let assumed = if index == 0 {
            1e3
        } else if index <= dimensions {
            SLOPE
        } else {
            CURVATURE
        };
        row[index] += NOISE * NOISE / (assumed * assumed);
    }
    solve(matrix, right)
}

/// Solves a system with a symmetric positive definite matrix, of which the lower half is given, by Cholesky's method.
fn solve(mut matrix: Vec<Vec<f64>>, mut right: Vec<f64>) -> Vec<f64> {
    let n = right.len();
    for i in 0..n {
        for j in 0..=i {
            let sum = matrix[i][j] - (0..j).map(|k| matrix[i][k] * matrix[j][k]).sum::<f64>();
            matrix[i][j] = if i == j { sum.max(1e-30).sqrt() } else { sum / matrix[j][j] };
        }
        right[i] = (right[i] - (0..i).map(|k| matrix[i][k] * right[k]).sum::<f64>()) / matrix[i][i];
    }
    for i in (0..n).rev() {
        right[i] = (right[i] - (i + 1..n).map(|k| matrix[k][i] * right[k]).sum::<f64>()) / matrix[i][i];
    }
    right
}

#[cfg(test)]
mod tests {
    use super::*;

    fn logs(value: f64) -> Logs {
        Logs([("a".to_owned(), value)].into())
    }

    /// Of points with noise, the coefficients of a known quadratic function are found again.
    #[test]
    fn a_quadratic_function_is_found_in_noise() {
        let truth = |x: &[f64]| 1.0 + 3.0 * (x[0] - 0.4) - 2.0 * (x[1] - 0.6) + 8.0 * (x[0] - 0.4) * (x[1] - 0.6);
        let mut normal = Normal::named(1, "noise");
        let points: Vec<Simulated> = (0..600)
            .map(|_| {
                let place = vec![0.4 + 0.1 * normal.draw(), 0.6 + 0.1 * normal.draw()];
                let logs = vec![logs(truth(&place) + 0.1 * normal.draw())];
                Simulated { place, logs }
            })
            .collect();
        let weights = Weights([("a".to_owned(), 1.0)].into());
        let surrogate = Surrogate::new(&points, &[0.4, 0.6], &[&weights]);
        let found = &surrogate.paths[0]["a"];
        for (found, truth) in found.iter().zip([1.0, 0.3, -0.2, 0.0, 0.08, 0.0]) {
            assert!((found - truth).abs() < 0.02, "{found} {truth}");
        }
    }

    /// What no observable tells stays where it is assumed; what one tells does not.
    #[test]
    fn the_optimum_agrees_with_the_target_and_else_with_what_is_assumed() {
        let mut normal = Normal::named(2, "places");
        let points: Vec<Simulated> = (0..300)
            .map(|_| {
                let place = vec![0.5 + 0.1 * normal.draw(), 0.5 + 0.1 * normal.draw()];
                let logs = vec![logs(4.0 * place[0])];
                Simulated { place, logs }
            })
            .collect();
        let weights = Weights([("a".to_owned(), 1e4)].into());
        let surrogate = Surrogate::new(&points, &[0.5, 0.5], &[&weights]);
        let found = surrogate.optimum(&[logs(1.8)], &[&weights], &[0.7, 0.7], (1, "test"));
        assert!((found[0] - 0.45).abs() < 0.01 && (found[1] - 0.7).abs() < 0.01, "{found:?}");
    }

    #[test]
    fn a_known_system_is_solved() {
        let found = solve(vec![vec![4.0, 0.0], vec![2.0, 3.0]], vec![8.0, 7.0]);
        assert!((found[0] - 1.25).abs() < 1e-12 && (found[1] - 1.5).abs() < 1e-12, "{found:?}");
    }
}
