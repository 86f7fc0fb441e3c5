//! Which paths share a bottleneck: their queueing delays move together.
//!
//! Each 50 ms the queueing delays of two paths enter a mean, variances and a covariance, which forget over 4 s. Shared is a
//! bottleneck where `cov / max(var) > 0.4`, and no longer where it is below 0.15; at first it is. What is shared by n paths
//! is one CUBIC window between them: each grows by C/n, with a Reno-friendly increase of an n-th, and what reduces one
//! for delay reduces all.

use units::{Instant, Span};

/// Paths whose pairs are compared; the others are taken to share a bottleneck with every path. So the state is bounded.
pub(super) const MAX_COMPARED: usize = 16;
/// Time between comparisons.
const BIN: Span = Span::from_millis(50);
/// Comparisons over which the statistics forget: 4 s.
const MEMORY: f64 = 80.0;
/// Comparisons before a verdict.
const MIN_COMPARISONS: u32 = 20;
/// A standard deviation of the queueing delay below which there is nothing to compare, seconds.
const MIN_DEVIATION: f64 = 0.5e-3;
/// Regression slopes below which a bottleneck is not shared, and above which it is.
const SLOPES: [f64; 2] = [0.15, 0.4];

/// Statistics of the queueing delays of two paths.
#[derive(Clone, Debug)]
struct Pair {
    comparisons: u32,
    mean: [f64; 2],
    variance: [f64; 2],
    covariance: f64,
    is_shared: bool,
}

impl Pair {
    const NEW: Self = Self { comparisons: 0, mean: [0.0; 2], variance: [0.0; 2], covariance: 0.0, is_shared: true };

    fn update(&mut self, queueing: [f64; 2]) {
        self.comparisons = self.comparisons.saturating_add(1);
        let gain = (1.0 / f64::from(self.comparisons)).max(1.0 / MEMORY);
        let difference = [queueing[0] - self.mean[0], queueing[1] - self.mean[1]];
        for (path, difference) in difference.iter().enumerate() {
            self.mean[path] += gain * difference;
            self.variance[path] = (1.0 - gain) * (self.variance[path] + gain * difference * difference);
        }
        self.covariance = (1.0 - gain) * (self.covariance + gain * difference[0] * difference[1]);
        self.judge();
    }

    fn judge(&mut self) {
        let variance = self.variance[0].max(self.variance[1]);
        if self.comparisons < MIN_COMPARISONS || variance < MIN_DEVIATION * MIN_DEVIATION {
            return;
        }
        let slope = self.covariance / variance;
        self.is_shared = slope > SLOPES[1] || self.is_shared && slope >= SLOPES[0];
    }
}

/// The pairs of a connection's paths.
#[derive(Debug, Default)]
pub(super) struct Pairs {
    /// The pair (i, j) with i < j is at j (j - 1) / 2 + i.
    pairs: Vec<Pair>,
    next_bin: Instant,
}

fn index(a: usize, b: usize) -> Option<usize> {
    let (i, j) = (a.min(b), a.max(b));
    (i < j && j < MAX_COMPARED).then(|| j * (j - 1) / 2 + i)
}

impl Pairs {
    /// A path came up: nothing is known of it.
    pub(super) fn forget(&mut self, path: usize) {
        for other in 0..MAX_COMPARED {
            if let Some(pair) = index(path, other).and_then(|index| self.pairs.get_mut(index)) {
                *pair = Pair::NEW;
            }
        }
    }

    /// Whether two paths share a bottleneck, as far as is known.
    pub(super) fn is_shared(&self, a: usize, b: usize) -> bool {
        index(a, b).and_then(|index| self.pairs.get(index)).is_none_or(|pair| pair.is_shared)
    }

    /// Whether it is time to compare; then the next time is set.
    pub(super) fn is_due(&mut self, now: Instant) -> bool {
        let is_due = now >= self.next_bin;
        if is_due {
            self.next_bin = now + BIN;
        }
        is_due
    }

    /// Compares the queueing delays of two paths, in seconds.
    pub(super) fn compare(&mut self, (a, queueing_a): (usize, f64), (b, queueing_b): (usize, f64)) {
        let Some(index) = index(a, b) else { return };
        if self.pairs.len() <= index {
            self.pairs.resize(index + 1, Pair::NEW);
        }
        self.pairs[index].update(if a < b { [queueing_a, queueing_b] } else { [queueing_b, queueing_a] });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use units::RngStream;

    /// Queueing delays of so many milliseconds at most.
    fn queueing(rng: &mut RngStream, ms: f64) -> f64 {
        rng.unit() * ms / 1e3
    }

    /// Whether two paths share a bottleneck after 5 s in which a common queue and one of each path's own had delays of up to so
    /// many milliseconds.
    fn is_shared(common_ms: f64, own_ms: f64) -> bool {
        let (mut pairs, mut rng) = (Pairs::default(), RngStream::named(1, "queues"));
        for _ in 0..100 {
            let common = queueing(&mut rng, common_ms);
            let [a, b] = [(); 2].map(|()| common + queueing(&mut rng, own_ms));
            pairs.compare((0, a), (1, b));
        }
        assert_eq!(pairs.is_shared(0, 1), pairs.is_shared(1, 0));
        pairs.is_shared(0, 1)
    }

    #[test]
    fn paths_whose_delays_move_together_share_a_bottleneck_and_others_do_not() {
        assert!(is_shared(20.0, 0.0));
        assert!(is_shared(20.0, 8.0), "a slope of 400 / (400 + 64)");
        assert!(!is_shared(0.0, 20.0));
    }

    #[test]
    fn without_queues_to_compare_the_verdict_stays() {
        assert!(is_shared(0.0, 0.2), "at first it is shared");
    }

    #[test]
    fn a_path_that_comes_up_again_shares_until_something_else_is_known() {
        let (mut pairs, mut rng) = (Pairs::default(), RngStream::named(1, "queues"));
        for _ in 0..100 {
            let [a, b, c] = [(); 3].map(|()| queueing(&mut rng, 20.0));
            let compared = [((0, a), (1, b)), ((2, c), (0, a)), ((1, b), (2, c))];
            compared.into_iter().for_each(|(first, second)| pairs.compare(first, second));
        }
        let shared = |pairs: &Pairs| [(0, 1), (0, 2), (1, 2)].map(|(a, b)| pairs.is_shared(a, b));
        assert_eq!(shared(&pairs), [false; 3]);
        pairs.forget(1);
        assert_eq!(shared(&pairs), [true, false, true]);
    }

    #[test]
    fn the_pairs_of_sixteen_paths_are_kept_and_the_others_share() {
        let mut pairs = Pairs::default();
        for b in 0..100 {
            (0..b).for_each(|a| pairs.compare((a, 0.0), (b, 0.0)));
        }
        assert_eq!(pairs.pairs.len(), 16 * 15 / 2);
        assert!(pairs.is_shared(3, 99));
    }
}
