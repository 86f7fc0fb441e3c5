//! CMA-ES in the unit cube: a search that needs values of a function, not its gradient, and bears noise.
//!
//! N. Hansen, "The CMA Evolution Strategy: A Tutorial", arXiv:1604.00772, with its default constants and positive weights.
//! Points beyond the cube are mirrored into it.

use crate::random::Normal;

/// The state of a search.
#[derive(Debug)]
pub struct Cma {
    mean: Vec<f64>,
    sigma: f64,
    /// Rows of the covariance matrix.
    covariance: Vec<Vec<f64>>,
    sigma_path: Vec<f64>,
    covariance_path: Vec<f64>,
    /// Columns of eigenvectors, and the square roots of the eigenvalues.
    axes: Vec<Vec<f64>>,
    scales: Vec<f64>,
    generation: u32,
    constants: Constants,
    normal: Normal,
}

/// The tutorial's constants, in its names.
#[derive(Debug)]
struct Constants {
    weights: Vec<f64>,
    mu_eff: f64,
    c_sigma: f64,
    d_sigma: f64,
    c_c: f64,
    c_1: f64,
    c_mu: f64,
    /// The mean length of a standard normal vector.
    chi_n: f64,
}

impl Constants {
    fn new(dimensions: usize, population: usize) -> Self {
        let n = dimensions as f64;
        let half = (population as f64 + 1.0) / 2.0;
        let raw: Vec<f64> = (1..=population / 2).map(|rank| libm::log(half) - libm::log(rank as f64)).collect();
        let sum: f64 = raw.iter().sum();
        let weights: Vec<f64> = raw.iter().map(|weight| weight / sum).collect();
        let mu_eff = 1.0 / weights.iter().map(|weight| weight * weight).sum::<f64>();
        let c_1 = 2.0 / ((n + 1.3) * (n + 1.3) + mu_eff);
        let c_mu = (2.0 * (mu_eff - 2.0 + 1.0 / mu_eff) / ((n + 2.0) * (n + 2.0) + mu_eff)).min(1.0 - c_1);
        let c_sigma = (mu_eff + 2.0) / (n + mu_eff + 5.0);
        let d_sigma = 1.0 + 2.0 * (((mu_eff - 1.0) / (n + 1.0)).sqrt() - 1.0).max(0.0) + c_sigma;
        let c_c = (4.0 + mu_eff / n) / (n + 4.0 + 2.0 * mu_eff / n);
        let chi_n = n.sqrt() * (1.0 - 1.0 / (4.0 * n) + 1.0 / (21.0 * n * n));
        Self { weights, mu_eff, c_sigma, d_sigma, c_c, c_1, c_mu, chi_n }
    }
}

impl Cma {
    /// A search that begins at `start` with standard deviation `sigma` in each coordinate. `seed` and `name` give its random
    /// stream.
    #[must_use]
    pub fn new(start: Vec<f64>, sigma: f64, population: usize, seed: u64, name: &str) -> Self {
        let n = start.len();
        let constants = Constants::new(n, population);
        Self {
            mean: start,
            sigma,
            covariance: identity(n),
            sigma_path: vec![0.0; n],
            covariance_path: vec![0.0; n],
            axes: identity(n),
            scales: vec![1.0; n],
            generation: 0,
            constants,
            normal: Normal::named(seed, name),
        }
    }

    /// The centre of the distribution: the estimate of the optimum, which noise of single values moves least.
    #[must_use]
    pub fn mean(&self) -> &[f64] {
        &self.mean
    }

    /// The points of the next generation.
    pub fn ask(&mut self, population: usize) -> Vec<Vec<f64>> {
        (0..population).map(|_| self.sample()).collect()
    }

    fn sample(&mut self) -> Vec<f64> {
        let z: Vec<f64> = self.scales.iter().map(|scale| scale * self.normal.draw()).collect();
        let along = |row: &Vec<f64>| row.iter().zip(&z).map(|(axis, z)| axis * z).sum::<f64>();
        self.axes.iter().zip(&self.mean).map(|(row, mean)| mirrored(mean + self.sigma * along(row))).collect()
    }

    /// Learns from the values of all points of a generation: smaller is better.
    pub fn tell(&mut self, points: &[Vec<f64>], values: &[f64]) {
        let mut order: Vec<usize> = (0..points.len()).collect();
        order.sort_by(|a, b| values[*a].total_cmp(&values[*b]));
        let best: Vec<Vec<f64>> = order
            .iter()
            .take(self.constants.weights.len())
            .map(|index| points[*index].iter().zip(&self.mean).map(|(x, mean)| (x - mean) / self.sigma).collect())
            .collect();
        let step = self.weighted(&best);
        self.mean.iter_mut().zip(&step).for_each(|(mean, step)| *mean += self.sigma * step);
        self.generation += 1;
        let stalls = self.follow(&step);
        self.adapt(&best, stalls);
        self.decompose();
    }

    fn weighted(&self, steps: &[Vec<f64>]) -> Vec<f64> {
        let sum = |coordinate: usize| {
            self.constants.weights.iter().zip(steps).map(|(weight, step)| weight * step[coordinate]).sum()
        };
        (0..self.mean.len()).map(sum).collect()
    }

    /// Moves both evolution paths and the step size; whether the covariance's path stalls, because the step size grows.
    fn follow(&mut self, step: &[f64]) -> bool {
        let Constants { c_sigma, d_sigma, c_c, mu_eff, chi_n, .. } = self.constants;
        let whitened = self.whitened(step);
        let gain = (c_sigma * (2.0 - c_sigma) * mu_eff).sqrt();
        self.sigma_path.iter_mut().zip(&whitened).for_each(|(path, z)| *path = (1.0 - c_sigma) * *path + gain * z);
        let length = self.sigma_path.iter().map(|path| path * path).sum::<f64>().sqrt();
        let n = self.mean.len() as f64;
        let settled = (1.0 - libm::pow(1.0 - c_sigma, 2.0 * f64::from(self.generation))).sqrt();
        let stalls = length / settled >= (1.4 + 2.0 / (n + 1.0)) * chi_n;
        let gain = if stalls { 0.0 } else { (c_c * (2.0 - c_c) * mu_eff).sqrt() };
        self.covariance_path.iter_mut().zip(step).for_each(|(path, step)| *path = (1.0 - c_c) * *path + gain * step);
        self.sigma *= libm::exp((c_sigma / d_sigma * (length / chi_n - 1.0)).min(1.0));
        self.sigma = self.sigma.clamp(1e-12, 1.0);
        stalls
    }

    /// A step in the coordinates in which the distribution is a standard normal one.
    fn whitened(&self, step: &[f64]) -> Vec<f64> {
        let n = step.len();
        let scaled: Vec<f64> = (0..n)
            .map(|axis| (0..n).map(|row| self.axes[row][axis] * step[row]).sum::<f64>() / self.scales[axis])
            .collect();
        self.axes.iter().map(|row| row.iter().zip(&scaled).map(|(axis, z)| axis * z).sum()).collect()
    }

    fn adapt(&mut self, best: &[Vec<f64>], stalls: bool) {
        let Constants { ref weights, c_c, c_1, c_mu, .. } = self.constants;
        let lost = if stalls { c_c * (2.0 - c_c) } else { 0.0 };
        for row in 0..self.mean.len() {
            for column in 0..=row {
                let rank_mu: f64 =
                    weights.iter().zip(best).map(|(weight, step)| weight * step[row] * step[column]).sum();
                let rank_one = self.covariance_path[row] * self.covariance_path[column];
                let old = self.covariance[row][column];
                let new = (1.0 - c_1 - c_mu + c_1 * lost) * old + c_1 * rank_one + c_mu * rank_mu;
                self.covariance[row][column] = new;
                self.covariance[column][row] = new;
            }
        }
    }

    fn decompose(&mut self) {
        let (values, axes) = eigen(self.covariance.clone());
        self.scales = values.iter().map(|value| value.max(1e-20).sqrt()).collect();
        self.axes = axes;
    }
}

fn identity(n: usize) -> Vec<Vec<f64>> {
    (0..n).map(|row| (0..n).map(|column| f64::from(u8::from(row == column))).collect()).collect()
}

/// A coordinate mirrored into the unit interval.
fn mirrored(x: f64) -> f64 {
    let x = (x - 2.0 * (x / 2.0).floor()).abs();
    if x > 1.0 { 2.0 - x } else { x }
}

/// Eigenvalues and columns of eigenvectors of a symmetric matrix, by Jacobi's rotations.
fn eigen(mut a: Vec<Vec<f64>>) -> (Vec<f64>, Vec<Vec<f64>>) {
    let n = a.len();
    let mut axes = identity(n);
    for _ in 0..30 {
        let beyond: f64 = (0..n).flat_map(|i| (0..i).map(move |j| (i, j))).map(|(i, j)| a[i][j] * a[i][j]).sum();
        let diagonal: f64 = (0..n).map(|i| a[i][i] * a[i][i]).sum();
        if beyond <= 1e-30 * diagonal {
            break;
        }
        for p in 0..n {
            for q in p + 1..n {
                rotate(&mut a, &mut axes, p, q);
            }
        }
    }
    ((0..n).map(|i| a[i][i]).collect(), axes)
}

/// One rotation, which makes `a[p][q]` zero.
fn rotate(a: &mut [Vec<f64>], axes: &mut [Vec<f64>], p: usize, q: usize) {
    if a[p][q] == 0.0 {
        return;
    }
    let theta = (a[q][q] - a[p][p]) / (2.0 * a[p][q]);
    let t = theta.signum() / (theta.abs() + (theta * theta + 1.0).sqrt());
    let c = 1.0 / (t * t + 1.0).sqrt();
    let s = t * c;
    for row in a.iter_mut() {
        (row[p], row[q]) = (c * row[p] - s * row[q], s * row[p] + c * row[q]);
    }
    let (above, below) = a.split_at_mut(q);
    for (one, other) in above[p].iter_mut().zip(&mut below[0]) {
        (*one, *other) = (c * *one - s * *other, s * *one + c * *other);
    }
    for row in axes.iter_mut() {
        (row[p], row[q]) = (c * row[p] - s * row[q], s * row[p] + c * row[q]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The distance of the search's end from the known optimum, after `generations` of 12 points.
    fn distance(optimum: &[f64], generations: u32, function: impl Fn(&[f64]) -> f64) -> f64 {
        let mut cma = Cma::new(vec![0.3; optimum.len()], 0.2, 12, 1, "test");
        for _ in 0..generations {
            let points = cma.ask(12);
            let values: Vec<f64> = points.iter().map(|point| function(point)).collect();
            cma.tell(&points, &values);
        }
        cma.mean().iter().zip(optimum).map(|(x, optimum)| (x - optimum).abs()).fold(0.0, f64::max)
    }

    #[test]
    fn the_sphere_the_ellipsoid_and_rosenbrocks_valley_end_at_their_optima() {
        let optimum = [0.6, 0.7, 0.2, 0.45, 0.9, 0.55];
        let off = |x: &[f64]| x.iter().zip(optimum).map(|(x, optimum)| x - optimum).collect::<Vec<_>>();
        let sphere = |x: &[f64]| off(x).iter().map(|d| d * d).sum();
        assert!(distance(&optimum, 150, sphere) < 1e-6);
        let ellipsoid =
            |x: &[f64]| off(x).iter().enumerate().map(|(i, d)| d * d * libm::pow(10.0, 6.0 * i as f64 / 5.0)).sum();
        assert!(distance(&optimum, 400, ellipsoid) < 1e-6);
        // Rosenbrock's function of 4 u - 1, so that its optimum, all ones, is in the cube.
        let rosenbrock = |x: &[f64]| {
            let x: Vec<f64> = x.iter().map(|x| 4.0 * x - 1.0).collect();
            let term = |pair: &[f64]| {
                let (valley, along) = (pair[1] - pair[0] * pair[0], 1.0 - pair[0]);
                100.0 * valley * valley + along * along
            };
            x.windows(2).map(term).sum()
        };
        assert!(distance(&[0.5; 4], 600, rosenbrock) < 1e-6);
    }

    #[test]
    fn an_optimum_at_the_bound_is_found_within_the_cube() {
        let corner = |x: &[f64]| x.iter().map(|x| (x + 0.2) * (x + 0.2)).sum();
        assert!(distance(&[0.0; 5], 200, corner) < 0.01);
        assert_eq!([-0.2, 0.4, 1.3, 2.1, -1.1].map(|x| (mirrored(x) * 1e6).round() / 1e6), [0.2, 0.4, 0.7, 0.1, 0.9]);
    }

    #[test]
    fn eigenvectors_are_those_of_a_known_matrix() {
        let (mut values, _) = eigen(vec![vec![2.0, 1.0], vec![1.0, 2.0]]);
        values.sort_by(f64::total_cmp);
        assert!((values[0] - 1.0).abs() < 1e-12 && (values[1] - 3.0).abs() < 1e-12);
    }
}
