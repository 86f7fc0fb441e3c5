//! Records in, tables and plots out: for the terminal, and as one HTML page that needs nothing beside itself.
//!
//! A [`Study`] is what a results folder holds: what was run and its records. From it come [`terminal`] tables, the
//! [`html`] page, and [`compare_terminal`], which sets two studies side by side. Values are never made up: what was
//! published but not run is shown as coming, and what was run but never published stands alone.

mod chart;
mod colour;
mod compare;
mod decimate;
mod estimate;
mod grid;
mod html;
mod number;
mod study;
mod summary;
mod svg;
mod terminal;
mod text;
mod value;

pub use compare::compare_terminal;
pub use html::html;
pub use scenario::{Layout, Reference, Scope, Table};
pub use study::Study;
pub use terminal::terminal;
pub use value::table_values;
