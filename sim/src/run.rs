//! Runs an experiment from start to record.

use crate::engine::Engine;
use crate::error::Error;
use crate::summary::summarise;
use scenario::model::Experiment;

/// Runs an experiment with a seed.
///
/// # Errors
/// An algorithm or a parameter that the registry does not know.
///
/// # Panics
/// If packets are not conserved: a mistake in the simulator. If the experiment names a link, path or tunnel that it
/// does not have: the scenario reader gives no such experiment.
pub fn run(experiment: &Experiment, seed: u64) -> Result<record::Run, Error> {
    let experiment = experiment.with_seed(seed);
    let mut engine = Engine::new(&experiment, seed)?;
    engine.run();
    Ok(summarise(engine, &experiment, seed))
}
