//! Histograms of delays, as a record keeps them: sparse, and alike in all runs, so that those of several runs add up.

use crate::histogram::{bucket, greatest_of};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Values below this one, microseconds, have a bucket each; each power of two above has 64.
const EXACT: u64 = 128;

/// The samples of one delay of one flow, subflow or tunnel, counted in buckets that are at most 1.6 % (1/64) of their
/// values wide, or 1 µs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DelayHistogram {
    /// `flow NAME`, `subflow FLOW/PATH` or `tunnel`.
    pub subject: String,
    /// The name of the delay in the record of its subject: `rtt_ms`, `one_way_delay_ms` ...
    pub column: String,
    /// The buckets with samples, ascending: the greatest value of each, microseconds, and the number of samples in it.
    /// All values of a bucket are more than the next smaller bucket's greatest.
    pub buckets: Vec<(u32, u32)>,
}

impl DelayHistogram {
    /// Of values in microseconds with their counts, ascending.
    pub(crate) fn of(subject: &str, column: &str, counts: impl Iterator<Item = (u64, u32)> + Clone) -> Self {
        let bucketed = counts.map(|(micros, count)| (greatest(micros), count));
        let mut previous = None;
        let is_first = |(micros, _): &(u32, u32)| previous.replace(*micros) != Some(*micros);
        // The memory at once, since a longer run asks for no more allocations.
        let mut buckets: Vec<(u32, u32)> = Vec::with_capacity(bucketed.clone().filter(is_first).count());
        for (micros, count) in bucketed {
            match buckets.last_mut().filter(|last| last.0 == micros) {
                Some(last) => last.1 = last.1.saturating_add(count),
                None => buckets.push((micros, count)),
            }
        }
        Self { subject: subject.to_owned(), column: column.to_owned(), buckets }
    }
}

/// The greatest value of a value's bucket, microseconds.
fn greatest(micros: u64) -> u32 {
    u32::try_from(greatest_of::<EXACT>(bucket::<EXACT>(micros))).unwrap_or(u32::MAX)
}

/// The samples of several histograms together.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Delays {
    /// The number of samples by the greatest value of their bucket, microseconds.
    counts: BTreeMap<u32, u64>,
}

impl<'h> FromIterator<&'h DelayHistogram> for Delays {
    fn from_iter<I: IntoIterator<Item = &'h DelayHistogram>>(histograms: I) -> Self {
        let mut counts = BTreeMap::new();
        for (micros, count) in histograms.into_iter().flat_map(|histogram| &histogram.buckets) {
            *counts.entry(*micros).or_default() += u64::from(*count);
        }
        Self { counts }
    }
}

impl Delays {
    /// The number of samples.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.counts.values().sum()
    }

    /// The steps of the empirical distribution function: delays in milliseconds, ascending, each with the number of
    /// samples that are at most that.
    pub fn steps(&self) -> impl Iterator<Item = (f64, u64)> + '_ {
        self.counts.iter().scan(0, |below, (micros, count)| {
            *below += count;
            Some((f64::from(*micros) / 1e3, *below))
        })
    }

    /// The least delay, milliseconds, that a share `quantile` of the samples does not exceed: the middle of its bucket,
    /// at most 0.8 % away. None without samples.
    #[must_use]
    pub fn quantile(&self, quantile: f64) -> Option<f64> {
        let rank = ((quantile * self.count() as f64).ceil() as u64).max(1);
        let mut below = 0;
        let greatest = self.counts.iter().find_map(|(micros, count)| {
            below += count;
            (below >= rank).then_some(u64::from(*micros))
        })?;
        let previous = bucket::<EXACT>(greatest).checked_sub(1).map(greatest_of::<EXACT>);
        let least = previous.map_or(0, |previous| previous + 1);
        Some((least + greatest) as f64 / 2e3)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Distribution;
    use proptest::prelude::*;
    use units::Span;

    #[test]
    fn a_histogram_keeps_its_subject_and_the_buckets_with_samples() {
        let mut distribution = Distribution::default();
        assert_eq!(distribution.histogram("flow a", "rtt_ms"), None);
        [255, 256, 257, 258, 100_000, 100_001].into_iter().for_each(|us| distribution.add(Span::from_micros(us)));
        let histogram = distribution.histogram("flow a", "rtt_ms").unwrap();
        assert_eq!((histogram.subject.as_str(), histogram.column.as_str()), ("flow a", "rtt_ms"));
        // From 65536 on 1024 values share a bucket: 100000 lies in the one from 99328 on.
        assert_eq!(histogram.buckets, [(255, 1), (259, 3), (100_351, 2)]);
        let delays: Delays = [&histogram, &histogram].into_iter().collect();
        assert_eq!(delays.steps().collect::<Vec<_>>(), [(0.255, 2), (0.259, 8), (100.351, 12)]);
        assert_eq!([0.5, 1.0].map(|share| delays.quantile(share)), [Some(0.2575), Some(99.8395)]);
        assert_eq!((Delays::default().quantile(0.5), Delays::default().count()), (None, 0));
    }

    proptest! {
        /// Against the nearest rank among the sorted samples of all runs.
        #[test]
        fn quantiles_of_merged_runs_are_those_of_all_samples_within_a_bucket(
            runs in proptest::collection::vec(proptest::collection::vec((0..30u32, any::<u64>()), 1..200), 1..6)
        ) {
            let micros = |(power, bits): &(u32, u64)| bits % (1 << power);
            let mut samples: Vec<u64> = runs.iter().flatten().map(micros).collect();
            samples.sort_unstable();
            let histogram = |run: &Vec<(u32, u64)>| {
                let mut distribution = Distribution::default();
                run.iter().map(micros).for_each(|micros| distribution.add(Span::from_micros(micros)));
                distribution.histogram("flow a", "rtt_ms").unwrap()
            };
            let histograms: Vec<DelayHistogram> = runs.iter().map(histogram).collect();
            let delays: Delays = histograms.iter().collect();
            prop_assert_eq!(delays.count(), samples.len() as u64);
            for quantile in [0.001, 0.1, 0.5, 0.9, 0.99, 1.0] {
                let rank = ((quantile * samples.len() as f64).ceil() as usize).max(1);
                let (exact, merged) = (samples[rank - 1] as f64 / 1e3, delays.quantile(quantile).unwrap());
                prop_assert!((exact - merged).abs() <= exact / 128.0 + 1e-9, "{exact} {merged}");
            }
        }
    }
}
