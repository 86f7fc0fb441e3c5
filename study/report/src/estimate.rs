//! A mean over seeds with its confidence interval.

use crate::number::format_half_width;

/// Mean, and half the width of its 95 % confidence interval where there is more than one value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Estimate {
    pub(crate) mean: f64,
    pub(crate) half_width: Option<f64>,
}

impl Estimate {
    /// The estimate from independent values, one for each seed.
    pub(crate) fn of(values: &[f64]) -> Option<Self> {
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        match values.len() {
            0 => None,
            1 => Some(Self { mean, half_width: None }),
            count => {
                let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (n - 1.0);
                let half_width = student_975(count - 1) * (variance / n).sqrt();
                // Seeds that agree to the last digit must not differ by the rounding of their mean.
                let rounding = 1e-12 * mean.abs();
                Some(Self { mean, half_width: Some(if half_width > rounding { half_width } else { 0.0 }) })
            }
        }
    }

    /// What is shown after ±.
    pub(crate) fn half_text(&self) -> Option<String> {
        self.half_width.map(|half_width| format_half_width(half_width, self.mean))
    }
}

/// The 97.5 % quantile of Student's t distribution.
pub(crate) fn student_975(degrees: usize) -> f64 {
    const SMALL: [f64; 10] = [12.7062, 4.30265, 3.18245, 2.77645, 2.57058, 2.44691, 2.36462, 2.30600, 2.26216, 2.22814];
    if let Some(quantile) = SMALL.get(degrees - 1) {
        return *quantile;
    }
    // Cornish-Fisher expansion about the normal quantile (Abramowitz and Stegun 26.7.5), good to 1e-4 from here on.
    let (z, n) = (1.959_964_f64, degrees as f64);
    let (z3, z5, z7) = (z.powi(3), z.powi(5), z.powi(7));
    z + (z3 + z) / (4.0 * n)
        + (5.0 * z5 + 16.0 * z3 + 3.0 * z) / (96.0 * n * n)
        + (3.0 * z7 + 19.0 * z5 + 17.0 * z3 - 15.0 * z) / (384.0 * n * n * n)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_agree_with_the_printed_table() {
        for (degrees, expected) in [(1, 12.706), (4, 2.776), (11, 2.201), (20, 2.086), (30, 2.042), (120, 1.980)] {
            let quantile = student_975(degrees);
            assert!((quantile - expected).abs() < 6e-4, "{degrees} degrees: {quantile}, the table says {expected}");
        }
    }

    #[test]
    fn the_interval_is_the_textbook_one() {
        // Mean 3, standard deviation sqrt(2.5), n = 5: 2.77645 * sqrt(2.5 / 5).
        let estimate = Estimate::of(&[1.0, 2.0, 3.0, 4.0, 5.0]).unwrap();
        assert_eq!(estimate.mean, 3.0);
        assert!((estimate.half_width.unwrap() - 1.963_24).abs() < 1e-4);
        assert_eq!(Estimate::of(&[0.1 + 0.2; 7]).unwrap().half_width, Some(0.0));
        assert_eq!(Estimate::of(&[7.0]), Some(Estimate { mean: 7.0, half_width: None }));
        assert_eq!(Estimate::of(&[]), None);
    }
}
