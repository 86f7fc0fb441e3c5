//! Captions of tables and figures, for the terminal and the page.

use crate::copies;
use crate::grid::Grid;
use crate::layout::{Scope, Table};
use crate::number::{format_number, name_and_unit_in, name_with_unit_in};
use crate::study::{Study, short_names};

/// The caption of a grid.
pub(crate) fn caption(study: &Study<'_>, table: &Table, grid: &Grid) -> String {
    let flow_suffix = table.scope.flow.as_ref().map_or(String::new(), |flow| format!(" of flow {flow}"));
    let time = time_range(&table.scope);
    let mean = if grid.has_intervals() { format!(": mean over seeds {}", study.seeds()) } else { String::new() };
    let value = || name_with_unit_in(&table.scope, &table.values[0].value) + &flow_suffix + &time;
    let value = table.columns.as_ref().map_or(String::new(), |_| value());
    // A title that is the value's name is not said twice.
    let is_name = table.title.eq_ignore_ascii_case(&name_and_unit_in(&table.scope, &table.values[0].value).0);
    let title = if is_name && !value.is_empty() { String::new() } else { table.title.clone() };
    let parts = [title, capitalise(&value)];
    let name = parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(": ");
    let mean = if name.is_empty() { capitalise(mean.trim_start_matches(": ")) } else { mean };
    let parts = [format!("{name}{mean}"), grid.panel.clone(), copies::caption(study, table)];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("; ")
}

/// The name of a table: its title, or what it shows.
pub(crate) fn table_name(table: &Table) -> String {
    match table.title.as_str() {
        "" => name_with_unit_in(&table.scope, &table.values[0].value),
        title => title.to_owned(),
    }
}

/// ` in the first 10 s`, ` from 5 s to 20 s`, or nothing.
pub(crate) fn time_range(scope: &Scope) -> String {
    match (scope.from_s, scope.until_s) {
        (None, None) => String::new(),
        (None, Some(until_s)) => format!(" in the first {} s", format_number(until_s)),
        (Some(from_s), None) => format!(" from {} s on", format_number(from_s)),
        (Some(from_s), Some(until_s)) => format!(" from {} s to {} s", format_number(from_s), format_number(until_s)),
    }
}

/// `text` with a capital first letter.
pub(crate) fn capitalise(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |initial| initial.to_uppercase().chain(chars).collect())
}

/// The heading of the row names.
pub(crate) fn corner(table: &Table) -> String {
    let keys: Vec<&str> = table.rows.iter().chain(&table.columns).map(String::as_str).collect();

    let names = short_names(&keys);
    let (rows, columns) = names.split_at(table.rows.len());
    std::iter::once(rows.join(", "))
        .chain(columns.iter().map(|name| (*name).to_owned()))
        .collect::<Vec<_>>()
        .join(" \\ ")
}

/// Scenario, seeds and program version in one line: what is needed to reproduce the numbers.
pub(crate) fn footer(study: &Study<'_>) -> String {
    let Study { scenario, version, commit, .. } = study;
    let seeds = study.seeds();
    let plural = if seeds.contains(' ') { "seeds" } else { "seed" };
    format!("{scenario}, {plural} {seeds}, ropewalk {version} {commit}")
}
