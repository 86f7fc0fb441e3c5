//! The test of a claim, and the values that it is put to.

use super::Verdict;
use super::resamples::{RESAMPLES, Resamples};
use crate::layout::{Claim, Test};
use crate::number::{format_distinct, format_number};
use crate::sample::Sample;

/// A value of the claim's key, and the sample of each of its cells; no samples if a cell lacks a value.
pub(crate) type Group<'c> = (&'c str, Option<Vec<Sample>>);

/// A value of the claim's key with the samples of its cells.
type Named<'c> = (&'c str, Vec<Sample>);

/// A name and its mean.
type NamedMean<'c> = (&'c str, f64);

/// What a claim's test compares: the values that it names, in its order, and all others.
#[derive(Debug)]
pub(crate) struct Contest<'c> {
    claim: &'c Claim,
    tested: Vec<Named<'c>>,
    others: Vec<Named<'c>>,
}

impl<'c> Contest<'c> {
    /// The contest between these groups.
    ///
    /// # Errors
    /// Why the claim cannot be decided: what is missing.
    pub(crate) fn new(claim: &'c Claim, groups: Vec<Group<'c>>) -> Result<Self, String> {
        let names = claim.test.names();
        let complete = groups.into_iter().filter_map(|(name, samples)| Some((name, samples?)));
        let (mut named, others): (Vec<_>, Vec<_>) =
            complete.partition(|(name, _)| names.iter().any(|tested| tested == name));
        let is_missing = |name: &&String| !named.iter().any(|(present, _)| present == name);
        let missing: Vec<&str> = names.iter().filter(is_missing).map(String::as_str).collect();
        if !missing.is_empty() {
            return Err(format!("no value of {}", missing.join(", ")));
        }
        if matches!(claim.test, Test::Highest(_) | Test::Lowest(_)) && others.is_empty() {
            return Err("nothing to compare with".to_owned());
        }
        named.sort_by_key(|(name, _)| names.iter().position(|tested| tested == name));
        Ok(Self { claim, tested: named, others })
    }

    /// The minimum number of runs of a cell, and whether chance is in any of them. Cells of identical runs count if there
    /// are no others.
    pub(crate) fn runs(&self) -> (usize, bool) {
        let samples = || self.tested.iter().chain(&self.others).flat_map(|(_, samples)| samples);
        let runs = |identical| {
            samples().filter(|sample| sample.identical == identical).map(|sample| sample.points.len()).min()
        };
        match (runs(false), runs(true)) {
            (Some(runs), _) => (runs, true),
            (None, runs) => (runs.unwrap_or(0), false),
        }
    }

    /// The verdict, where a failure may be expected.
    pub(crate) fn expected(&self, verdict: Verdict) -> Verdict {
        let is_expected = verdict == Verdict::Fails && !self.claim.expected_failure.is_empty();
        if is_expected { Verdict::FailsAsExpected } else { verdict }
    }

    /// Whether the test holds for the means.
    pub(crate) fn holds(&self) -> bool {
        let values = |groups: &[Named<'_>]| means(groups).iter().map(|(_, mean)| *mean).collect::<Vec<_>>();
        holds(self.claim, &values(&self.tested), &values(&self.others))
    }

    /// Whether it holds in each resample.
    pub(crate) fn trials(&self, resamples: &mut Resamples) -> Vec<bool> {
        let mut drawn = |groups: &[Named<'_>]| -> Vec<Vec<f64>> {
            groups.iter().map(|(_, samples)| resampled_means(samples, resamples)).collect()
        };
        let [tested, others] = [drawn(&self.tested), drawn(&self.others)];
        let in_resample = |drawn: &[Vec<f64>], index: usize| drawn.iter().map(|means| means[index]).collect::<Vec<_>>();
        let trial = |index| holds(self.claim, &in_resample(&tested, index), &in_resample(&others, index));
        (0..RESAMPLES).map(trial).collect()
    }

    /// The one number that the test limits, if it limits one.
    pub(crate) fn figure(&self) -> Option<f64> {
        match (&self.claim.test, &means(&self.tested)[..]) {
            (Test::Range { .. }, [(_, mean)]) => Some(*mean),
            (Test::Ratio { .. }, means) => {
                let [(_, a), (_, b)] = both_ends(means);
                Some(a / b).filter(|ratio| ratio.is_finite())
            }
            _ => None,
        }
    }

    /// The numbers that decide, as text.
    pub(crate) fn numbers(&self, unit: &str) -> String {
        let (tested, others) = (means(&self.tested), means(&self.others));
        let unit = if unit.is_empty() { String::new() } else { format!(" {unit}") };
        match &self.claim.test {
            Test::Highest(_) => extreme(tested, others, |mean| -mean, self.holds()) + &unit + &self.tolerance(),
            Test::Lowest(_) => extreme(tested, others, |mean| mean, self.holds()) + &unit + &self.tolerance(),
            Test::Order(_) => order(&tested) + &unit + &self.tolerance(),
            Test::Alike { within, .. } => alike(tested, *within, &unit),
            Test::Range { min, max, .. } => range(tested, *min, *max, &unit),
            Test::Ratio { min, max, or_max, .. } => ratio(&tested, *min, *max, *or_max, &unit),
        }
    }

    fn tolerance(&self) -> String {
        match self.claim.within {
            0.0 => String::new(),
            within => format!(", within {} %", format_number(in_percent(within))),
        }
    }
}

/// The mean of each group: over its cells, of the means over their runs.
fn means<'c>(groups: &[Named<'c>]) -> Vec<NamedMean<'c>> {
    let mean = |samples: &Vec<Sample>| {
        let means = samples.iter().filter_map(|sample| Some(sample.estimate()?.mean));
        means.sum::<f64>() / samples.len() as f64
    };
    groups.iter().map(|(name, samples)| (*name, mean(samples))).collect()
}

/// The mean of a group in each resample.
fn resampled_means(samples: &[Sample], resamples: &mut Resamples) -> Vec<f64> {
    let mut sums = vec![0.0; RESAMPLES];
    for sample in samples {
        sums.iter_mut().zip(resamples.means(sample)).for_each(|(sum, mean)| *sum += mean);
    }
    sums.iter().map(|sum| sum / samples.len() as f64).collect()
}

/// Whether the claim's test holds. A tie counts for the claim.
fn holds(claim: &Claim, tested: &[f64], others: &[f64]) -> bool {
    let [least, greatest] = extremes(tested);
    let is_at_least = |a: f64, b: f64| a >= b || b - a <= claim.within * ((a + b) / 2.0).abs();
    let is_in = |value: f64, min: f64, max: Option<f64>| value >= min && max.is_none_or(|max| value <= max);
    match &claim.test {
        Test::Highest(_) => is_at_least(least, extremes(others)[1]),
        Test::Lowest(_) => is_at_least(extremes(others)[0], greatest),
        Test::Order(_) => tested.windows(2).all(|pair| is_at_least(pair[0], pair[1])),
        Test::Alike { within, .. } => spread(tested) <= *within,
        Test::Range { min, max, .. } => is_in(least, *min, *max) && is_in(greatest, *min, *max),
        Test::Ratio { min, max, or_max, .. } => {
            let [a, b] = both_ends(tested);
            is_in(a / b, *min, *max) || or_max.is_some_and(|max| *a <= max)
        }
    }
}

/// The two of a ratio, which may be one and the same.
fn both_ends<T>(tested: &[T]) -> [&T; 2] {
    [&tested[0], &tested[tested.len() - 1]]
}

/// The least and the greatest.
fn extremes(values: &[f64]) -> [f64; 2] {
    [values.iter().copied().fold(f64::INFINITY, f64::min), values.iter().copied().fold(f64::NEG_INFINITY, f64::max)]
}

/// The distance of the greatest from the least, as a share of the mean.
fn spread(values: &[f64]) -> f64 {
    let [least, greatest] = extremes(values);
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    if greatest > least { (greatest - least) / mean.abs() } else { 0.0 }
}

/// Names with their numbers.
fn with_values(means: &[NamedMean<'_>]) -> Vec<String> {
    let numbers = format_distinct(&means.iter().map(|(_, mean)| *mean).collect::<Vec<_>>());
    means.iter().zip(numbers).map(|((name, _), number)| format!("{name} {number}")).collect()
}

/// The tested values and the first of the others if the claim holds, else what is before them; sorted by `rank`.
fn extreme(
    mut tested: Vec<NamedMean<'_>>,
    mut others: Vec<NamedMean<'_>>,
    rank: fn(f64) -> f64,
    holds: bool,
) -> String {
    /// The maximum number of values shown of those that should not be ahead.
    const MAX_SHOWN: usize = 3;
    let sort = |list: &mut Vec<NamedMean<'_>>| list.sort_by(|a, b| rank(a.1).total_cmp(&rank(b.1)));
    sort(&mut tested);
    sort(&mut others);
    if holds {
        let texts = with_values(&[&tested[..], &others[..1]].concat());
        let (next, texts) = texts.split_last().expect("the best of the others");
        return format!("{}, next {next}", texts.join(", "));
    }
    let worst = rank(tested[tested.len() - 1].1);
    let ahead = others.iter().filter(|other| rank(other.1) < worst).count();
    let texts = with_values(&[&others[..ahead.min(MAX_SHOWN)], &tested[..]].concat());
    let (texts_ahead, tested_texts) = texts.split_at(ahead.min(MAX_SHOWN));
    let more = if ahead > MAX_SHOWN { format!(" and {} more", ahead - MAX_SHOWN) } else { String::new() };
    format!("{}{more} before {}", texts_ahead.join(", "), tested_texts.join(", "))
}

fn order(tested: &[NamedMean<'_>]) -> String {
    let texts = with_values(tested);
    let mut numbers = texts[0].clone();
    for (pair, text) in tested.windows(2).zip(&texts[1..]) {
        numbers += &format!(" {} {text}", if pair[0].1 >= pair[1].1 { '≥' } else { '<' });
    }
    numbers
}

fn alike(mut tested: Vec<NamedMean<'_>>, within: f64, unit: &str) -> String {
    tested.sort_by(|a, b| a.1.total_cmp(&b.1));
    let spread = spread(&tested.iter().map(|(_, mean)| *mean).collect::<Vec<_>>());
    let texts = with_values(&[tested[0], tested[tested.len() - 1]]);
    let percents = format_distinct(&[spread, within].map(in_percent));
    format!("{} to {}{unit}: {} % apart, allowed {} %", texts[0], texts[1], percents[0], percents[1])
}

/// A share in percent, without the rounding error of binary fractions.
fn in_percent(share: f64) -> f64 {
    (share * 1e8).round() / 1e6
}

/// The minimum and the maximum mean, and the range.
fn range(mut tested: Vec<NamedMean<'_>>, min: f64, max: Option<f64>, unit: &str) -> String {
    tested.sort_by(|a, b| a.1.total_cmp(&b.1));
    let texts = with_values(&[tested[0], tested[tested.len() - 1]]);
    let text = if tested.len() == 1 { texts[0].clone() } else { texts.join(" to ") };
    format!("{text}{unit}, claimed {}", limits(min, max))
}

/// The range in words.
fn limits(min: f64, max: Option<f64>) -> String {
    match max {
        Some(max) if min > 0.0 => format!("from {} to {}", format_number(min), format_number(max)),
        Some(max) => format!("at most {}", format_number(max)),
        None => format!("at least {}", format_number(min)),
    }
}

fn ratio(tested: &[NamedMean<'_>], min: f64, max: Option<f64>, or_max: Option<f64>, unit: &str) -> String {
    let [a, b] = both_ends(tested);
    let ratio = a.1 / b.1;
    let texts = with_values(&[*a, *b]);
    let ratio_text = if ratio.is_finite() { format_number(ratio) } else { "none".to_owned() };
    let or = or_max.map_or(String::new(), |max| format!(", or {} at most {}{unit}", tested[0].0, format_number(max)));
    format!("{} over {}{unit}: ratio {ratio_text}, claimed {}{or}", texts[0], texts[1], limits(min, max))
}

#[cfg(test)]
mod tests;
