//! Claims put to the published rows: the references of tables that show the same value.

use super::contest::{Contest, Group};
use super::verdict::Evaluation;
use crate::grid::{column_heading, is_comparable, unique};
use crate::layout::{BY_FLOW, Claim, Reference, Scope, Table};
use crate::number::name_and_unit_in;
use crate::sample::Sample;
use crate::study::{Study, SweepCell};

/// The name of a reference with the numbers of the source itself.
pub(crate) const PUBLISHED: &str = "published";

/// The evaluation with the values of each reference that has all of the tested values, by the reference's name.
pub(crate) fn evaluations<'g>(
    study: &Study<'_>,
    claim: &Claim,
    groups: impl Fn(&dyn Fn(&SweepCell<'_>) -> Option<Sample>) -> Vec<Group<'g>>,
) -> Vec<(String, Evaluation)> {
    let tables: Vec<&Table> = study.layout.tables.iter().filter(|table| shows(table, claim)).collect();
    let references = tables.iter().flat_map(|table| &table.references);
    let names = unique(references.map(|reference| reference.name.as_str()));
    let unit = name_and_unit_in(&claim.scope, &claim.value).1;
    let evaluation = |name: &&str| {
        let sample = |cell: &SweepCell<'_>| {
            let value = tables.iter().find_map(|table| published_value(table, claim, cell, name))?;
            Some(Sample { points: vec![(0, value)], ..Sample::default() })
        };
        let contest = Contest::new(claim, groups(&sample)).ok()?;
        Some(((*name).to_owned(), Evaluation::certain(&contest, unit)))
    };
    names.iter().filter_map(evaluation).collect()
}

/// Whether a table goes by the claim's key, over the same part of the run.
fn shows(table: &Table, claim: &Claim) -> bool {
    let (shown, claimed) = (&table.scope, &claim.scope);
    let times = |scope: &Scope| (scope.from_s, scope.until_s, scope.attainable);
    times(shown) == times(claimed) && table.rows.iter().chain(&table.columns).any(|key| *key == claim.of)
}

/// The value of a cell in the references of a table that have this name.
fn published_value(table: &Table, claim: &Claim, cell: &SweepCell<'_>, name: &str) -> Option<f64> {
    if !table.scope.contains(cell.parameters) {
        return None;
    }
    let first_flow = cell.runs.first().and_then(|run| run.flows.first()).map(|flow| flow.name.as_str());
    let flow = cell.flow.as_deref().or(claim.scope.flow.as_deref()).or(first_flow);
    let label = |key: &String| if key == BY_FLOW { flow.unwrap_or_default() } else { cell.parameter(key) };
    let row = table.rows.iter().map(label).collect::<Vec<_>>().join(", ");
    let by_flow = table.rows.iter().chain(&table.columns).any(|key| key == BY_FLOW);
    let shown = table.values.iter().filter(|column| {
        let shown_flow = column.flow.as_deref().or(table.scope.flow.as_deref()).or(first_flow);
        column.value == claim.value && (by_flow || shown_flow == flow)
    });
    let headings: Vec<String> = match &table.columns {
        Some(key) => shown.map(|_| label(key).to_owned()).collect(),
        None => shown.map(|column| column_heading(table, column)).collect(),
    };
    let mut references =
        table.references.iter().filter(|reference| reference.name == name && is_comparable(table, reference));
    references.find_map(|reference| headings.iter().find_map(|heading| lookup(reference, &row, heading)))
}

fn lookup(reference: &Reference, row: &str, column: &str) -> Option<f64> {
    let index = reference.columns.iter().position(|name| name == column)?;
    *reference.rows.iter().find(|(name, _)| name == row)?.1.get(index)?
}
