//! A contest in one value: the contestants from best to worst, each with its mean over settings that all of them have.

use super::difference::{Difference, difference, mean};
use super::words::{Words, list};
use crate::direction::{Direction, direction};
use crate::grid::{column_sample, unique};
use crate::layout::{BY_FLOW, Table};
use crate::number::{format_number, plural};
use crate::sample::Sample;
use crate::study::SweepCell;
use std::collections::BTreeMap;

/// One of those that are compared.
struct Contestant {
    name: String,
    /// A sample for each common setting.
    settings: Vec<Sample>,
}

pub(super) struct Contest {
    words: Words,
    /// From best to worst; of a value without a better direction from most to least.
    contestants: Vec<Contestant>,
}

impl Contest {
    /// The contest of the values of a key in a table's first value; without a key there is one contestant. None without
    /// a setting at which two have a value.
    pub(super) fn new(table: &Table, cells: &[SweepCell<'_>], key: Option<&String>) -> Option<Self> {
        let by = |cell: &SweepCell<'_>| key.map_or("", |key| cell.parameter(key)).to_owned();
        let keys = unique(cells.iter().flat_map(|cell| cell.parameters.keys()).filter(|other| Some(*other) != key));
        let setting = |cell: &SweepCell<'_>| keys.iter().map(|key| cell.parameter(key).to_owned()).collect::<Vec<_>>();
        let flow = cells.first()?.flow.clone().filter(|_| key.is_none_or(|key| key != BY_FLOW));
        let of_flow = cells.iter().filter(|cell| flow.is_none() || cell.flow == flow);
        let keyed = of_flow.filter_map(|cell| {
            column_sample(cell, table, 0).filter(is_finite).map(|sample| ((by(cell), setting(cell)), sample))
        });
        let in_order: Vec<((String, Vec<String>), Sample)> = keyed.collect();
        let names = unique(in_order.iter().map(|((name, _), _)| name.clone()));
        let mut settings = unique(in_order.iter().map(|((_, setting), _)| setting.clone()));
        let samples: BTreeMap<(String, Vec<String>), Sample> = in_order.into_iter().collect();
        let find = |name: &String, setting: &Vec<String>| samples.get(&(name.clone(), setting.clone()));
        settings.retain(|setting| names.iter().all(|name| find(name, setting).is_some()));
        let contestant = |name: &String| Contestant {
            name: name.clone(),
            settings: settings.iter().filter_map(|setting| find(name, setting).cloned()).collect(),
        };
        let mut contestants: Vec<Contestant> = names.iter().map(contestant).collect();
        if settings.is_empty() || contestants.is_empty() || (key.is_some() && contestants.len() < 2) {
            return None;
        }
        let direction = direction(&table.values[0].value);
        contestants.sort_by(|a, b| match direction {
            Direction::Lower => a.mean().total_cmp(&b.mean()),
            Direction::Higher | Direction::Neutral => b.mean().total_cmp(&a.mean()),
        });
        let varying =
            keys.iter().enumerate().filter(|(index, _)| settings.iter().any(|it| it[*index] != settings[0][*index]));
        let varying: Vec<&str> = varying.map(|(_, key)| key.as_str()).collect();
        let words = Words::new(table, flow.as_deref(), key, &varying, settings.len(), direction);
        Some(Self { words, contestants })
    }

    /// The value of the only contestant.
    pub(super) fn value(&self) -> Option<String> {
        let Words { subject, .. } = &self.words;
        let settings = &self.contestants.first()?.settings;
        let [sample] = &settings[..] else { return None };
        let estimate = sample.estimate()?;
        let half = estimate.half_text().filter(|half| half != "0");
        let half = half.map_or(String::new(), |half| format!(" ± {half}"));
        let seeds = match sample.identical_note() {
            Some(note) => note,
            None if sample.points.len() == 1 => "1 seed".to_owned(),
            None => format!("mean of {}", plural(sample.points.len(), "seed")),
        };
        Some(format!("{subject} is {} ({seeds}).", self.words.number(&(format_number(estimate.mean) + &half))))
    }

    /// The sentence on the best.
    pub(super) fn best(&self) -> Option<String> {
        let (best, next) = (self.contestants.first()?, self.contestants.get(1)?);
        let (words, count) = (&self.words, self.contestants.len());
        if self.contestants.iter().all(|contestant| contestant.mean() == 0.0) {
            return None;
        }
        let equal = self.equal_to(0);
        let text = match equal.len() {
            0 => {
                let of = if count > 2 { format!(", the next of {count}") } else { String::new() };
                format!(
                    "{}{} {} {}: {}, {} than {}{of}{}.{}",
                    words.settings,
                    words.subject_after(),
                    words.best(),
                    words.with(&[&best.name]),
                    words.number(&format_number(best.mean())),
                    words.difference(&best.against(next), next.mean()),
                    words.with(&[&next.name]),
                    self.chance(),
                    self.settings_won()
                )
            }
            ties if ties + 1 == count => self.no_difference(),
            _ => {
                let equal: Vec<&Contestant> = std::iter::once(best).chain(equal).collect();
                let names: Vec<&str> = equal.iter().map(|it| it.name.as_str()).collect();
                format!(
                    "{}{} {} {}, which do not differ ({}).",
                    words.settings,
                    words.subject_after(),
                    words.best(),
                    words.with(&names),
                    words.number(&list(&equal.iter().map(|it| format_number(it.mean())).collect::<Vec<_>>()))
                )
            }
        };
        Some(text)
    }

    /// The sentence on those that are not the best: which do not differ, and which is worst.
    pub(super) fn rest(&self) -> Option<String> {
        let (worst, words) = (self.contestants.last()?, &self.words);
        let mean = words.number(&format_number(worst.mean()));
        let lowest = format!("{} {}: {mean}", words.worst(), words.with(&[&worst.name]));
        match self.equal_to(0).len() {
            ties if ties + 1 == self.contestants.len() || self.contestants.len() < 3 => None,
            0 => {
                let (next, equal) = (&self.contestants[1], self.equal_to(1));
                let names: Vec<&str> =
                    std::iter::once(next).chain(equal.iter().copied()).map(|it| it.name.as_str()).collect();
                let is_last_among = equal.iter().any(|it| it.name == worst.name);
                match (equal.is_empty(), is_last_among) {
                    (true, _) => Some(format!("{lowest}.")),
                    (false, true) => Some(format!("{} {}.", words.next(), words.between(&names))),
                    (false, false) => Some(format!("{} {}. {lowest}.", words.next(), words.between(&names))),
                }
            }
            _ => Some(format!("{lowest}.")),
        }
    }

    /// The sentence where nobody differs from the best.
    fn no_difference(&self) -> String {
        let (words, first, last) = (&self.words, &self.contestants[0], &self.contestants[self.contestants.len() - 1]);
        let names: Vec<&str> = self.contestants.iter().map(|contestant| contestant.name.as_str()).collect();
        let means = match [first, last].map(|contestant| format_number(contestant.mean())) {
            [one, other] if one == other => one,
            [one, other] if self.contestants.len() == 2 => format!("{one} and {other}"),
            [one, other] if first.mean() < last.mean() => format!("{one} to {other}"),
            [one, other] => format!("{other} to {one}"),
        };
        let differing = (0..first.settings.len()).filter(|setting| !self.is_tied_at(*setting)).count();
        let though = match differing {
            0 => String::new(),
            count => format!(", but it does in {count} of these {}", first.settings.len()),
        };
        format!(
            "{}{} {} {}: {}{}{though}.",
            words.settings,
            words.subject_after(),
            words.equal(),
            words.between(&names),
            words.number(&means),
            self.chance()
        )
    }

    /// What is known of chance where there is no interval; nothing otherwise.
    fn chance(&self) -> &'static str {
        let samples = || self.contestants.iter().flat_map(|contestant| &contestant.settings);
        match () {
            () if samples().all(|sample| sample.points.len() == 1) => " (one run each)",
            () if samples().all(|sample| sample.identical) => " (identical runs for all seeds)",
            () => "",
        }
    }

    /// In how many settings no other contestant is better than the best; nothing of one setting.
    fn settings_won(&self) -> String {
        let best = &self.contestants[0];
        let count = best.settings.len();
        let is_beaten = |setting: &usize| {
            self.contestants[1..].iter().any(|other| {
                let against = difference_at(best, other, *setting);
                against.is_one && (against.mean < 0.0) == (best.mean() > other.mean())
            })
        };
        match (0..count).filter(|setting| !is_beaten(setting)).count() {
            _ if count == 1 => String::new(),
            won if won == count => format!(" No other is better in any of the {count}."),
            won => format!(" In {won} of the {count} no other is better."),
        }
    }

    /// Those after the contestant `index` that do not differ from it.
    fn equal_to(&self, index: usize) -> Vec<&Contestant> {
        let one = &self.contestants[index];
        self.contestants[index + 1..].iter().filter(|other| !one.against(other).is_one).collect()
    }

    /// Whether no two contestants differ at a setting.
    fn is_tied_at(&self, setting: usize) -> bool {
        let pairs = self.contestants.iter().enumerate();
        let mut pairs =
            pairs.flat_map(|(index, one)| self.contestants[index + 1..].iter().map(move |other| (one, other)));
        pairs.all(|(one, other)| !difference_at(one, other, setting).is_one)
    }
}

impl Contestant {
    fn mean(&self) -> f64 {
        mean(&self.settings)
    }

    fn against(&self, other: &Self) -> Difference {
        difference(&self.settings, &other.settings)
    }
}

fn difference_at(one: &Contestant, other: &Contestant, setting: usize) -> Difference {
    difference(&one.settings[setting..=setting], &other.settings[setting..=setting])
}

fn is_finite(sample: &Sample) -> bool {
    sample.estimate().is_some_and(|estimate| estimate.mean.is_finite())
}
