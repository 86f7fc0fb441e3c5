//! The whole extension module of Ropewalk's Python package, with one more algorithm. The package finds it by its entry
//! point (`pyproject.toml`) and takes it in place of its own: nothing is shared between separately compiled libraries.

use pyo3::exceptions::PyImportError;
use pyo3::prelude::*;

#[pymodule]
fn ropewalk_plugin_example(module: &Bound<'_, PyModule>) -> PyResult<()> {
    plugin_example::register().map_err(|error| PyImportError::new_err(error.to_string()))?;
    extension::fill(module)
}
