//! The words of an answer.

use super::difference::Difference;
use super::{CASE, is_algorithmic, is_quantity};
use crate::caption::{capitalise, time_range};
use crate::direction::Direction;
use crate::layout::{BY_FLOW, Table};
use crate::number::{format_digits, format_half_width, format_number, name_and_unit_in};
use crate::study::short_names;

/// The most names that a sentence lists.
const MAX_NAMES: usize = 4;

/// What the sentences on a contest have in common.
pub(super) struct Words {
    /// The value with a capital letter: "Goodput of flow tcp".
    pub(super) subject: String,
    /// "Averaged over 6 values of delay, ", or nothing.
    pub(super) settings: String,
    is_plural: bool,
    unit: &'static str,
    direction: Direction,
    /// The key of the contestants.
    key: String,
}

impl Words {
    pub(super) fn new(
        table: &Table,
        flow: Option<&str>,
        key: Option<&String>,
        varying: &[&str],
        settings: usize,
        direction: Direction,
    ) -> Self {
        let (name, unit) = name_and_unit_in(&table.scope, &table.values[0].value);
        let flow = flow.or(table.values[0].flow.as_deref()).or(table.scope.flow.as_deref());
        let flow = flow.map_or(String::new(), |flow| format!(" of flow {flow}"));
        let settings = match varying {
            [] => String::new(),
            [CASE] => format!("Averaged over {settings} cases, "),
            [key] => format!("Averaged over {settings} values of {}, ", short_names(&[key])[0]),
            [..] if varying.len() > 3 => format!("Averaged over {settings} settings, "),
            keys => format!("Averaged over {settings} settings of {}, ", list(&short_names(keys))),
        };
        Self {
            subject: capitalise(&name) + &flow + &time_range(&table.scope),
            settings,
            is_plural: name.ends_with('s') && !name.ends_with("ss"),
            unit,
            direction,
            key: key.cloned().unwrap_or_default(),
        }
    }

    /// The subject as it stands after the settings.
    pub(super) fn subject_after(&self) -> String {
        let is_acronym =
            self.subject.chars().nth(1).is_some_and(char::is_uppercase) || self.subject.starts_with("Jain");
        match self.settings.is_empty() || is_acronym {
            true => self.subject.clone(),
            false => {
                let mut chars = self.subject.chars();
                chars.next().map_or_else(String::new, |initial| initial.to_lowercase().chain(chars).collect())
            }
        }
    }

    /// `is highest`, or `are lowest` of packets of which fewer are better.
    pub(super) fn best(&self) -> String {
        let best = if self.direction == Direction::Lower { "lowest" } else { "highest" };
        format!("{} {best}", if self.is_plural { "are" } else { "is" })
    }

    /// `does not differ`.
    pub(super) fn equal(&self) -> &'static str {
        if self.is_plural { "do not differ" } else { "does not differ" }
    }

    /// `It does not differ`.
    pub(super) fn next(&self) -> String {
        format!("{} {}", if self.is_plural { "They" } else { "It" }, self.equal())
    }

    /// `It is lowest`.
    pub(super) fn worst(&self) -> String {
        let worst = if self.direction == Direction::Lower { "highest" } else { "lowest" };
        format!("{} {worst}", if self.is_plural { "They are" } else { "It is" })
    }

    /// A number with the unit.
    pub(super) fn number(&self, text: &str) -> String {
        match self.unit {
            "" => text.to_owned(),
            unit => format!("{text} {unit}"),
        }
    }

    /// `15.2 ± 0.8 Mbit/s (49 %) more`.
    pub(super) fn difference(&self, difference: &Difference, other: f64) -> String {
        let half = difference.half_width.map(|half| format_half_width(half, difference.mean));
        let half = half.map_or(String::new(), |half| format!(" ± {half}"));
        let more = if difference.mean < 0.0 { "less" } else { "more" };
        if self.unit == "%" {
            return format!("{}{half} percentage points {more}", format_number(difference.mean.abs()));
        }
        let share = match difference.mean.abs() / other.abs() {
            share if share.is_finite() => {
                format!(" ({} %)", format_digits(100.0 * share, if share < 0.1 { 1 } else { 2 }))
            }
            _ => String::new(),
        };
        format!("{}{share} {more}", self.number(&(format_number(difference.mean.abs()) + &half)))
    }

    /// `with bbr and cubic`, `for flow tcp`, `with delay 20ms`, `in case wifi`.
    pub(super) fn with(&self, names: &[&str]) -> String {
        let preposition = if [CASE, BY_FLOW].contains(&self.key.as_str()) { "for" } else { "with" };
        format!("{preposition} {}", self.named(names))
    }

    /// `between bbr and cubic`, `between the 12 values of congestion`.
    pub(super) fn between(&self, names: &[&str]) -> String {
        match names.len() > MAX_NAMES {
            true => format!("between {} of {}", names.len(), self.several()),
            false => format!("between {}", self.named(names)),
        }
    }

    fn named(&self, names: &[&str]) -> String {
        let list = match names.len() > MAX_NAMES {
            true => format!("{} and {} more", names[..MAX_NAMES - 1].join(", "), names.len() - MAX_NAMES + 1),
            false => list(names),
        };
        let needs_key =
            !is_algorithmic(&self.key) && (self.key == BY_FLOW || names.iter().all(|name| is_quantity(name)));
        if needs_key { format!("{} {list}", short_names(&[&self.key])[0]) } else { list }
    }

    fn several(&self) -> String {
        match self.key.as_str() {
            BY_FLOW => "the flows".to_owned(),
            key => format!("the values of {}", short_names(&[key])[0]),
        }
    }
}

/// `a`, `a and b`, `a, b and c`.
pub(super) fn list<T: AsRef<str>>(names: &[T]) -> String {
    let names: Vec<&str> = names.iter().map(AsRef::as_ref).collect();
    match names.split_last() {
        Some((last, first)) if !first.is_empty() => format!("{} and {last}", first.join(", ")),
        _ => names.concat(),
    }
}
