//! The distribution of the measures over many worlds, and the worst of them.

use crate::{Judgement, KINDS, MEASURES, Measure, Outcome, Part, World, draw, judge};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Number of worst worlds per measure in the document.
const WORST: usize = 100;
/// Number of worlds with a kind from which on the terminal shows that kind.
const LEAST_OF_KIND: usize = 10;
/// Percentiles of a measure.
const PERCENTILES: [u32; 7] = [1, 5, 25, 50, 75, 95, 99];

/// The numbers of worlds that a measure judges, and that pass.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// Worlds in which the measure applies.
    pub judged: usize,
    /// Of these, those within the bound.
    pub passed: usize,
}

/// One measure over all worlds.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The measure.
    pub measure: Measure,
    /// For all seeds, for even ones (tune), and for odd ones (judge).
    pub verdicts: [Verdict; 3],
    /// The percentiles 1, 5, 25, 50, 75, 95 and 99.
    pub percentiles: Vec<f64>,
}

/// The judgements of many worlds.
#[derive(Clone, Debug, PartialEq)]
pub struct Tally {
    /// The name of the algorithm.
    pub algorithm: String,
    /// By seed.
    pub judgements: Vec<Judgement>,
}

impl Verdict {
    fn of(values: impl Iterator<Item = (Measure, f64)>) -> Self {
        values.fold(Self::default(), |Self { judged, passed }, (measure, value)| Self {
            judged: judged + 1,
            passed: passed + usize::from(measure.passes(value)),
        })
    }

    /// The share that passes; 1 if nothing is judged.
    #[must_use]
    pub fn share(self) -> f64 {
        if self.judged == 0 { 1.0 } else { self.passed as f64 / self.judged as f64 }
    }

    /// The share in percent; a dash if nothing is judged.
    fn percent(self) -> String {
        if self.judged == 0 { "-".to_owned() } else { format!("{:.1}", 100.0 * self.share()) }
    }

    /// The tally for the document, without a share if nothing is judged.
    fn document(self) -> Value {
        let share = (self.judged > 0).then(|| self.share());
        json!({ "judged": self.judged, "passed": self.passed, "share": share })
    }
}

impl Tally {
    /// Judges the worlds that have all outcomes: the algorithm's, and both of CUBIC.
    #[must_use]
    pub fn new(
        algorithm: &str,
        outcomes: &BTreeMap<u64, Outcome>,
        [cubic, again]: [&BTreeMap<u64, Outcome>; 2],
    ) -> Self {
        let judgement = |(seed, outcome): (&u64, &Outcome)| {
            Some(judge(&draw(*seed), outcome, [cubic.get(seed)?, again.get(seed)?]))
        };
        let judgements = outcomes.iter().filter_map(judgement).collect();
        Self { algorithm: algorithm.to_owned(), judgements }
    }

    /// One row per measure.
    #[must_use]
    pub fn rows(&self) -> Vec<Row> {
        MEASURES.iter().enumerate().map(|(index, measure)| self.row(index, *measure)).collect()
    }

    /// Number of worlds that pass every measure that applies.
    #[must_use]
    pub fn all(&self) -> Verdict {
        let passes = |judgement: &&Judgement| {
            let values = MEASURES.iter().zip(&judgement.values);
            values.filter_map(|(measure, value)| Some(measure.passes((*value)?))).all(|passes| passes)
        };
        Verdict { judged: self.judgements.len(), passed: self.judgements.iter().filter(passes).count() }
    }

    fn row(&self, index: usize, measure: Measure) -> Row {
        let of = |part: Option<Part>| {
            let judgements = self.judgements.iter();
            let judgements = judgements.filter(|judgement| part.is_none_or(|part| part == Part::of(judgement.seed)));
            Verdict::of(judgements.filter_map(|judgement| Some((measure, judgement.values[index]?))))
        };
        let mut values: Vec<f64> = self.judgements.iter().filter_map(|judgement| judgement.values[index]).collect();
        values.sort_by(f64::total_cmp);
        let percentile = |percent: &u32| {
            let rank = (*percent as usize * values.len()).div_ceil(100).clamp(1, values.len().max(1));
            values.get(rank - 1).copied().unwrap_or(f64::NAN)
        };
        let verdicts = [of(None), of(Some(Part::Tune)), of(Some(Part::Judge))];
        Row { measure, verdicts, percentiles: PERCENTILES.iter().map(percentile).collect() }
    }

    /// For the worlds with each of [`KINDS`]: all measures together, and each of [`MEASURES`]. The kinds with the smallest
    /// share of worlds that pass come first.
    #[must_use]
    pub fn kinds(&self) -> Vec<(&'static str, Verdict, [Verdict; 4])> {
        let of_kind = |kind: &'static str| {
            let judgements = self.judgements.iter().filter(|judgement| draw(judgement.seed).kinds.contains(kind));
            let part = Self { algorithm: self.algorithm.clone(), judgements: judgements.cloned().collect() };
            let rows = part.rows();
            (kind, part.all(), [0, 1, 2, 3].map(|index| rows[index].verdicts[0]))
        };
        let mut kinds: Vec<_> = KINDS.into_iter().map(of_kind).collect();
        kinds.sort_by(|(_, a, _), (_, b, _)| a.share().total_cmp(&b.share()));
        kinds
    }

    /// The worlds that do not pass a measure, the worst first, at most `count`.
    #[must_use]
    pub fn worst(&self, measure: Measure, count: usize) -> Vec<(&Judgement, f64)> {
        let index = MEASURES.iter().position(|other| *other == measure).unwrap_or_default();
        let values = self.judgements.iter().filter_map(|judgement| Some((judgement, judgement.values[index]?)));
        let mut worst: Vec<(&Judgement, f64)> = values.filter(|(_, value)| !measure.passes(*value)).collect();
        worst.sort_by(|(_, a), (_, b)| if measure.is_worse_if_greater() { b.total_cmp(a) } else { a.total_cmp(b) });
        worst.truncate(count);
        worst
    }

    /// The document that `--json` prints.
    #[must_use]
    pub fn document(&self) -> Value {
        let measure = |row: Row| {
            let percentiles = PERCENTILES.iter().zip(&row.percentiles);
            let percentiles: serde_json::Map<String, Value> =
                percentiles.map(|(percent, value)| (format!("p{percent}"), json!(value))).collect();
            let worst: Vec<Value> = self.worst(row.measure, WORST).into_iter().map(worst).collect();
            let [all, tune, judge] = row.verdicts.map(Verdict::document);
            json!({
                "measure": row.measure.name(), "bound": row.measure.bound(), "all": all, "tune": tune, "judge": judge,
                "percentiles": percentiles, "worst": worst,
            })
        };
        let measures: Vec<Value> = self.rows().into_iter().map(measure).collect();
        let kind = |(kind, all, measures): (&str, Verdict, [Verdict; 4])| json!({ "kind": kind, "all": all.document(), "measures": measures.map(Verdict::document) });
        let kinds: Vec<Value> = self.kinds().into_iter().map(kind).collect();
        json!({
            "algorithm": self.algorithm, "ropewalk_version": runner::VERSION, "commit": runner::COMMIT,
            "worlds": self.all().document(), "measures": measures, "kinds": kinds,
        })
    }

    /// The tables for the terminal, with the worst `count` worlds of each measure.
    #[must_use]
    pub fn text(&self, count: usize) -> String {
        let Verdict { judged, passed } = self.all();
        let mut out = format!(
            "{} against CUBIC in {judged} drawn worlds: {passed} pass all that they judge ({:.1} %)\n\n",
            self.algorithm,
            100.0 * self.all().share()
        );
        out += &format!("{:12} {:14} {:>6} {:>7} {:>7} {:>7}", "measure", "bound", "worlds", "pass %", "tune", "judge");
        PERCENTILES.iter().for_each(|percent| out += &format!(" {:>7}", format!("p{percent}")));
        out += "\n";
        for Row { measure, verdicts, percentiles } in self.rows() {
            out += &format!("{:12} {:14} {:>6}", measure.name(), measure.bound(), verdicts[0].judged);
            verdicts.iter().for_each(|verdict| out += &format!(" {:>7}", verdict.percent()));
            percentiles.iter().for_each(|value| out += &format!(" {value:>7.2}"));
            out += "\n";
        }
        out += &self.kinds_text(count);
        MEASURES.iter().for_each(|measure| out += &self.worst_text(*measure, count));
        out
    }

    fn kinds_text(&self, count: usize) -> String {
        let kinds = self.kinds().into_iter().filter(|(_, all, _)| all.judged >= LEAST_OF_KIND);
        let line = |(kind, all, measures): (&str, Verdict, [Verdict; 4])| {
            let shares: String =
                [all].iter().chain(&measures).map(|verdict| format!(" {:>12}", verdict.percent())).collect();
            format!("{kind:27} {:>6}{shares}\n", all.judged)
        };
        let lines: String = kinds.take(count).map(line).collect();
        let names: String = MEASURES.iter().map(|measure| format!(" {:>12}", measure.name())).collect();
        let head = format!("\n{:27} {:>6} {:>12}{names}\n", "pass % of worlds with", "worlds", "all");
        if lines.is_empty() { lines } else { head + &lines }
    }

    fn worst_text(&self, measure: Measure, count: usize) -> String {
        let worst = self.worst(measure, count);
        if worst.is_empty() {
            return String::new();
        }
        let mut out = format!("\nThe worst by \"{}\" ({})\n", measure.name(), measure.bound());
        for (judgement, value) in worst {
            let World { seed, about, .. } = draw(judgement.seed);
            let whom = judgement.worst_rival.as_ref().filter(|_| measure == Measure::Harm);
            let whom = whom.map(|name| format!(" ({name})")).unwrap_or_default();
            out += &format!("  {value:>7.2}  world {seed}{whom}: {about}\n");
        }
        out
    }
}

fn worst((judgement, value): (&Judgement, f64)) -> Value {
    let world = draw(judgement.seed);
    json!({ "seed": judgement.seed, "value": value, "rival": judgement.worst_rival, "world": world.about })
}
