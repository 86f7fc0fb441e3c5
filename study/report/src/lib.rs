//! Reports: tables and charts of the records of a study, for the terminal and as one self-contained HTML page.
//!
//! [`layout()`] reads from the scenario file which tables, figures and claims a report has. A [`Study`] is the content
//! of a results folder; [`terminal`] and [`html`] make the report. With a [`Baseline`], another driver's runs of the
//! same cells, tables and charts show both. A [`Comparison`] sets two studies side by side, in the terminal
//! ([`compare_terminal`]) and on a page ([`compare_html`]).
//!
//! A published value that was not run is shown as such, and a value that was never published stands alone. Values of
//! disturbed runs are marked, and so are outliers.

mod answer;
mod axes;
mod bars;
mod caption;
mod chart;
mod claim;
pub mod colour;
mod compare;
mod copies;
mod cpu;
mod csv;
mod decimate;
mod defaults;
mod diagnosis;
mod direction;
mod distribution;
mod dot_plot;
mod drawing;
mod estimate;
mod export;
mod figure;
mod fit;
mod flow_record;
mod grid;
mod heat_map;
mod html;
mod layout;
mod live;
mod load;
mod marker;
mod marks;
mod notebook;
mod number;
mod overview;
mod plane;
mod provenance;
mod rank;
mod resample;
mod sample;
mod samples;
mod scatter;
mod series;
mod shares;
mod short;
mod states;
mod study;
mod summary;
mod svg;
mod terminal;
mod text;
mod trajectory;
mod validate;
mod value;

pub use claim::{ClaimColumn, claims_document, claims_table, verdicts_table};
pub use compare::Comparison;
pub use export::{FigureFile, figure_files};
pub use fit::FitValue;
pub use html::{compare_html, html, style};
pub use layout::{
    BY_FLOW, Claim, Column, Figure, Fit, Form, HeatMap, Layout, Reference, Scale, Scope, Table, Test, schema,
};
pub use live::{live, live_style, live_sweep};
pub use notebook::{CellEstimate, estimates, html_tables, value_label};
pub use provenance::{Provenance, shell};
pub use study::{Baseline, Study};
pub use terminal::{compare_terminal, terminal};
pub use validate::{fits, layout};
