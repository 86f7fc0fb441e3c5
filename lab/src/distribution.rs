//! A distribution in a few numbers.

use record::Summary;

/// Of these values, quantiles by the nearest rank.
pub(crate) fn distribution(mut all: Vec<f64>) -> Summary {
    all.sort_by(f64::total_cmp);
    let (Some(&min), Some(&max)) = (all.first(), all.last()) else { return Summary::default() };
    let quantile = |q: f64| all[((q * all.len() as f64).ceil() as usize).clamp(1, all.len()) - 1];
    let mean = all.iter().sum::<f64>() / all.len() as f64;
    Summary { mean, p50: quantile(0.5), p95: quantile(0.95), p99: quantile(0.99), min, max }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_rank_is_a_value_that_was_there() {
        let all = distribution((1..=200).rev().map(f64::from).collect());
        let expected = Summary { mean: 100.5, p50: 100.0, p95: 190.0, p99: 198.0, min: 1.0, max: 200.0 };
        assert_eq!(all, expected);
        assert_eq!(distribution(vec![7.0]).p99, 7.0);
        assert_eq!(distribution(Vec::new()), Summary::default());
    }
}
