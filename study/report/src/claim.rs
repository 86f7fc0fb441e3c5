//! Claims about the values of a swept key: the numbers that decide each, and the verdict.

use crate::grid::unique;
use crate::layout::{Claim, Test};
use crate::number::{format_distinct, format_number, name_and_unit_in};
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
    /// The verdict in words.
    pub(crate) fn label(self) -> &'static str {
        match self {
            Self::Holds => "holds",
            Self::Fails => "does not hold",
            Self::NotRun => "not run",
        }
    }
}

/// A verdict with the numbers that decide it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Evaluation {
    pub(crate) verdict: Verdict,
    /// The numbers that decide it, as text.
    pub(crate) numbers: String,
}

/// The evaluation of a claim: once, or once for each value of a swept key.
#[derive(Clone, Debug)]
pub(crate) struct ClaimResult<'c> {
    pub(crate) claim: &'c Claim,
    pub(crate) settings: Vec<SettingResult>,
}

#[derive(Clone, Debug)]
pub(crate) struct SettingResult {
    /// The value of the claim's `each`: "delay 10ms", or empty.
    pub(crate) setting: String,
    /// The evaluation with the study's values.
    pub(crate) study: Evaluation,
    /// The evaluation with the baseline's values, if it has them.
    pub(crate) baseline: Option<Evaluation>,
}

/// Evaluates the study's claims.
pub(crate) fn evaluate_claims<'s>(study: &'s Study<'_>) -> Vec<ClaimResult<'s>> {
    let evaluate_claim = |claim: &'s Claim| {
        let cells =
            study.cells_in_scope(&claim.scope, &std::iter::once(&claim.of).chain(&claim.each).collect::<Vec<_>>());
        let cells: Vec<&SweepCell<'_>> = cells.iter().map(|(_, cell)| cell).collect();
        let settings = match &claim.each {
            Some(key) => unique(cells.iter().map(|cell| cell.parameter(key))),
            None => vec![""],
        };
        let cells_of = |setting: &str| {
            let has_setting =
                |cell: &&&SweepCell<'_>| claim.each.as_ref().is_none_or(|key| cell.parameter(key) == setting);
            cells.iter().filter(has_setting).copied().collect::<Vec<_>>()
        };
        let settings = settings.iter().map(|setting| evaluate_setting(claim, setting, &cells_of(setting))).collect();
        ClaimResult { claim, settings }
    };
    study.layout.claims.iter().map(evaluate_claim).collect()
}

/// The number of claims with each verdict, in words.
pub(crate) fn tally(results: &[ClaimResult<'_>]) -> String {
    let count = |verdict, singular: &str, plural: &str| {
        let settings = results.iter().flat_map(|claim| &claim.settings);
        let count = settings.filter(|setting| setting.study.verdict == verdict).count();
        (count > 0).then(|| format!("{count} {}", if count == 1 { singular } else { plural }))
    };
    let counts = [
        count(Verdict::Holds, "holds", "hold"),
        count(Verdict::Fails, "does not hold", "do not hold"),
        count(Verdict::NotRun, "not run", "not run"),
    ];
    counts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

fn evaluate_setting(claim: &Claim, setting: &str, cells: &[&SweepCell<'_>]) -> SettingResult {
    let value = |cell: &SweepCell<'_>| estimate(cell, &claim.value, &claim.scope).map(|estimate| estimate.mean);
    let baseline_value = |cell: &SweepCell<'_>| value(&cell.baseline_cell()?);
    let compared =
        !trajectory::NAMES.contains(&claim.value.as_str()) && cells.iter().any(|cell| baseline_value(cell).is_some());
    let unit = name_and_unit_in(&claim.scope, &claim.value).1;
    let label = claim.each.as_ref().map_or(String::new(), |key| format!("{} {setting}", short_names(&[key])[0]));
    SettingResult {
        setting: label,
        study: evaluate(&claim.test, &means(claim, cells, value), unit),
        baseline: compared.then(|| evaluate(&claim.test, &means(claim, cells, baseline_value), unit)),
    }
}

/// A value of the swept key and the mean over its cells; no mean if a cell has no value.
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
fn evaluate(test: &Test, means: &[Mean<'_>], unit: &str) -> Evaluation {
    let mean_of = |name: &String| means.iter().find(|(tested, _)| tested == name).and_then(|(_, mean)| *mean);
    let (mut tested, mut missing) = (Vec::new(), Vec::new());
    for name in test.names() {
        match mean_of(name) {
            Some(mean) => tested.push((name.as_str(), mean)),
            None => missing.push(name.as_str()),
        }
    }
    if !missing.is_empty() {
        return Evaluation { verdict: Verdict::NotRun, numbers: format!("no value of {}", missing.join(", ")) };
    }
    let others = means.iter().filter(|(name, _)| !test.names().iter().any(|tested| tested == name));
    let others: Vec<NamedMean<'_>> = others.filter_map(|(name, mean)| Some((*name, (*mean)?))).collect();
    match test {
        Test::Highest(_) => extreme(tested, others, unit, |mean| -mean),
        Test::Lowest(_) => extreme(tested, others, unit, |mean| mean),
        Test::Order(_) => order(&tested, unit),
        Test::Alike { within, .. } => alike(tested, *within, unit),
        Test::Range { min, max, .. } => range(tested, *min, *max, unit),
        Test::Ratio { min, max, .. } => ratio(&tested, *min, *max, unit),
    }
}

/// A value of the swept key and its mean.
type NamedMean<'c> = (&'c str, f64);

fn evaluation(holds: bool, numbers: &str, unit: &str) -> Evaluation {
    let verdict = if holds { Verdict::Holds } else { Verdict::Fails };
    Evaluation { verdict, numbers: format!("{numbers} {unit}").trim_end().to_owned() }
}

/// Names with their numbers.
fn with_values(means: &[NamedMean<'_>]) -> Vec<String> {
    let numbers = format_distinct(&means.iter().map(|(_, mean)| *mean).collect::<Vec<_>>());
    means.iter().zip(numbers).map(|((name, _), number)| format!("{name} {number}")).collect()
}

/// Whether the tested values come first when all are sorted by `rank`.
fn extreme(
    mut tested: Vec<NamedMean<'_>>,
    mut others: Vec<NamedMean<'_>>,
    unit: &str,
    rank: fn(f64) -> f64,
) -> Evaluation {
    /// The maximum number of values shown of those that should not be ahead.
    const MAX_SHOWN: usize = 3;
    let sort = |list: &mut Vec<NamedMean<'_>>| list.sort_by(|a, b| rank(a.1).total_cmp(&rank(b.1)));
    sort(&mut tested);
    sort(&mut others);
    let (Some(worst), Some(best)) = (tested.last(), others.first()) else {
        return Evaluation { verdict: Verdict::NotRun, numbers: "nothing to compare with".to_owned() };
    };
    if rank(worst.1) <= rank(best.1) {
        let texts = with_values(&[&tested[..], &[*best]].concat());
        let (next, texts) = texts.split_last().expect("the best of the others");
        return evaluation(true, &format!("{}, next {next}", texts.join(", ")), unit);
    }
    let ahead = others.iter().filter(|other| rank(other.1) < rank(worst.1)).count();
    let texts = with_values(&[&others[..ahead.min(MAX_SHOWN)], &tested[..]].concat());
    let (texts_ahead, tested_texts) = texts.split_at(ahead.min(MAX_SHOWN));
    let more = if ahead > MAX_SHOWN { format!(" and {} more", ahead - MAX_SHOWN) } else { String::new() };
    evaluation(false, &format!("{}{more} before {}", texts_ahead.join(", "), tested_texts.join(", ")), unit)
}

fn order(tested: &[NamedMean<'_>], unit: &str) -> Evaluation {
    let texts = with_values(tested);
    let mut numbers = texts[0].clone();
    for (pair, text) in tested.windows(2).zip(&texts[1..]) {
        numbers += &format!(" {} {text}", if pair[0].1 >= pair[1].1 { '≥' } else { '<' });
    }
    evaluation(tested.windows(2).all(|pair| pair[0].1 >= pair[1].1), &numbers, unit)
}

fn alike(mut tested: Vec<NamedMean<'_>>, within: f64, unit: &str) -> Evaluation {
    tested.sort_by(|a, b| a.1.total_cmp(&b.1));
    let mean = tested.iter().map(|(_, mean)| mean).sum::<f64>() / tested.len() as f64;
    let extremes = [tested[0], tested[tested.len() - 1]];
    let difference = extremes[1].1 - extremes[0].1;
    let spread = if difference > 0.0 { difference / mean.abs() } else { 0.0 };
    let [texts, percents] = [with_values(&extremes), format_distinct(&[spread, within].map(in_percent))];
    let unit = if unit.is_empty() { String::new() } else { format!(" {unit}") };
    let numbers = format!("{} to {}{unit}: {} % apart, allowed {} %", texts[0], texts[1], percents[0], percents[1]);
    evaluation(spread <= within, &numbers, "")
}

/// A share in percent, without the rounding error of binary fractions.
fn in_percent(share: f64) -> f64 {
    (share * 1e8).round() / 1e6
}

/// Whether the minimum and the maximum mean lie in the range.
fn range(mut tested: Vec<NamedMean<'_>>, min: f64, max: Option<f64>, unit: &str) -> Evaluation {
    tested.sort_by(|a, b| a.1.total_cmp(&b.1));
    let extremes = [tested[0], tested[tested.len() - 1]];
    let texts = with_values(&extremes);
    let text = if tested.len() == 1 { texts[0].clone() } else { texts.join(" to ") };
    let unit = if unit.is_empty() { String::new() } else { format!(" {unit}") };
    let holds = extremes[0].1 >= min && max.is_none_or(|max| extremes[1].1 <= max);
    evaluation(holds, &format!("{text}{unit}, claimed {}", limits(min, max)), "")
}

/// The range in words.
fn limits(min: f64, max: Option<f64>) -> String {
    match max {
        Some(max) if min > 0.0 => format!("from {} to {}", format_number(min), format_number(max)),
        Some(max) => format!("at most {}", format_number(max)),
        None => format!("at least {}", format_number(min)),
    }
}

fn ratio(tested: &[NamedMean<'_>], min: f64, max: Option<f64>, unit: &str) -> Evaluation {
    let ratio = tested[0].1 / tested[1].1;
    let texts = with_values(tested);
    let limit = limits(min, max);
    let unit = if unit.is_empty() { String::new() } else { format!(" {unit}") };
    let ratio_text = if ratio.is_finite() { format_number(ratio) } else { "none".to_owned() };
    let numbers = format!("{} over {}{unit}: ratio {ratio_text}, claimed {limit}", texts[0], texts[1]);
    evaluation(ratio >= min && max.is_none_or(|max| ratio <= max), &numbers, "")
}

#[cfg(test)]
mod tests {
    use super::*;

    const MEANS: [Mean<'static>; 5] =
        [("a", Some(4.0)), ("b", Some(3.0)), ("c", Some(3.0)), ("d", Some(1.0)), ("broken", None)];

    fn names(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    fn assert_evaluation(test: &Test, verdict: Verdict, numbers: &str) {
        let evaluation = evaluate(test, &MEANS, "Mbit/s");
        assert_eq!((evaluation.verdict, evaluation.numbers.as_str()), (verdict, numbers), "{test:?}");
    }

    #[test]
    fn the_highest_come_before_all_others_or_beside_them() {
        let highest = |text| Test::Highest(names(text));
        assert_evaluation(&highest("a"), Verdict::Holds, "a 4, next b 3 Mbit/s");
        assert_evaluation(&highest("c a"), Verdict::Holds, "a 4, c 3, next b 3 Mbit/s");
        assert_evaluation(&highest("d"), Verdict::Fails, "a 4, b 3, c 3 before d 1 Mbit/s");
        assert_evaluation(&highest("a d"), Verdict::Fails, "b 3, c 3 before a 4, d 1 Mbit/s");
        assert_evaluation(&highest("broken"), Verdict::NotRun, "no value of broken");
        assert_evaluation(&highest("a gone broken"), Verdict::NotRun, "no value of gone, broken");
        assert_evaluation(&highest("a b c d"), Verdict::NotRun, "nothing to compare with");
        let many: Vec<Mean<'_>> =
            ["a", "b", "c", "d", "e"].iter().zip(1..).map(|(n, v)| (*n, Some(f64::from(v)))).collect();
        assert_eq!(evaluate(&highest("a"), &many, "").numbers, "e 5, d 4, c 3 and 1 more before a 1");
    }

    #[test]
    fn the_lowest_are_the_highest_upside_down() {
        let lowest = |text| Test::Lowest(names(text));
        assert_evaluation(&lowest("d"), Verdict::Holds, "d 1, next b 3 Mbit/s");
        assert_evaluation(&lowest("b d"), Verdict::Holds, "d 1, b 3, next c 3 Mbit/s");
        assert_evaluation(&lowest("a"), Verdict::Fails, "d 1, b 3, c 3 before a 4 Mbit/s");
    }

    #[test]
    fn an_order_allows_ties_and_shows_where_it_breaks() {
        let order = |text| Test::Order(names(text));
        assert_evaluation(&order("a c b d"), Verdict::Holds, "a 4 ≥ c 3 ≥ b 3 ≥ d 1 Mbit/s");
        assert_evaluation(&order("a d b"), Verdict::Fails, "a 4 ≥ d 1 < b 3 Mbit/s");
    }

    #[test]
    fn what_is_alike_differs_by_a_share_of_the_mean() {
        let alike = |text, within| Test::Alike { names: names(text), within };
        // Mean of 4, 3, 3: a spread of 30 %.
        assert_evaluation(&alike("a b c", 0.3), Verdict::Holds, "b 3 to a 4 Mbit/s: 30 % apart, allowed 30 %");
        assert_evaluation(&alike("a b c", 0.29), Verdict::Fails, "b 3 to a 4 Mbit/s: 30 % apart, allowed 29 %");
        assert_evaluation(&alike("b c", 0.0), Verdict::Holds, "b 3 to c 3 Mbit/s: 0 % apart, allowed 0 %");
        let zero = [("a", Some(0.0)), ("b", Some(0.0))];
        assert_eq!(evaluate(&alike("a b", 0.05), &zero, "").verdict, Verdict::Holds);
    }

    #[test]
    fn each_of_a_range_lies_in_it() {
        let range = |text, min, max| Test::Range { names: names(text), min, max };
        assert_evaluation(&range("a b", 3.0, None), Verdict::Holds, "b 3 to a 4 Mbit/s, claimed at least 3");
        assert_evaluation(&range("a b", 3.1, None), Verdict::Fails, "b 3 to a 4 Mbit/s, claimed at least 3.10");
        assert_evaluation(&range("a b", 2.0, Some(3.5)), Verdict::Fails, "b 3 to a 4 Mbit/s, claimed from 2 to 3.50");
        assert_evaluation(&range("d", 0.0, Some(1.0)), Verdict::Holds, "d 1 Mbit/s, claimed at most 1");
    }

    #[test]
    fn a_ratio_lies_in_its_range() {
        let ratio = |text, min, max| {
            let [numerator, denominator] = names(text).try_into().unwrap();
            Test::Ratio { of: [numerator, denominator], min, max }
        };
        assert_evaluation(&ratio("a d", 4.0, None), Verdict::Holds, "a 4 over d 1 Mbit/s: ratio 4, claimed at least 4");
        assert_evaluation(
            &ratio("d a", 0.0, Some(0.2)),
            Verdict::Fails,
            "d 1 over a 4 Mbit/s: ratio 0.250, claimed at most 0.200",
        );
        assert_evaluation(
            &ratio("b c", 0.9, Some(1.1)),
            Verdict::Holds,
            "b 3 over c 3 Mbit/s: ratio 1, claimed from 0.900 to 1.10",
        );
        let zero = [("a", Some(0.0)), ("b", Some(0.0))];
        let evaluation = evaluate(&ratio("a b", 0.0, None), &zero, "");
        assert_eq!(
            (evaluation.verdict, evaluation.numbers.as_str()),
            (Verdict::Fails, "a 0 over b 0: ratio none, claimed at least 0")
        );
    }
}
