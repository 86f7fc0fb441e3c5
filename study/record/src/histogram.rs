//! A histogram of integers to three digits that stores only the buckets between its least and its greatest value.
//!
//! The buckets are those of an HDR histogram with three significant digits: one for each value below 2048, and 1024 for each
//! power of two above. `hdrhistogram` stores all of them from zero on, 28 kB for round-trip times around 40 ms; those of a
//! flow lie within a few powers of two, which takes 4 to 8 kB, and the simulator has two for each of ten thousand flows.

/// Values below this one have a bucket each; each power of two above has half as many buckets.
const EXACT: u64 = 2048;
/// Counts are stored in blocks of so many buckets.
const BLOCK: usize = 128;

/// Counts of values.
#[derive(Clone, Debug, Default)]
pub(crate) struct Histogram {
    /// The bucket of the first count: a multiple of [`BLOCK`].
    first: usize,
    counts: Vec<u32>,
    len: u64,
}

impl Histogram {
    /// Counts a value. A bucket's count stops at the greatest that it can hold.
    #[inline]
    pub(crate) fn add(&mut self, value: u64) {
        let bucket = bucket::<EXACT>(value);
        self.len += 1;
        let index = bucket.wrapping_sub(self.first);
        match self.counts.get_mut(index) {
            Some(count) => *count = count.saturating_add(1),
            None => self.counts_with(bucket)[bucket % BLOCK] = 1,
        }
    }

    /// The counts of the block of a bucket that is not stored yet.
    #[cold]
    fn counts_with(&mut self, bucket: usize) -> &mut [u32] {
        let start = bucket - bucket % BLOCK;
        if self.counts.is_empty() {
            self.first = start;
        }
        if start < self.first {
            let missing = self.first - start;
            self.counts.reserve_exact(missing);
            self.counts.splice(0..0, std::iter::repeat_n(0, missing));
            self.first = start;
        }
        let index = start - self.first;
        if index >= self.counts.len() {
            self.counts.reserve_exact(index + BLOCK - self.counts.len());
            self.counts.resize(index + BLOCK, 0);
        }
        &mut self.counts[index..index + BLOCK]
    }

    /// Number of values.
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// The least value, to three digits, that a share `quantile` of the values does not exceed: the greatest of its bucket.
    /// Zero if there is no value.
    pub(crate) fn quantile(&self, quantile: f64) -> u64 {
        let rank = ((quantile * self.len as f64).ceil() as u64).clamp(1, self.len.max(1));
        let mut below = 0;
        let at = self.counts.iter().position(|count| {
            below += u64::from(*count);
            below >= rank
        });
        at.map_or(0, |index| greatest_of::<EXACT>(self.first + index))
    }

    /// The buckets with values, ascending: the greatest value of each and its count.
    pub(crate) fn buckets(&self) -> impl Iterator<Item = (u64, u32)> + Clone + '_ {
        let counts = self.counts.iter().enumerate().filter(|(_, count)| **count > 0);
        counts.map(|(index, count)| (greatest_of::<EXACT>(self.first + index), *count))
    }
}

/// The bucket of a value, where the values below `EXACT` have one each.
#[inline]
pub(crate) fn bucket<const EXACT: u64>(value: u64) -> usize {
    if value < EXACT {
        return value as usize;
    }
    let shift = u64::from((value / (EXACT / 2)).ilog2());
    (shift * (EXACT / 2) + (value >> shift)) as usize
}

/// The greatest value of a bucket.
pub(crate) fn greatest_of<const EXACT: u64>(bucket: usize) -> u64 {
    let bucket = bucket as u64;
    if bucket < EXACT {
        return bucket;
    }
    let shift = bucket / (EXACT / 2) - 1;
    (((bucket - shift * (EXACT / 2)) + 1) << shift) - 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const QUANTILES: [f64; 6] = [0.001, 0.25, 0.5, 0.95, 0.99, 1.0];

    #[test]
    fn a_bucket_is_a_value_below_2048_and_a_thousandth_above() {
        for value in [0, 1, 2047, 2048, 2049, 4095, 4096, 1_000_000_000, u64::MAX / 2] {
            let greatest = greatest_of::<EXACT>(bucket::<EXACT>(value));
            assert!(greatest >= value && greatest - value <= value / (EXACT / 2), "{value}: {greatest}");
            assert_eq!(
                bucket::<EXACT>(greatest) + 1,
                bucket::<EXACT>(greatest + 1),
                "no bucket between two neighbours"
            );
        }
    }

    #[test]
    fn memory_grows_with_the_spread_of_the_values_and_not_with_the_values() {
        let mut histogram = Histogram::default();
        (20_000..40_000).for_each(|value| histogram.add(value));
        assert!(histogram.counts.capacity() * size_of::<u32>() <= 6 << 10, "{}", histogram.counts.capacity());
        assert_eq!(Histogram::default().quantile(0.5), 0);
    }

    proptest! {
        /// Against HdrHistogram, the definition of these buckets.
        #[test]
        fn percentiles_are_those_of_an_hdr_histogram(
            powers in proptest::collection::vec((0..31u32, any::<u64>()), 1..400)
        ) {
            let mut reference = hdrhistogram::Histogram::<u32>::new(3).unwrap();
            reference.auto(true);
            let mut histogram = Histogram::default();
            for (power, bits) in powers {
                let value = bits % (1 << power);
                reference.record(value).unwrap();
                histogram.add(value);
            }
            prop_assert_eq!(histogram.len(), reference.len());
            for quantile in QUANTILES {
                prop_assert_eq!(histogram.quantile(quantile), reference.value_at_quantile(quantile));
            }
        }
    }
}
