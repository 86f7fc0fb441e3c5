//! A policy file: an ONNX model whose metadata describes the policy's observation and action.

use crate::onnx::{Evaluator, Model, ModelError};
use crate::{Action, Interval, Observation, Policy, PolicyError, SchedulerFile, Settings};
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// The supported version of the metadata.
const VERSION: &str = "1";
/// Maximum number of paths for which one policy may decide.
pub(crate) const MAX_PATHS: usize = 32;

/// The key of the number of values that a recurrent policy carries from decision to decision.
const STATE: &str = "ropewalk.state";

/// A policy that was read from a file.
#[derive(Clone, Debug)]
pub struct PolicyFile {
    model: Arc<Model>,
    settings: Settings,
}

impl PolicyFile {
    /// Reads an ONNX file with the keys `ropewalk.version` (1), `ropewalk.observation`, `ropewalk.history`,
    /// `ropewalk.action`, `ropewalk.interval` (`rtt`, or a time in ms or us) and `ropewalk.paths`. With `ropewalk.state`, that many
    /// values at the end of the model's output return at the end of its next input; they are 0 at first.
    ///
    /// # Errors
    /// A model that [`Model::read`] refuses, a key that is missing or has an unknown value, or a model whose vectors do
    /// not have the lengths that the keys imply.
    pub fn read(bytes: &[u8]) -> Result<Self, ModelError> {
        let model = Model::read(bytes)?;
        let settings = settings(&model)?;
        check_lengths(&model, settings.observation_len(), settings.action_len())?;
        Ok(Self { model: Arc::new(model), settings })
    }

    /// As [`PolicyFile::read`]. Bytes that have been read before, and are still held by a caller, are not parsed again.
    ///
    /// # Errors
    /// As [`PolicyFile::read`].
    pub fn shared(bytes: &Arc<[u8]>) -> Result<Arc<Self>, ModelError> {
        static FILES: Shared<PolicyFile> = Shared::new();
        FILES.get(bytes, Self::read)
    }

    /// The policy's observation, interval and action.
    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The model.
    #[must_use]
    pub fn model(&self) -> &Arc<Model> {
        &self.model
    }

    /// Notes on the file for the user, one sentence each.
    #[must_use]
    pub fn notes(&self) -> Vec<String> {
        self.model.notes()
    }

    /// An instance of the policy, with its own memory.
    #[must_use]
    pub fn policy(&self) -> Box<dyn Policy> {
        Box::new(ModelPolicy::new(self.model.clone()).expect("the file has been checked"))
    }
}

/// The bytes of a file, and what has been parsed from them.
type ReadFile<T> = (Weak<[u8]>, Arc<T>);

/// What has been parsed from bytes that are still held by a caller.
#[derive(Debug)]
pub(crate) struct Shared<T>(Mutex<Vec<ReadFile<T>>>);

impl<T> Shared<T> {
    pub(crate) const fn new() -> Self {
        Self(Mutex::new(Vec::new()))
    }

    /// What `read` has made of these bytes, or makes of them now.
    pub(crate) fn get(
        &self,
        bytes: &Arc<[u8]>,
        read: impl FnOnce(&[u8]) -> Result<T, ModelError>,
    ) -> Result<Arc<T>, ModelError> {
        let mut files = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        files.retain(|(bytes, _)| bytes.strong_count() > 0);
        let key = Arc::downgrade(bytes);
        if let Some((_, file)) = files.iter().find(|(other, _)| other.ptr_eq(&key)) {
            return Ok(file.clone());
        }
        let file = Arc::new(read(bytes)?);
        files.push((key, file.clone()));
        Ok(file)
    }
}

pub(crate) fn text<'m>(model: &'m Model, key: &'static str) -> Result<&'m str, ModelError> {
    model.metadata().get(key).map(|text| text.trim()).ok_or_else(|| {
        ModelError::Metadata(
            key,
            "is missing; `ropewalk.learning.metadata` makes the keys that docs/reference/policies.md lists".to_owned(),
        )
    })
}

pub(crate) fn count(model: &Model, key: &'static str, [min, max]: [usize; 2]) -> Result<usize, ModelError> {
    let text = text(model, key)?;
    let count = text.parse().ok().filter(|count| (min..=max).contains(count));
    count.ok_or_else(|| ModelError::Metadata(key, format!("`{text}` is not a number from {min} to {max}")))
}

/// Number of values that a model carries from decision to decision.
pub(crate) fn state_len(model: &Model) -> Result<usize, ModelError> {
    if !model.metadata().contains_key(STATE) {
        return Ok(0);
    }
    let most = model.input_len().min(model.output_len()).saturating_sub(1);
    count(model, STATE, [1, most])
}

/// Checks that a model takes observations and gives actions of these lengths, each with its state.
pub(crate) fn check_lengths(model: &Model, observation: usize, action: usize) -> Result<(), ModelError> {
    let state = state_len(model)?;
    let and_state = if state > 0 { " with the state" } else { "" };
    let lengths = [
        ("input", model.input_len(), observation + state, "the observation"),
        ("output", model.output_len(), action + state, "the action"),
    ];
    match lengths.into_iter().find(|(_, is, wanted, _)| is != wanted) {
        None => Ok(()),
        Some((side, is, wanted, what)) => {
            Err(ModelError::Signature(format!("{side} of {is} numbers, {what}{and_state} has {wanted}")))
        }
    }
}

/// Checks that this program reads a model's metadata.
pub(crate) fn check_version(model: &Model) -> Result<(), ModelError> {
    let version = text(model, "ropewalk.version")?;
    if version == VERSION {
        return Ok(());
    }
    let message = format!("`{version}` is not supported; this program reads version {VERSION}");
    Err(ModelError::Metadata("ropewalk.version", message))
}

/// What a policy observes of the monitor intervals, and these intervals.
pub(crate) fn intervals(model: &Model) -> Result<(Observation, Interval), ModelError> {
    let history = count(model, "ropewalk.history", [1, usize::MAX])?;
    let observation = Observation::parse(text(model, "ropewalk.observation")?, Some(history))
        .map_err(|error| ModelError::Metadata("ropewalk.observation", error.to_string()))?;
    let interval = Interval::parse(text(model, "ropewalk.interval")?)
        .map_err(|error| ModelError::Metadata("ropewalk.interval", error))?;
    Ok((observation, interval))
}

fn settings(model: &Model) -> Result<Settings, ModelError> {
    check_version(model)?;
    let action = text(model, "ropewalk.action")?;
    if SchedulerFile::ACTIONS.contains(&action) {
        let message = format!("`{action}` is a scheduler's; name the file in `scheduler`, not in `congestion`");
        return Err(ModelError::Metadata("ropewalk.action", message));
    }
    let action = Action::parse(action).map_err(|error| ModelError::Metadata("ropewalk.action", error.to_string()))?;
    let (observation, interval) = intervals(model)?;
    Ok(Settings { observation, action, interval, paths: count(model, "ropewalk.paths", [1, MAX_PATHS])? })
}

/// A policy that answers by a model, with the state that the model carries from decision to decision.
#[derive(Debug)]
pub struct ModelPolicy {
    evaluator: Evaluator,
    /// An observation, and the state after it.
    input: Vec<f32>,
    state: usize,
}

impl ModelPolicy {
    /// A policy before its first decision.
    ///
    /// # Errors
    /// A state in the metadata that is no number, or too many values for the model.
    pub fn new(model: Arc<Model>) -> Result<Self, ModelError> {
        let (state, input) = (state_len(&model)?, vec![0.0; model.input_len()]);
        Ok(Self { evaluator: Evaluator::new(model), input, state })
    }

    /// The model.
    #[must_use]
    pub fn model(&self) -> &Arc<Model> {
        self.evaluator.model()
    }

    /// Number of values of an observation.
    #[must_use]
    pub fn observation_len(&self) -> usize {
        self.input.len() - self.state
    }

    /// Number of values of an action.
    #[must_use]
    pub fn action_len(&self) -> usize {
        self.model().output_len() - self.state
    }

    /// Forgets the state, as before the first decision.
    pub fn reset(&mut self) {
        self.input.fill(0.0);
    }
}

impl Policy for ModelPolicy {
    fn act(&mut self, observation: &[f32], action: &mut [f32]) -> Result<(), PolicyError> {
        self.input[..observation.len()].copy_from_slice(observation);
        let (answer, next) = self.evaluator.evaluate(&self.input).split_at(action.len());
        action.copy_from_slice(answer);
        let state = &mut self.input[observation.len()..];
        state.copy_from_slice(next);
        match state.iter().find(|number| !number.is_finite()) {
            Some(number) => Err(PolicyError(format!("the policy's state is {number}"))),
            None => Ok(()),
        }
    }
}
