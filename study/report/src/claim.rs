//! Claims about the values of a swept key: the numbers that decide each, the verdict, and how sure the runs make it.

mod across;
mod contest;
mod document;
mod published;
mod resamples;
mod tally;
mod verdict;

use crate::grid::unique;
use crate::layout::Claim;
use crate::number::{name_and_unit_in, plural};
use crate::sample::Sample;
use crate::study::{Study, SweepCell, short_names};
use crate::trajectory;
use crate::value::sample;
pub use across::{ClaimColumn, claims_table, verdicts_table};
use contest::{Contest, Group};
pub use document::claims_document;
use resamples::Resamples;
pub(crate) use tally::{Tally, reference_name};
pub(crate) use verdict::{Evaluation, Verdict};

/// The claims of a study, and how many of them hold.
#[derive(Clone, Debug)]
pub(crate) struct Claims<'c> {
    pub(crate) results: Vec<ClaimResult<'c>>,
    pub(crate) tally: Tally,
}

/// The evaluation of a claim: once, or once for each value of its key `each`.
#[derive(Clone, Debug)]
pub(crate) struct ClaimResult<'c> {
    pub(crate) claim: &'c Claim,
    pub(crate) settings: Vec<SettingResult<'c>>,
}

/// What has one verdict.
#[derive(Clone, Debug)]
pub(crate) struct SettingResult<'c> {
    /// The value of the claim's `each`: "delay 10ms", or empty.
    pub(crate) setting: String,
    /// The evaluation at each value of the claim's `unknown`; without one there is one.
    pub(crate) values: Vec<ValueResult>,
    /// The key that the source does not give, if there is one.
    pub(crate) unknown: Option<&'c String>,
}

/// The evaluation at a value of the claim's `unknown`.
#[derive(Clone, Debug)]
pub(crate) struct ValueResult {
    /// The value, or empty.
    pub(crate) value: String,
    /// The evaluation with the study's values.
    pub(crate) study: Evaluation,
    /// The evaluation with the baseline's values, if it has them.
    pub(crate) baseline: Option<Evaluation>,
    /// The evaluation with the values of references that have them, by name.
    pub(crate) references: Vec<(String, Evaluation)>,
}

impl SettingResult<'_> {
    /// The one verdict: with an unknown key the claim holds if it does at one of its values, and fails if it does at none.
    pub(crate) fn verdict(&self) -> Verdict {
        let order = [Verdict::Holds, Verdict::Undecided, Verdict::FailsAsExpected, Verdict::Fails];
        let has = |verdict: &Verdict| self.values.iter().any(|value| value.study.verdict == *verdict);
        order.into_iter().find(has).unwrap_or(Verdict::NotRun)
    }

    /// The minimum number of runs of a cell, where there is a verdict.
    pub(crate) fn runs(&self) -> Option<usize> {
        let run = self.values.iter().filter(|value| value.study.verdict != Verdict::NotRun);
        run.map(|value| value.study.runs).min()
    }

    /// The share of resamples in which the claim holds; none if nothing was drawn.
    pub(crate) fn share(&self) -> Option<f64> {
        let trials: Vec<&Vec<bool>> = self.values.iter().filter_map(|value| value.study.trials.as_ref()).collect();
        let count = trials.first()?.len();
        let held = (0..count).filter(|index| self.holds_in(*index)).count();
        Some(held as f64 / count as f64)
    }

    /// Whether the claim holds in a resample.
    fn holds_in(&self, resample: usize) -> bool {
        self.values.iter().any(|value| match &value.study.trials {
            Some(trials) => trials[resample],
            None => value.study.verdict == Verdict::Holds,
        })
    }

    /// The verdict in words, with its uncertainty.
    pub(crate) fn words(&self) -> String {
        match &self.values[..] {
            [value] if self.unknown.is_none() => value.study.words(),
            values => words_of_unknown(values) + if self.runs() == Some(1) { " (1 run)" } else { "" },
        }
    }

    /// What stands in the place of numbers where there is an unknown key.
    pub(crate) fn unknown_note(&self) -> Option<String> {
        Some(format!("{} of {}, which the source does not give", plural(self.values.len(), "value"), self.unknown?))
    }

    /// The evaluation with each reference: at the value of the unknown key at which it holds, if there is one.
    pub(crate) fn references(&self) -> Vec<(&str, &Evaluation)> {
        let all = || self.values.iter().flat_map(|value| &value.references);
        let best = |name: &str| {
            let of_name = || all().filter(|(other, _)| other == name).map(|(_, evaluation)| evaluation);
            of_name().find(|evaluation| evaluation.verdict == Verdict::Holds).or_else(|| of_name().next())
        };
        unique(all().map(|(name, _)| name.as_str())).into_iter().filter_map(|name| Some((name, best(name)?))).collect()
    }
}

/// `holds at 20ms and 40ms, not decided at 10ms`, `holds at none of 4 values`.
fn words_of_unknown(values: &[ValueResult]) -> String {
    let at = |verdict: Verdict| {
        let values = values.iter().filter(|value| value.study.verdict == verdict);
        let names: Vec<&str> = values.map(|value| value.value.as_str()).collect();
        let (last, first) = names.split_last()?;
        let list = if first.is_empty() { (*last).to_owned() } else { format!("{} and {last}", first.join(", ")) };
        Some(format!("{} at {list}", verdict.label()))
    };
    let open: Vec<String> = [at(Verdict::Holds), at(Verdict::Undecided)].into_iter().flatten().collect();
    if !open.is_empty() {
        return open.join(", ");
    }
    match values.iter().filter(|value| value.study.verdict == Verdict::Fails).count() {
        0 => Verdict::NotRun.label().to_owned(),
        count => format!("holds at none of {}", plural(count, "value")),
    }
}

/// What stands below a claim: its note, and why it is expected to fail.
pub(crate) fn notes(claim: &Claim) -> impl Iterator<Item = String> {
    let reason = |reason: &String| (!reason.is_empty()).then(|| format!("expected to fail: {reason}"));
    [Some(claim.note.clone()).filter(|note| !note.is_empty()), reason(&claim.expected_failure)].into_iter().flatten()
}

/// Evaluates the study's claims.
pub(crate) fn evaluate_claims<'s>(study: &'s Study<'_>) -> Claims<'s> {
    let mut resamples = Resamples::default();
    let evaluate = |claim| evaluate_claim(study, claim, &mut resamples);
    let results: Vec<ClaimResult<'s>> = study.layout.claims.iter().map(evaluate).collect();
    Claims { tally: Tally::of(&results), results }
}

fn evaluate_claim<'s>(study: &Study<'_>, claim: &'s Claim, resamples: &mut Resamples) -> ClaimResult<'s> {
    let keys: Vec<&String> = std::iter::once(&claim.of).chain(&claim.each).chain(&claim.unknown).collect();
    let cells = study.cells_in_scope(&claim.scope, &keys);
    let cells: Vec<&SweepCell<'_>> = cells.iter().map(|(_, cell)| cell).collect();
    let setting = |(setting, cells): (&str, Vec<&SweepCell<'_>>)| {
        let values = split(&cells, claim.unknown.as_ref());
        let values = values.into_iter().map(|(value, cells)| evaluate_value(study, claim, value, &cells, resamples));
        let setting = claim.each.as_ref().map_or(String::new(), |key| format!("{} {setting}", short_names(&[key])[0]));
        SettingResult { setting, values: values.collect(), unknown: claim.unknown.as_ref() }
    };
    ClaimResult { claim, settings: split(&cells, claim.each.as_ref()).into_iter().map(setting).collect() }
}

/// The cells of each value of a key; without a key, all.
fn split<'c>(cells: &[&'c SweepCell<'c>], key: Option<&String>) -> Vec<(&'c str, Vec<&'c SweepCell<'c>>)> {
    let Some(key) = key else { return vec![("", cells.to_vec())] };
    let values = unique(cells.iter().map(|cell| cell.parameter(key)));
    let with_value = |value| cells.iter().copied().filter(|cell| cell.parameter(key) == value).collect();
    values.into_iter().map(|value| (value, with_value(value))).collect()
}

fn evaluate_value(
    study: &Study<'_>,
    claim: &Claim,
    value: &str,
    cells: &[&SweepCell<'_>],
    resamples: &mut Resamples,
) -> ValueResult {
    let unit = name_and_unit_in(&claim.scope, &claim.value).1;
    let mut evaluation =
        |sample: &dyn Fn(&SweepCell<'_>) -> Option<Sample>| match Contest::new(claim, groups(claim, cells, sample)) {
            Ok(contest) => Evaluation::of_runs(&contest, unit, resamples),
            Err(reason) => Evaluation::not_run(reason),
        };
    let own = |cell: &SweepCell<'_>| sample(cell, &claim.value, &claim.scope);
    let theirs = |cell: &SweepCell<'_>| own(&cell.baseline_cell()?);
    let compared =
        !trajectory::NAMES.contains(&claim.value.as_str()) && cells.iter().any(|cell| theirs(cell).is_some());
    ValueResult {
        value: value.to_owned(),
        study: evaluation(&own),
        baseline: compared.then(|| evaluation(&theirs)),
        references: published::evaluations(study, claim, |sample| groups(claim, cells, sample)),
    }
}

/// The samples of the cells with each value of the claim's key.
fn groups<'c>(
    claim: &Claim,
    cells: &[&'c SweepCell<'c>],
    sample: &dyn Fn(&SweepCell<'_>) -> Option<Sample>,
) -> Vec<Group<'c>> {
    let is_finite = |sample: &Sample| sample.estimate().is_some_and(|estimate| estimate.mean.is_finite());
    let samples = |cells: Vec<&SweepCell<'_>>| cells.iter().map(|cell| sample(cell).filter(is_finite)).collect();
    split(cells, Some(&claim.of)).into_iter().map(|(name, cells)| (name, samples(cells))).collect()
}
