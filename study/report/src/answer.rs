//! The answer that a report begins with: who is best in the main value of the first table, by how much, and what does
//! not differ. Without a table the main value is the goodput.
//!
//! The main value is a table's first. The contestants are the values of one key: algorithms or schedulers if they are
//! swept, otherwise flows, otherwise the rows. Each has its mean over the settings of the other keys, of which only those
//! count at which all contestants have a value.

mod contest;
mod difference;
mod words;

use crate::grid::unique;
use crate::layout::{BY_FLOW, Column, Scope, Table};
use crate::study::{Study, SweepCell};
use contest::Contest;

/// The key of cases, which are settings rather than contestants.
const CASE: &str = "case";

/// The most flows that are compared where a report has no table.
const MAX_FLOWS: usize = 12;

/// One sentence or two; none where the first table has no values, and where verdicts are the answer.
pub(crate) fn sentences(study: &Study<'_>) -> Vec<String> {
    if study.is_assessment() {
        return Vec::new();
    }
    let Some(table) = main_table(study) else { return Vec::new() };
    let keys: Vec<&String> = table.rows.iter().chain(&table.columns).collect();
    let cells: Vec<SweepCell<'_>> =
        study.cells_in_scope(&table.scope, &keys).into_iter().map(|(_, cell)| cell).collect();
    let contests = contested_keys(&table, &cells);
    let contest = |key: Option<&String>| Contest::new(&table, &cells, key);
    match &contests[..] {
        [] => contest(None).and_then(|contest| contest.value()).into_iter().collect(),
        [first, second, ..] if is_algorithmic(first) && is_algorithmic(second) => {
            let best = |key: &String| contest(Some(key)).and_then(|contest| contest.best());
            [first, second].into_iter().filter_map(best).collect()
        }
        [first, ..] => contest(Some(first))
            .map_or(Vec::new(), |contest| contest.best().into_iter().chain(contest.rest()).collect()),
    }
}

/// What the ± and the words of [`sentences`] mean; none where they compare nothing.
pub(crate) fn note(sentences: &[String]) -> Option<String> {
    let has_interval = sentences.iter().any(|sentence| sentence.contains('±') && sentence.contains(" than "));
    let has_tie = sentences.iter().any(|sentence| sentence.contains("not differ"));
    let paired = "paired by seed where the seeds are the same";
    let interval = has_interval.then(|| format!("± is half the 95 % confidence interval of the difference, {paired}."));
    let tie = has_tie.then(|| {
        format!(
            "Means do not differ if the 95 % confidence interval of their difference, {paired}, holds zero, or if they are \
             within 1 % of each other."
        )
    });
    let notes: Vec<String> = interval.into_iter().chain(tie).collect();
    (!notes.is_empty()).then(|| notes.join(" "))
}

/// The first table; without one a table of the goodput of the flows.
fn main_table(study: &Study<'_>) -> Option<Table> {
    let flows = study.runs.first()?.flows.len();
    let of_goodput = |value: &str, rows: &[&str]| Table {
        rows: rows.iter().map(|key| (*key).to_owned()).collect(),
        values: vec![Column { value: value.to_owned(), ..Column::default() }],
        scope: Scope::default(),
        ..Table::default()
    };
    study.layout.tables.first().cloned().or_else(|| match flows {
        0 => None,
        1 => Some(of_goodput("goodput_mbps", &[])),
        2..=MAX_FLOWS => Some(of_goodput("goodput_mbps", &[BY_FLOW])),
        _ => Some(of_goodput("mean_goodput_mbps", &[])),
    })
}

/// The keys with several values, that of the contestants first.
fn contested_keys(table: &Table, cells: &[SweepCell<'_>]) -> Vec<String> {
    let in_table: Vec<&String> = table.rows.iter().chain(&table.columns).collect();
    let swept = cells.iter().flat_map(|cell| cell.parameters.keys());
    let mut keys: Vec<&String> = unique(in_table.iter().copied().chain(swept));
    let values = |key: &str| unique(cells.iter().map(|cell| cell.parameter(key)).filter(|value| !value.is_empty()));
    keys.retain(|key| values(key).len() > 1);
    let class = |key: &&String| {
        let is_quantity = values(key).iter().all(|value| is_quantity(value));
        let is_in_table = in_table.contains(key);
        (!is_algorithmic(key), !is_in_table, **key != BY_FLOW, is_quantity, **key == CASE)
    };
    keys.sort_by_key(class);
    keys.into_iter().cloned().collect()
}

/// Whether the values of a key are algorithms, schedulers or stacks.
pub(crate) fn is_algorithmic(key: &str) -> bool {
    ["congestion", "scheduler", "stack"].contains(&key.rsplit('.').next().unwrap_or(key))
}

/// Whether a value is a number with its unit, as the sweep shows it: `20ms`, `0.5%`.
fn is_quantity(value: &str) -> bool {
    value.starts_with(|c: char| c.is_ascii_digit()) && !value.contains([',', ' '])
}

#[cfg(test)]
mod tests;
