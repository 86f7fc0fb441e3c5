//! How many claims hold: in the runs, in their resamples, in published tables, and at each value of a key that the source
//! does not give.

use super::published::PUBLISHED;
use super::resamples::RESAMPLES;
use super::{ClaimResult, SettingResult, Verdict};
use crate::grid::unique;

/// How many claims hold. What has a verdict of its own counts as one.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Tally {
    pub(crate) holds: usize,
    pub(crate) fails: usize,
    pub(crate) expected: usize,
    pub(crate) undecided: usize,
    pub(crate) not_run: usize,
    /// Those with a verdict from one run.
    pub(crate) single: usize,
    /// The least and the greatest number of runs of an undecided claim.
    pub(crate) runs: Option<(usize, usize)>,
    /// The 90 % interval of the number that hold, from the joint resamples; none if nothing was drawn.
    pub(crate) interval: Option<(usize, usize)>,
    /// Of each reference with values of claims.
    pub(crate) references: Vec<ReferenceTally>,
    /// Of each key that the source does not give.
    pub(crate) unknown: Vec<UnknownTally>,
}

/// How many claims hold in the references of one name.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ReferenceTally {
    pub(crate) name: String,
    pub(crate) holds: usize,
    /// Those of which the reference has the values.
    pub(crate) claims: usize,
}

/// How many claims hold at each value of a key.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct UnknownTally {
    pub(crate) key: String,
    pub(crate) claims: usize,
    pub(crate) values: Vec<(String, usize)>,
}

impl Tally {
    /// The tally of these claims.
    pub(crate) fn of(results: &[ClaimResult<'_>]) -> Self {
        let settings: Vec<&SettingResult<'_>> = results.iter().flat_map(|result| &result.settings).collect();
        let count = |verdict| settings.iter().filter(|setting| setting.verdict() == verdict).count();
        let undecided = || settings.iter().filter(|setting| setting.verdict() == Verdict::Undecided);
        let undecided_runs = || undecided().filter_map(|setting| setting.runs());
        Self {
            holds: count(Verdict::Holds),
            fails: count(Verdict::Fails),
            expected: count(Verdict::FailsAsExpected),
            undecided: count(Verdict::Undecided),
            not_run: count(Verdict::NotRun),
            single: settings.iter().filter(|setting| setting.runs() == Some(1)).count(),
            runs: undecided_runs().min().zip(undecided_runs().max()),
            interval: interval(&settings),
            references: references(&settings),
            unknown: unknown(results),
        }
    }

    /// Those with values.
    pub(crate) fn run(&self) -> usize {
        self.holds + self.fails + self.expected + self.undecided
    }

    /// All, with values or without.
    pub(crate) fn total(&self) -> usize {
        self.run() + self.not_run
    }

    /// `4 hold, 12 do not hold, 6 not decided by 30 runs; 4 to 9 of 22 hold (90 % interval)`.
    pub(crate) fn counts(&self) -> String {
        let number = |count: usize, singular: &str, plural: &str| {
            (count > 0).then(|| format!("{count} {}", if count == 1 { singular } else { plural }))
        };
        let undecided = self.runs.map_or(String::new(), |(least, most)| match least == most {
            true => format!("not decided by {least} runs"),
            false => format!("not decided by {least} to {most} runs"),
        });
        let counts = [
            number(self.holds, "holds", "hold"),
            number(self.fails, "does not hold", "do not hold"),
            number(self.expected, "does not hold as expected", "do not hold as expected"),
            number(self.undecided, &undecided, &undecided),
            number(self.not_run, "not run", "not run"),
        ];
        let counts = counts.into_iter().flatten().collect::<Vec<_>>().join(", ");
        let single = match self.single {
            0 => String::new(),
            all if all == self.run() => " (1 run per cell)".to_owned(),
            some => format!(" ({some} of them with 1 run per cell)"),
        };
        let interval = self.interval.map_or(String::new(), |(low, high)| {
            let range = if low == high { low.to_string() } else { format!("{low} to {high}") };
            format!("; {range} of {} hold (90 % interval)", self.run())
        });
        counts + &single + &interval
    }

    /// A sentence on each reference and on each unknown key.
    pub(crate) fn sentences(&self) -> Vec<String> {
        let reference = |ReferenceTally { name, holds, claims }: &ReferenceTally| {
            let missing = match self.total() - claims {
                0 => String::new(),
                1 => "; 1 has no values there".to_owned(),
                missing => format!("; {missing} have no values there"),
            };
            let table = reference_name(name);
            format!("{holds} of {claims} claims hold in {table}{missing}.")
        };
        let unknown = |UnknownTally { key, claims, values }: &UnknownTally| {
            let counts: Vec<String> = values.iter().map(|(value, holds)| format!("{holds} at {value}")).collect();
            format!("The source does not give {key}. Claims that hold, of {claims}: {}.", counts.join(", "))
        };
        self.references.iter().map(reference).chain(self.unknown.iter().map(unknown)).collect()
    }
}

/// A reference in a sentence: `the published table`, `the table of ns-2.35`.
pub(crate) fn reference_name(name: &str) -> String {
    if name == PUBLISHED { "the published table".to_owned() } else { format!("the table of {name}") }
}

/// The 5 and the 95 % quantile of the number of claims that hold in a resample.
fn interval(settings: &[&SettingResult<'_>]) -> Option<(usize, usize)> {
    settings.iter().find_map(|setting| setting.share())?;
    let count = |index| settings.iter().filter(|setting| setting.holds_in(index)).count();
    let mut counts: Vec<usize> = (0..RESAMPLES).map(count).collect();
    counts.sort_unstable();
    Some((counts[RESAMPLES / 20], counts[RESAMPLES - 1 - RESAMPLES / 20]))
}

fn references(settings: &[&SettingResult<'_>]) -> Vec<ReferenceTally> {
    let all: Vec<(&str, Verdict)> = settings
        .iter()
        .flat_map(|setting| setting.references())
        .map(|(name, evaluation)| (name, evaluation.verdict))
        .collect();
    let of_name = |name: &str| {
        let verdicts = || all.iter().filter(|(other, _)| *other == name);
        let holds = verdicts().filter(|(_, verdict)| *verdict == Verdict::Holds).count();
        ReferenceTally { name: name.to_owned(), holds, claims: verdicts().count() }
    };
    unique(all.iter().map(|(name, _)| *name)).into_iter().map(of_name).collect()
}

fn unknown(results: &[ClaimResult<'_>]) -> Vec<UnknownTally> {
    let keys = unique(results.iter().filter_map(|result| result.claim.unknown.as_ref()));
    let of_key = |key: &String| {
        let with_key = results.iter().filter(|result| result.claim.unknown.as_ref() == Some(key));
        let settings: Vec<&SettingResult<'_>> = with_key.flat_map(|result| &result.settings).collect();
        let values = unique(settings.iter().flat_map(|setting| &setting.values).map(|value| value.value.as_str()));
        let holds_at = |setting: &&&SettingResult<'_>, name: &str| {
            setting.values.iter().any(|value| value.value == name && value.study.verdict == Verdict::Holds)
        };
        let count = |name: &str| settings.iter().filter(|setting| holds_at(setting, name)).count();
        let values = values.into_iter().map(|name| (name.to_owned(), count(name))).collect();
        UnknownTally { key: key.clone(), claims: settings.len(), values }
    };
    keys.into_iter().map(of_key).collect()
}
