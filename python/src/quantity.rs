//! Quantities with units, as scenarios and results have them.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// The number and the unit of a quantity: seconds, bits per second, bytes, packets, percent, or none.
#[pyfunction]
fn quantity(text: &str) -> PyResult<(f64, &'static str)> {
    let known = parse::number_with_unit(text);
    known.ok_or_else(|| PyValueError::new_err(format!("`{text}` is not a quantity with a unit")))
}

/// The name and the unit of a value of results, for an axis: `goodput_mbps` is "goodput, Mbit/s".
#[pyfunction]
fn value_label(value: &str) -> String {
    report::value_label(value)
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(value_label, module)?)?;
    module.add_function(wrap_pyfunction!(quantity, module)?)
}
