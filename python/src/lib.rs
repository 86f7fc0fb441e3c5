//! The extension module `ropewalk._native`: the native part of the Python package `ropewalk`. It has bindings only, no
//! logic.
//!
//! Each area has a file of its own with `pub(crate) fn register(module)`, and one line in `_native`; its types are
//! described for editors and mypy in `ropewalk/_native.pyi`.

#![allow(clippy::needless_pass_by_value, reason = "pyo3 converts arguments into values")]

use pyo3::prelude::*;

mod algorithm;
mod calibration;
mod colour;
mod error;

mod learning;
mod policy;
mod quantity;
mod results;
mod run;
mod scenario;
mod shard;
mod table;
mod trace;

/// The module of the package itself.
#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    fill(module)
}

/// Fills a module: that of the package, or that of a plug-in, which has already registered its algorithms.
///
/// # Errors
/// An error of Python, if there is not enough memory.
pub fn fill(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    ::policy::register();
    learning::register(module)?;
    algorithm::register(module)?;
    policy::register(module)?;
    colour::register(module)?;
    calibration::register(module)?;
    quantity::register(module)?;
    results::register(module)?;
    run::register(module)?;
    scenario::register(module)?;
    shard::register(module)?;
    table::register(module)?;
    trace::register(module)?;
    Ok(())
}
