//! The layout of a scenario, whose values are checked against what records and time series have.

use crate::copies;
use crate::layout::{self, BY_FLOW, FigureKind, Fit, Layout, Scope};
use crate::value;
use parse::{Error, suggest};
use scenario::{Cell, Scenario};

/// The layout of a scenario's report.
///
/// # Errors
/// A fault in a table, figure or claim; with line, key and a remedy.
pub fn layout(scenario: &Scenario) -> Result<Layout, Error> {
    let layout = layout::read(scenario)?;
    check(scenario, &layout)?;
    fits(scenario)?;
    Ok(layout)
}

/// The fitted constants of a scenario; without those whose cells a `--set` or the short form has taken away.
///
/// # Errors
/// A fault in a fit; with line, key and a remedy.
pub fn fits(scenario: &Scenario) -> Result<Vec<Fit>, Error> {
    let fits = layout::read_fits(scenario)?;
    let mut indexed = fits.iter().enumerate();
    indexed
        .try_for_each(|(index, fit)| check_value(scenario, &format!("fit.{index}.value"), &fit.value, &fit.scope))?;
    Ok(fits)
}

/// Checks that the values of tables, figures and claims are fields of a record or columns of a time series.
fn check(scenario: &Scenario, layout: &Layout) -> Result<(), Error> {
    let Layout { tables, figures, claims } = layout;
    for (index, table) in tables.iter().enumerate() {
        let key = format!("table.{index}.value");
        for column in &table.values {
            let flow = column.flow.as_ref().or(table.scope.flow.as_ref());
            check_value(scenario, &key, &column.value, &Scope { flow: flow.cloned(), ..table.scope.clone() })?;
        }
    }
    let in_series = ("a flow's time series has", value::figure_values());
    let mut figures = figures.iter().enumerate();
    figures.try_for_each(|(index, figure)| match (format!("figure.{index}.value"), figure.kind()) {
        (key, FigureKind::Lines) => check_name(scenario, &key, &figure.value, &in_series),
        (key, FigureKind::Stacked) => {
            let columns = ("shares over time need a column that adds up: there is", value::stacked_values());
            check_name(scenario, &key, &figure.value, &columns)
        }
        (key, FigureKind::Samples) => check_samples(scenario, &key, &figure.value, &figure.scope),
        (key, FigureKind::Scatter(against)) => {
            check_value(scenario, &key, &figure.value, &figure.scope)?;
            check_value(scenario, &format!("figure.{index}.against"), against, &figure.scope)
        }
        (key, _) => check_value(scenario, &key, &figure.value, &figure.scope),
    })?;
    let mut claims = claims.iter().enumerate();
    claims.try_for_each(|(index, claim)| {
        check_value(scenario, &format!("claim.{index}.value"), &claim.value, &claim.scope)
    })
}

/// Checks the value of a table, a claim, a fit or bars: a result, or an error against the baseline.
fn check_value(scenario: &Scenario, key: &str, name: &str, scope: &Scope) -> Result<(), Error> {
    let flow_names: Vec<&String> = scope.only.get(BY_FLOW).into_iter().flatten().chain(&scope.flow).collect();
    let subflow = flow_names.iter().any(|flow| flow.contains('/'));
    let flow = flow_names.is_empty() || flow_names.iter().any(|name| !name.contains('/'));
    let record = match (scope.is_timed(), flow) {
        (true, _) => "a flow's time series has",
        (false, true) => "a flow's result has",
        (false, false) => "a subflow's result has",
    };
    let (compared, name) = (value::baseline_values(), copies::split(name).0);
    if value::is_from_series(name) && scenario.cells.iter().any(|cell| cell.experiment.sample.is_none()) {
        return Err(scenario.error_at(key, &format!("`{name}` needs the time series"), "set `sample`"));
    }
    if scope.attainable.is_some() {
        check_attainable(scenario, key, name, scope)?;
    }
    if !scope.is_timed() && copies::is_summary(name) {
        let message = format!("`{name}` has many samples per run, and not one number");
        let help =
            format!("{name}.mean, .p50, .p95, .p99, .min or .max; a figure with `distribution` draws all samples");
        return Err(scenario.error_at(key, &message, &help));
    }
    if !compared.iter().any(|known| known == name) {
        let baseline_names = if scenario.baseline.is_some() { compared } else { Vec::new() };
        let kinds = [(flow, false), (subflow, true)].into_iter().filter(|(is_named, _)| *is_named);
        let values = kinds.flat_map(|(_, subflow)| value::table_values(subflow, scope.is_timed()));
        let values = values.chain(baseline_names).collect();
        return check_name(scenario, key, name, &(record, values));
    }
    let needs = |requirement: &str, help: &str| scenario.error_at(key, &format!("`{name}` needs {requirement}"), help);
    match &scenario.baseline {
        None => Err(needs("a baseline", "baseline = \"FOLDER\": results to compare with")),
        Some(_) if scenario.cells.iter().any(|cell| cell.experiment.sample.is_none()) => {
            Err(needs("the time series", "set `sample`"))
        }
        Some(_) => Ok(()),
    }
}

/// Checks the value of a distribution of samples: a delay of the flow's or subflow's result.
fn check_samples(scenario: &Scenario, key: &str, name: &str, scope: &Scope) -> Result<(), Error> {
    check_value(scenario, key, &format!("{name}.p50"), scope)
}

/// Checks that a value can be a share of what is attainable: a rate, in cells whose paths have a capacity.
fn check_attainable(scenario: &Scenario, key: &str, name: &str, scope: &Scope) -> Result<(), Error> {
    if !name.ends_with("_mbps") {
        let message = format!("`{name}` is no rate, of which `attainable` could make a share");
        return Err(scenario.error_at(key, &message, "a value in Mbit/s, such as goodput_mbps"));
    }
    let is_in_scope = |cell: &&Cell| scope.contains(&cell.parameters.iter().cloned().collect());
    let mut cells = scenario.cells.iter().filter(is_in_scope);
    if cells.all(|cell| cell.experiment.capacity_mbps().is_some()) {
        return Ok(());
    }
    let help = "each path needs a rate or trace and links of its own, which no event changes";
    Err(scenario.error_at(key, "what the paths can carry is not known, so `attainable` has no meaning", help))
}

fn check_name(scenario: &Scenario, key: &str, name: &str, (record, values): &(&str, Vec<String>)) -> Result<(), Error> {
    if values.iter().any(|known| known == name) {
        return Ok(());
    }
    let help = suggest(name, &values.iter().map(String::as_str).collect::<Vec<_>>());
    Err(scenario.error_at(key, &format!("{record} no `{name}`"), &help))
}
