//! `ropewalk fit`: whether the fitted constants of a scenario still meet their targets, and which constants would.

use super::run;
use crate::{Failure, output};
use record::Run;
use report::{Fit, FitValue};
use runner::Simulator;
use scenario::{Cell, Overrides, Scenario};
use std::path::PathBuf;
use store::Key;

/// Maximum number of constants that a search tries between its bounds.
const MAX_STEPS: usize = 12;
/// Digits of a constant that a search tries.
const DIGITS: i32 = 3;

/// The scenario whose constants are checked.
pub(super) struct Constants {
    /// A file, or a name of `ropewalk list scenarios`.
    pub(super) file: PathBuf,
    /// Number of parallel runs.
    pub(super) jobs: Option<u16>,
}

/// Examines every fit of the scenario; fails if one is stale.
pub(super) fn fit(arguments: &Constants) -> Result<(), Failure> {
    let scenario = run::find(&arguments.file, &Overrides::default(), true)?;
    runner::check(&scenario)?;
    let fits = report::fits(&scenario)?;
    let file = arguments.file.display();
    if fits.is_empty() {
        return Err(Failure::Usage(format!("{file} has no [[fit]]: none of its constants is declared as fitted")));
    }
    let mut stale = 0;
    for (index, fit) in fits.iter().enumerate() {
        check_chosen(arguments, &scenario, index, fit)?;
        stale += usize::from(!examine(arguments, fit)?);
    }
    let count = fits.len();
    if stale == 0 { Ok(()) } else { Err(Failure::Run(format!("{stale} of {count} fits of {file} are stale"))) }
}

/// Prints the value for the constant and, if that misses the target, a constant that meets it. Returns whether the constant
/// still meets the target.
fn examine(arguments: &Constants, fit: &Fit) -> Result<bool, Failure> {
    let found = measure(arguments, fit, fit.chosen)?;
    let is_met = fit.is_met(&found);
    let verdict = if is_met { "holds" } else { "stale" };
    output::print(&format!(
        "{}\n  target {} ± {:.3}{}\n  {verdict}: {}\n",
        fit.says,
        fit.target,
        fit.tolerance,
        if fit.source.is_empty() { String::new() } else { format!(" ({})", fit.source) },
        fit.describe(fit.chosen, &found)
    ))?;
    if !is_met {
        let better = search(fit.between, fit.target, fit.tolerance, |constant| measure(arguments, fit, constant))?;
        let text = match better {
            Some((constant, found)) => format!("use {}", fit.describe(constant, &found)),
            None => {
                let [low, high] = fit.between.map(|bound| fit.text(bound));
                format!("no constant from {low} to {high} was found to meet it")
            }
        };
        output::print(&format!("  {text}\n"))?;
    }
    Ok(is_met)
}

/// The value of a fit with this constant.
fn measure(arguments: &Constants, fit: &Fit, constant: f64) -> Result<FitValue, Failure> {
    let scenario = with_constant(arguments, fit, constant)?;
    let cells = (0..scenario.cells.len()).filter(|cell| is_in_scope(fit, &scenario.cells[*cell]));
    let keys: Vec<Key> = cells.flat_map(|cell| scenario.seeds.iter().map(move |seed| (cell, *seed))).collect();
    let runs = runner::run(&Simulator, &scenario, &keys, arguments.jobs.map(usize::from), &mut ())?;
    let runs: Vec<Run> = runs.into_iter().map(|(_, run)| run).collect();
    fit.measure(&runs).ok_or_else(|| Failure::Run(format!("a run has no {}: {}", fit.value, fit.says)))
}

fn with_constant(arguments: &Constants, fit: &Fit, constant: f64) -> Result<Scenario, Failure> {
    let sets = vec![format!("{}={}", fit.key, fit.text(constant))];
    run::find(&arguments.file, &Overrides { sets, quick: false }, true)
}

fn is_in_scope(fit: &Fit, cell: &Cell) -> bool {
    fit.scope.contains(&cell.parameters.iter().cloned().collect())
}

/// Refuses a `chosen` that is not the constant of the file, and a `key` that is swept: it has no single constant.
fn check_chosen(arguments: &Constants, scenario: &Scenario, index: usize, fit: &Fit) -> Result<(), Failure> {
    let set = with_constant(arguments, fit, fit.chosen)?;
    let mut cells = scenario.cells.iter().zip(&set.cells).filter(|(cell, _)| is_in_scope(fit, cell));
    if scenario.cells.len() == set.cells.len() && cells.all(|(cell, set)| cell.experiment == set.experiment) {
        return Ok(());
    }
    let message = format!("the cells of the fit do not have {} = {}", fit.key, fit.text(fit.chosen));
    let help = "the constant in the file, with the key that --set takes";
    Err(scenario.error_at(&format!("fit.{index}.chosen"), &message, help).into())
}

/// The constant between the bounds, with its value, that misses the target by at most half the tolerance plus half the
/// confidence interval. By bisection: the value has to rise or to fall from one bound to the other. None if the target is
/// not between the values there, or between two constants of three digits, or if the steps do not suffice.
fn search(
    [mut low, mut high]: [f64; 2],
    target: f64,
    tolerance: f64,
    mut measure: impl FnMut(f64) -> Result<FitValue, Failure>,
) -> Result<Option<(f64, FitValue)>, Failure> {
    let at_low = measure(low)?.mean - target;
    let at_high = measure(high)?.mean - target;
    if at_low * at_high > 0.0 {
        return Ok(None);
    }
    for _ in 0..MAX_STEPS {
        let middle = rounded((low + high) / 2.0);
        if middle <= low || middle >= high {
            return Ok(None);
        }
        let found = measure(middle)?;
        let error = found.mean - target;
        if error.abs() <= (tolerance + found.half_width) / 2.0 {
            return Ok(Some((middle, found)));
        }
        if error * at_low > 0.0 { low = middle } else { high = middle }
    }
    Ok(None)
}

/// A number with [`DIGITS`] significant digits.
fn rounded(number: f64) -> f64 {
    let decimals = (DIGITS - 1 - number.abs().log10().floor() as i32).max(0) as usize;
    format!("{number:.decimals$}").parse().unwrap_or(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exactly(mean: f64) -> Result<FitValue, Failure> {
        Ok(FitValue { mean, half_width: 0.0 })
    }

    /// 400 exp(-x / 100) is 100 at x = 100 ln 4 = 138.6, where it falls by one per unit.
    #[test]
    fn the_search_finds_the_constant_of_a_closed_form() {
        let mut tried = Vec::new();
        let found = search([50.0, 500.0], 100.0, 1.0, |x| {
            tried.push(x);
            exactly(400.0 * (-x / 100.0).exp())
        });
        let (constant, found) = found.unwrap().unwrap();
        assert!((constant - 100.0 * 4.0_f64.ln()).abs() <= 0.51, "{constant}");
        assert!((found.mean - 100.0).abs() <= 0.5, "half of the tolerance: {found:?}");
        assert!(tried.len() <= 2 + MAX_STEPS && tried.iter().all(|x| (50.0..=500.0).contains(x)), "{tried:?}");
        let (rising, _) = search([0.001, 0.05], 4.0, 0.04, |x| exactly(1000.0 * x)).unwrap().unwrap();
        assert!((rising - 0.004).abs() <= 0.000_02, "{rising}");
    }

    #[test]
    fn what_no_constant_meets_is_not_found() {
        assert_eq!(search([50.0, 500.0], 100.0, 1.0, |_| exactly(7.0)).unwrap(), None, "beyond both bounds");
        let step = |x: f64| exactly(if x < 200.0 { 0.0 } else { 400.0 });
        assert_eq!(search([50.0, 500.0], 100.0, 1.0, step).unwrap(), None, "it jumps over the target");
    }

    #[test]
    fn constants_have_three_digits() {
        assert_eq!([228.4, 0.012_346, 1234.0].map(rounded), [228.0, 0.0123, 1234.0]);
    }
}
