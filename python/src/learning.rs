//! Learning environments: many worlds, stepped without the GIL, that write into NumPy's arrays.

use crate::error;
use crate::results::Results;
use crate::scenario::Scenario;
use ::learning::{Batch, Config, Environment, Episode, MEASURES, Outputs, Saved, World, Worlds};
use ::policy::{CONNECTION_FEATURES, Feature, PATH_FEATURES, PacketFeature};
use numpy::{PyReadonlyArrayDyn, PyReadwriteArrayDyn};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyType;
use runner::{Simulator, Study};
use std::sync::{Mutex, PoisonError};

/// Environments of one configuration. Each array has one row per environment.
#[pyclass(module = "ropewalk._native")]
pub(crate) struct Environments(Mutex<Batch>); // a pyclass is Sync; nothing ever waits for the lock

/// A saved episode as a tuple.
type SavedEpisode = (String, u64, u64, bool, Vec<f32>);
/// The seed of a world, the swept keys and shown values of its cell, and the text of a drawn one without traces.
type WorldFacts = (u64, Vec<(String, String)>, Option<String>);
/// The rewards of each step and learner, the rows of measures, the world, and the record.
type Measured = (Vec<f64>, Vec<f64>, WorldFacts, Record);
/// Class, arguments and state, as pickle wants them.
type Reduced<'py> = (Bound<'py, PyType>, (String, usize, usize), Vec<SavedEpisode>);

/// The record of an episode, which [`Results`] are made from.
#[pyclass(frozen, module = "ropewalk._native")]
pub(crate) struct Record(::record::Run);

#[pymethods]
impl Record {
    /// The results of the scenario of one run that makes this record.
    fn results(&self, py: Python<'_>, scenario: &Scenario) -> PyResult<Results> {
        let made = py.detach(|| Ok(Study::new(&scenario.0, &Simulator, false, Vec::new())?.with_run(self.0.clone())));
        let (manifest, runs) = made.map_err(|error| error::runner(py, &error))?;
        Results::new(py, manifest, runs, None)
    }
}

fn parse(py: Python<'_>, config: &str) -> PyResult<Config> {
    Config::parse(config).map_err(|fault| error::environment(py, &fault.to_string()))
}

fn check(name: &str, len: usize, expected: usize) -> PyResult<()> {
    let message = || format!("{name} has {len} numbers, but needs {expected}");
    if len == expected { Ok(()) } else { Err(PyValueError::new_err(message())) }
}

fn check_rows(batch: &Batch, observations: &[f32], measures: &[f64]) -> PyResult<()> {
    let learners = batch.len() * batch.config().learners;
    check("observations", observations.len(), learners * batch.config().observation_len())?;
    check("measures", measures.len(), learners * MEASURES.len())
}

fn facts(batch: &Batch, world: &World) -> WorldFacts {
    match &batch.config().worlds {
        Worlds::Scenario(worlds) => (world.seed, worlds.parameters(world.cell).to_vec(), None),
        Worlds::Drawn(_) => (world.seed, Vec::new(), world.to_toml()),
    }
}

impl Environments {
    fn batch(&mut self) -> &mut Batch {
        self.0.get_mut().unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl Environments {
    /// `count` environments of a configuration in JSON, stepped by at most `threads` threads.
    #[new]
    fn new(py: Python<'_>, config: &str, count: usize, threads: usize) -> PyResult<Self> {
        Ok(Self(Mutex::new(Batch::new(parse(py, config)?, count, threads))))
    }

    /// Takes the ranges of another configuration for the episodes to come.
    fn set_config(&mut self, py: Python<'_>, config: &str) -> PyResult<()> {
        self.batch().set_config(parse(py, config)?).map_err(|fault| error::environment(py, &fault))
    }

    /// Begins the episode of a seed, or the next one of the previous seed, in the environments of the mask.
    fn reset(
        &mut self,
        py: Python<'_>,
        seeds: Vec<Option<u64>>,
        mask: Vec<bool>,
        mut observations: PyReadwriteArrayDyn<'_, f32>,
        mut measures: PyReadwriteArrayDyn<'_, f64>,
    ) -> PyResult<()> {
        let (observations, measures) = (observations.as_slice_mut()?, measures.as_slice_mut()?);
        let batch = self.batch();
        check_rows(batch, observations, measures)?;
        check("seeds", seeds.len(), batch.len())?;
        check("mask", mask.len(), batch.len())?;
        let mut out = Outputs { observations, rewards: &mut [], truncated: &mut [], measures };
        py.detach(|| batch.reset(&seeds, &mask, &mut out));
        Ok(())
    }

    /// Steps every environment.
    fn step(
        &mut self,
        py: Python<'_>,
        actions: PyReadonlyArrayDyn<'_, f32>,
        mut observations: PyReadwriteArrayDyn<'_, f32>,
        mut rewards: PyReadwriteArrayDyn<'_, f64>,
        mut truncated: PyReadwriteArrayDyn<'_, bool>,
        mut measures: PyReadwriteArrayDyn<'_, f64>,
    ) -> PyResult<()> {
        let (actions, observations, measures) =
            (actions.as_slice()?, observations.as_slice_mut()?, measures.as_slice_mut()?);
        let (rewards, truncated) = (rewards.as_slice_mut()?, truncated.as_slice_mut()?);
        let batch = self.batch();
        let learners = batch.len() * batch.config().learners;
        check_rows(batch, observations, measures)?;
        check("actions", actions.len(), learners * batch.config().action_len())?;
        check("rewards", rewards.len(), learners)?;
        check("truncated", truncated.len(), batch.len())?;
        let mut out = Outputs { observations, rewards, truncated, measures };
        batch.check(actions).map_err(|fault| error::action(py, &fault, batch.len(), batch.config().learners))?;
        py.detach(|| batch.step(actions, &mut out));
        Ok(())
    }

    /// For pickle and copies: the configuration, the number of environments and threads, and the episodes.
    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Reduced<'py>> {
        let mut environments = slf.borrow_mut();
        let batch = environments.batch();
        let saved = batch.save().into_iter();
        let saved = saved.map(|it| (it.config, it.seed, it.episode, it.is_over, it.actions)).collect();
        let arguments = (batch.config().text.to_string(), batch.len(), batch.threads());
        Ok((slf.get_type(), arguments, saved))
    }

    /// Repeats the episodes of `__reduce__` up to where they were.
    fn __setstate__(&mut self, py: Python<'_>, episodes: Vec<SavedEpisode>) -> PyResult<()> {
        let saved = |(config, seed, episode, is_over, actions)| Saved { config, seed, episode, is_over, actions };
        let saved: Vec<Saved> = episodes.into_iter().map(saved).collect();
        let batch = self.batch();
        py.detach(|| batch.restore(&saved)).map_err(|fault| error::environment(py, &fault.to_string()))
    }

    /// The world of an environment's episode; None before the first.
    fn world(&mut self, index: usize) -> Option<WorldFacts> {
        let batch = self.batch();
        Some(facts(batch, &batch.world(index)?))
    }

    /// The record of an environment's episode that is over; None before its end.
    fn record(&mut self, py: Python<'_>, index: usize) -> Option<Record> {
        let batch = self.batch();
        py.detach(move || batch.record(index)).map(Record)
    }

    /// An episode with a classical algorithm, in the world of a seed or of an environment's episode.
    fn baseline(&mut self, py: Python<'_>, index: usize, name: Option<&str>, seed: Option<u64>) -> PyResult<Measured> {
        let batch = self.batch();
        let episode = py.detach(move || batch.baseline(index, name, seed));
        let Episode { world, rewards, measures, run } =
            episode.map_err(|fault| error::environment(py, &fault.to_string()))?;
        Ok((rewards, measures, facts(self.batch(), &world), Record(run)))
    }

    /// What actions change: `single`, `subflows`, `weights`, `path` or `packet`.
    #[getter]
    fn decides(&mut self) -> &'static str {
        self.batch().config().kind.name()
    }

    /// The names of the flows of a scenario that learn; none for drawn worlds.
    #[getter]
    fn flows(&mut self) -> Vec<String> {
        match &self.batch().config().worlds {
            Worlds::Scenario(worlds) => worlds.flows().into_iter().map(str::to_owned).collect(),
            Worlds::Drawn(_) => Vec::new(),
        }
    }

    /// Number of learning flows of an environment.
    #[getter]
    fn learners(&mut self) -> usize {
        self.batch().config().learners
    }

    /// Numbers of a learner's action.
    #[getter]
    fn action_size(&mut self) -> usize {
        self.batch().config().action_len()
    }

    /// The maximum absolute value of an action.
    #[getter]
    fn action_limit(&mut self) -> f32 {
        self.batch().config().action_limit()
    }

    /// The minimum and the maximum of each number in a learner's observation.
    #[getter]
    fn observation_range(&mut self) -> Vec<[f32; 2]> {
        self.batch().config().observation_range()
    }

    /// What a policy of these environments observes and decides, for its file.
    #[getter]
    fn meaning(&mut self) -> (String, usize, String, String, usize) {
        self.batch().config().meaning()
    }

    /// Whether a learner of an environment has to decide.
    fn awaits(&mut self, index: usize, learner: usize) -> bool {
        let batch = self.batch();
        let learners = batch.config().learners;
        learner < learners && batch.environment(index).is_some_and(|environment| environment.awaits(learner))
    }

    /// The last interval of an environment as text, one line per learner; empty before the first episode.
    fn describe(&mut self, index: usize) -> String {
        self.batch().environment(index).map_or_else(String::new, Environment::describe)
    }

    /// Packets times links crossed in the current episodes.
    #[getter]
    fn packet_hops(&mut self) -> u64 {
        self.batch().packet_hops()
    }
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("MEASURES", MEASURES.to_vec())?;
    let features = Feature::all().map(|it| (it.name(), it.unit(), it.range(), it.description()));
    module.add("FEATURES", features.collect::<Vec<_>>())?;
    let names =
        |features: &[PacketFeature]| features.iter().map(|it| (it.name, it.unit, it.description)).collect::<Vec<_>>();
    module.add("PACKET_FEATURES", (names(&PATH_FEATURES), names(&CONNECTION_FEATURES)))?;
    module.add_class::<Record>()?;
    module.add_class::<Environments>()
}
