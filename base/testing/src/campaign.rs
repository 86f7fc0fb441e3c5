//! Campaigns: tests that draw a situation from each seed. `cargo xtask test` runs a fixed sample of seeds, and
//! `cargo xtask campaign` runs any range of seeds, in pieces.

use std::ops::Range;

/// Environment variable with the seeds of a campaign: `20` is the maximum number of the sample, `1000..1300` a range.
pub const SEEDS: &str = "ROPEWALK_SEEDS";

/// The seeds of a campaign's run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seeds {
    range: Range<u64>,
    sample: u64,
}

/// The seeds of a campaign: a sample of `0..sample`, unless [`SEEDS`] is set.
///
/// # Panics
/// If [`SEEDS`] is neither a number nor a range.
#[must_use]
pub fn campaign(sample: u64) -> Seeds {
    let range = std::env::var(SEEDS).map_or(0..sample, |text| {
        range(&text, sample).unwrap_or_else(|| panic!("{SEEDS}={text}: expected a number such as 20, or 1000..1300"))
    });
    Seeds { range, sample }
}

fn range(text: &str, sample: u64) -> Option<Range<u64>> {
    match text.split_once("..") {
        Some((start, end)) => Some(start.parse().ok()?..end.parse().ok()?),
        None => Some(0..sample.min(text.parse().ok()?)),
    }
}

impl Seeds {
    /// The seeds, ascending.
    #[must_use]
    pub fn range(&self) -> Range<u64> {
        self.range.clone()
    }

    /// Whether there are as many seeds as in the sample. With fewer, a rare situation may not occur.
    #[must_use]
    pub fn reach_every_situation(&self) -> bool {
        self.range.end.saturating_sub(self.range.start) >= self.sample
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_limits_the_sample_and_a_range_replaces_it() {
        assert_eq!(range("20", 300), Some(0..20));
        assert_eq!(range("1000", 300), Some(0..300));
        assert_eq!(range("1000..1300", 300), Some(1000..1300));
        assert_eq!(range("many", 300), None);
        let seeds = |range| Seeds { range, sample: 300 };
        assert!(seeds(700..1000).reach_every_situation() && !seeds(0..20).reach_every_situation());
    }
}
