//! Quantities with units, as scenarios and results have them.

use parse::{BitRate, Packets, Percent, Quantity, Size, Time};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// The number and the unit of a quantity: seconds, bits per second, bytes, packets, or percent.
#[pyfunction]
fn quantity(text: &str) -> PyResult<(f64, &'static str)> {
    let time = || Time::parse(text).ok().map(|time| (time.0.0 as f64 / 1e9, "s"));
    let rate = || BitRate::parse(text).ok().map(|rate| (rate.0.0 as f64, "bit/s"));
    let size = || Size::parse(text).ok().map(|size| (size.0 as f64, "B"));
    let packets = || Packets::parse(text).ok().map(|packets| (f64::from(packets.0), "packets"));
    let percent = || Percent::parse(text).ok().map(|percent| (percent.0 * 100.0, "%"));
    let known = time().or_else(rate).or_else(size).or_else(packets).or_else(percent);
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
