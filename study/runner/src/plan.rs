//! The runs that a driver makes of a scenario.

use crate::{Driver, Error};
use scenario::Scenario;
use store::Key;

/// The runs of a study, by cell and seed.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Cell and seed of each run.
    pub keys: Vec<Key>,
    /// What the driver notes about the scenario, for the user.
    pub notes: Vec<String>,
}

/// Plans every cell that `driver` runs with every seed. With `partial`, cells that it cannot run are left out.
///
/// # Errors
/// The driver cannot run a cell, and `partial` is not set.
pub fn plan(scenario: &Scenario, driver: &dyn Driver, partial: bool) -> Result<Plan, Error> {
    let checked = driver.check(scenario, partial)?;
    let keys = checked.cells.iter().flat_map(|cell| scenario.seeds.iter().map(move |seed| (*cell, *seed))).collect();
    Ok(Plan { keys, notes: checked.notes })
}
