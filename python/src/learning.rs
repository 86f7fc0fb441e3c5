//! Learning environments: many worlds, stepped without the GIL, that write into NumPy's arrays.

use crate::error;
use ::learning::{Batch, Config, Environment, Kind, MEASURES, Outputs, Saved};
use ::policy::{Feature, Settings};
use numpy::{PyReadonlyArrayDyn, PyReadwriteArrayDyn};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyType;
use std::sync::{Mutex, PoisonError};

/// Environments of one configuration. Each array has one row per environment.
#[pyclass(module = "ropewalk._native")]
pub(crate) struct Environments(Mutex<Batch>); // a pyclass is Sync; nothing ever waits for the lock

/// A saved episode as a tuple.
type Episode = (String, u64, u64, bool, Vec<f32>);
/// Class, arguments and state, as pickle wants them.
type Reduced<'py> = (Bound<'py, PyType>, (String, usize, usize), Vec<Episode>);

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
    fn __setstate__(&mut self, py: Python<'_>, episodes: Vec<Episode>) -> PyResult<()> {
        let saved = |(config, seed, episode, is_over, actions)| Saved { config, seed, episode, is_over, actions };
        let saved: Vec<Saved> = episodes.into_iter().map(saved).collect();
        let batch = self.batch();
        py.detach(|| batch.restore(&saved)).map_err(|fault| error::environment(py, &fault.to_string()))
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

    /// What a policy of these environments observes and decides, for its file; None for weights, which no file decides.
    #[getter]
    fn meaning(&mut self) -> Option<(String, usize, String, String, usize)> {
        let config = self.batch().config();
        let Settings { observation, action, interval, paths } = &config.settings;
        (config.kind != Kind::Weights)
            .then(|| (observation.to_string(), observation.history(), action.to_string(), interval.to_string(), *paths))
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
    module.add_class::<Environments>()
}
