//! The report's colours.

use pyo3::prelude::*;
use report::colour;

/// The colours of `names` in one figure, each for a light and for a dark page.
#[pyfunction]
fn colours(names: Vec<String>) -> Vec<[&'static str; 2]> {
    colour::of_several(&names.iter().map(String::as_str).collect::<Vec<_>>())
}

/// The colour of the path `index`, for a light and for a dark page.
#[pyfunction]
fn path_colour(index: usize) -> [&'static str; 2] {
    colour::of_path(index)
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(colours, module)?)?;
    module.add_function(wrap_pyfunction!(path_colour, module)?)
}
