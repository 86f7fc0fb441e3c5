//! Policies: ONNX models, evaluated by the code that the simulator and the tunnel run.

use crate::error;
use ::policy::onnx::{Evaluator, Model};
use pyo3::prelude::*;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

/// A policy that was read from an ONNX file.
#[pyclass(module = "ropewalk._native")]
pub(crate) struct Policy(Evaluator);

#[pymethods]
impl Policy {
    /// Reads the file at `path`.
    #[new]
    fn new(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        let bytes = std::fs::read(&path)?;
        let model = Model::read(&bytes);
        let model = model.map_err(|error| error::policy(py, &format!("{}: {error}", path.display())))?;
        Ok(Self(Evaluator::new(Arc::new(model))))
    }

    /// The action for an observation: the bits that the simulator and the tunnel get.
    fn act(&mut self, py: Python<'_>, observation: Vec<f32>) -> PyResult<Vec<f32>> {
        let expected = self.0.model().input_len();
        if observation.len() != expected {
            let message = format!("an observation of {} numbers; the policy takes {expected}", observation.len());
            return Err(error::policy(py, &message));
        }
        Ok(self.0.evaluate(&observation).to_vec())
    }

    /// Numbers in an observation.
    #[getter]
    fn observation_size(&self) -> usize {
        self.0.model().input_len()
    }

    /// Numbers in an action.
    #[getter]
    fn action_size(&self) -> usize {
        self.0.model().output_len()
    }

    /// The file's metadata, with the keys `ropewalk.observation`, `ropewalk.action` and so on.
    #[getter]
    fn metadata(&self) -> BTreeMap<String, String> {
        self.0.model().metadata().clone()
    }
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Policy>()
}
