//! The report's colours, dashes and markers.

use pyo3::prelude::*;
use report::colour::{self, Colour};

/// The looks of `names` in one figure: a colour for a light and for a dark page, the lengths of dashes and gaps (empty if solid), and
/// matplotlib's name of a marker.
#[pyfunction]
fn looks(names: Vec<String>) -> Vec<(Colour, Vec<f64>, &'static str)> {
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let look = |look: colour::Look| {
        let lengths = look.dashes.split_whitespace().filter_map(|length| length.parse().ok()).collect();
        (look.colour, lengths, look.marker)
    };
    colour::of_several(&names).into_iter().map(look).collect()
}

/// The colour of the path `index`, for a light and for a dark page.
#[pyfunction]
fn path_colour(index: usize) -> [&'static str; 2] {
    colour::of_path(index)
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(looks, module)?)?;
    module.add_function(wrap_pyfunction!(path_colour, module)?)
}
