//! Records in, tables and plots out: for the terminal, and as one HTML page that needs nothing beside itself.
//!
//! The scenario file says what is shown: [`layout()`] reads it. A [`Study`] is what a results folder holds: what was run and its records. From it come [`terminal`] tables and the
//! [`html`] page. With a [`Baseline`], another driver's runs of the same cells, tables and charts show both. A
//! [`Comparison`] sets two studies side by side; one or several go to the terminal ([`compare_terminal`]) and on a page
//! ([`compare_html`]).
//! Values are never made up: what was published but not run is shown as coming, and what was run but never published
//! stands alone. What disturbed runs have a part in is mark_disturbed, and so are outliers among runs.

mod bars;
mod caption;
mod chart;
mod claim;
mod colour;
mod compare;
mod cpu;
mod decimate;
mod dot_plot;
mod estimate;
mod figure;
mod grid;
mod html;
mod layout;
mod load;
mod markup;
mod number;
mod overview;
mod rank;
mod resample;
mod sample;
mod series;
mod study;
mod subject;
mod summary;
mod svg;
mod terminal;
mod text;
mod trajectory;
mod validate;
mod value;

pub use compare::Comparison;
pub use html::{compare_html, html};
pub use layout::{BY_FLOW, Claim, Column, Figure, Layout, Reference, Scope, Table, Test, schema};
pub use study::{Baseline, Study};
pub use terminal::{compare_terminal, terminal};
pub use validate::layout;
