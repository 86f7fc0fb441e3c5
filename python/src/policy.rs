//! Policies: ONNX models, evaluated by the code that the simulator and the tunnel run.

use crate::error;
use ::policy::onnx::{Evaluator, Model};
use control::ParamValue;
use pyo3::prelude::*;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

/// A policy that was read from an ONNX file.
#[pyclass(module = "ropewalk._native")]
pub(crate) struct Policy(Evaluator);

#[pymethods]
impl Policy {
    /// Reads the file at `path`, of at most 16 MiB.
    #[new]
    fn new(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        let ParamValue::File { bytes, .. } = ParamValue::read_file(&path)? else { unreachable!("it is a file's") };
        let model = Model::read(&bytes);
        let model = model.map_err(|error| error::policy(py, &format!("{}: {error}", path.display())))?;
        Ok(Self(Evaluator::new(Arc::new(model))))
    }

    /// The action for an observation of n numbers, or of one row of n: the bits that the simulator and the tunnel get.
    fn act(&mut self, py: Python<'_>, observation: &Bound<'_, PyAny>) -> PyResult<Vec<f32>> {
        let expected = self.0.model().input_len();
        let rows = observation.extract().map_or_else(|_| observation.extract(), |row| Ok(vec![row]));
        let rows: Vec<Vec<f32>> = rows.map_err(|_| {
            let message = format!("an observation is {expected} numbers, or one row of them");
            error::policy(py, &message)
        })?;
        let observation = match rows.as_slice() {
            [row] if row.len() == expected => row,
            [row] => {
                let message = format!("an observation of {} numbers; the policy takes {expected}", row.len());
                return Err(error::policy(py, &message));
            }
            rows => {
                let message = format!("{} observations; a policy takes one after the other", rows.len());
                return Err(error::policy(py, &message));
            }
        };
        Ok(self.0.evaluate(observation).to_vec())
    }

    /// Notes on the file for the user, one sentence each.
    #[getter]
    fn notes(&self) -> Vec<String> {
        self.0.model().notes()
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
