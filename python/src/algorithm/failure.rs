//! Exceptions of algorithms in Python: they end the run.

use control::AlgorithmError;
use pyo3::prelude::*;
use std::fmt;

/// An exception with its traceback, and the arguments of the algorithm's call.
#[derive(Debug)]
pub(crate) struct PythonError(String);

impl fmt::Display for PythonError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for PythonError {}

impl PythonError {
    /// `what` names the algorithm that failed and the input.
    pub(crate) fn new(py: Python<'_>, what: &str, error: &PyErr) -> Self {
        let lines = py
            .import("traceback")
            .and_then(|module| {
                module.call_method1("format_exception", (error.get_type(py), error.value(py), error.traceback(py)))
            })
            .and_then(|lines| lines.extract::<Vec<String>>());
        let text = lines.map_or_else(|_| error.to_string(), |lines| lines.concat());
        Self(format!("{what}\n{}", text.trim_end()))
    }

    /// Ends the run.
    pub(crate) fn raise(&self) -> ! {
        AlgorithmError(Box::new(Self(self.0.clone()))).raise()
    }
}

/// The value, or the end of the run; `what` names the algorithm that failed and the input.
pub(crate) fn expect<T>(py: Python<'_>, result: PyResult<T>, what: impl FnOnce() -> String) -> T {
    result.unwrap_or_else(|error| PythonError::new(py, &what(), &error).raise())
}
