//! The verdict on a claim, and what it rests on.

use super::contest::Contest;
use super::resamples::Resamples;

/// Whether a claim holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Holds,
    Fails,
    /// It fails, as the claim says that it will.
    FailsAsExpected,
    /// The runs decide neither way.
    Undecided,
    /// Values that decide the claim are missing.
    NotRun,
}

impl Verdict {
    /// The verdict in words.
    pub(crate) fn label(self) -> &'static str {
        match self {
            Self::Holds => "holds",
            Self::Fails => "does not hold",
            Self::FailsAsExpected => "does not hold, as expected",
            Self::Undecided => "not decided",
            Self::NotRun => "not run",
        }
    }

    /// The verdict's name in JSON.
    pub(crate) fn key(self) -> &'static str {
        match self {
            Self::Holds => "holds",
            Self::Fails => "does_not_hold",
            Self::FailsAsExpected => "expected_failure",
            Self::Undecided => "undecided",
            Self::NotRun => "not_run",
        }
    }

    /// The verdict on a test that decides without doubt.
    fn certain(holds: bool) -> Self {
        if holds { Self::Holds } else { Self::Fails }
    }

    /// The verdict from the means and from the share of resamples in which the test holds. Both have to agree: noise alone
    /// drives the greatest and the least of many means apart.
    fn from_share(holds: bool, share: f64) -> Self {
        match holds {
            true if share >= 1.0 - UNDECIDED_FROM => Self::Holds,
            false if share <= UNDECIDED_FROM => Self::Fails,
            _ => Self::Undecided,
        }
    }
}

/// The minimum share of resamples on either side that leaves a claim undecided.
const UNDECIDED_FROM: f64 = 0.05;

/// A verdict with the numbers that decide it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Evaluation {
    pub(crate) verdict: Verdict,
    /// The numbers that decide it, as text.
    pub(crate) numbers: String,
    /// The one number that the test limits, if it limits one: a ratio, or the value of one name.
    pub(crate) figure: Option<f64>,
    /// The minimum number of runs of a cell; 0 of published values.
    pub(crate) runs: usize,
    /// Whether the test holds in each resample; none if nothing was drawn.
    pub(crate) trials: Option<Vec<bool>>,
}

impl Evaluation {
    /// A claim whose test lacks values.
    pub(crate) fn not_run(reason: String) -> Self {
        Self { verdict: Verdict::NotRun, numbers: reason, figure: None, runs: 0, trials: None }
    }

    /// The verdict on values that are known without doubt, as published ones.
    pub(crate) fn certain(contest: &Contest<'_>, unit: &str) -> Self {
        let verdict = contest.expected(Verdict::certain(contest.holds()));
        Self { verdict, numbers: contest.numbers(unit), figure: contest.figure(), runs: 0, trials: None }
    }

    /// The verdict from the runs. Where they are identical nothing is drawn, and one run has no known uncertainty.
    pub(crate) fn of_runs(contest: &Contest<'_>, unit: &str, resamples: &mut Resamples) -> Self {
        let (runs, is_drawn) = contest.runs();
        let certain = Self { runs, ..Self::certain(contest, unit) };
        if !is_drawn || runs < 2 {
            return certain;
        }
        let trials = contest.trials(resamples);
        let verdict = contest.expected(Verdict::from_share(contest.holds(), share(&trials)));
        Self { verdict, trials: Some(trials), ..certain }
    }

    /// The share of resamples in which the test holds; none if nothing was drawn.
    pub(crate) fn share(&self) -> Option<f64> {
        self.trials.as_deref().map(share)
    }

    /// The verdict in words, with its uncertainty.
    pub(crate) fn words(&self) -> String {
        let label = self.verdict.label();
        match (self.verdict, self.share()) {
            (Verdict::Undecided, Some(share)) => {
                format!("{label} by {} runs: holds in {:.0} % of resamples", self.runs, 100.0 * share)
            }
            _ if self.runs == 1 => format!("{label} (1 run)"),
            _ => label.to_owned(),
        }
    }
}

fn share(trials: &[bool]) -> f64 {
    trials.iter().filter(|holds| **holds).count() as f64 / trials.len() as f64
}
