//! Each kind of test against numbers that can be checked by eye, and its uncertainty against closed forms.

use super::*;
use crate::claim::{Evaluation, Verdict};
use crate::layout::Scope;

/// A name and its mean; none if it lacks a value.
type Mean<'m> = (&'m str, Option<f64>);

const MEANS: [Mean<'static>; 5] =
    [("a", Some(4.0)), ("b", Some(3.0)), ("c", Some(3.0)), ("d", Some(1.0)), ("broken", None)];

fn claim(test: &Test, within: f64) -> Claim {
    let text = String::new;
    let [says, source, value, of, published, note, expected_failure] = std::array::from_fn(|_| text());
    let (each, unknown, scope, test) = (None, None, Scope::default(), test.clone());
    Claim { says, source, value, of, each, unknown, scope, test, within, published, note, expected_failure }
}

/// One cell of a group, with seeds from 1 on.
fn cell(values: &[f64]) -> Vec<Sample> {
    vec![Sample { points: (1..).zip(values.iter().copied()).collect(), ..Sample::default() }]
}

fn evaluate_groups(claim: &Claim, groups: Vec<Group<'_>>, unit: &str) -> Evaluation {
    match Contest::new(claim, groups) {
        Ok(contest) => Evaluation::of_runs(&contest, unit, &mut Resamples::default()),
        Err(reason) => Evaluation::not_run(reason),
    }
}

/// The evaluation of one run of each name.
fn evaluate(test: &Test, means: &[Mean<'_>], unit: &str) -> Evaluation {
    let groups = means.iter().map(|(name, mean)| (*name, mean.map(|mean| cell(&[mean])))).collect();
    evaluate_groups(&claim(test, 0.0), groups, unit)
}

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
        Test::Ratio { of: [numerator, denominator], min, max, or_max: None }
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
    assert_evaluation(&ratio("a a", 1.0, None), Verdict::Holds, "a 4 over a 4 Mbit/s: ratio 1, claimed at least 1");
    let zero = [("a", Some(0.0)), ("b", Some(0.0))];
    let evaluation = evaluate(&ratio("a b", 0.0, None), &zero, "");
    assert_eq!(
        (evaluation.verdict, evaluation.numbers.as_str()),
        (Verdict::Fails, "a 0 over b 0: ratio none, claimed at least 0")
    );
}

#[test]
fn a_value_that_is_small_enough_meets_a_ratio_that_it_exceeds() {
    let ratio = |or_max| Test::Ratio { of: ["a", "d"].map(str::to_owned), min: 0.0, max: Some(2.0), or_max };
    let text = "a 4 over d 1 Mbit/s: ratio 4, claimed at most 2";
    assert_evaluation(&ratio(None), Verdict::Fails, text);
    assert_evaluation(&ratio(Some(3.9)), Verdict::Fails, &format!("{text}, or a at most 3.90 Mbit/s"));
    assert_evaluation(&ratio(Some(4.0)), Verdict::Holds, &format!("{text}, or a at most 4 Mbit/s"));
}

#[test]
fn a_failure_that_is_expected_is_no_other_verdict() {
    let range = |min| Test::Range { names: names("a"), min, max: None };
    let verdict = |min: f64, values: &[f64]| {
        let claim = Claim { expected_failure: "known".to_owned(), ..claim(&range(min), 0.0) };
        evaluate_groups(&claim, vec![("a", Some(cell(values)))], "").verdict
    };
    assert_eq!(verdict(5.0, &[4.0]), Verdict::FailsAsExpected);
    assert_eq!(verdict(4.0, &[4.0]), Verdict::Holds);
    assert_eq!(verdict(4.0, &[1.0, 8.0]), Verdict::Undecided);
}

#[test]
fn values_within_the_tolerance_count_as_equal() {
    let evaluate = |test: Test, within| {
        let groups = [("a", 100.0), ("b", 99.0), ("c", 90.0)].map(|(name, mean)| (name, Some(cell(&[mean]))));
        let evaluation = evaluate_groups(&claim(&test, within), groups.to_vec(), "ms");
        (evaluation.verdict, evaluation.numbers)
    };
    let b = || names("b");
    // 1 is 1.005 % of 99.5, the mean of both.
    let text = |verdict, numbers: &str| (verdict, numbers.to_owned());
    assert_eq!(evaluate(Test::Highest(b()), 0.01), text(Verdict::Fails, "a 100 before b 99 ms, within 1 %"));
    assert_eq!(evaluate(Test::Highest(b()), 0.0101), text(Verdict::Holds, "b 99, next a 100 ms, within 1.01 %"));
    assert_eq!(evaluate(Test::Lowest(b()), 0.09).0, Verdict::Fails, "9 is 9.5 % of 94.5");
    assert_eq!(evaluate(Test::Lowest(b()), 0.1).0, Verdict::Holds);
    let order = Test::Order(names("b a c"));
    assert_eq!(evaluate(order.clone(), 0.0), text(Verdict::Fails, "b 99 < a 100 ≥ c 90 ms"));
    assert_eq!(evaluate(order, 0.02), text(Verdict::Holds, "b 99 < a 100 ≥ c 90 ms, within 2 %"));
}

/// Paired differences of -1, 0, 1, ... about a mean d: d divided by its standard error is Student's t.
#[test]
fn the_share_of_resamples_is_that_of_students_t() {
    let noise = [1.0, -1.0, 2.0, -2.0, 0.5, -0.5, 1.5, -1.5, 0.0, 0.0];
    let other = [7.0, 3.0, 5.0, 9.0, 1.0, 8.0, 2.0, 6.0, 4.0, 10.0];
    let standard_error = (noise.iter().map(|value| value * value).sum::<f64>() / 9.0 / 10.0_f64).sqrt();
    // Quantiles of Student's t with nine degrees.
    for (t, expected) in [(-1.833, 0.05), (-0.703, 0.25), (0.0, 0.5), (1.383, 0.9), (1.833, 0.95), (2.821, 0.99)] {
        let first: Vec<f64> =
            noise.iter().zip(other).map(|(noise, other)| other + noise + t * standard_error).collect();
        let groups = vec![("a", Some(cell(&first))), ("b", Some(cell(&other)))];
        let share = evaluate_groups(&claim(&Test::Order(names("a b")), 0.0), groups, "").share().unwrap();
        // Three standard errors of 2000 resamples, and 0.01 for the ten values in the place of a normal distribution.
        let allowed = 3.0 * (expected * (1.0 - expected) / RESAMPLES as f64).sqrt() + 0.01;
        assert!((share - expected).abs() < allowed, "t = {t}: {share}, not {expected}");
    }
}

#[test]
fn what_the_runs_leave_open_is_not_decided_and_says_in_how_many_resamples_it_holds() {
    let order = claim(&Test::Order(names("a b")), 0.0);
    let verdict = |a: &[f64], b: &[f64]| {
        let evaluation = evaluate_groups(&order, vec![("a", Some(cell(a))), ("b", Some(cell(b)))], "");
        (evaluation.verdict, evaluation.words())
    };
    let (open, words) = verdict(&[1.0, 2.0, 3.0, 4.0], &[1.1, 2.1, 2.8, 4.0]);
    assert_eq!(open, Verdict::Undecided);
    assert!(words.starts_with("not decided by 4 runs: holds in ") && words.ends_with(" % of resamples"), "{words}");
    // Far noisier, but with the same luck: every difference is 1.
    assert_eq!(verdict(&[11.0, 42.0, 3.0], &[10.0, 41.0, 2.0]), (Verdict::Holds, "holds".to_owned()));
    assert_eq!(verdict(&[10.0, 41.0, 2.0], &[11.0, 42.0, 3.0]), (Verdict::Fails, "does not hold".to_owned()));
    assert_eq!(verdict(&[5.0, 6.0], &[5.0, 6.0]).0, Verdict::Holds, "a tie in every resample");
    assert_eq!(verdict(&[2.0], &[1.0]), (Verdict::Holds, "holds (1 run)".to_owned()));
    assert_eq!(verdict(&[1.0], &[2.0, 2.0]), (Verdict::Fails, "does not hold (1 run)".to_owned()));
}

#[test]
fn identical_runs_decide_without_resamples() {
    let identical = |value: f64| Some(vec![Sample { identical: true, ..cell(&[value, value]).remove(0) }]);
    let order = claim(&Test::Order(names("a b")), 0.0);
    let evaluation = evaluate_groups(&order, vec![("a", identical(2.0)), ("b", identical(1.0))], "");
    assert_eq!((evaluation.words().as_str(), evaluation.share()), ("holds", None));
    let mixed = evaluate_groups(&order, vec![("a", identical(2.0)), ("b", Some(cell(&[1.0, 1.9, 2.2])))], "");
    assert_eq!((mixed.verdict, mixed.runs), (Verdict::Undecided, 3));
}

/// Noise alone drives the extremes of many means apart, so that resamples spread more than the means do.
#[test]
fn resamples_that_contradict_the_means_decide_nothing() {
    let groups: Vec<(String, Vec<f64>)> = (0..8)
        .map(|i| (format!("g{i}"), (0..3).map(|j| 100.0 + f64::from((i * 7 + j * 11 + i * j) % 5 * 4)).collect()))
        .collect();
    let means = |values: &[f64]| values.iter().sum::<f64>() / 3.0;
    let spread = spread(&groups.iter().map(|(_, values)| means(values)).collect::<Vec<_>>());
    let test = Test::Alike { names: groups.iter().map(|(name, _)| name.clone()).collect(), within: spread };
    let groups = groups.iter().map(|(name, values)| (name.as_str(), Some(cell(values)))).collect();
    assert_eq!(evaluate_groups(&claim(&test, 0.0), groups, "").verdict, Verdict::Undecided);
}
