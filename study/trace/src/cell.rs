//! The one cell of a sweep that is traced.

use crate::page::Heading;
use scenario::{Cell, Scenario};

/// The one cell that has all these values of swept keys, `KEY=VALUE` each; a key may be shortened to its last parts.
///
/// # Errors
/// No cell has them, or several have; the text names the keys in which they differ.
pub fn find_cell<'s>(scenario: &'s Scenario, wanted: &[String]) -> Result<&'s Cell, String> {
    let has = |cell: &Cell, wanted: &str| {
        let (key, value) = wanted.split_once('=').unwrap_or((wanted, ""));
        let is_key = |name: &str| name == key || name.strip_suffix(key).is_some_and(|rest| rest.ends_with('.'));
        cell.parameters.iter().any(|(name, shown)| is_key(name) && shown == value)
    };
    let matching: Vec<&Cell> =
        scenario.cells.iter().filter(|cell| wanted.iter().all(|wanted| has(cell, wanted))).collect();
    match matching[..] {
        [cell] => Ok(cell),
        [] => {
            let all = scenario.cells.iter().collect::<Vec<_>>();
            Err(format!("no cell has {}; {}", wanted.join(" and "), choices(&all)))
        }
        _ => {
            let count = matching.len();
            Err(format!("a trace is of one run, but {count} cells match: add --cell KEY=VALUE; {}", choices(&matching)))
        }
    }
}

/// The swept keys in which these cells differ, with their values.
fn choices(cells: &[&Cell]) -> String {
    let mut keys: Vec<(&str, Vec<&str>)> = Vec::new();
    for (key, value) in cells.iter().flat_map(|cell| &cell.parameters) {
        let index = keys.iter().position(|(name, _)| name == key).unwrap_or_else(|| {
            keys.push((key, Vec::new()));
            keys.len() - 1
        });
        if !keys[index].1.contains(&value.as_str()) {
            keys[index].1.push(value);
        }
    }
    let several = keys.iter().filter(|(_, values)| values.len() > 1);
    several.map(|(key, values)| format!("{key} is {}", values.join(" | "))).collect::<Vec<_>>().join("; ")
}

impl Heading {
    /// What the page says of a run of `program`.
    #[must_use]
    pub fn of(scenario: &Scenario, cell: &Cell, seed: u64, program: &str) -> Self {
        let parameters = cell.parameters.iter().map(|(key, value)| (key.clone(), value.clone()));
        let facts = [("Seed", seed.to_string()), ("Program", format!("ropewalk {program}"))];
        let facts = facts.map(|(name, value)| (name.to_owned(), value));
        Self { title: scenario.title.clone(), facts: parameters.chain(facts).collect() }
    }
}
