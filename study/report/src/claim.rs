//! Claims: what was said about the values of a swept key, the numbers here that decide it, and the verdict.

use crate::grid::unique;
use crate::layout::{Claim, Test};
use crate::number::{format_distinct, format_number, label};
use crate::study::{Study, SweepCell, short_names};
use crate::trajectory;
use crate::value::estimate;

/// Whether a claim holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Holds,
    Fails,
    /// Values that decide the claim are missing.
    NotRun,
}

impl Verdict {
    pub(crate) fn words(self) -> &'static str {
        match self {
            Self::Holds => "holds",
            Self::Fails => "does not hold",
            Self::NotRun => "not run",
        }
    }
}

/// A verdict with the numbers that decide it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Finding {
    pub(crate) verdict: Verdict,
    /// The numbers that decide.
    pub(crate) numbers: String,
}

/// A claim, judged: once, or once for each value of a swept key.
#[derive(Clone, Debug)]
pub(crate) struct Judged<'c> {
    pub(crate) claim: &'c Claim,
    pub(crate) findings: Vec<Judgement>,
}

#[derive(Clone, Debug)]
pub(crate) struct Judgement {
    /// The setting of the claim's `each`: "delay 10ms", or empty.
    pub(crate) at: String,
    pub(crate) ours: Finding,
    /// The finding from the baseline's values, where it has them.
    pub(crate) baseline: Option<Finding>,
}

/// The study's claims, judged.
pub(crate) fn judged<'s>(study: &'s Study<'_>) -> Vec<Judged<'s>> {
    let judge_one = |claim: &'s Claim| {
        let cells = study.shown(&claim.scope, &[Some(&claim.of), claim.each.as_ref()]);
        let cells: Vec<&SweepCell<'_>> = cells.iter().map(|(_, cell)| cell).collect();
        let settings = match &claim.each {
            Some(key) => unique(cells.iter().map(|cell| cell.parameter(key))),
            None => vec![""],
        };
        let here = |setting: &str| {
            let has = |cell: &&&SweepCell<'_>| claim.each.as_ref().is_none_or(|key| cell.parameter(key) == setting);
            cells.iter().filter(has).copied().collect::<Vec<_>>()
        };
        let findings = settings.iter().map(|setting| judgement(claim, setting, &here(setting))).collect();
        Judged { claim, findings }
    };
    study.layout.claims.iter().map(judge_one).collect()
}

/// How many claims hold, in words.
pub(crate) fn tally(judged: &[Judged<'_>]) -> String {
    let count = |verdict, one: &str, many: &str| {
        let findings = judged.iter().flat_map(|claim| &claim.findings);
        let count = findings.filter(|finding| finding.ours.verdict == verdict).count();
        (count > 0).then(|| format!("{count} {}", if count == 1 { one } else { many }))
    };
    let counts = [
        count(Verdict::Holds, "holds", "hold"),
        count(Verdict::Fails, "does not hold", "do not hold"),
        count(Verdict::NotRun, "not run", "not run"),
    ];
    counts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

fn judgement(claim: &Claim, setting: &str, cells: &[&SweepCell<'_>]) -> Judgement {
    let value = |cell: &SweepCell<'_>| estimate(cell, &claim.value, &claim.scope).map(|estimate| estimate.mean);
    let theirs = |cell: &SweepCell<'_>| value(&cell.of_baseline()?);
    let compared =
        !trajectory::NAMES.contains(&claim.value.as_str()) && cells.iter().any(|cell| theirs(cell).is_some());
    let unit = label(&claim.value).1;
    let at = claim.each.as_ref().map_or(String::new(), |key| format!("{} {setting}", short_names(&[key])[0]));
    Judgement {
        at,
        ours: judge(&claim.test, &means(claim, cells, value), unit),
        baseline: compared.then(|| judge(&claim.test, &means(claim, cells, theirs), unit)),
    }
}

/// A value of the swept key and the mean over its cells; without a mean where a cell has no value.
type Mean<'c> = (&'c str, Option<f64>);

fn means<'c>(
    claim: &Claim,
    cells: &[&'c SweepCell<'_>],
    value: impl Fn(&SweepCell<'_>) -> Option<f64>,
) -> Vec<Mean<'c>> {
    let names = unique(cells.iter().map(|cell| cell.parameter(&claim.of)));
    let mean = |name: &str| {
        let cells = cells.iter().filter(|cell| cell.parameter(&claim.of) == name);
        let values: Option<Vec<f64>> = cells.map(|cell| value(cell).filter(|value| value.is_finite())).collect();
        values.map(|values| values.iter().sum::<f64>() / values.len() as f64)
    };
    names.into_iter().map(|name| (name, mean(name))).collect()
}

/// The verdict from the mean of each name. A tie counts for the claim.
fn judge(test: &Test, means: &[Mean<'_>], unit: &str) -> Finding {
    let known = |name: &String| means.iter().find(|(other, _)| other == name).and_then(|(_, mean)| *mean);
    let (mut named, mut missing) = (Vec::new(), Vec::new());
    for name in test.names() {
        match known(name) {
            Some(mean) => named.push((name.as_str(), mean)),
            None => missing.push(name.as_str()),
        }
    }
    if !missing.is_empty() {
        return Finding { verdict: Verdict::NotRun, numbers: format!("no value of {}", missing.join(", ")) };
    }
    let others = means.iter().filter(|(name, _)| !test.names().iter().any(|other| other == name));
    let others: Vec<Known<'_>> = others.filter_map(|(name, mean)| Some((*name, (*mean)?))).collect();
    match test {
        Test::Highest(_) => extreme(named, others, unit, |mean| -mean),
        Test::Lowest(_) => extreme(named, others, unit, |mean| mean),
        Test::Order(_) => order(&named, unit),
        Test::Alike { within, .. } => alike(named, *within, unit),
        Test::Range { min, max, .. } => range(named, *min, *max, unit),
        Test::Ratio { min, max, .. } => ratio(&named, *min, *max, unit),
    }
}

/// A name and its mean.
type Known<'c> = (&'c str, f64);

fn finding(holds: bool, numbers: &str, unit: &str) -> Finding {
    let verdict = if holds { Verdict::Holds } else { Verdict::Fails };
    Finding { verdict, numbers: format!("{numbers} {unit}").trim_end().to_owned() }
}

/// Names with their numbers.
fn told(known: &[Known<'_>]) -> Vec<String> {
    let numbers = format_distinct(&known.iter().map(|(_, mean)| *mean).collect::<Vec<_>>());
    known.iter().zip(numbers).map(|((name, _), number)| format!("{name} {number}")).collect()
}

/// Whether the named ones come first when all are sorted by `rank`.
fn extreme(mut named: Vec<Known<'_>>, mut others: Vec<Known<'_>>, unit: &str, rank: fn(f64) -> f64) -> Finding {
    /// How many names of those that should not be ahead are told.
    const TOLD: usize = 3;
    let sort = |list: &mut Vec<Known<'_>>| list.sort_by(|a, b| rank(a.1).total_cmp(&rank(b.1)));
    sort(&mut named);
    sort(&mut others);
    let (Some(worst), Some(best)) = (named.last(), others.first()) else {
        return Finding { verdict: Verdict::NotRun, numbers: "nothing to compare with".to_owned() };
    };
    if rank(worst.1) <= rank(best.1) {
        let texts = told(&[&named[..], &[*best]].concat());
        let (next, mine) = texts.split_last().expect("the best of the others");
        return finding(true, &format!("{}, next {next}", mine.join(", ")), unit);
    }
    let ahead = others.iter().filter(|other| rank(other.1) < rank(worst.1)).count();
    let texts = told(&[&others[..ahead.min(TOLD)], &named[..]].concat());
    let (before, mine) = texts.split_at(ahead.min(TOLD));
    let more = if ahead > TOLD { format!(" and {} more", ahead - TOLD) } else { String::new() };
    finding(false, &format!("{}{more} before {}", before.join(", "), mine.join(", ")), unit)
}

fn order(named: &[Known<'_>], unit: &str) -> Finding {
    let texts = told(named);
    let mut numbers = texts[0].clone();
    for (pair, text) in named.windows(2).zip(&texts[1..]) {
        numbers += &format!(" {} {text}", if pair[0].1 >= pair[1].1 { '≥' } else { '<' });
    }
    finding(named.windows(2).all(|pair| pair[0].1 >= pair[1].1), &numbers, unit)
}

fn alike(mut named: Vec<Known<'_>>, within: f64, unit: &str) -> Finding {
    named.sort_by(|a, b| a.1.total_cmp(&b.1));
    let mean = named.iter().map(|(_, mean)| mean).sum::<f64>() / named.len() as f64;
    let ends = [named[0], named[named.len() - 1]];
    let apart = ends[1].1 - ends[0].1;
    let spread = if apart > 0.0 { apart / mean.abs() } else { 0.0 };
    let [texts, percents] = [told(&ends), format_distinct(&[spread, within].map(in_percent))];
    let unit = if unit.is_empty() { String::new() } else { format!(" {unit}") };
    let numbers = format!("{} to {}{unit}: {} % apart, allowed {} %", texts[0], texts[1], percents[0], percents[1]);
    finding(spread <= within, &numbers, "")
}

/// A share in percent, without the dust of binary fractions.
fn in_percent(share: f64) -> f64 {
    (share * 1e8).round() / 1e6
}

/// The least and the greatest of them decide.
fn range(mut named: Vec<Known<'_>>, min: f64, max: Option<f64>, unit: &str) -> Finding {
    named.sort_by(|a, b| a.1.total_cmp(&b.1));
    let ends = [named[0], named[named.len() - 1]];
    let texts = told(&ends);
    let shown = if named.len() == 1 { texts[0].clone() } else { texts.join(" to ") };
    let unit = if unit.is_empty() { String::new() } else { format!(" {unit}") };
    let holds = ends[0].1 >= min && max.is_none_or(|max| ends[1].1 <= max);
    finding(holds, &format!("{shown}{unit}, claimed {}", limits(min, max)), "")
}

/// What lies between `min` and `max`, in words.
fn limits(min: f64, max: Option<f64>) -> String {
    match max {
        Some(max) if min > 0.0 => format!("from {} to {}", format_number(min), format_number(max)),
        Some(max) => format!("at most {}", format_number(max)),
        None => format!("at least {}", format_number(min)),
    }
}

fn ratio(named: &[Known<'_>], min: f64, max: Option<f64>, unit: &str) -> Finding {
    let ratio = named[0].1 / named[1].1;
    let texts = told(named);
    let limit = limits(min, max);
    let unit = if unit.is_empty() { String::new() } else { format!(" {unit}") };
    let shown = if ratio.is_finite() { format_number(ratio) } else { "none".to_owned() };
    let numbers = format!("{} over {}{unit}: ratio {shown}, claimed {limit}", texts[0], texts[1]);
    finding(ratio >= min && max.is_none_or(|max| ratio <= max), &numbers, "")
}

#[cfg(test)]
mod tests {
    use super::*;

    const MEANS: [Mean<'static>; 5] =
        [("a", Some(4.0)), ("b", Some(3.0)), ("c", Some(3.0)), ("d", Some(1.0)), ("broken", None)];

    fn names(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    fn assert_judged(test: &Test, verdict: Verdict, numbers: &str) {
        let found = judge(test, &MEANS, "Mbit/s");
        assert_eq!((found.verdict, found.numbers.as_str()), (verdict, numbers), "{test:?}");
    }

    #[test]
    fn the_highest_come_before_all_others_or_beside_them() {
        let highest = |text| Test::Highest(names(text));
        assert_judged(&highest("a"), Verdict::Holds, "a 4, next b 3 Mbit/s");
        assert_judged(&highest("c a"), Verdict::Holds, "a 4, c 3, next b 3 Mbit/s");
        assert_judged(&highest("d"), Verdict::Fails, "a 4, b 3, c 3 before d 1 Mbit/s");
        assert_judged(&highest("a d"), Verdict::Fails, "b 3, c 3 before a 4, d 1 Mbit/s");
        assert_judged(&highest("broken"), Verdict::NotRun, "no value of broken");
        assert_judged(&highest("a gone broken"), Verdict::NotRun, "no value of gone, broken");
        assert_judged(&highest("a b c d"), Verdict::NotRun, "nothing to compare with");
        let many: Vec<Mean<'_>> =
            ["a", "b", "c", "d", "e"].iter().zip(1..).map(|(n, v)| (*n, Some(f64::from(v)))).collect();
        assert_eq!(judge(&highest("a"), &many, "").numbers, "e 5, d 4, c 3 and 1 more before a 1");
    }

    #[test]
    fn the_lowest_are_the_highest_upside_down() {
        let lowest = |text| Test::Lowest(names(text));
        assert_judged(&lowest("d"), Verdict::Holds, "d 1, next b 3 Mbit/s");
        assert_judged(&lowest("b d"), Verdict::Holds, "d 1, b 3, next c 3 Mbit/s");
        assert_judged(&lowest("a"), Verdict::Fails, "d 1, b 3, c 3 before a 4 Mbit/s");
    }

    #[test]
    fn an_order_allows_ties_and_shows_where_it_breaks() {
        let order = |text| Test::Order(names(text));
        assert_judged(&order("a c b d"), Verdict::Holds, "a 4 ≥ c 3 ≥ b 3 ≥ d 1 Mbit/s");
        assert_judged(&order("a d b"), Verdict::Fails, "a 4 ≥ d 1 < b 3 Mbit/s");
    }

    #[test]
    fn what_is_alike_differs_by_a_share_of_the_mean() {
        let alike = |text, within| Test::Alike { names: names(text), within };
        // Mean of 4, 3, 3: a spread of 30 %.
        assert_judged(&alike("a b c", 0.3), Verdict::Holds, "b 3 to a 4 Mbit/s: 30 % apart, allowed 30 %");
        assert_judged(&alike("a b c", 0.29), Verdict::Fails, "b 3 to a 4 Mbit/s: 30 % apart, allowed 29 %");
        assert_judged(&alike("b c", 0.0), Verdict::Holds, "b 3 to c 3 Mbit/s: 0 % apart, allowed 0 %");
        let zero = [("a", Some(0.0)), ("b", Some(0.0))];
        assert_eq!(judge(&alike("a b", 0.05), &zero, "").verdict, Verdict::Holds);
    }

    #[test]
    fn each_of_a_range_lies_in_it() {
        let range = |text, min, max| Test::Range { names: names(text), min, max };
        assert_judged(&range("a b", 3.0, None), Verdict::Holds, "b 3 to a 4 Mbit/s, claimed at least 3");
        assert_judged(&range("a b", 3.1, None), Verdict::Fails, "b 3 to a 4 Mbit/s, claimed at least 3.10");
        assert_judged(&range("a b", 2.0, Some(3.5)), Verdict::Fails, "b 3 to a 4 Mbit/s, claimed from 2 to 3.50");
        assert_judged(&range("d", 0.0, Some(1.0)), Verdict::Holds, "d 1 Mbit/s, claimed at most 1");
    }

    #[test]
    fn a_ratio_lies_in_its_range() {
        let ratio = |text, min, max| {
            let [one, other] = names(text).try_into().unwrap();
            Test::Ratio { of: [one, other], min, max }
        };
        assert_judged(&ratio("a d", 4.0, None), Verdict::Holds, "a 4 over d 1 Mbit/s: ratio 4, claimed at least 4");
        assert_judged(
            &ratio("d a", 0.0, Some(0.2)),
            Verdict::Fails,
            "d 1 over a 4 Mbit/s: ratio 0.250, claimed at most 0.200",
        );
        assert_judged(
            &ratio("b c", 0.9, Some(1.1)),
            Verdict::Holds,
            "b 3 over c 3 Mbit/s: ratio 1, claimed from 0.900 to 1.10",
        );
        let zero = [("a", Some(0.0)), ("b", Some(0.0))];
        let found = judge(&ratio("a b", 0.0, None), &zero, "");
        assert_eq!(
            (found.verdict, found.numbers.as_str()),
            (Verdict::Fails, "a 0 over b 0: ratio none, claimed at least 0")
        );
    }
}
