//! Policies: ONNX models, evaluated by the code that the simulator and the tunnel run.

use crate::error;
use ::policy::onnx::Model;
use ::policy::{ModelPolicy, Policy as _};
use control::ParamValue;
use pyo3::prelude::*;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

/// A policy that was read from an ONNX file.
#[pyclass(module = "ropewalk._native")]
pub(crate) struct Policy(ModelPolicy);

#[pymethods]
impl Policy {
    /// Reads the file at `path`, of at most 16 MiB.
    #[new]
    fn new(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        let ParamValue::File { bytes, .. } = ParamValue::read_file(&path)? else { unreachable!("it is a file's") };
        let policy = Model::read(&bytes).and_then(|model| ModelPolicy::new(Arc::new(model)));
        policy.map(Self).map_err(|error| error::policy(py, &format!("{}: {error}", path.display())))
    }

    /// The action for an observation of n numbers, or of one row of n: the bits that the simulator and the tunnel get. A
    /// recurrent policy goes on from its last decision.
    fn act(&mut self, py: Python<'_>, observation: &Bound<'_, PyAny>) -> PyResult<Vec<f32>> {
        let expected = self.0.observation_len();
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
        let mut action = vec![0.0; self.0.action_len()];
        self.0.act(observation, &mut action).map_err(|error| error::policy(py, &error.to_string()))?;
        Ok(action)
    }

    /// Forgets the state of a recurrent policy, for another connection.
    fn reset(&mut self) {
        self.0.reset();
    }

    /// Notes on the file for the user, one sentence each.
    #[getter]
    fn notes(&self) -> Vec<String> {
        self.0.model().notes()
    }

    /// Numbers in an observation.
    #[getter]
    fn observation_size(&self) -> usize {
        self.0.observation_len()
    }

    /// Numbers in an action.
    #[getter]
    fn action_size(&self) -> usize {
        self.0.action_len()
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
