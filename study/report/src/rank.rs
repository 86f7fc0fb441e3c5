//! Rank correlation: Kendall's tau-b.
//!
//! Of all pairs of items, C are ranked the same way round by both and D the other way round; with the n1 and n2 pairs
//! that the one and the other do not tie, tau-b = (C - D) / sqrt(n1 n2): 1 for the same order, -1 for the reverse
//! (Kendall, The treatment of ties in ranking problems, Biometrika 33, 1945).

use std::cmp::Ordering;

/// Kendall's tau-b of paired values; none where one side ties everything.
pub(crate) fn kendall_tau_b(pairs: &[(f64, f64)]) -> Option<f64> {
    let (mut balance, mut untied) = (0.0, [0.0; 2]);
    for (index, first) in pairs.iter().enumerate() {
        for second in &pairs[..index] {
            let [x, y] = [first.0.total_cmp(&second.0), first.1.total_cmp(&second.1)].map(sign);
            balance += x * y;
            untied[0] += x.abs();
            untied[1] += y.abs();
        }
    }
    let scale = (untied[0] * untied[1]).sqrt();
    (scale > 0.0).then(|| balance / scale)
}

fn sign(order: Ordering) -> f64 {
    f64::from(order as i8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_order_is_one_and_the_reverse_is_minus_one() {
        let values = [3.0, 1.0, 4.0, 1.5];
        assert_eq!(kendall_tau_b(&values.map(|x| (x, 2.0 * x))), Some(1.0));
        assert_eq!(kendall_tau_b(&values.map(|x| (x, -x))), Some(-1.0));
    }

    /// The example in SciPy's manual of `kendalltau`.
    #[test]
    fn it_is_what_scipy_prints() {
        let [x, y] = [[12.0, 2.0, 1.0, 12.0, 2.0], [1.0, 4.0, 7.0, 1.0, 0.0]];
        let tau = kendall_tau_b(&x.into_iter().zip(y).collect::<Vec<_>>()).expect("neither side is all ties");
        assert!((tau - -0.471_404_520_791_031_73).abs() < 1e-15, "{tau}");
    }

    /// By hand: x = 1 2 2 3, y = 1 3 2 3. Of 6 pairs x ties one and y ties one; four agree: 4 / sqrt(5 * 5).
    #[test]
    fn ties_count_for_neither_side() {
        assert_eq!(kendall_tau_b(&[(1.0, 1.0), (2.0, 3.0), (2.0, 2.0), (3.0, 3.0)]), Some(0.8));
        assert_eq!(kendall_tau_b(&[(1.0, 1.0), (2.0, 1.0)]), None);
        assert_eq!(kendall_tau_b(&[]), None);
    }
}
