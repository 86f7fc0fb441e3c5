//! What runs say about a fitted constant.

use crate::estimate::Estimate;
use crate::layout::Fit;
use crate::number::{format_number, name_with_unit};
use crate::value::value;
use record::Run;
use std::collections::BTreeMap;

/// The value of a fit: the mean over seeds of its mean over cells.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FitValue {
    /// The mean.
    pub mean: f64,
    /// Half the width of its 95 % confidence interval over the seeds (Student's t); 0 for one seed.
    pub half_width: f64,
}

impl Fit {
    /// The value that these runs have, all of cells in the fit's scope; none if one of them lacks it.
    #[must_use]
    pub fn measure(&self, runs: &[Run]) -> Option<FitValue> {
        let mut by_seed: BTreeMap<u64, Vec<f64>> = BTreeMap::new();
        for run in runs {
            by_seed.entry(run.seed).or_default().push(value(run, &self.value, &self.scope)?);
        }
        let means: Vec<f64> = by_seed.values().map(|cells| cells.iter().sum::<f64>() / cells.len() as f64).collect();
        let Estimate { mean, half_width } = Estimate::of(&means)?;
        Some(FitValue { mean, half_width: half_width.unwrap_or(0.0) })
    }

    /// Whether the target is within the confidence interval and the target's own precision.
    #[must_use]
    pub fn is_met(&self, found: &FitValue) -> bool {
        (found.mean - self.target).abs() <= self.tolerance + found.half_width
    }

    /// A constant as the file would have it.
    #[must_use]
    pub fn text(&self, constant: f64) -> String {
        format!("{constant}{}", self.unit)
    }

    /// `goodput, Mbit/s: 92.8 ± 1.8 with path.*.jitter = 250us`
    #[must_use]
    pub fn describe(&self, constant: f64, found: &FitValue) -> String {
        let [mean, half_width] = [found.mean, found.half_width].map(format_number);
        let (value, constant) = (name_with_unit(&self.value), self.text(constant));
        format!("{value}: {mean} ± {half_width} with {} = {constant}", self.key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::Scope;
    use record::Flow;

    fn fit(target: f64) -> Fit {
        Fit {
            says: String::new(),
            source: String::new(),
            key: "path.*.jitter".to_owned(),
            chosen: 250.0,
            between: [100.0, 400.0],
            unit: "us".to_owned(),
            value: "goodput_mbps".to_owned(),
            scope: Scope::default(),
            target,
            tolerance: 0.01 * target,
        }
    }

    fn run(seed: u64, goodput_mbps: f64) -> Run {
        Run { seed, flows: vec![Flow { goodput_mbps, ..Flow::default() }], ..Run::default() }
    }

    /// Means 2, 3 and 4 of three seeds: 4.30265 / sqrt(3) beside 3.
    #[test]
    fn the_interval_is_over_seeds_and_a_target_beyond_it_and_its_precision_is_missed() {
        let runs = [(1, 1.0), (1, 3.0), (2, 2.0), (2, 4.0), (3, 3.0), (3, 5.0)].map(|(seed, value)| run(seed, value));
        let found = fit(3.0).measure(&runs).unwrap();
        assert_eq!(found.mean, 3.0);
        assert!((found.half_width - 4.302_65 / 3.0_f64.sqrt()).abs() < 1e-4, "{found:?}");
        let limit = (3.0 + found.half_width) / 0.99;
        assert!(fit(limit - 0.01).is_met(&found) && !fit(limit + 0.01).is_met(&found));
        assert_eq!(fit(3.0).measure(&[]), None);
    }
}
