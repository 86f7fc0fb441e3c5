//! The claims of several studies of one scenario: with different seeds, do their verdicts agree? With different algorithms, what
//! holds of which?

use super::{Claims, SettingResult, Verdict, evaluate_claims};
use crate::number::format_number;
use crate::study::Study;

/// The verdicts on the claims of one study.
#[derive(Clone, Debug)]
pub struct ClaimColumn {
    heading: String,
    claims: Vec<ClaimCell>,
}

/// The verdict on one claim.
#[derive(Clone, Debug)]
struct ClaimCell {
    claim: String,
    verdict: Verdict,
    share: Option<f64>,
    /// The number that decides, if there is one.
    figure: Option<f64>,
}

impl ClaimColumn {
    /// The verdicts of a study, under a heading.
    #[must_use]
    pub fn of(heading: &str, study: &Study<'_>) -> Self {
        let Claims { results, .. } = evaluate_claims(study);
        let cell = |says: &str, setting: &SettingResult<'_>| ClaimCell {
            claim: [says, &setting.setting].into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>().join("; "),
            verdict: setting.verdict(),
            share: setting.share(),
            figure: match &setting.values[..] {
                [value] => value.study.figure,
                _ => None,
            },
        };
        let cells = results.iter().flat_map(|result| {
            result.settings.iter().map(|setting| cell(&result.claim.says, setting)).collect::<Vec<_>>()
        });
        Self { heading: heading.to_owned(), claims: cells.collect() }
    }
}

impl ClaimCell {
    /// The number that decides, and the verdict.
    fn verdict_text(&self) -> String {
        let figure = self.figure.map_or(String::new(), |figure| format!("{} ", format_number(figure)));
        let mark = match self.verdict {
            Verdict::Holds => "+",
            Verdict::Fails => "-",
            Verdict::FailsAsExpected => "(-)",
            Verdict::Undecided => "open",
            Verdict::NotRun => "not run",
        };
        figure + mark
    }

    /// The share in percent and the mark of a decided verdict.
    fn text(&self) -> String {
        let share = self.share.map_or(String::new(), |share| format!("{:.0} ", 100.0 * share));
        let mark = match self.verdict {
            Verdict::Holds => "+",
            Verdict::Fails | Verdict::FailsAsExpected => "-",
            Verdict::Undecided => "",
            Verdict::NotRun => "not run",
        };
        format!("{share}{mark}").trim_end().to_owned()
    }
}

/// A Markdown table: a line for each claim, a column for each study and for the runs of all together, and below it how often
/// the decided verdicts of the studies agree with that of all.
#[must_use]
pub fn claims_table(studies: &[ClaimColumn], all: &ClaimColumn) -> String {
    let headings: Vec<&str> = studies.iter().chain([all]).map(|column| column.heading.as_str()).collect();
    let mut out =
        format!("| claim | {} | + / open / - |\n|---|{}\n", headings.join(" | "), "---|".repeat(headings.len() + 1));
    for (index, pooled) in all.claims.iter().enumerate() {
        let cells = || studies.iter().filter_map(|study| study.claims.get(index));
        let count = |verdict| cells().filter(|cell| cell.verdict == verdict).count();
        let counts = [Verdict::Holds, Verdict::Undecided, Verdict::Fails].map(|verdict| count(verdict).to_string());
        let texts: Vec<String> = cells().chain([pooled]).map(ClaimCell::text).collect();
        out += &format!("| {} | {} | {} |\n", pooled.claim, texts.join(" | "), counts.join(" / "));
    }
    out + "\n" + &agreement(studies, all)
}

/// A Markdown table: a line for each claim, a column for each study, and the counts of the verdicts below.
#[must_use]
pub fn verdicts_table(studies: &[ClaimColumn]) -> String {
    let headings: Vec<&str> = studies.iter().map(|column| column.heading.as_str()).collect();
    let mut out = format!("| claim | {} |\n|---|{}\n", headings.join(" | "), "---|".repeat(headings.len()));
    let mut row = |name: &str, cells: Vec<String>| out += &format!("| {name} | {} |\n", cells.join(" | "));
    for (index, claim) in studies.first().iter().flat_map(|study| study.claims.iter().enumerate()) {
        let cell = |study: &ClaimColumn| study.claims.get(index).map_or(String::new(), ClaimCell::verdict_text);
        row(&claim.claim, studies.iter().map(cell).collect());
    }
    let verdicts = [
        ("hold (+)", Verdict::Holds),
        ("do not hold (-)", Verdict::Fails),
        ("do not hold, as expected", Verdict::FailsAsExpected),
        ("not decided (open)", Verdict::Undecided),
    ];
    for (name, verdict) in verdicts {
        let count =
            |study: &ClaimColumn| study.claims.iter().filter(|cell| cell.verdict == verdict).count().to_string();
        row(name, studies.iter().map(count).collect());
    }
    out
}

/// How often decided verdicts agree with those of all runs together.
fn agreement(studies: &[ClaimColumn], all: &ClaimColumn) -> String {
    let pairs = || studies.iter().flat_map(|study| study.claims.iter().zip(&all.claims));
    let is_decided =
        |cell: &ClaimCell| matches!(cell.verdict, Verdict::Holds | Verdict::Fails | Verdict::FailsAsExpected);
    let decided: Vec<_> = pairs().filter(|(cell, _)| is_decided(cell)).collect();
    let agree = decided.iter().filter(|(cell, pooled)| cell.verdict == pooled.verdict).count();
    let open = decided.iter().filter(|(_, pooled)| !is_decided(pooled)).count();
    format!(
        "Of {} verdicts {} are decided; {agree} of these agree with the verdict of all runs together, {} contradict it, and \
         of {open} all runs together decide nothing.\n",
        pairs().count(),
        decided.len(),
        decided.len() - agree - open
    )
}
